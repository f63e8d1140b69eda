#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A tutorial is a program: its blocks of C, one after another, are compiled as the page says and run, and what the program prints must be
# the page's block of text. usage: tutorial.sh PAGE C-COMPILER FLAGS-IN-ONE-WORD
set -eu
page=$1
compiler=$2
flags=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blocks() { # LANGUAGE
    awk -v begin="\`\`\`$1" '$0 == "```" { inside = 0 } inside { print } $0 == begin { inside = 1 }' "$page"
}
blocks c >"$work/tutorial.c"
blocks text >"$work/wanted"
[ -s "$work/tutorial.c" ] && [ -s "$work/wanted" ] || { echo "$page has no program, or not what it prints"; exit 1; }
"$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror "$work/tutorial.c" -o "$work/tutorial" $flags
"$work/tutorial" >"$work/printed" || { cat "$work/printed"; echo "$page: the program failed"; exit 1; }
diff -u "$work/wanted" "$work/printed" || { echo "$page: the program prints something else"; exit 1; }
echo "$page: the program prints what the page says"
