#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a sample of the device tests, and layers of types that processors have instructions for, on the PoCL of Debian 13 (6.0): that
# system is made in build/trixie, and the programs of build run in it. For Debian 12, as root or with sudo; after scripts/build.sh.
# usage: newer_pocl.sh [PERCENT]      a sample of so many percent; 4 without it
set -eu
cd "$(dirname "$0")/.."
percent=${1:-4}
root=$PWD/build/trixie
sh scripts/packages.sh debootstrap util-linux
if [ "$(id -u)" = 0 ]; then as_root=; else as_root=sudo; fi
if [ ! -e "$root/made" ]; then
    $as_root rm -rf "$root"
    mkdir -p build
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)*\([^ ]*\) .*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)
    $as_root debootstrap --variant=minbase \
        --include=pocl-opencl-icd,ocl-icd-libopencl1,libjansson4,libexpat1,libpopt0,libcsv3,libcmocka0 \
        trixie "$root" "${mirror:-http://deb.debian.org/debian}" >build/trixie.log || { tail -n 5 build/trixie.log >&2; exit 1; }
    $as_root touch "$root/made"
fi

# inside COMMAND: in that system, with this folder in the same place
inside() {
    $as_root unshare --mount sh -c 'mkdir -p "$1$2" && mount --bind "$2" "$1$2" && mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" &&
        mount --bind /sys "$1/sys" &&
        exec chroot "$1" env -i HOME=/tmp PATH=/usr/bin:/bin POCL_AFFINITY=1 POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable \
            LD_LIBRARY_PATH="$2/build" TCONV_CL_TEST_PERCENT="$3" TCONV_CL_CACHE_DIR=/tmp/tconv-cl sh -c "cd \"$2\" && $4"' \
        sh "$root" "$PWD" "$percent" "$1"
}

inside "build/tconv-cl devices"
$as_root rm -rf "$root/tmp/tconv-cl"
# With a folder for programs: then PoCL compiles for work-groups of any size, too.
for type in f16 bf16 u8 i8; do
    inside "build/tconv-cl bench --ids B18,S5,B20,B52 --type $type --runs 1 --no-ceilings"
done
$as_root sh -c 'ls "$1"/tmp/tconv-cl/*.program' sh "$root" >/dev/null || { echo "no program was kept on disk" >&2; exit 1; }
for test in words probe special types vectors session_layer cache wait; do
    echo "== $test"
    inside "build/device_tests/test_$test" >build/trixie.log 2>&1 || { tail -n 20 build/trixie.log >&2; exit 1; }
    tail -n 1 build/trixie.log
done
