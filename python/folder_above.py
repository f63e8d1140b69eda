# SPDX-License-Identifier: Apache-2.0
"""The build backend for pip install ./python: scikit-build-core in the folder above, where pyproject.toml is."""

import os
from pathlib import Path

os.chdir(Path(__file__).resolve().parents[1])

from scikit_build_core.build import *  # noqa: E402, F403
