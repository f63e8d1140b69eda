#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds with gcov, runs all tests on PoCL, and prints how much of src/ they reach: for each file, and which lines they do not; ends with 1
# below 95 % of the lines. Takes some ten minutes.
# usage: coverage.sh
set -eu
cd "$(dirname "$0")/.."
sh scripts/build.sh
sh scripts/packages.sh gcovr
work=$PWD/build/coverage
rm -rf "$work"
cmake -S . -B "$work" -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS=OFF -DCMAKE_C_FLAGS="--coverage -fprofile-update=atomic" >/dev/null
cmake --build "$work" --parallel "$(nproc)" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
# All but the test of the installed library, which would have to be linked with gcov, too.
OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd ctest --test-dir "$work" --no-tests=error --output-on-failure --parallel "$(nproc)" -E device.install
gcovr --root . "$work" --filter src/ --fail-under-line 95
