#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench, check and run on a device: figures that fit each other, --quiet, what an interruption leaves.
# usage: tool.sh TCONV-CL FOLDER-OF-VECTORS
set -u
tool=$1
vectors=$2
device=${TCONV_CL_TEST_DEVICE:+--device $TCONV_CL_TEST_DEVICE}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TCONV_CL_CACHE_DIR="$work/cache" # no tuning results of the user's
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# value KEY: what b.json says first.
value() {
    sed -n "s/^ *\"$1\": \(.*[^,]\),*\$/\1/p" "$work/b.json" | head -1
}

# ---- rows, last lines and JSON of bench say the same, and no layer is above the ceilings ----
POCL_AFFINITY=1 "$tool" bench $device --ids B05,B18,B20,S5,S10 --json "$work/b.json" >"$work/out" || fail "bench"
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
for words in '"tool_version": "[0-9.]*"' '"date": "20[0-9-]*T[0-9:]*Z"' '"cpu_threads": [1-9]' '"POCL_AFFINITY": "1"' '"interrupted": false' \
    '"spread": 0\.[0-9]' '"spread": null' '"probed_peak_gflops": [0-9]' '"max_error_is": "the largest error' '"platform": "' '"driver": "'; do
    grep -q "$words" "$work/b.json" || fail "no $words in the JSON of bench"
done
# PoCL says on stderr that its compiler had warnings about a kernel, here one with non-temporal stores.
mkdir "$work/fresh"
TCONV_CL_CACHE_DIR="$work/fresh" POCL_CACHE_DIR="$work/fresh" "$tool" bench $device --ids B12 --runs 1 --no-ceilings >"$work/out" 2>"$work/err" ||
    fail "bench: $(cat "$work/err")"
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

# ---- --quiet: results without words around them; with --json only JSON ----
d=$vectors/data/torch_line
files="--data $d.data.npy --filter $d.filter.npy --output $work/y.npy"
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
"$tool" bench $device --ids S5 --runs 1 --quiet >"$work/out" && grep -q '^S5 ' "$work/out" && ! grep -q 'layers timed' "$work/out" ||
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
for more in "" "--memory-limit 1" "--data-format NCX --filter-format OIX"; do # whole, in slabs, the oneAPI form
    "$tool" run $device $files $more --data-steps 90,21,2 --output-steps 7,1,3 --quiet && cmp -s "$work/piped.npy" "$work/y.npy" ||
        fail "run $more with steps gives something else"
done
expect_file() { "$tool" run $device --data "$d.data.npy" --filter "$d.filter.npy" --output - --memory-limit 1 >"$work/out" 2>"$work/err"; }
expect_file
[ $? = 2 ] && [ ! -s "$work/out" ] && grep -q -- '--output - is not a regular file' "$work/err" || fail "slabs into a pipe: $(cat "$work/err")"
printf 'id,in_channels,out_channels,input,kernel\nX,3,4,5x6,2x2\n' |
    "$tool" bench $device --suite - --runs 5 --no-ceilings --csv - --json "$work/b.json" >"$work/out" 2>"$work/err" || fail "bench of pipes: $(cat "$work/err")"
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

# ---- the list of layers; names completed ----
printf 'id,in_channels,out_channels,input,kernel\nX\033[31m,3,4,5x6,2x2\n' >"$work/s.csv"
"$tool" bench --list --suite "$work/s.csv" | grep -q '^X?\[31m  *--data-shape' || fail "an id that colours the terminal"
"$tool" bench --list --ids 'b07 , S5' >"$work/out" 2>"$work/err" && [ "$(cut -d ' ' -f 1 "$work/out" | paste -sd ,)" = B07,S5 ] &&
    grep -q -- '--data-shape 1,512,32,32 ' "$work/out" || fail "bench --list: $(cat "$work/out" "$work/err")"
"$tool" bench --list --json "$work/c.json" >/dev/null && [ "$(grep -c '"id"' "$work/c.json")" = "$("$tool" bench --list | wc -l)" ] || fail "bench --list --json"
"$tool" bench --list --ids 'B07,,S5' 2>"$work/err"
[ $? = 2 ] && grep -q 'names "", .*tconv-cl bench --list prints the ids' "$work/err" || fail "an empty id: $(cat "$work/err")"
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

