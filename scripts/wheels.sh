#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Python package's wheels into build/wheels, with the C library and the tool inside, from this one machine:
#   manylinux2014 x86-64 and aarch64, macOS 11 arm64 and x86-64   zig
#   Windows x86-64                                                MinGW-w64
#   the extension for OpenVINO, Linux x86-64                      g++
# Then checks them: their metadata, what their libraries need, and that each library but macOS's can be loaded, and the tool run: here, under
# QEMU, and under Wine. The tool is linked with its libraries, from Debian's source packages; their licences are in the wheel.
# For Debian 12 on amd64, as root or with sudo. usage: wheels.sh [--here]
#   --here   only the two for this system: manylinux2014 x86-64, and the extension for OpenVINO
set -eu
cd "$(dirname "$0")/.."
root=$PWD
out=$root/build/wheels
here=${1:-}
linux="x86_64 aarch64"
macos="arm64 x86_64"
case $here in
'') ;;
--here) linux=x86_64 macos= ;;
*) echo "usage: wheels.sh [--here]" >&2; exit 2 ;;
esac
jobs=${CROSS_JOBS:-$(nproc)}
export CMAKE_BUILD_PARALLEL_LEVEL="$jobs"
sh scripts/packages.sh g++ cmake make ocl-icd-opencl-dev opencl-c-headers libxxhash-dev python3-venv binutils qemu-user pocl-opencl-icd
. scripts/cross_tools.sh
rm -rf "$out"
mkdir -p "$out"
[ -x build/wheels-venv/bin/python ] || python3 -m venv build/wheels-venv
python=$root/build/wheels-venv/bin/python
"$python" -m pip install --quiet --requirement packaging/wheels/requirements.txt

# usage: wheel NAME PLATFORM-TAG, with the toolchain in $work
wheel() {
    tool_libraries
    cp packaging/wheels/linked.txt "$sysroot/licenses/"
    mkdir -p "$work/wheel"
    rm -f "$work"/wheel/*.whl
    "$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/wheel" . \
        --config-settings=cmake.args=-DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake" --config-settings=cmake.define.TCONV_WARNINGS_AS_ERRORS=ON \
        --config-settings=cmake.define.TCONV_BUILD_TOOL=ON --config-settings=cmake.define.TCONV_LICENSES="$sysroot/licenses" \
        --config-settings=build-dir="$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    # The backend names the wheel after this machine.
    (cd "$work/wheel" && "$python" -m wheel tags --remove --platform-tag "$2" ./*.whl >/dev/null)
    cp "$work"/wheel/*.whl "$out/"
    rm -rf "$work/unpacked"
    "$python" -m wheel unpack --dest "$work/unpacked" "$work"/wheel/*.whl >/dev/null
    echo "$1: $(basename "$work"/wheel/*.whl)"
}

# Loads the library of the wheel, and runs the tool. usage: try COMPILER... -- COMMAND, which runs a program of the target
try() {
    compile=
    while [ "$1" != -- ]; do compile="$compile $1"; shift; done
    shift
    $compile -o "$work/load_library.exe" packaging/wheels/load_library.c
    export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd
    (cd "$work"/unpacked/*/tconv_cl && "$@" "$work/load_library.exe" ./libtconv_cl.[ds]*)
    tool=$(echo "$work"/unpacked/*/*.data/scripts/tconv-cl*)
    "$@" "$tool" shape --data-shape 1,20,224,224 --filter-shape 20,10,3,3 --strides 2 | grep -q 'output.* 1,10,449,449'
    "$@" "$tool" devices >"$work/devices" 2>&1 || grep 'no OpenCL' "$work/devices"
}

for processor in $linux; do
    work=$root/build/cross/wheel-linux-$processor
    sysroot=$root/build/cross/libraries/manylinux2014-$processor
    mkdir -p "$work"
    zig_commands $processor-linux-gnu.2.17
    zig_toolchain Linux $processor <<'END'
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s -pie")
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)
END
    wheel "Linux $processor" "manylinux2014_$processor"
    "$python" -m auditwheel show "$out"/*"manylinux2014_$processor.whl" | tr '\n' ' ' | grep -q "platform tag: .manylinux_2_17_$processor" ||
        { "$python" -m auditwheel show "$out"/*"manylinux2014_$processor.whl"; exit 1; }
    runner=env
    if [ $processor = aarch64 ]; then
        (work=$work/run sysroot=; foreign_packages arm64 libc6)
        runner="qemu-aarch64 -L $work/run/sysroot"
    fi
    try "$work/bin/cc" -ldl -- $runner
done

for processor in $macos; do
    work=$root/build/cross/wheel-macos-$processor
    sysroot=$root/build/cross/libraries/macos-$processor
    mkdir -p "$work"
    zig_commands "$(echo $processor | sed s/arm64/aarch64/)-macos.11.0"
    zig_toolchain Darwin $processor </dev/null
    wheel "macOS $processor" macosx_11_0_$processor
done

if [ -z "$here" ]; then
    work=$root/build/cross/wheel-windows
    sysroot=$root/build/cross/libraries/windows
    mkdir -p "$work"
    mingw_toolchain <<'END'
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -s")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static -s")
END
    wheel Windows win_amd64
    start_wine
    try x86_64-w64-mingw32-gcc-posix -- "$work/bin/wine"
fi

# The extension for OpenVINO, which OpenVINO's own compiler must fit: Debian's.
work=$root/build/cross/wheel-openvino
mkdir -p "$work"
rm -f "$work"/*.whl
"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work" ./adapters/openvino --config-settings=build-dir="$work/build" \
    >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
(cd "$work" && "$python" -m wheel tags --remove --platform-tag manylinux_2_36_x86_64 ./*.whl >/dev/null)
cp "$work"/*.whl "$out/"

"$python" -m twine check --strict "$out"/*.whl >"$out/twine.log" || { cat "$out/twine.log"; exit 1; }
"$python" packaging/wheels/check.py $here "$out"/*.whl
