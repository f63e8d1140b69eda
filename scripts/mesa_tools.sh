#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes what scripts/mesa_gate.py needs in build/mesa: Mesa's OpenCL for arm64 (rusticl) with its stand-ins for GPUs (mesa-drm-shim), and
# QEMU to run them, from Debian 13; nothing of them is installed. apt checks them against Debian's signatures. Zig, from PyPI, compiles the
# program that builds kernels. For Debian 12, as root or with sudo. usage: mesa_tools.sh
set -eu
cd "$(dirname "$0")/.."
[ $# = 0 ] || { echo "usage: mesa_tools.sh" >&2; exit 2; }
work=$PWD/build/mesa
sysroot=$work/root
# What mesa-opencl-icd for arm64 loads. A C library for 64-bit ARM, LLVM and clang are among it; QEMU is this machine's.
packages="mesa-opencl-icd mesa-libgallium mesa-drm-shim ocl-icd-libopencl1 libc6 libgcc-s1 libstdc++6 libclang-cpp19 libclang-common-19-dev
    libclc-19 libclc-19-dev libllvm19 libllvmspirvlib19.1 libdrm2 libdrm-amdgpu1 libedit2 libbsd0 libmd0 libelf1t64 libexpat1 libffi8
    liblzma5 libtinfo6 libxml2 libz3-4 libzstd1 zlib1g"
. scripts/cross_tools.sh
wanted=$(cat "$0" scripts/mesa_build.c | cksum)
[ "$(cat "$work/done" 2>/dev/null)" != "$wanted" ] || exit 0
sh scripts/packages.sh opencl-c-headers debian-archive-keyring
rm -rf "$work"
mkdir -p "$work/etc/sources" "$work/etc/preferences" "$work/lists/partial" "$work/archives/partial" "$work/vendors"
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)*\([^ ]*\) .*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
    grep -v security | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} trixie main" >"$work/etc/sources.list"

newer() {
    own_apt arm64,amd64 -o Acquire::Languages=none -o Dir::Etc::SourceList="$work/etc/sources.list" -o Dir::Etc::SourceParts="$work/etc/sources" \
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts="$work/etc/preferences" "$@"
}
echo "downloading Mesa for arm64, and QEMU"
newer update
(cd "$work/archives" && newer download $packages qemu-user:amd64)
for package in "$work"/archives/*.deb; do
    case $package in
    */qemu-user*) dpkg -x "$package" "$work/qemu" ;;
    *) dpkg -x "$package" "$sysroot" ;;
    esac
done
rm -rf "$work/archives" "$work/lists"
[ -e "$sysroot/lib" ] || ln -s usr/lib "$sysroot/lib"
echo "$sysroot/usr/lib/aarch64-linux-gnu/libRusticlOpenCL.so.1" >"$work/vendors/rusticl.icd"
mkdir -p "$work/include"
cp -r /usr/include/CL "$work/include/"
zig_commands aarch64-linux-gnu.2.36
"$work/bin/cc" -std=c11 -Wall -Wextra -Werror -O1 -o "$work/build" scripts/mesa_build.c -I"$work/include" \
    "$sysroot/usr/lib/aarch64-linux-gnu/libOpenCL.so.1" -Wl,--allow-shlib-undefined
echo "$wanted" >"$work/done"