# ---- a trace: spans of the host and of the device by one clock, whole or not at all ----
"$tool" bench $device --ids S5,B18 --runs 5 --no-ceilings --trace "$work/t.json" >"$work/out" 2>"$work/err" || fail "bench --trace: $(cat "$work/err")"
grep -q 'the device tells no times' "$work/err" && timeless=timeless || timeless= # rusticl of Mesa 22.3
python3 - "$work/t.json" $timeless <<'EOF' || fail "the trace"
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
spans = {}
for event in events:
    if event["ph"] == "X":
        assert event["dur"] >= 0 and event["tid"] == 1, event
        spans.setdefault(event["cat"], []).append((event["ts"], event["ts"] + event["dur"], event))
timeless = {"launch"} if len(sys.argv) > 2 else set()
assert set(spans) == {"layer", "plan", "program", "enqueue", "launch"} - timeless, set(spans)
spans.setdefault("launch", [])
assert {event["args"]["name"] for event in events if event["ph"] == "M"} > {"host"}
layers = sorted(spans["layer"], key=lambda span: span[0])
assert [event["name"].split()[0] for *_, event in layers] == ["B18", "S5"], layers
assert {event["pid"] for *_, event in spans["launch"]} <= {2} and layers[0][2]["pid"] == 1
assert {event["args"]["from"] for *_, event in spans["program"]} & {"compiler", "disk"}
assert [event["args"]["chosen by"] for *_, event in spans["plan"]] in (["model", "name"] * 2, ["record", "name"] * 2)
enqueues, launches = (sorted(spans[kind], key=lambda span: span[0]) for kind in ("enqueue", "launch"))
assert len(enqueues) >= 12 and (timeless or len(enqueues) == len(launches)), (len(enqueues), len(launches))
for (asked, told, call), (start, end, launch) in zip(enqueues, launches):
    assert call["name"] == "enqueue " + launch["name"], (call, launch)
    # Another launch's enqueueing aligns the clocks: up to half of it.
    assert start > asked - 50000 and end < layers[-1][1] + 50000, (asked, start, end)
for (_, before, _), (after, _, _) in zip(launches, launches[1:]):
    assert after > before - 0.01, "the launches of one queue overlap"
for begin, end, plan in spans["plan"]:
    assert any(first <= begin and end <= last for first, last, _ in layers), plan
EOF
"$tool" bench $device --ids S5 --runs 2 --no-ceilings --trace - 2>"$work/err" | python3 -c 'import json, sys; json.load(sys.stdin)' ||
    fail "bench --trace -: $(cat "$work/err")"
"$tool" check $device --data-shape 1,2,9 --filter-shape 2,2,3 --trace "$work/t.json" >"$work/out" 2>"$work/err" || fail "check --trace: $(cat "$work/err")"
python3 - "$work/t.json" "$(grep -c ' passed ' "$work/out")" <<'EOF' || fail "the trace of check"
import json, sys
kinds = [event.get("cat") for event in json.load(open(sys.argv[1]))["traceEvents"]]
assert kinds.count("layer") == 1 and kinds.count("plan") == int(sys.argv[2]) > 1, kinds
EOF
echo old >"$work/t.json"
"$tool" bench $device --ids S5 --runs 0 --trace "$work/t.json" >"$work/out" 2>&1
[ $? = 2 ] && [ "$(cat "$work/t.json")" = old ] || fail "a trace of a wrong request"

# ---- compared with an earlier run; a picture, where there is matplotlib ----
cp "$work/b.json" "$work/old.json"
printf 'id,in_channels,out_channels,input,kernel\nX,3,4,5x6,2x2\n' >"$work/s.csv"
"$tool" bench $device --suite "$work/s.csv" --runs 5 --no-ceilings --json "$work/b.json" >"$work/out" 2>"$work/err" &&
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
[ $? = 2 ] && grep -q 'has no module matplotlib' "$work/err" && [ ! -s "$work/out" ] && [ ! -e "$work/x.svg" ] || fail "no matplotlib: $(cat "$work/err")"
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

