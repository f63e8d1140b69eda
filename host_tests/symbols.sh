#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports what the public headers declare, and nothing else; ELF's under the version node of cmake/exports.map.
# usage: symbols.sh LIBRARY INCLUDE-FOLDER
node=
case $1 in
*.dll) exported=$(x86_64-w64-mingw32-objdump -p "$1" | sed -n 's/.*\[ *[0-9]*\].* \([a-z][A-Za-z0-9_]*\)$/\1/p' | sort) ;;
*)
    version=$(sed -n 's/^#define TCONV_VERSION_STRING "\([0-9]*\.[0-9]*\)\..*/\1/p' "$2/tconv_cl/version.h") # as the soname has it
    node=@@TCONV_$version
    exported=$(nm -D --defined-only "$1" | sed 's/.* //' | grep -vxF "TCONV_$version" | sort)
    ;;
esac
declared=$(cat "$2"/tconv_cl/*.h | grep -v '^#' | tr '\n' ' ' | grep -oE 'TCONV_API [^;]*;' | sed "s/(.*//; s/.*[ *]//; s/\$/$node/" | sort)
if [ "$exported" != "$declared" ]; then
    echo "exported and declared symbols differ:"
    printf '%s\n' "$exported" >/tmp/exported.$$
    printf '%s\n' "$declared" | diff /tmp/exported.$$ -
    rm -f /tmp/exported.$$
    exit 1
fi
echo "$(echo "$exported" | wc -l) symbols, all declared"
