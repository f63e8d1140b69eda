# SPDX-License-Identifier: Apache-2.0
# What scripts that compile for other systems share; they read this file. $work: the folder of the target.
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
    cat >"$work/toolchain.cmake" <<'END_OF_FILE'
set(CMAKE_FIND_ROOT_PATH "${CMAKE_CURRENT_LIST_DIR}/sysroot/usr;${CMAKE_CURRENT_LIST_DIR}/sysroot")
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
    /usr/lib/wine/wineserver -p
    command_file wine "export WINEPREFIX='$WINEPREFIX' WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe="
unset DISPLAY
exec /usr/lib/wine/wine64 \"\$@\""
    "$work/bin/wine" wineboot --init 2>/dev/null
}

# Unpacks Debian packages of another architecture into $work/sysroot and does not install them: the system gets no foreign architecture, and no
# package that another one conflicts with. What is there already stays. usage: foreign_packages ARCHITECTURE PACKAGE...
foreign_packages() {
    architecture=$1
    shift
    [ ! -e "$work/sysroot/complete" ] || return 0
    mkdir -p "$work/lists/partial" "$work/archives/partial"
    # apt with lists, cache and status of its own, for which all packages are of that architecture
    foreign() {
        apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root \
            -o Dir::State::status=/dev/null -o Dir::State::lists="$work/lists" -o Dir::Cache="$work" "$@"
    }
    echo "downloading libraries for $architecture"
    foreign update || echo "some package lists could not be read; trying with the others" >&2
    (
        cd "$work/archives"
        rm -f ./*.deb
        foreign download "$@"
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
