# SPDX-License-Identifier: Apache-2.0
"""What tconv_cl.torch is made of, one file for each subject."""
