#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs, builds, and runs all tests: those on the host, and those on every OpenCL device that the loader finds. Arguments go to ctest,
# for example -L host, or -R families.
set -eu
cd "$(dirname "$0")/.."
sh scripts/build.sh
ctest --test-dir build --output-on-failure --parallel "$(nproc)" "$@"
