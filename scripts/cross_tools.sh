# SPDX-License-Identifier: Apache-2.0
# What scripts that compile for other systems share; they read this file. $work: the folder of the target; $sysroot: that of its
# libraries; $jobs: how many compilers may run.
zig_version=0.13.0

# A command that later steps call. usage: command_file NAME LINE
command_file() {
    mkdir -p "$work/bin"
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# The compiler from PyPI, with commands in $work/bin as CMake wants them. usage: zig_commands TRIPLE
zig_commands() {
    sh scripts/packages.sh python3-venv
    zig=$PWD/build/cross/zig/bin/python3
    if [ ! -e "$PWD/build/cross/zig/$zig_version" ]; then
        python3 -m venv "$PWD/build/cross/zig"
        "$PWD/build/cross/zig/bin/pip" install --quiet "ziglang==$zig_version"
        touch "$PWD/build/cross/zig/$zig_version"
    fi
    zig=$("$zig" -c 'import ziglang, os; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
    command_file cc "exec '$zig' cc -target $1 \"\$@\""
    command_file c++ "exec '$zig' c++ -target $1 \"\$@\""
    command_file ar "exec '$zig' ar \"\$@\""
    command_file ranlib "exec '$zig' ranlib \"\$@\""
}

# What CMake is told of the target: the same lines for all, then those of one.
toolchain() {
    cat >"$work/toolchain.cmake" <<END_OF_FILE
set(CMAKE_FIND_ROOT_PATH "$sysroot/usr;$sysroot")
set(ENV{PKG_CONFIG_LIBDIR} "$sysroot/lib/pkgconfig")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
END_OF_FILE
    cat >>"$work/toolchain.cmake"
}

# The same for a target of zig's. usage: zig_toolchain SYSTEM PROCESSOR
zig_toolchain() {
    toolchain <<END_OF_FILE
set(CMAKE_SYSTEM_NAME $1)
set(CMAKE_SYSTEM_PROCESSOR $2)
set(CMAKE_C_COMPILER "$work/bin/cc")
set(CMAKE_CXX_COMPILER "$work/bin/c++")
set(CMAKE_AR "$work/bin/ar")
set(CMAKE_RANLIB "$work/bin/ranlib")
END_OF_FILE
    cat >>"$work/toolchain.cmake"
}

# The same for Windows and MinGW. Threads and the compiler's library are inside: a program needs no DLL but the system's.
mingw_toolchain() {
    sh scripts/packages.sh gcc-mingw-w64-x86-64-posix
    toolchain <<'END_OF_FILE'
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
END_OF_FILE
    cat >>"$work/toolchain.cmake"
}

# The command wine in $work/bin, for programs without a screen.
start_wine() {
    sh scripts/packages.sh wine64
    # Wine's settings have a link to the root folder: outside of the sources, which packages are made of by copying whole folders.
    WINEPREFIX=$(mktemp -d)
    export WINEPREFIX
    # One server for all programs, until this script ends; else a program may meet the end of an earlier one's server, and fail.
    trap '/usr/lib/wine/wineserver -k; rm -rf "$WINEPREFIX"' EXIT
    trap 'exit 130' INT # by itself dash would end without the trap above
    trap 'exit 143' TERM
    /usr/lib/wine/wineserver -p
    command_file wine "export WINEPREFIX='$WINEPREFIX' WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe="
unset DISPLAY
exec /usr/lib/wine/wine64 \"\$@\""
    "$work/bin/wine" wineboot --init 2>/dev/null
}

# apt-get with lists, cache and status of its own in $work, for which packages are of these architectures. The first one takes the place of the machine's own.
# usage: own_apt ARCHITECTURE,... [OPTION...] COMMAND
own_apt() {
    architectures=$1
    shift
    apt-get -qq -o APT::Architecture="${architectures%%,*}" -o APT::Architectures="$architectures" -o APT::Sandbox::User=root \
        -o Dir::State::status=/dev/null -o Dir::State::lists="$work/lists" -o Dir::Cache="$work" "$@"
}

# Unpacks Debian packages of another architecture into $work/sysroot and does not install them: the system gets no foreign architecture, and no
# package that another one conflicts with. What is there already stays. usage: foreign_packages ARCHITECTURE PACKAGE...
foreign_packages() {
    architecture=$1
    shift
    [ ! -e "$work/sysroot/complete" ] || return 0
    mkdir -p "$work/lists/partial" "$work/archives/partial"
    echo "downloading libraries for $architecture"
    own_apt "$architecture" update || echo "some package lists could not be read; trying with the others" >&2
    (
        cd "$work/archives"
        rm -f ./*.deb
        own_apt "$architecture" download "$@"
    )
    rm -rf "$work/sysroot"
    for package in "$work"/archives/*.deb; do dpkg -x "$package" "$work/sysroot"; done
    # /lib beside /usr/lib, as packages of Debian 12 have it, is one folder with it; links that begin with / would lead to this system's files.
    for folder in "$work"/sysroot/lib/*-linux-*; do [ ! -d "$folder" ] || cp -a "$folder/." "$work/sysroot/usr/lib/$(basename "$folder")/"; done
    find "$work/sysroot/usr/lib" -type l -lname '/*' | while read -r link; do
        target=$work/sysroot$(readlink "$link")
        [ -e "$target" ] || target=$work/sysroot/usr$(readlink "$link")
        ln -sf "$(realpath --relative-to="$(dirname "$link")" -s "$target")" "$link"
    done
    touch "$work/sysroot/complete"
}

# The sources of libraries, as Debian 12 has patched them, in $sources/NAME.
download_sources() {
    sources=$PWD/build/cross/sources
    [ ! -e "$sources/complete" ] || return 0
    sh scripts/packages.sh dpkg-dev
    rm -rf "$sources"
    mkdir -p "$sources/parts" "$sources/lists/partial" "$sources/archives/partial"
    echo "downloading the sources of libraries"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types: *deb *$/Types: deb-src/' "$list" >"$sources/parts/$(basename "$list")"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed 's/^deb /deb-src /' "$list" >"$sources/parts/$(basename "$list")"
    done
    (
        cd "$sources"
        set -- -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$sources/parts" \
            -o Dir::State::Lists="$sources/lists" -o Dir::Cache="$sources"
        apt-get "$@" update || echo "some package lists could not be read; trying with the others" >&2
        # Where a mirror lacks the sources of an update, those of the release.
        for package in jansson expat popt libcsv cmocka; do
            apt-get "$@" source "$package" >source.log 2>&1 || apt-get "$@" source "$package/bookworm" >source.log 2>&1 ||
                { cat source.log; exit 1; }
            mv "$package"-*/ "$package"
        done
    )
    touch "$sources/complete"
}

# The libraries of the tool, static, for the target of $work/toolchain.cmake, and their licences in $sysroot/licenses.
tool_libraries() {
    [ ! -e "$sysroot/tool" ] || return 0
    download_sources
    mkdir -p "$sysroot/include" "$sysroot/licenses"
    cp -r /usr/include/CL /usr/include/xxhash.h "$sysroot/include/"
    build_library jansson "$sources/jansson" -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
    build_library expat "$sources/expat/expat" -DEXPAT_BUILD_TOOLS=OFF -DEXPAT_BUILD_EXAMPLES=OFF -DEXPAT_BUILD_TESTS=OFF \
        -DEXPAT_SHARED_LIBS=OFF -DEXPAT_DTD=OFF -DCMAKE_C_FLAGS=-DXML_DTD=1 # Debian's patches want a value, which CMake gives none
    build_library others cmake/libraries -DPOPT="$sources/popt" -DCSV="$sources/libcsv"
    cp "$sources/jansson/LICENSE" "$sysroot/licenses/LICENSE.jansson"
    cp "$sources/expat/expat/COPYING" "$sysroot/licenses/LICENSE.expat"
    cp "$sources/popt/COPYING" "$sysroot/licenses/LICENSE.popt"
    cp "$sources/libcsv/COPYING.LESSER" "$sysroot/licenses/LICENSE.libcsv"
    touch "$sysroot/tool"
}

# The library of the C tests, likewise.
test_library() {
    [ ! -e "$sysroot/tests" ] || return 0
    download_sources
    build_library cmocka "$sources/cmocka" -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF -DWITH_STATIC_LIB=ON
    cp "$(find "$work/cmocka" -name 'libcmocka-static.a')" "$sysroot/lib/libcmocka.a"
    rm -f "$sysroot"/lib/libcmocka*.dll.a "$sysroot"/lib/libcmocka*.dylib
    touch "$sysroot/tests"
}

# usage: build_library NAME FOLDER OPTION...
build_library() {
    name=$1
    folder=$2
    shift 2
    echo "building $name"
    {
        cmake -S "$folder" -B "$work/$name" -DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
            -DCMAKE_INSTALL_PREFIX="$sysroot" -DCMAKE_INSTALL_LIBDIR=lib -Wno-dev "$@" &&
            cmake --build "$work/$name" --parallel "$jobs" &&
            cmake --install "$work/$name"
    } >"$work/$name.log" 2>&1 || { tail -n 50 "$work/$name.log"; exit 1; }
}
