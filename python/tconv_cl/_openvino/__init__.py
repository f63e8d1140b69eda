# SPDX-License-Identifier: Apache-2.0
"""What tconv_cl.openvino changes in models, one file for each kind of change."""
