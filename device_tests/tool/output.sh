#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the tool prints: --quiet, pipes, terminals.
# usage: output.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

# ---- --quiet: results without words around them; with --json only JSON ----
quiet() { # arguments...: nothing is printed
    "$tool" "$@" --quiet >"$work/out" 2>&1 || fail "$* --quiet"
    [ ! -s "$work/out" ] || fail "$* --quiet prints: $(cat "$work/out")"
}
quiet run $device $files
quiet run $device $files --json "$work/r.json"
quiet bench $device --ids S5 --runs 1 --json "$work/b.json"
quiet check $device --data-shape 1,2,9 --filter-shape 2,2,3 --algorithm reference --json "$work/c.json"
grep -q '"max_error_is": "the largest error' "$work/c.json" && grep -q '"error_bound": [0-9]' "$work/c.json" || fail "the JSON of check: $(cat "$work/c.json")"
quiet devices --json "$work/d.json"
"$tool" run $device $files >"$work/out" && grep -q 'computed by' "$work/out" || fail "run without --quiet"
"$tool" bench $device --ids S5 --runs 1 --no-ceilings --quiet >"$work/out" && grep -q '^S5 ' "$work/out" && ! grep -q 'layers timed' "$work/out" ||
    fail "bench --quiet: $(cat "$work/out")"
"$tool" check $device --algorithm dot_vector --ids S5,B18 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q ' dot_vector  *refused ' "$work/out" && grep -q '^0 passed, 0 failed, 2 refused' "$work/out" &&
    grep -q ' 2 comparisons were refused, the first: .* does not take this problem' "$work/err" ||
    fail "check of an algorithm that refuses: $(cat "$work/out" "$work/err")"
"$tool" check $device --data-shape 1,2,9 --filter-shape 2,2,3 --quiet >"$work/out" && grep -q 'reference  *passed' "$work/out" &&
    ! grep -q 'refused by an algorithm' "$work/out" || fail "check --quiet: $(cat "$work/out")"
"$tool" devices --quiet >"$work/out" && grep -q 'compute units' "$work/out" && ! grep -q 'is used where' "$work/out" || fail "devices --quiet"

# ---- - is stdin or stdout ----
"$tool" run $device --data - --filter "$d.filter.npy" --output - <"$d.data.npy" >"$work/piped.npy" 2>"$work/err" || fail "run from a pipe: $(cat "$work/err")"
"$tool" run $device $files --quiet && cmp -s "$work/piped.npy" "$work/y.npy" || fail "run gives something else in a pipe"
"$tool" run $device --data "$d.data.npy" --filter - --output "$work/y.npy" <"$d.filter.npy" | grep -q 'computed by' && cmp -s "$work/piped.npy" "$work/y.npy" ||
    fail "the filter from a pipe"
if [ -e /dev/stdout ]; then # stdout by a path: what else is there stays
    for path in /dev/stdout "$work/st.out"; do
        printf keep >"$work/st.out"
        "$tool" run $device --data "$d.data.npy" --filter "$d.filter.npy" --output $path >>"$work/st.out" &&
            { printf keep && cat "$work/piped.npy"; } | cmp -s - "$work/st.out" || fail "run --output $path"
    done
    for paths in "/dev/stdout --json -" "- --json /dev/stdout"; do
        "$tool" run $device -q --data "$d.data.npy" --filter "$d.filter.npy" --output $paths >"$work/st.out" 2>"$work/err"
        [ $? = 2 ] && [ ! -s "$work/st.out" ] && grep -q -- '--json and --output are both -: ' "$work/err" || fail "run --output $paths: $(cat "$work/err")"
    done
    "$tool" run $device --data "$d.data.npy" --filter "$d.filter.npy" --output /dev/stderr --memory-limit 1 --quiet 2>"$work/err"
    cmp -s "$work/piped.npy" "$work/err" || fail "slabs into stderr"
fi
for more in "" "--memory-limit 1" "--data-format NCX --filter-format OIX"; do # whole, in slabs, the oneAPI form
    "$tool" run $device $files $more --data-steps 90,21,2 --output-steps 7,1,3 --quiet && cmp -s "$work/piped.npy" "$work/y.npy" ||
        fail "run $more with steps gives something else"
done
"$tool" run $device --data "$d.data.npy" --filter "$d.filter.npy" --output - --memory-limit 1 >"$work/out" && cmp -s "$work/piped.npy" "$work/out" || fail "run with a limit into a pipe"
one_layer s.csv
"$tool" bench $device --suite - --runs 5 --no-ceilings --csv - --json "$work/b.json" <"$work/s.csv" >"$work/out" 2>"$work/err" || fail "bench of pipes: $(cat "$work/err")"
[ "$(wc -l <"$work/out")" = 2 ] && head -1 "$work/out" | grep -q '^id,layer,problem,type,algorithm,tile,' && grep -q '^"X","","--data-shape ' "$work/out" ||
    fail "bench --csv: $(cat "$work/out")"
