#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What run tells of the algorithm is of the plan that computed, not of another plan for the same problem.
# usage: run.sh TCONV-CL SOURCES COMPARE_NPY FAIL_FIRST_BUILD
. "$(dirname "$0")/begin.sh"
fail_first_build=${4:-}
export TCONV_CL_CACHE=off # every program is built

# said KEY: what r.json says first.
said() {
    sed -n "s/^ *\"$1\": \"*\([^\",]*\)\"*,*\$/\1/p" "$work/r.json" | head -1
}

for more in "" "--memory-limit 1"; do # whole, and in slabs
    "$tool" run $device $files $more --json "$work/r.json" 2>"$work/err" || fail "run $more: $(cat "$work/err")"
    usual=$(said algorithm)
    [ "$(grep -c '"chosen_by": "model"' "$work/r.json")" = 1 ] && [ "$(grep -c "\"algorithm\": \"$usual\"" "$work/r.json")" = 2 ] &&
        grep -q '"passed_over": null' "$work/r.json" && [ ! -s "$work/err" ] || fail "the JSON of run $more: $(cat "$work/r.json" "$work/err")"
    [ -n "$fail_first_build" ] || continue
    env LD_PRELOAD="$fail_first_build" "$tool" run $device $files $more --json "$work/r.json" 2>"$work/err" || fail "run $more without the first program: $(cat "$work/err")"
    other=$(said algorithm)
    [ "$other" != "$usual" ] && grep -q "^tconv-cl: passed over $usual: " "$work/err" && grep -q "\"passed_over\": \"$usual: " "$work/r.json" ||
        fail "run $more without the first program: $(cat "$work/r.json" "$work/err")"
    cp "$work/y.npy" "$work/other.npy"
    "$tool" run $device $files $more --algorithm "$other $(said tile)" --quiet && cmp -s "$work/y.npy" "$work/other.npy" ||
        fail "run $more says $other, which has other bits"
    env LD_PRELOAD="$fail_first_build" "$tool" run $device $files $more >"$work/out" 2>"$work/err" && grep -q "computed by $other" "$work/out" ||
        fail "run $more without the first program: $(cat "$work/out" "$work/err")"
done

# bench tells of the plan that it timed, and not of the one that it makes again.
if [ -n "$fail_first_build" ]; then
    env LD_PRELOAD="$fail_first_build" "$tool" bench $device --ids S5 --runs 1 --no-ceilings --json "$work/r.json" >"$work/out" 2>"$work/err" &&
        grep -q "^S5 .* $(said algorithm) " "$work/out" && grep -q ': passed over ' "$work/err" && ! grep -q '"passed_over": null' "$work/r.json" ||
        fail "bench without the first program: $(cat "$work/out" "$work/err")"
fi

finish