# ---- on a terminal, lines end before column 100; in a pipe they are whole ----
for words in "bench $device --ids S5,S10 --runs 1" "devices" "check $device --data-shape 1,2,9 --filter-shape 2,2,3"; do
    env NO_COLOR=1 script -qec "'$tool' $words 2>/dev/null" /dev/null </dev/null | tr -d '\r' >"$work/out"
    awk 'length > 100 { bad = 1 } END { exit bad || NR < 3 }' "$work/out" || fail "$words on a terminal: $(cat "$work/out")"
done
# The columns come from the terminal, or from COLUMNS. Rows of 60 columns have two lines; progress counts, too.
for words in "bench $device --ids S5,B18 --runs 1 --why" "bench --list --ids B07" "check $device --data-shape 1,2,9 --filter-shape 2,2,3" \
    "tune $device --data-shape 1,2,9 --filter-shape 2,2,3 --budget 1" "tune $device --records" "tune $device --machine" \
    "compare $work/slow.json $work/b.json"; do
    script -qec "stty cols 60; NO_COLOR=1 TCONV_CL_CACHE_DIR='$work/narrow' '$tool' $words" /dev/null </dev/null | tr '\r' '\n' >"$work/out"
    awk '!/^tconv-cl: / && length > 60 { bad = 1 } END { exit bad || NR < 2 }' "$work/out" || fail "$words in 60 columns: $(cat "$work/out")"
    NO_COLOR=1 TCONV_CL_CACHE_DIR="$work/narrow" "$tool" $words >"$work/pipe.txt" 2>"$work/err" || fail "$words: $(cat "$work/err")"
    case $words in *list* | *records | compare*) # the figures are always the same
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

# ---- an interruption leaves what there is ----
await() { # PATTERN: until a line of the output begins so
    for i in $(seq 6000); do
        grep -q "^$1" "$work/out" && return
        sleep 0.1
    done
    fail "no line $1: $(cat "$work/out" "$work/err")"
}
# interrupt SIGNAL PATTERN arguments...: JSON goes to i.json; a shell's background job ignores SIGINT unless told otherwise
interrupt() {
    signal=$1
    pattern=$2
    shift 2
    env --default-signal=INT "$tool" "$@" $device --json "$work/i.json" >"$work/out" 2>"$work/err" &
    await "$pattern"
    kill -s "$signal" $!
    wait $!
    got=$?
    [ "$got" = 1 ] || fail "exit code $got, not 1, after $signal: $*: $(cat "$work/err")"
    [ "$(grep -c '^tconv-cl: interrupted: ' "$work/err")" = 1 ] || fail "no sentence after $signal: $*: $(cat "$work/err")"
    grep -q '"interrupted": true' "$work/i.json" || fail "no JSON after $signal: $*"
}
interrupt TERM B01 bench --runs 3
[ "$(grep -c '"id":' "$work/i.json")" = 77 ] && [ "$(grep -c '"error": "interrupted"' "$work/i.json")" -gt 60 ] &&
    [ "$(grep -c '"error": null' "$work/i.json")" = "$(sed -n 's/ of 77 layers timed.*//p' "$work/out")" ] ||
    fail "layers after an interruption: $(cat "$work/out")"
grep -q '"geomean_fraction_of_floor": 0\.' "$work/i.json" || fail "no mean of the layers before an interruption"
interrupt INT C01 check
grep -q '"verdict": "passed"' "$work/i.json" && grep -q ' passed, 0 failed' "$work/out" || fail "comparisons before an interruption: $(cat "$work/out")"
export TCONV_CL_CACHE=off # what it has timed by then is none of the user's results
interrupt TERM B0 tune --budget 1
unset TCONV_CL_CACHE
[ "$(grep -c '"id":' "$work/i.json")" = 77 ] || fail "layers of an interrupted tune"
# A folder of the user's: files of others stay in it, however old and whatever they are called.
mkdir -m 700 "$work/shared"
others="new-thesis.tex tconv-cl-new-thesis.tex 00112233445566778899aabbccddeeff.program"
for name in $others; do
    echo "somebody's work" >"$work/shared/$name"
    touch -d '2 hours ago' "$work/shared/$name"
