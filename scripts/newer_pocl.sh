#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a sample of the device tests, and layers of types that processors have instructions for, on the PoCL of Debian 13 (6.0): that
# system is made in build/trixie, and the programs of build run in it. For Debian 12, as root or with sudo; after scripts/build.sh.
# usage: newer_pocl.sh [PERCENT]      a sample of so many percent; 4 without it
set -eu
cd "$(dirname "$0")/.."
percent=${1:-4}
system=$PWD/build/trixie
. scripts/other_system.sh
make_system trixie pocl-opencl-icd,ocl-icd-libopencl1,libjansson4,libexpat1,libpopt0,libcsv3,libcmocka0

# usage: tconv COMMAND
tconv() {
    inside "$1" POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable LD_LIBRARY_PATH="$PWD/build" TCONV_CL_TEST_PERCENT="$percent" TCONV_CL_CACHE_DIR=/tmp/tconv-cl
}

tconv "build/tconv-cl devices"
$as_root rm -rf "$system/tmp/tconv-cl"
# With a folder for programs: then PoCL compiles for work-groups of any size, too.
for type in f16 bf16 u8 i8; do
    tconv "build/tconv-cl bench --ids B18,S5,B20,B52 --type $type --runs 1 --no-ceilings"
done
$as_root sh -c 'ls "$1"/tmp/tconv-cl/*.program' sh "$system" >/dev/null || { echo "no program was kept on disk" >&2; exit 1; }
for test in words probe special types vectors layer cache wait shares; do
    echo "== $test"
    tconv "build/device_tests/test_$test" >build/trixie.log 2>&1 || { tail -n 20 build/trixie.log >&2; exit 1; }
    tail -n 1 build/trixie.log
done
