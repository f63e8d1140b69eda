#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports what the public headers declare, and nothing else. usage: symbols.sh LIBRARY INCLUDE-FOLDER
exported=$(nm -D --defined-only "$1" | sed 's/.* //' | sort)
declared=$(cat "$2"/tconv_cl/*.h | grep -v '^#' | tr '\n' ' ' | grep -oE 'TCONV_API [^;]*;' | sed 's/(.*//; s/.*[ *]//' | sort)
if [ "$exported" != "$declared" ]; then
    echo "exported and declared symbols differ:"
    printf '%s\n' "$exported" >/tmp/exported.$$
    printf '%s\n' "$declared" | diff /tmp/exported.$$ -
    rm -f /tmp/exported.$$
    exit 1
fi
echo "$(echo "$exported" | wc -l) symbols, all declared"
