#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Adds a member to tconv_problem, in a copy of the sources: to the public header, src/base/members.h, the tool's options
# and the Python package. Then the text, the key of a layer's plans, the ABI table and the tool must know it, and what is
# left out must be found: by the compiler, or by the test of the Python package. usage: sh scripts/toy_member.sh
more="host_tests device_tests fuzz python"
. "$(dirname "$0")/toy_tree.sh"
export PYTHONDONTWRITEBYTECODE=1
# The member, with its default
sed -i 's/^} tconv_problem;/    tconv_list toys; \/* default 0 *\/\n&/
    s/^            {0, {0}}, {0, {0}}, {0, {0}}  *\\$/            {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}} \\/' include/tconv_cl/problem.h
# Its row
sed -i 's/^    P(LIST, output_padding,/    P(LIST, toys, "toys", false, 0, 0) \\\n&/' src/base/members.h
# Its option
sed -i 's/^    O(LAYER, TEXT, output_padding,/    O(LAYER, TEXT, toys, "toys", 0, "LIST", "default 0") \\\n&/' src/tool/option_list.h
# Python
sed -i 's/^        ("residual_steps", Steps),/&\n        ("toys", List),/' python/tconv_cl/_library.py
sed -i 's/^    output_padding: Axes$/&\n    toys: Axes | None/; s/^    output_padding: Axes = 0,/&\n    toys: Axes | None = None,/' python/tconv_cl/_convolution.py
count_files "a member of the problem" 5

cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DTCONV_WARNINGS_AS_ERRORS=ON >"$work/log" &&
    cmake --build build --parallel "$(nproc)" --target tconv_inside tconv_cl tconv-cl test_members test_abi >>"$work/log" 2>&1 ||
    { tail -30 "$work/log"; exit 1; }
build/host_tests/test_members >"$work/log" 2>&1 && build/host_tests/test_abi >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Two problems that differ in the member
cat >"$work/toy.c" <<'END_OF_FILE'
#define TABLE today
#include "abi_layout.c"
#undef PROBLEM
#include "layer/key.h"
#include <stdio.h>
#include <string.h>
int main(void)
{
    const tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_problem one = TCONV_PROBLEM_INIT, other;
    struct tconv_key one_key, other_key;
    char one_text[500], other_text[500];
    one.data = (tconv_shape){4, {1, 2, 3, 4}};
    one.filter = (tconv_shape){4, {2, 3, 2, 2}};
    other = one;
    other.toys = (tconv_list){2, {5, 6}};
    tconv_problem_text(&one, one_text, sizeof one_text);
    tconv_problem_text(&other, other_text, sizeof other_text);
    printf("%s\n%s\n", one_text, other_text);
    const struct abi_entry *entry = today;
    while (entry->name != NULL && strcmp(entry->name, "tconv_problem.toys") != 0) entry++;
    if (strstr(other_text, "--toys 5,6") == NULL || strcmp(one_text, other_text) == 0) return 1;
    if (!tconv_key_make(&one, &options, &one_key) || !tconv_key_make(&other, &options, &other_key)) return 2;
    if (tconv_key_equal(&one_key, &other_key)) return 3;
    return entry->name == NULL ? 4 : 0;
}
END_OF_FILE
check() { cc -std=c11 -Iinclude -Isrc -Icl -Ihost_tests "$@"; }
check -o "$work/toy" "$work/toy.c" build/libtconv_inside.a -lpthread -ldl -lm
"$work/toy" || { echo "the member is not in the text (1), the key (2, 3) or the ABI table (4): $?"; exit 1; }
# The tool reads what the text says, and the library refuses what the row does not allow.
shape="build/tconv-cl shape --data-shape 1,2,3,4 --filter-shape 2,3,2,2"
$shape --toys 5,6 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
$shape --toys 5,-6 2>&1 | grep -q 'toys is -6 at spatial axis 1' || { echo "a wrong value is not refused"; exit 1; }
cp build/libtconv_cl.so python/tconv_cl/
python3 python/tests/structures.py python/tconv_cl || exit 1

# What is left out
fails() { # TEXT COMMAND...
    text=$1
    shift
    "$@" >"$work/log" 2>&1 && { echo "$text is not found"; exit 1; }
    grep -q "$text" "$work/log" || { cat "$work/log"; exit 1; }
}
without() { # FILE TEXT COMMAND...
    file=$1
    shift
    cp "$file" "$work/kept"
    sed -i '/\btoys\b/d' "$file"
    fails "$@"
    cp "$work/kept" "$file"
}
without src/base/members.h 'a member of tconv_problem has no row' check -fsyntax-only src/layer/key.c
without src/tool/option_list.h "no member named .toys." check -fsyntax-only src/tool/cli/problem_options.c
without python/tconv_cl/_library.py 'tconv_problem .* in Python' python3 python/tests/structures.py python/tconv_cl
without python/tconv_cl/_convolution.py 'toys is not in Options' python3 python/tests/structures.py python/tconv_cl
echo "the member is known everywhere, and what is left out is found"
