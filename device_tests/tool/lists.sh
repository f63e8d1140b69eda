#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lists: the layers of bench --list, the devices, and the names that a shell completes.
# usage: lists.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

# ---- what OpenCL 3.1 names as a feature of the language, on the fake implementation ----
if "$tool" devices | grep -q 'Fake CPU'; then
    dots() { "$@" "$tool" devices --json - | grep -c '"integer_dot_product": true'; }
    [ "$(dots env)" = 0 ] || fail "a device without dot products has them"
    [ "$(dots env FAKE_OPENCL_DOT_FEATURE=1)" -gt 0 ] || fail "dot products by feature are not seen"
fi

# ---- layers, and names completed ----
printf 'id,in_channels,out_channels,input,kernel\nX\033[31m,3,4,5x6,2x2\n' >"$work/s.csv"
"$tool" bench --list --suite "$work/s.csv" | grep -q '^X?\[31m  *--data-shape' || fail "an id that colours the terminal"
"$tool" bench --list --ids 'b07 , S5' >"$work/out" 2>"$work/err" && [ "$(cut -d ' ' -f 1 "$work/out" | paste -sd ,)" = B07,S5 ] &&
    grep -q -- '--data-shape 1,512,32,32 ' "$work/out" || fail "bench --list: $(cat "$work/out" "$work/err")"
"$tool" bench --list --json "$work/c.json" >/dev/null && [ "$(grep -c '"id"' "$work/c.json")" = "$("$tool" bench --list | wc -l)" ] || fail "bench --list --json"
"$tool" bench --list --ids 'B07,,S5' 2>"$work/err"
[ $? = 2 ] && grep -q 'names "", .*tconv-cl bench --list prints the ids' "$work/err" || fail "an empty id: $(cat "$work/err")"
"$tool" bench --suite upsampling --ids B07 2>"$work/err"
[ $? = 2 ] && grep -q 'names "B07", .*tconv-cl bench --list --suite upsampling prints the ids' "$work/err" || fail "an id of another suite: $(cat "$work/err")"
if command -v bash >/dev/null; then
    "$tool" completion bash >"$work/completion"
    cat >"$work/complete" <<'END'
. "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tconv_cl; echo "${COMPREPLY[*]}"
END
    completed() { # WANTED WORDS...: what the last of the words may become
        wanted=$1
        shift
        [ "$(PATH="$(dirname "$tool"):$PATH" bash "$work/complete" "$work/completion" tconv-cl "$@")" = "$wanted" ] || fail "completion of $*"
    }
    completed "compare completion" comp
    completed "--fail" compare --fa
    completed "f32 f16 f64" bench --type f
    completed bf16 bench --type = b
    completed "B07,S5" bench --ids B07,S5
    completed "B07,S5" bench --ids B07,s5
    completed gpu bench -d g
    completed "" bench --model "" # files
    completed "" compare ""
fi

# ---- the list of devices, for people and for programs ----
"$tool" devices >"$work/out" && grep -q 'integer dot products' "$work/out" || fail "devices"
"$tool" devices --json - >"$work/out" && grep -q '"local_memory"' "$work/out" || fail "devices --json"

finish
