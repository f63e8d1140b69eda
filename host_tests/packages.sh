#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where libraries are missing, CMake names all of Debian's packages at once, and what to leave out; TCONV_BUILD_TOOL=AUTO leaves out
# the tool. The system of this test has no library. usage: packages.sh SOURCE-FOLDER C-COMPILER
set -eu
source=$1
compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/empty" "$work/headers"

# usage: configure OPTION...; the message is in one line of $work/log
configure() {
    rm -rf "$work/build"
    PKG_CONFIG_LIBDIR="$work/empty" cmake -S "$source" -B "$work/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_FIND_ROOT_PATH="$work/empty" \
        -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
        "$@" >"$work/output" 2>&1 && status=0 || status=$?
    tr -s ' \n' ' ' <"$work/output" >"$work/log"
}

# usage: says TEXT
says() {
    grep -qF -e "$1" "$work/log" || { echo "FAILED: no \"$1\" in"; cat "$work/output"; exit 1; }
}

tool="libjansson-dev libexpat1-dev libpopt-dev libcsv-dev"
configure
[ "$status" != 0 ]
says "apt-get install libxxhash-dev opencl-c-headers ocl-icd-opencl-dev libcmocka-dev $tool or build less, and need less: -DTCONV_BUILD_TOOL=OFF -DTCONV_BUILD_TESTS=OFF"
touch "$work/headers/xxhash.h"
library="-DTCONV_OPENCL_AT_RUN_TIME=ON -DTCONV_XXHASH_INCLUDE=$work/headers -DTCONV_OPENCL_INCLUDE=$work/headers"
configure -DTCONV_BUILD_TESTS=OFF $library
[ "$status" != 0 ]
says "apt-get install $tool or build less, and need less: -DTCONV_BUILD_TOOL=OFF "
configure -DTCONV_BUILD_TESTS=OFF -DTCONV_BUILD_TOOL=AUTO $library
says "without the tool, which needs Debian's packages $tool"
[ "$status" = 0 ] || { cat "$work/output"; exit 1; }
configure -DTCONV_BUILD_TESTS=OFF -DTCONV_BUILD_TOOL=OFF $library
[ "$status" = 0 ] || { cat "$work/output"; exit 1; }
