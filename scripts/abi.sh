#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the shared library of a release with that of this tree, by abidiff: programs that were compiled for the release must run with
# this library. Functions may be added, and members at the end of structures that begin with struct_size; any other change of a function
# fails. host.struct_size tests that none of these ends with padding. Without an argument the release is the last tag
# v*. Before the second version there is none, and it ends with 77: nothing was compared. Debian 12, as root or with sudo.
# usage: abi.sh [COMMIT-OR-TAG]
set -eu
cd "$(dirname "$0")/.."
sh scripts/packages.sh git
if [ $# = 0 ]; then
    releases=$(git tag --list 'v*' --merged HEAD --sort=-version:refname)
    if [ -z "$releases" ] && [ "$(grep -c '^## [0-9]' CHANGELOG.md)" -gt 1 ]; then
        echo "ABI: CHANGELOG.md has earlier versions, but this clone has no tag v* of one: git fetch --tags --unshallow" >&2
        exit 1
    fi
    [ -n "$releases" ] || { echo "ABI: no release yet, nothing to compare with"; exit 77; }
    set -- "$(echo "$releases" | head -n 1)"
fi
release=$1
sh scripts/packages.sh gcc libc6-dev cmake make ocl-icd-opencl-dev opencl-c-headers libxxhash-dev abigail-tools
work=$PWD/build/abi
rm -rf "$work"
mkdir -p "$work/release"
git archive "$release" | tar -xf - -C "$work/release"
build() { # SOURCES FOLDER
    cmake -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Debug -DTCONV_BUILD_TOOL=OFF -DTCONV_BUILD_TESTS=OFF >"$2.log" 2>&1 &&
        cmake --build "$2" --parallel "$(nproc)" --target tconv_cl >>"$2.log" 2>&1 || { tail -n 20 "$2.log"; exit 1; }
}
build "$work/release" "$work/old"
build . "$work/new"
growing=$(awk '/^typedef struct/ { name = $3 } /^ *size_t struct_size;/ { printf "%s%s", separator, name; separator = "|" }' include/tconv_cl/*.h)
cat >"$work/allowed" <<END_OF_FILE
[suppress_type]
    label = structures with struct_size grow at their end
    type_kind = struct
    name_regexp = ^($growing)\$
    has_data_member_inserted_at = end
END_OF_FILE
abidiff --no-added-syms --drop-private-types --headers-dir1 "$work/release/include/tconv_cl" --headers-dir2 include/tconv_cl \
    --suppressions "$work/allowed" "$work/old/libtconv_cl.so" "$work/new/libtconv_cl.so" || {
    echo "ABI: programs for $release may not work with this library"
    exit 1
}
echo "ABI: programs for $release work with this library"
