#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Adds an option to the tool, in a copy of the sources: its row, and the code that takes its value. Help, manual,
# completion and the guess for a misspelt name must follow from the row. usage: sh scripts/toy_option.sh
more=
. "$(dirname "$0")/toy_tree.sh"
# The row
sed -i 's/^    O(ANY, FLAG, quiet,/    O(ANY, TEXT, toy, "toy", 0, "COLOUR", "colour of the toy: red or blue") \\\n&/' src/tool/option_list.h
# Its value, in the command that takes it
sed -i 's/^    tconv_problem p = TCONV_PROBLEM_INIT;/    if (options.toy != NULL \&\& strcmp(options.toy, "red") != 0 \&\& strcmp(options.toy, "blue") != 0)\n        return wrong_request("--toy is \\"%s\\": must be red or blue", options.toy);\n&/
    s/^#include <stdio.h>/&\n#include <string.h>/' src/tool/commands/shape.c
count_files "an option of the tool" 2
cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DTCONV_BUILD_TESTS=OFF -DTCONV_WARNINGS_AS_ERRORS=ON >"$work/log" &&
    cmake --build build --parallel "$(nproc)" --target tconv-cl >>"$work/log" 2>&1 || { tail -30 "$work/log"; exit 1; }
tool=build/tconv-cl
has() { # TEXT COMMAND...
    text=$1
    shift
    "$tool" "$@" >"$work/out" 2>&1 || true
    grep -qe "$text" "$work/out" || { echo "tconv-cl $* lacks \"$text\":"; cat "$work/out"; exit 1; }
}
has '--toy=COLOUR *colour of the toy: red or blue' shape --help
has 'toy.*=.*COLOUR' manual shape
has 'colour of the toy: red or blue' manual shape
has ' --toy[ "]' completion bash
has 'toy' completion zsh
shape="--data-shape 1,2,3,4 --filter-shape 2,3,2,2"
has 'did you mean --toy?' shape $shape --toi red
has '--toy is "green": must be red or blue' shape $shape --toy green
"$tool" shape $shape --toy green >"$work/out" 2>&1 && { echo "a wrong value is taken"; exit 1; }
has 'output_shape *1,3,4,5' shape $shape --toy blue
echo "the option is known everywhere, and a wrong value is refused"
