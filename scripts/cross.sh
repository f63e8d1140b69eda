#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the library, the tool and the C tests for another system, without warnings, into build/cross/TARGET, and runs what can run here:
#   m32       Linux, 32-bit x86, gcc: host tests
#   windows   x86-64, MinGW-w64: host tests and a sample of the device tests under Wine, whose OpenCL.dll passes calls to this system's loader
#   aarch64   Linux, zig: host tests under QEMU
#   armhf     Linux, zig: host tests under QEMU
#   musl      Linux, arm64, zig: the code for Android on another small C library, which is the nearest that can run here: the static library, which
#             may call only what Android's C library has, and host tests of what systems do differently, under QEMU
#   macos     arm64, zig: nothing can run
# Zig comes from PyPI; libraries from Debian's packages for ARM and 32-bit x86, and from its source packages for Windows and macOS.
# For Debian 12 on amd64, as root or with sudo. usage: cross.sh TARGET [OPTION-OF-CMAKE...]
set -eu
cd "$(dirname "$0")/.."
target=${1:-}
case $target in # before anything is installed
m32 | windows | macos | aarch64 | armhf | musl) shift ;;
*)
    echo "usage: cross.sh m32 | windows | aarch64 | armhf | musl | macos [OPTION-OF-CMAKE...]" >&2
    exit 2
    ;;
esac
options=$*
work=$PWD/build/cross/$target
jobs=${CROSS_JOBS:-$(nproc)}
sh scripts/packages.sh cmake make pkg-config opencl-c-headers libxxhash-dev
libraries="ocl-icd-opencl-dev ocl-icd-libopencl1 libjansson-dev libjansson4 libexpat1-dev libexpat1 libpopt-dev libpopt0 libcsv-dev libcsv3
    libcmocka-dev libcmocka0" # as Debian's packages
mkdir -p "$work"
sysroot=$work/sysroot
. scripts/cross_tools.sh

# With GCC, a third of the time: its warnings at -O3 are those of .ci/run's own build.
quickly="-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG"

# usage: build FOLDER OPTION...
build() {
    folder=$1
    shift
    cmake -S . -B "$folder" -DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release -DTCONV_WARNINGS_AS_ERRORS=ON \
        "$@" $options >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
    cmake --build "$folder" --parallel "$jobs" >>"$folder.log" 2>&1 || { tail -n 50 "$folder.log"; exit 1; }
}

# usage: tests FOLDER LABEL OPTION...
tests() {
    folder=$1
    label=$2
    shift 2
    ctest --test-dir "$folder" --label-regex "$label" --output-on-failure --parallel "$jobs" "$@" >"$folder.tests" 2>&1 ||
        { cat "$folder.tests"; exit 1; }
    grep 'tests passed' "$folder.tests"
}

