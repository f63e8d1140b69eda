#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reports are compared with earlier ones. Where there is matplotlib, they are drawn.
# usage: compare.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

# ---- compared with an earlier run; a picture, where there is matplotlib ----
one_layer s.csv
for report in old b; do
    "$tool" bench $device --suite "$work/s.csv" --runs 5 --no-ceilings --json "$work/$report.json" >"$work/out" 2>"$work/err" ||
        fail "bench: $(cat "$work/err")"
done
"$tool" compare "$work/old.json" "$work/b.json" >"$work/out" 2>"$work/err" &&
    "$tool" compare "$work/old.json" "$work/b.json" --json "$work/c.json" >/dev/null 2>"$work/err" || fail "compare: $(cat "$work/err")"
grep -qE '^X .* [0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+%' "$work/out" && grep -q '^1 layer in both; geometric mean of old / new time [0-9.]*$' "$work/out" &&
    grep -q '"geomean_ratio": [0-9]' "$work/c.json" || fail "compare: $(cat "$work/out")"
sed 's/"ms_median": [0-9.e-]*/"ms_median": 1e9/' "$work/b.json" >"$work/slow.json"
"$tool" compare --fail "$work/slow.json" "$work/b.json" >"$work/out" 2>"$work/err" || fail "compare --fail of faster layers: $(cat "$work/err")"
"$tool" compare --fail "$work/b.json" "$work/slow.json" --json "$work/c.json" >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q '1 of 1 layers is slower beyond noise: X$' "$work/err" && grep -q '"verdict": "slower"' "$work/c.json" &&
    grep -q '"schema": 1$' "$work/c.json" || fail "compare --fail: $(cat "$work/err")"
# bench --compare does the same with its own run, and only for the layers of this run.
compared="bench $device --suite $work/s.csv --runs 5 --no-ceilings"
sed 's/"ms_median": [0-9.e-]*/"ms_median": 1e-9/; s/"id": "X"/"id": "Y"/' "$work/b.json" >"$work/other.json"
sed 's/"ms_median": [0-9.e-]*/"ms_median": 1e-9/' "$work/b.json" >"$work/quick.json"
"$tool" $compared --compare "$work/slow.json" --fail --json "$work/c.json" >"$work/out" 2>"$work/err" || fail "bench --compare: $(cat "$work/err")"
grep -q '^compared with .*slow.json:$' "$work/out" && grep -q '^X .* faster$' "$work/out" && grep -q '"comparison": {' "$work/c.json" &&
    grep -q '"file": "this run"' "$work/c.json" || fail "bench --compare: $(cat "$work/out")"
"$tool" $compared --compare "$work/quick.json" >"$work/out" 2>"$work/err" || fail "bench --compare without --fail: $(cat "$work/err")"
"$tool" $compared --compare "$work/quick.json" --fail --json "$work/c.json" >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q '1 of 1 layers is slower beyond noise: X$' "$work/err" && grep -q '"verdict": "slower"' "$work/c.json" ||
    fail "bench --compare --fail: $(cat "$work/err")"
"$tool" $compared --compare "$work/other.json" --fail >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q 'can judge no layer: 0 are in both' "$work/err" && grep -q '^X .* only in this run$' "$work/out" &&
    ! grep -q '^Y ' "$work/out" || fail "bench --compare with other layers: $(cat "$work/out")"
mkdir "$work/python"
printf '#!/bin/sh\nexit 1\n' >"$work/python/python3"
chmod +x "$work/python/python3"
PATH="$work/python:$PATH" "$tool" bench $device --ids S5 --plot "$work/x.svg" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'needs matplotlib, which .* lacks: run .* -m pip install matplotlib' "$work/err" && [ ! -s "$work/out" ] && [ ! -e "$work/x.svg" ] || fail "no matplotlib: $(cat "$work/err")"
tool=$(command -v "$tool")
PATH=/nowhere "$tool" bench $device --ids S5 --plot "$work/x.svg" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'there is no python3' "$work/err" || fail "no Python: $(cat "$work/err")"
# A Python that can do it, and one that fails while it draws.
printf '#!/bin/sh\ncase $2 in import*) ;; *) grep -q fraction_of_floor && echo "<svg/>" ;; esac\n' >"$work/python/python3"
PATH="$work/python:$PATH" "$tool" bench $device --ids S5 --runs 5 --plot "$work/x.svg" >"$work/out" 2>"$work/err" && [ "$(cat "$work/x.svg")" = "<svg/>" ] ||
    fail "bench --plot: $(cat "$work/err")"
PATH="$work/python:$PATH" "$tool" bench $device --ids S5 --runs 5 --plot - 2>"$work/err" | grep -qx '<svg/>' || fail "bench --plot -: $(cat "$work/err")"
printf '#!/bin/sh\ncase $2 in import*) ;; *) exit 3 ;; esac\n' >"$work/python/python3"
PATH="$work/python:$PATH" "$tool" bench $device --ids S5 --runs 5 --plot "$work/x.svg" >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q 'cannot be drawn: python3 ended with code 3' "$work/err" && [ "$(cat "$work/x.svg")" = "<svg/>" ] || fail "a failed plot: $(cat "$work/err")"
if python3 -c 'import matplotlib' 2>/dev/null; then
    "$tool" bench $device --ids S5 --runs 5 --plot "$work/y.svg" >"$work/out" 2>"$work/err" &&
        for words in S5 'GFLOP/s at most' 'GB/s from memory'; do grep -q "$words" "$work/y.svg" || fail "no $words in a plot"; done ||
        fail "a plot: $(cat "$work/err")"
fi

finish
