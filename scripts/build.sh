#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the build needs, and builds everything into build/. More options for CMake may follow.
# usage: build.sh [-DOPTION=VALUE ...]
set -eu
cd "$(dirname "$0")/.."
sh scripts/packages.sh gcc g++ libc6-dev binutils cmake make pkg-config dpkg-dev ocl-icd-opencl-dev opencl-c-headers \
    pocl-opencl-icd libxxhash-dev libpopt-dev libjansson-dev libexpat1-dev libcsv-dev libcmocka-dev
mkdir -p build
cmake -S . -B build "$@" >build/build.log 2>&1 || { cat build/build.log; exit 1; }
cmake --build build --parallel "$(nproc)" >>build/build.log 2>&1 || { tail -n 50 build/build.log; exit 1; }
echo "built: build/tconv-cl and build/libtconv_cl.so"