# usage: linux DEBIAN-ARCHITECTURE PROCESSOR TRIPLE FOLDER-OF-LIBRARIES QEMU [TESTS-LEFT-OUT]
linux() {
    sh scripts/packages.sh qemu-user
    zig_commands "$3.2.36" # Debian 12's C library
    foreign_packages "$1" libc6 libgcc-s1 opencl-c-headers libxxhash-dev $libraries
    zig_toolchain Linux "$2" <<END
set(CMAKE_LIBRARY_ARCHITECTURE $4)
set(CMAKE_C_FLAGS_INIT "-isystem $work/sysroot/usr/include/$4 -isystem $work/sysroot/usr/include")
set(CMAKE_CXX_FLAGS_INIT "-isystem $work/sysroot/usr/include/$4 -isystem $work/sysroot/usr/include")
set(CMAKE_CROSSCOMPILING_EMULATOR "$5;-L;$work/sysroot")
set(ENV{PKG_CONFIG_LIBDIR} "$work/sysroot/usr/lib/$4/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "$work/sysroot")
END
    build "$work/build"
    command_file tconv-cl "exec $5 -L '$work/sysroot' '$work/build/tconv-cl' \"\$@\""
    tests "$work/build" host --exclude-regex "${6:-none}"
    sh host_tests/requests.sh "$work/bin/tconv-cl" device_tests/vectors
}

m32() {
    sh scripts/packages.sh gcc g++ gcc-multilib g++-multilib libc6-dev binutils
    foreign_packages i386 $libraries
    # SSE2 rounds as 64-bit programs do, and the tests take half of the time that they take with the x87.
    cat >"$work/toolchain.cmake" <<'END'
set(CMAKE_C_COMPILER gcc)
set(CMAKE_CXX_COMPILER g++)
set(sysroot "${CMAKE_CURRENT_LIST_DIR}/sysroot/usr")
set(libraries "${sysroot}/lib/i386-linux-gnu")
foreach(language C CXX)
    set(CMAKE_${language}_FLAGS_INIT
        "-m32 -msse2 -mfpmath=sse -isystem ${sysroot}/include/i386-linux-gnu -isystem ${sysroot}/include")
endforeach()
set(CMAKE_LIBRARY_ARCHITECTURE i386-linux-gnu)
set(CMAKE_INCLUDE_PATH "${sysroot}/include")
set(CMAKE_LIBRARY_PATH "${libraries}")
set(ENV{PKG_CONFIG_LIBDIR} "${libraries}/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_CURRENT_LIST_DIR}/sysroot")
END
    build "$work/build" "$quickly"
    # Left out: fuzz.problem, which is not built, because it needs integers of 128 bits; host.subproject and host.packages, which run CMake once
    # more, without the toolchain file.
    tests "$work/build" host --exclude-regex 'host\.(subproject|packages)'
}

windows() {
    sh scripts/packages.sh ocl-icd-libopencl1 pocl-opencl-icd
    sysroot=$PWD/build/cross/libraries/windows # as in wheels.sh
    mingw_toolchain <<END
set(CMAKE_CROSSCOMPILING_EMULATOR "$work/bin/wine")
END
    tool_libraries
    test_library
    start_wine
    command_file tconv-cl "exec '$work/bin/wine' '$work/dll/tconv-cl.exe' \"\$@\""
    build "$work/build" -DBUILD_SHARED_LIBS=OFF "$quickly"
    build "$work/dll" -DTCONV_BUILD_TESTS=OFF
    sh host_tests/symbols.sh "$work/dll/libtconv_cl.dll" include
    microsoft_headers
    tests "$work/build" host
    sh host_tests/requests.sh "$work/bin/tconv-cl" device_tests/vectors wine
    # The least of the device tests, without what compiles most, and is the same on all systems.
    export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd TCONV_CL_TEST_PERCENT="${TCONV_CL_TEST_PERCENT:-0}"
    tests "$work/build" 'device' --exclude-regex 'types|words|vectors|activations|special|upsampling|probe|determinism'
    "$work/bin/tconv-cl" devices
}

# The public headers as Microsoft's compiler reads them, by clang in its place: C and C++, without a C library.
microsoft_headers() {
    sh scripts/packages.sh clang
    for header in include/tconv_cl/*.h; do
        for language in "c -std=c11" "c++ -std=c++14"; do
            echo "#include \"tconv_cl/$(basename "$header")\"" |
                clang --target=x86_64-pc-windows-msvc -fms-compatibility-version=19.30 -ffreestanding -fsyntax-only -Wall -Wextra -Werror \
                    -DCL_TARGET_OPENCL_VERSION=120 -Iinclude -isystem "$sysroot/include" -x $language -
        done
    done
}

macos() {
    zig_commands aarch64-macos.11.0
    sysroot=$PWD/build/cross/libraries/macos-arm64 # as in wheels.sh
    zig_toolchain Darwin arm64 <<END
set(CMAKE_INSTALL_NAME_TOOL "$work/bin/install_name_tool")
END
    command_file install_name_tool "exit 0" # nothing is installed from here
    tool_libraries
    test_library
    build "$work/build" -DTCONV_BUILD_TESTS=ON # also where an earlier run was told not to
}

musl() {
    sh scripts/packages.sh qemu-user binutils
    zig_commands aarch64-linux-musl
    foreign_packages arm64 musl opencl-c-headers libxxhash-dev
    ln -sf aarch64-linux-musl/libc.so "$sysroot/lib/ld-musl-aarch64.so.1"
    zig_toolchain Linux aarch64 </dev/null
    build "$work/build" -DANDROID=ON "-DCMAKE_C_FLAGS=-D__ANDROID__ -fno-builtin-bcmp" -DBUILD_SHARED_LIBS=OFF -DTCONV_BUILD_TOOL=OFF -DTCONV_BUILD_TESTS=OFF
    only_calls_of_android "$work/build/libtconv_cl.a"
    # Without the tool, which the tests' build would need: what systems do differently, texts and numbers.
    download_sources
    common="-dynamic -std=c11 -O1 -D__ANDROID__ -D_POSIX_C_SOURCE=200809L -D_UINTPTR_T -D_UINTPTR_T_DEFINED -DCL_TARGET_OPENCL_VERSION=120
        -DTCONV_STATIC -DHAVE_SIGNAL_H -DHAVE_INTTYPES_H -DHAVE_STDINT_H -DHAVE_STRINGS_H -DHAVE_UNISTD_H
        -Iinclude -Isrc -Icl -isystem $sysroot/usr/include -isystem $sources/cmocka/include"
    "$work/bin/cc" $common -w -c "$sources/cmocka/src/cmocka.c" -o "$work/cmocka.o"
    "$work/bin/cc" $common -c host_tests/portable.c -o "$work/portable.o"
    for name in os text records members environment; do
        "$work/bin/cc" $common host_tests/test_$name.c "$work/cmocka.o" "$work/portable.o" "$work/build/libtconv_cl.a" -o "$work/test_$name"
        qemu-aarch64 -L "$sysroot" "$work/test_$name" >"$work/test_$name.log" 2>&1 || { cat "$work/test_$name.log"; exit 1; }
    done
    echo "five host tests passed"
}

# What a static library needs of the C library is in scripts/android_calls.txt. For Android, unlike musl, compilers make no bcmp of memcmp.
only_calls_of_android() {
    LC_ALL=C
    export LC_ALL
    readelf -sW "$1" | awk '$5 == "GLOBAL" || $5 == "WEAK" { print $7 == "UND" ? "UND" : "DEF", $8 }' | sort -u >"$work/symbols"
    sed -n 's/^DEF //p' "$work/symbols" >"$work/defined"
    sed -n 's/^UND //p' "$work/symbols" | comm -23 - "$work/defined" >"$work/needed"
    [ -s "$work/needed" ] || { echo "readelf says nothing of $1" && exit 1; }
    grep -v '^#' scripts/android_calls.txt | tr ' ' '\n' | sort -u | comm -23 "$work/needed" - >"$work/unknown"
    [ ! -s "$work/unknown" ] || { echo "Android's C library may lack: $(tr '\n' ' ' <"$work/unknown")" && exit 1; }
}

case $target in
m32 | windows | musl | macos) $target ;;
# Without tests that take minutes there; m32 runs them with 32 bits.
aarch64) linux arm64 aarch64 aarch64-linux-gnu aarch64-linux-gnu qemu-aarch64 'calls|host\.(select|choice)' ;;
armhf) linux armhf arm arm-linux-gnueabihf arm-linux-gnueabihf qemu-arm 'calls|host\.(select|choice|mobile)' ;;
esac
