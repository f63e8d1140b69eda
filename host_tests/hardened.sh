#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Libraries and programs are hardened as cmake/harden.cmake says. Code that is not optimised calls no checked functions of the C library.
# usage: hardened.sh optimised|plain FILE...
code=$1
shift
for file in "$@"; do
    lacks() { echo "$file has no $1"; exit 1; }
    readelf --dynamic --wide "$file" | grep -qE 'BIND_NOW|FLAGS_1.*NOW' || lacks "BIND_NOW"
    readelf --program-headers --wide "$file" | grep -q GNU_RELRO || lacks "GNU_RELRO"
    symbols=$(readelf --dyn-syms --wide "$file")
    echo "$symbols" | grep -q '__stack_chk_fail' || lacks "stack protector"
    [ "$code" != optimised ] || echo "$symbols" | grep -qE '__[a-z]+_chk(@|$)' || lacks "calls of checked functions"
done
echo "hardened: $*"
