#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command with one OpenCL implementation and no other, after installing it where it is missing (Debian 12, as root or with sudo):
#
#   pocl      PoCL, for the CPU
#   intel     Intel's CPU runtime with the Khronos loader, from PyPI, in build/platforms
#   rusticl   rusticl on llvmpipe, of Mesa
#
# usage: on_platform.sh pocl|intel|rusticl COMMAND [ARGUMENT...]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
platform=$1
shift
case $platform in
pocl)
    sh "$root/scripts/packages.sh" pocl-opencl-icd
    export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd
    name="Portable Computing Language"
    ;;
intel)
    place=$root/build/platforms
    wanted=$(cat "$root/.ci/requirements.txt" "$root/python/versions.txt")
    if [ "$(cat "$place/intel/done" 2>/dev/null)" != "$wanted" ]; then
        sh "$root/scripts/packages.sh" python3-venv
        python3 -m venv "$place/intel"
        "$place/intel/bin/pip" install --quiet --requirement "$root/.ci/requirements.txt"
        mkdir -p "$place/vendors"
        echo "$place/intel/lib/libintelocl.so" >"$place/vendors/intel.icd"
        echo "$wanted" >"$place/intel/done"
    fi
    export OCL_ICD_VENDORS="$place/vendors/" LD_LIBRARY_PATH="$place/intel/lib"
    name=Intel
    ;;
rusticl)
    sh "$root/scripts/packages.sh" mesa-opencl-icd
    export OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd RUSTICL_ENABLE=llvmpipe
    name=rusticl
    ;;
*)
    echo "usage: on_platform.sh pocl|intel|rusticl COMMAND [ARGUMENT...]" >&2
    exit 2
    ;;
esac
# Where the tool is built: the implementation is there, or nothing would be tested.
if [ -x "$root/build/tconv-cl" ] && ! "$root/build/tconv-cl" devices | grep -q "$name"; then
    echo "no device of $name is found: tconv-cl devices lists these" >&2
    "$root/build/tconv-cl" devices >&2
    exit 1
fi
exec "$@"