python3 - "$work/out" "$work/b.json" <<'END' || fail "CSV and JSON of bench differ: $(cat "$work/out")"
import csv, json, sys
row, layer = list(csv.DictReader(open(sys.argv[1])))[0], json.load(open(sys.argv[2]))["layers"][0]
assert len(row) > 15 and row["ms_median"] != ""
for key, text in row.items():
    value = layer[key]
    assert text == ("" if value is None else value) if isinstance(value, (str, type(None))) else float(text) == value, (key, text, value)
END

# ---- on a terminal, lines end before column 100; in a pipe they are whole ----
for words in "bench $device --ids S5,S10 --runs 1" "devices" "check $device --data-shape 1,2,9 --filter-shape 2,2,3"; do
    env NO_COLOR=1 script -qec "'$tool' $words 2>/dev/null" /dev/null </dev/null | tr -d '\r' >"$work/out"
    awk 'length > 100 { bad = 1 } END { exit bad || NR < 3 }' "$work/out" || fail "$words on a terminal: $(cat "$work/out")"
done
sed 's/"ms_median": [0-9.e-]*/"ms_median": 1e9/' "$work/b.json" >"$work/slow.json"
# The columns come from the terminal, or from COLUMNS. Rows of 60 columns have two lines; progress counts, too.
for words in "bench $device --ids S5,B18 --runs 1 --why" "bench --list --ids B07" "check $device --data-shape 1,2,9 --filter-shape 2,2,3" \
    "tune $device --data-shape 1,2,9 --filter-shape 2,2,3 --budget 1" "tune $device --records" "tune $device --machine" \
    "compare $work/slow.json $work/b.json"; do
    script -qec "stty cols 60; NO_COLOR=1 TCONV_CL_CACHE_DIR='$work/narrow' '$tool' $words" /dev/null </dev/null | tr '\r' '\n' >"$work/out"
    awk '!/^tconv-cl: / && length > 60 { bad = 1 } END { exit bad || NR < 2 }' "$work/out" || fail "$words in 60 columns: $(cat "$work/out")"
    case $words in *list* | *records | compare*) # the figures are always the same
        NO_COLOR=1 TCONV_CL_CACHE_DIR="$work/narrow" "$tool" $words >"$work/pipe.txt" 2>"$work/err" || fail "$words: $(cat "$work/err")"
        [ "$(grep -v '^tconv-cl: ' "$work/out" | tr -s ' \n' ' ')" = "$(tr -s ' \n' ' ' <"$work/pipe.txt")" ] ||
            fail "$words in 60 columns and in a pipe differ: $(cat "$work/out")"
        script -qec "stty cols 120; NO_COLOR=1 TCONV_CL_CACHE_DIR='$work/narrow' '$tool' $words" /dev/null </dev/null | tr -d '\r' >"$work/out"
        [ "$(head -1 "$work/out" | cut -c 1-90)" = "$(head -1 "$work/pipe.txt" | cut -c 1-90)" ] ||
            fail "$words in 120 columns and in a pipe differ: $(cat "$work/out")" ;;
    esac
done
COLUMNS=60 script -qec "'$tool' bench --list" /dev/null </dev/null | tr -d '\r' | awk 'length > 60 { bad = 1 } END { exit bad }' || fail "COLUMNS"
# Arrays are not written to a terminal.
for output in - /dev/tty; do
    script -qec "'$tool' run --data '$d.data.npy' --filter '$d.filter.npy' --output $output; echo code \$?" /dev/null </dev/null |
        tr -d '\r' >"$work/out"
    grep -q 'is a terminal: ' "$work/out" && grep -qx 'code 2' "$work/out" && ! grep -q NUMPY "$work/out" || fail "--output $output: $(cat "$work/out")"
done
script -qec "'$tool' algorithms" /dev/null </dev/null | tr -d '\r' >"$work/out"
awk 'length > 100 || / $/ { bad = 1 } END { exit bad }' "$work/out" || fail "algorithms on a terminal: $(cat "$work/out")"
"$tool" algorithms >"$work/pipe.txt"
[ "$(wc -l <"$work/out")" -gt "$(wc -l <"$work/pipe.txt")" ] && [ "$(tr -s ' \n' ' ' <"$work/out")" = "$(tr -s ' \n' ' ' <"$work/pipe.txt")" ] ||
    fail "algorithms on a terminal and in a pipe differ: $(cat "$work/out")"

finish
