#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tconv-cl prepare: what it says and stores, and that a later process uses it.
# usage: prepare.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

layer="--filter-shape 5,7,4 --strides 2"
export TCONV_CL_CACHE_DIR="$work/prepared"
"$tool" prepare $device --data-shape 1,5,3 --up-to 1,5,21 $layer --json "$work/p.json" >"$work/out" 2>"$work/err" || fail "prepare: $(cat "$work/err")"
grep -q '^1 .* [1-9][0-9]* ' "$work/out" && grep -q "stored in $work/prepared" "$work/err" || fail "the table of prepare: $(cat "$work/out" "$work/err")"
for key in id layer programs seconds error; do
    [ "$(grep -c "\"$key\":" "$work/p.json")" = 1 ] || fail "no $key in the JSON of prepare: $(cat "$work/p.json")"
done
files=$(ls "$work/prepared" | sort)
for extent in 3 10 21; do
    "$tool" bench $device --data-shape 1,5,$extent $layer --runs 1 --no-ceilings -q --json "$work/b.json" || fail "bench after prepare"
    [ "$(value chosen_by)" = '"prepared"' ] || fail "bench does not use what prepare stored: $(value chosen_by)"
done
[ "$(ls "$work/prepared" | sort)" = "$files" ] || fail "an extent of the range compiled something"
"$tool" tune $device --records >"$work/out" 2>"$work/err" && grep -q '^0 results are stored' "$work/out" && [ ! -s "$work/err" ] ||
    fail "tune --records takes a list of prepared programs for a result: $(cat "$work/out" "$work/err")"

# A folder that has all of it already may be read-only: nothing is written.
kept=$(ls -i "$work/prepared" | sort)
chmod 500 "$work/prepared"
"$tool" prepare $device --data-shape 1,5,3 --up-to 1,5,21 $layer >"$work/out" 2>"$work/err" || fail "prepare in a folder that has all: $(cat "$work/out" "$work/err")"
chmod 700 "$work/prepared"
[ "$(ls -i "$work/prepared" | sort)" = "$kept" ] || fail "prepare writes what is there already"

expect_refusal() { # CODE WORDS ARGUMENTS...
    wanted=$1 words=$2
    shift 2
    code=0
    "$tool" prepare $device "$@" >"$work/out" 2>"$work/err" || code=$?
    [ $code = "$wanted" ] && grep -q "$words" "$work/err" || fail "prepare $*: $code, $(cat "$work/err")"
}
expect_refusal 2 "up-to 1,5,8 has 8 at axis 2, and the layer's data 9: the range is empty" --data-shape 1,5,9 --up-to 1,5,8 $layer
expect_refusal 2 "up-to 1,6,9 has 6 at axis 1, and the layer's data 5: channels are no range" --data-shape 1,5,9 --up-to 1,6,9 $layer
expect_refusal 2 "up-to 1,5 has 2 axes, and the layer's data 3: " --data-shape 1,5,9 --up-to 1,5 $layer
expect_refusal 2 "up-to is for one layer" --ids B07,B43 --up-to 1,5,8
expect_refusal 2 "up-to" --data-shape 1,5,9 --up-to 1,x,8 $layer

mkdir -m 777 "$work/anybody"
chmod 777 "$work/anybody"
code=0
TCONV_CL_CACHE_DIR=$work/anybody "$tool" prepare $device --data-shape 1,5,3 $layer >"$work/out" 2>"$work/err" || code=$?
[ $code = 1 ] && grep -q "cannot be stored in $work/anybody: " "$work/err" && ! grep -q "^tconv-cl: stored" "$work/err" ||
    fail "prepare in a folder that others may write: $code, $(cat "$work/err")"

export TCONV_CL_CACHE=off
"$tool" prepare $device --data-shape 1,5,3 $layer >"$work/out" 2>"$work/err" && grep -q "nothing is stored" "$work/err" || fail "prepare without a folder: $(cat "$work/err")"

finish
