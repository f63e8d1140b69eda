#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Verdicts of some programs are kept by their bytes (device_tests/executed/executed_code.py, unless_passed.sh). They have nothing of the
# library that makes plans, opens devices or runs layers, so that a change of these leaves their bytes as they are.
# usage: needed_only.sh PROGRAMS... [-- PROGRAMS-WITH-THE-TEXTS-OF-THE-KERNELS...]
others='plan_create\|plan_enqueue\|device_create\|device_open\|layer_create\|store_has'
unwanted="$others\|sources"
for program in "$@"; do
    [ "$program" != -- ] || { unwanted=$others && continue; }
    symbols=$(nm "$program") || exit 1
    echo "$symbols" | grep -q ' tconv_algorithm_at$' || { echo "$program has no symbols of the library" && exit 1; }
    if echo "$symbols" | grep " [A-Za-z] tconv_\($unwanted\)\$"; then
        echo "$program need not have these: CMake's file of that folder, or a call from src/base, src/geometry, src/algorithm or src/tool/io, links them"
        exit 1
    fi
done