done
for command in "check --algorithm reference --data-shape 1,1,3 --filter-shape 1,1,2" "tune --data-shape 1,1,3 --filter-shape 1,1,2 --budget 1"; do
    TCONV_CL_CACHE_DIR="$work/shared" TCONV_CL_CACHE_MIB=1 "$tool" $command $device >"$work/out" 2>&1 || fail "$command: $(cat "$work/out")"
done
for name in $others; do
    [ "$(cat "$work/shared/$name")" = "somebody's work" ] || fail "$name of somebody is gone from the cache folder"
done
[ "$(ls "$work/shared"/*.program | wc -l)" -gt 1 ] || fail "nothing is stored in a folder with files of others"
# tune stores what later plans find
export TCONV_CL_CACHE_DIR="$work/tuned"
"$tool" tune $device --ids B18,S5 --budget 20 --json "$work/tune.json" >"$work/out" 2>"$work/err" || fail "tune: $(cat "$work/err")"
grep -q '^B18 ' "$work/out" && grep -q '^2 of 2 layers timed; geometric mean of gain [1-9]' "$work/out" || fail "the table of tune: $(cat "$work/out")"
grep -q "stored in $work/tuned" "$work/err" || fail "tune does not say where: $(cat "$work/err")"
for key in candidates timed ms_model ms_best gain error; do
    [ "$(grep -c "\"$key\":" "$work/tune.json")" = 2 ] || fail "no $key in the JSON of tune"
done
# Every candidate that was timed has its time, and the layer's algorithm and tile are among them.
awk '/"id":/ { layers++ } /"candidates":/ { candidates += $2 } /"ms": [0-9.e-]+/ { times++ }
    /"(algorithm|tile)":/ { key = $1; sub(/^[^:]*: /, ""); text[key] = $0 }
    key == "\"tile\":" { pair[text["\"algorithm\":"] text[key]]++; key = "" }
    END { for (p in pair) twice += pair[p] > 1; exit !(layers == 2 && candidates >= 4 && times == candidates && twice >= 1) }' "$work/tune.json" ||
    fail "candidates in the JSON of tune: $(cat "$work/tune.json")"
"$tool" bench $device --ids B18 --runs 1 --no-ceilings -q --json "$work/b.json" || fail "bench after tune"
[ "$(value chosen_by)" = '"record"' ] || fail "bench does not use what tune stored"
tile=$(value tile | tr -d '"')
"$tool" bench $device --ids B18 --runs 1 --no-ceilings -q --algorithm "$(value algorithm | tr -d '"') $tile" --json "$work/b.json" &&
    [ "$(value tile)" = "\"$tile\"" ] || fail "the tile of bench's JSON is not taken back"
