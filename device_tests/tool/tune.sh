#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tconv-cl tune stores and forgets results, in a folder that may hold files of others.
# usage: tune.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

# ---- a folder of the user's: files of others stay in it, however old and whatever they are called ----
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

# ---- tune stores what later plans find ----
export TCONV_CL_CACHE_DIR="$work/tuned"
"$tool" tune $device --ids B18,S5 --budget 20 --json "$work/tune.json" >"$work/out" 2>"$work/err" || fail "tune: $(cat "$work/err")"
grep -q '^B18 ' "$work/out" && grep -q '^2 of 2 layers timed; geometric mean of gain [1-9]' "$work/out" || fail "the table of tune: $(cat "$work/out")"
grep -q "stored in $work/tuned" "$work/err" || fail "tune does not say where: $(cat "$work/err")"
for key in candidates timed ms_model ms_best gain noise not_stored error; do
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

# ---- the results as text; what is damaged or of another device is named and left out ----
"$tool" tune $device --records --json "$work/r.json" >"$work/out" 2>"$work/err" || fail "tune --records: $(cat "$work/err")"
grep -q '^2 results are stored in ' "$work/out" && [ ! -s "$work/err" ] && [ "$(grep -c '"problem": "f32 n' "$work/r.json")" = 2 ] &&
    [ "$(grep -cE '^ +[0-9.e-]+ +[0-9.]+ f32 n1 g1 i[0-9]+ o.*: [a-z_0-9]+ ' "$work/out")" = 2 ] &&
    grep -q "\"tile\": \"$tile\"" "$work/r.json" || fail "the list of tune --records: $(cat "$work/out" "$work/err")"
script -qec "'$tool' tune $device --records" /dev/null </dev/null | tr -d '\r' | awk 'length > 100 { bad = 1 } END { exit bad }' ||
    fail "tune --records on a terminal"

# ---- results of another driver version of the same device: imported, used, marked ----
"$tool" tune $device --share "$work/s.json" 2>"$work/err" && grep -q '^tconv-cl: 2 results are written to ' "$work/err" &&
    [ "$(grep -c '"layer": "--data-shape .*"algorithm"\|"layer": "--data-shape' "$work/s.json")" = 2 ] && ! grep -q "$work" "$work/s.json" ||
    fail "tune --share: $(cat "$work/err" "$work/s.json")"
for wrong in "--ids B18" "--device 99"; do
    for way in --share --import; do
        "$tool" tune $wrong $way "$work/s.json" 2>"$work/err"
        [ $? = 2 ] && grep -q "^tconv-cl: ${wrong% *} is " "$work/err" || fail "tune $wrong $way: $(cat "$work/err")"
    done
done
sed 's/"driver": ".*"/"driver": "older"/' "$work/s.json" >"$work/older.json"
(
    export TCONV_CL_CACHE_DIR="$work/elsewhere"
    export FAKE_OPENCL_DRIVER=7.7 # the fake implementation has another driver from here on
    failures=0
    "$tool" tune $device --share "$work/none.json" 2>"$work/err"
    [ $? = 1 ] && [ ! -e "$work/none.json" ] && grep -q 'nothing to share: .*run tconv-cl tune first' "$work/err" || fail "tune --share of nothing: $(cat "$work/err")"
    "$tool" tune $device --import "$work/older.json" >"$work/out" 2>"$work/err" && grep -q '^2 of 2 results imported from older.json: .*, driver older into ' "$work/out" ||
        fail "tune --import: $(cat "$work/out" "$work/err")"
    "$tool" tune $device --records --json "$work/r2.json" >"$work/out" && [ "$(grep -c 'imported from' "$work/out")" = 2 ] && grep -q '^0 results are stored' "$work/out" &&
        [ "$(grep -c '"origin": "older.json: ' "$work/r2.json")" = 2 ] || fail "tune --records of imported results: $(cat "$work/out")"
    "$tool" bench $device --ids B18 --runs 1 --no-ceilings --why --json "$work/b.json" >"$work/out" 2>"$work/err"
    [ "$(value chosen_by)" = '"imported"' ] && [ "$(value tile)" = "\"$tile\"" ] && grep -q 'taken, .*; imported from older.json: ' "$work/err" &&
        grep -q '^chosen by imported results of tconv-cl tune: 1 of 1' "$work/out" || fail "bench with imported results: $(cat "$work/out" "$work/err")"
    # The origin is UTF-8, whatever the file's name is: cut, or of other bytes.
    for name in "x$(printf 'é%.0s' $(seq 30)).json" "$(printf '\377').json"; do
        cp "$work/older.json" "$work/$name"
        "$tool" tune $device --import "$work/$name" -q --json "$work/i.json" 2>"$work/err" &&
            grep -q '"origin": "\(x[^:]*é\|?.json\): ' "$work/i.json" || fail "tune --import of a file $name: $(cat "$work/err")"
    done
    "$tool" tune $device --import "$work/older.json" -q || fail "tune --import once more"
    # refused EXIT-CODE WORDS SED-COMMAND: a changed file
    refused() {
        sed "$3" "$work/s.json" >"$work/bad.json"
        "$tool" tune $device --import "$work/bad.json" >"$work/out" 2>"$work/err"
        [ $? = "$1" ] && grep -q "$2" "$work/err" || fail "an import of '$3': $(cat "$work/out" "$work/err")"
    }
    refused 1 'is no JSON: line 2: ' '1s/{/[/'
    refused 2 'bad.json: its schema is 4294967297: ' 's/"schema": .*/"schema": 4294967297,/'
    refused 2 'bad.json: result 1: ms_best must be ' 's/"ms_best": .*/"ms_best": 0,/'
    refused 2 'bad.json: result 1: layer: --stride: unknown option' 's/--strides/--stride/'
    refused 2 'bad.json: device: name must be a text' 's/"name": "/&\\n/'
    refused 2 'its device.vector_width is 7, and that of this device ' 's/"vector_width": .*/"vector_width": 7,/'
    refused 1 'result 1 of .* is skipped: .*does not take\|result 1 of .* is skipped: .*algorithm is' 's/"tile": "[a-z]*=/&9/'
    refused 1 'is skipped: .*"nobody' 's/"algorithm": ".*"/"algorithm": "nobody"/'
    exit "$failures"
) || failures=$((failures + 1))
file=$(sed -n 's/^ *"file": "\(.*\)",/\1/p' "$work/r.json" | head -1)
echo damaged >"$work/tuned/$file"
echo notes >"$work/tuned/notes.txt"
"$tool" tune $device --records --json "$work/r.json" >"$work/out" 2>"$work/err" || fail "tune --records with damaged files"
grep -q '^1 result is stored' "$work/out" && grep -q "^tconv-cl: $file: skipped: damaged" "$work/err" &&
    grep -q '^tconv-cl: notes.txt: skipped: no file of this version' "$work/err" && [ "$(grep -c '"why":' "$work/r.json")" = 2 ] ||
    fail "damaged files of tune --records: $(cat "$work/out" "$work/err")"
rm "$work/tuned/notes.txt"
# PoCL with its own threads is another device.
if grep -q '"platform": "Portable Computing Language"' "$work/r.json"; then
    TCONV_CL_THREADS=off "$tool" tune --device cpu --ids S5 --budget 1 >"$work/out" 2>&1 || fail "tune on another device: $(cat "$work/out")"
    "$tool" tune $device --records --json "$work/r.json" >"$work/out" 2>"$work/err" && grep -q '^1 result is stored' "$work/out" &&
        [ "$(grep -c ': skipped: of another device, driver or version' "$work/err")" = 1 ] &&
        [ "$(grep -c '"device": "tconv-cl .*driver ' "$work/r.json")" = 1 ] || fail "records of another device: $(cat "$work/out" "$work/err")"
fi

# ---- the machine is measured, stored and forgotten ----
"$tool" tune $device --machine --json "$work/m.json" >"$work/out" 2>"$work/err" || fail "tune --machine: $(cat "$work/err")"
grep -qE '^(clock|unit_lanes) .*[1-9]' "$work/out" && [ "$(grep -c '"name": "[a-z]' "$work/m.json")" -ge 2 ] ||
    fail "the table of tune --machine: $(cat "$work/out")"
"$tool" tune $device --fields "reference_tap=0 reference_output=0 reference_wait=0 gpu_begin=0 gpu_wait=0" || fail "tune --fields"
TCONV_CL_SEARCH=model "$tool" bench $device --ids B18 --runs 1 --no-ceilings -q --json "$work/b.json" || fail "bench with fields"
[ "$(value algorithm)" = '"reference"' ] || fail "bench does not use what tune --fields stored"
"$tool" tune $device --fields "" 2>"$work/err" && grep -q 'forgotten in' "$work/err" || fail "tune --fields that forgets: $(cat "$work/err")"
"$tool" tune $device --fields "" 2>"$work/err" && grep -q 'no fields were stored in' "$work/err" || fail "nothing to forget: $(cat "$work/err")"
"$tool" tune $device --fields "l1=8e6" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'l1 is 8e+06, but must be at most l2, which is' "$work/err" || fail "fields that contradict each other: $(cat "$work/err")"
"$tool" tune $device --fields "walk=3" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'no field "walk"' "$work/err" || fail "a field that does not exist: $(cat "$work/err")"
"$tool" tune $device --machine --ids B18 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q -- '--ids is given, but --machine' "$work/err" || fail "tune --machine --ids: $(cat "$work/err")"
[ "$(TCONV_CL_SEARCH=model "$tool" bench $device --ids B18 --runs 1 --no-ceilings -q --json - | grep -c '"chosen_by": "model"')" = 1 ] ||
    fail "TCONV_CL_SEARCH=model does not leave records alone"

# ---- what cannot be stored is failed work ----
# lost REASON FOLDER: tune says so, and what is there stays
lost() {
    for words in "--fields clock=1234" "--data-shape 1,1,3 --filter-shape 1,1,2 --budget 1"; do
        TCONV_CL_CACHE_DIR="$2" "$tool" tune $device $words >"$work/out" 2>"$work/err"
        [ $? = 1 ] && grep -q "cannot be stored in $2: $1" "$work/err" && ! grep -q ': stored in' "$work/err" || fail "tune $words, $1: $(cat "$work/err")"
    done
    TCONV_CL_CACHE_DIR="$2" "$tool" tune $device --fields "" 2>"$work/err"
    [ $? = 1 ] && grep -q "cannot be removed from $2: $1" "$work/err" || fail "tune that forgets, $1: $(cat "$work/err")"
}
touch "$work/plain"
lost 'Not a directory' "$work/plain"
lost 'Not a directory' "$work/plain/below"
chmod 777 "$work/tuned"
lost 'others may write to this folder' "$work/tuned"
chmod 700 "$work/tuned"
"$tool" tune $device --records 2>&1 | grep -q '^[1-9][0-9]* results* .* stored in' || fail "results are gone after others could write"

# ---- no folder for results; wrong requests ----
unset TCONV_CL_CACHE_DIR
TCONV_CL_CACHE=off "$tool" tune $device --ids S5 --budget 1 >"$work/out" 2>"$work/err" || fail "tune without a folder: $(cat "$work/err")"
grep -q 'nothing is stored: there is no folder for results' "$work/err" || fail "tune does not say that nothing is stored"
TCONV_CL_CACHE=off "$tool" tune $device --records >"$work/out" 2>"$work/err" && grep -q '^0 results are stored$' "$work/out" &&
    grep -q 'nothing is stored: there is no folder for results' "$work/err" || fail "tune --records without a folder: $(cat "$work/out" "$work/err")"
"$tool" tune $device --records --ids B18 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q -- '--ids is given, but --records lists' "$work/err" || fail "tune --records --ids: $(cat "$work/err")"
"$tool" tune $device --budget 0 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q -- '--budget is 0' "$work/err" || fail "a budget of 0: $(cat "$work/err")"

finish
