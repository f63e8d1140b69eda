#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tconv-cl bench: its rows, last lines and JSON fit each other; --no-ceilings, --repeat, --math fast, steps; kernels compile without
# warnings.
# usage: bench.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

# ---- rows, last lines and JSON of bench say the same, and no layer is above the ceilings ----
POCL_AFFINITY=$(sh "$sources/scripts/pocl_affinity.sh") "$tool" bench $device --ids B05,B18,B20,S5,S10 --json "$work/b.json" >"$work/out" || fail "bench"
awk '/"id":/ { gsub(/[",]/, "", $2); id = $2 }
    /"fraction_of_floor":/ && $2 != "null," { printf "%s %.1f\n", id, 100 * $2 }' "$work/b.json" | sort >"$work/of_json"
awk '/^[BS][0-9]+ / && $NF ~ /^[0-9.e+-]+$/ { row[$1] = $(NF - 1) } # the last row of a layer counts
    END { for (id in row) print id, row[id] }' "$work/out" | sort >"$work/of_rows"
[ "$(wc -l <"$work/of_json")" = 4 ] && cmp -s "$work/of_json" "$work/of_rows" ||
    fail "rows and JSON differ: $(paste "$work/of_json" "$work/of_rows") $(cat "$work/out")"
awk '/^[BS][0-9]+ / && $NF ~ /^[0-9.e+-]+$/ && $(NF - 1) > 100 { bad = 1 } END { exit bad }' "$work/out" || fail "more than 100 %: $(cat "$work/out")"
awk -v peak="$(value peak_gflops)" '/"gflops":/ && $2 != "null," && $2 + 0 > peak + 0 { bad = 1 }
    /"gbs":/ { gbs = $2 } /"floor_bandwidth_gbs":/ && $2 != "null," && gbs + 0 > $2 + 0 { bad = 1 } END { exit bad }' "$work/b.json" ||
    fail "a layer above its ceilings: $(cat "$work/b.json")"
grep -q "^ceilings: peak $(printf %.1f "$(value peak_gflops)") GFLOP/s" "$work/out" || fail "the peak: $(cat "$work/out")"
grep -q "geometric mean of floor/time $(printf %.3f "$(value geomean_fraction_of_floor)")\$" "$work/out" || fail "the mean: $(cat "$work/out")"
awk '/does not fit/ { next } /^(id|[BS][0-9]+) / && length > 100 { bad = 1 } END { exit bad }' "$work/out" || fail "a row is longer than 100 columns"
for words in '"tool_version": "[0-9.]*"' '"date": "20[0-9-]*T[0-9:]*Z"' '"cpu_threads": [1-9]' '"POCL_AFFINITY": "[01]"' '"interrupted": false' \
    '"spread": 0\.[0-9]' '"spread": null' '"probed_peak_gflops": [0-9]' '"max_error_is": "the largest error' '"platform": "' '"driver": "'; do
    grep -q "$words" "$work/b.json" || fail "no $words in the JSON of bench"
done
for key in device peak_gflops bandwidth_gbs layers id layer type algorithm ms_min ms_median runs gflops gbs floor_ms floor_bandwidth_gbs fraction_of_floor \
    max_error error_bound first_call_ms workspace_bytes error geomean_fraction_of_floor; do
    grep -q "\"$key\"" "$work/b.json" || fail "no $key in the JSON of bench"
done
# PoCL says on stderr that its compiler had warnings about a kernel, here one with non-temporal stores: 84 MB of
# output by few multiply-adds.
mkdir "$work/fresh"
TCONV_CL_CACHE_DIR="$work/fresh" POCL_CACHE_DIR="$work/fresh" "$tool" bench $device --data-shape 1,2,320,8192 --filter-shape 2,2,2,2 --strides 2 \
    --runs 1 --no-ceilings >"$work/out" 2>"$work/err" || fail "bench: $(cat "$work/err")"
grep 'warning' "$work/err" && fail "a kernel compiles with warnings"
env -u POCL_AFFINITY "$tool" bench $device --ids S5 --runs 1 --no-ceilings --json "$work/b.json" >"$work/out" || fail "bench --no-ceilings"
grep -q POCL_AFFINITY "$work/b.json" && fail "a variable that is not set is in the JSON"
grep -q '^ceilings\|^corrected' "$work/out" && fail "ceilings that are not wanted"
"$tool" bench $device --ids S5 --runs 2 --repeat 3 --no-ceilings --json "$work/c.json" >"$work/out" 2>"$work/err" ||
    fail "bench --repeat"
grep -q '"repeat": 3' "$work/c.json" || fail "no --repeat in the JSON of bench"
"$tool" compare "$work/b.json" "$work/c.json" >"$work/out" 2>"$work/err" || fail "compare: $(cat "$work/err")"
grep -q "have --repeat 1, of $work/c.json 3" "$work/err" || fail "other runs are compared without a word: $(cat "$work/err")"
# Fewer multiply-adds say nothing about the peak.
"$tool" bench $device --data-shape 1,40,20,32 --filter-shape 40,30,4,4 --strides 2 --pads-begin 1 --pads-end 1 --math fast --algorithm winograd_vector \
    --runs 2 --json "$work/b.json" >"$work/out" || fail "bench --math fast"
[ "$(value peak_gflops)" = "$(value probed_peak_gflops)" ] || fail "a layer with --math fast raises the peak"

# ---- steps: the tensors lie otherwise in memory, files and results are the same ----
layer="--data-shape 2,4,7,6 --filter-shape 4,3,3,3 --strides 2"
"$tool" check $device $layer --with-residual --data-steps 500,100,9,1 --output-steps 1,900,30,2 --residual-steps 0,300,13,1 >"$work/out" 2>"$work/err" ||
    fail "check with steps: $(cat "$work/out" "$work/err")"
grep -q ' 0 failed' "$work/out" || fail "check with steps: $(cat "$work/out")"
"$tool" check $device $layer --residual-steps 0,300,13,1 >"$work/out" 2>"$work/err" && fail "steps of a residual that is not there"
"$tool" bench $device $layer --output-steps 1000,300,20,1 --runs 1 --no-ceilings -q --json "$work/b.json" || fail "bench with steps"
grep -q '"error": null' "$work/b.json" || fail "bench with steps: $(cat "$work/b.json")"

# ---- without ceilings, what depends on them is unknown ----
"$tool" bench $device --ids B18,S5 --runs 2 --no-ceilings --json "$work/b.json" >"$work/out" && ! grep -q 'peak\|floor/time' "$work/out" &&
    [ "$(awk '$1 == "B18" || $1 == "S5" { print $(NF - 1) }' "$work/out" | tr -d '\n')" = -- ] || fail "bench --no-ceilings"
for key in peak_gflops bandwidth_gbs launch_us floor_ms fraction_of_floor geomean_fraction_of_floor; do
    grep -q "\"$key\": null" "$work/b.json" || fail "$key is known without ceilings"
done
grep -q '"bandwidth_by_working_set": \[\]' "$work/b.json" || fail "bandwidths without ceilings"

finish