# The results as text; what is damaged or of another device is named and left out.
"$tool" tune $device --records --json "$work/r.json" >"$work/out" 2>"$work/err" || fail "tune --records: $(cat "$work/err")"
grep -q '^2 results are stored in ' "$work/out" && [ ! -s "$work/err" ] && [ "$(grep -c '"problem": "f32 n' "$work/r.json")" = 2 ] &&
    [ "$(grep -cE '^ +[0-9.e-]+ +[0-9.]+ f32 n1 g1 i[0-9]+ o.*: [a-z_0-9]+ ' "$work/out")" = 2 ] &&
    grep -q "\"tile\": \"$tile\"" "$work/r.json" || fail "the list of tune --records: $(cat "$work/out" "$work/err")"
script -qec "'$tool' tune $device --records" /dev/null </dev/null | tr -d '\r' | awk 'length > 100 { bad = 1 } END { exit bad }' ||
    fail "tune --records on a terminal"
file=$(sed -n 's/^ *"file": "\(.*\)",/\1/p' "$work/r.json" | head -1)
echo damaged >"$work/tuned/$file"
echo notes >"$work/tuned/notes.txt"
"$tool" tune $device --records --json "$work/r.json" >"$work/out" 2>"$work/err" || fail "tune --records with damaged files"
grep -q '^1 result is stored' "$work/out" && grep -q "^tconv-cl: $file: skipped: damaged" "$work/err" &&
    grep -q '^tconv-cl: notes.txt: skipped: no file of this version' "$work/err" && [ "$(grep -c '"why":' "$work/r.json")" = 2 ] ||
    fail "damaged files of tune --records: $(cat "$work/out" "$work/err")"
rm "$work/tuned/notes.txt"
# PoCL without threads is another device.
if grep -q '"platform": "Portable Computing Language"' "$work/r.json"; then
    POCL_DEVICES=basic "$tool" tune --device cpu --ids S5 --budget 1 >"$work/out" 2>&1 || fail "tune on another device: $(cat "$work/out")"
    "$tool" tune $device --records --json "$work/r.json" >"$work/out" 2>"$work/err" && grep -q '^1 result is stored' "$work/out" &&
        [ "$(grep -c ': skipped: of another device, driver or version' "$work/err")" = 1 ] &&
        [ "$(grep -c '"device": "tconv-cl .*driver ' "$work/r.json")" = 1 ] || fail "records of another device: $(cat "$work/out" "$work/err")"
fi
# the machine is measured, stored and forgotten
"$tool" tune $device --machine --json "$work/m.json" >"$work/out" 2>"$work/err" || fail "tune --machine: $(cat "$work/err")"
grep -qE '^(clock|unit_lanes) .*[1-9]' "$work/out" && [ "$(grep -c '"name": "[a-z]' "$work/m.json")" -ge 2 ] ||
    fail "the table of tune --machine: $(cat "$work/out")"
"$tool" tune $device --fields "reference_tap=0 reference_output=0 reference_wait=0 gpu_begin=0 gpu_wait=0" || fail "tune --fields"
TCONV_CL_SEARCH=model "$tool" bench $device --ids B18 --runs 1 --no-ceilings -q --json "$work/b.json" || fail "bench with fields"
[ "$(value algorithm)" = '"reference"' ] || fail "bench does not use what tune --fields stored"
"$tool" tune $device --fields "" 2>"$work/err" && grep -q 'forgotten in' "$work/err" || fail "tune --fields that forgets: $(cat "$work/err")"
"$tool" tune $device --fields "walk=3" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'no field "walk"' "$work/err" || fail "a field that does not exist: $(cat "$work/err")"
"$tool" tune $device --machine --ids B18 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q -- '--ids is given, but --machine' "$work/err" || fail "tune --machine --ids: $(cat "$work/err")"
[ "$(TCONV_CL_SEARCH=model "$tool" bench $device --ids B18 --runs 1 --no-ceilings -q --json - | grep -c '"chosen_by": "model"')" = 1 ] ||
    fail "TCONV_CL_SEARCH=model does not leave records alone"
unset TCONV_CL_CACHE_DIR
TCONV_CL_CACHE=off "$tool" tune $device --ids S5 --budget 1 >"$work/out" 2>"$work/err" || fail "tune without a folder: $(cat "$work/err")"
grep -q 'not stored' "$work/err" || fail "tune does not say that nothing is stored"
TCONV_CL_CACHE=off "$tool" tune $device --records >"$work/out" 2>"$work/err" && grep -q '^0 results are stored$' "$work/out" &&
    grep -q 'no folder for results' "$work/err" || fail "tune --records without a folder: $(cat "$work/out" "$work/err")"
"$tool" tune $device --records --ids B18 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q -- '--ids is given, but --records lists' "$work/err" || fail "tune --records --ids: $(cat "$work/err")"
"$tool" tune $device --budget 0 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q -- '--budget is 0' "$work/err" || fail "a budget of 0: $(cat "$work/err")"
# A second signal ends the program wherever it is: here it waits for a reader of its JSON.
mkfifo "$work/pipe"
"$tool" bench $device --ids S5,B18 --no-ceilings --json "$work/pipe" >"$work/out" 2>"$work/err" &
await S5
kill -s TERM $!
sleep 2
kill -s TERM $!
wait $!
got=$?
[ "$got" = 143 ] || fail "exit code $got, not 143, after two signals"

[ "$failures" = 0 ] || exit 1
echo "the tool does as it should"
