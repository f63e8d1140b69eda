#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/gpu_report.sh without PyTorch: measures no device that is no GPU unless it is named, ends in time, is interrupted, goes on,
# measures nothing twice, its report is whole, and it deletes nothing for a wrong request.
# usage: gpu_report.sh SOURCES BUILD [FOLDER]
#   FOLDER   has a tconv-cl on an OpenCL that compiles nothing (fake/fake.h); what is measured is then measured there
set -u
sources=$1
build=$2
fake=${3:-}
command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    cat "$work/err"
    exit 1
}

# A machine may have PyTorch; this test must not load it.
mkdir "$work/hidden"
echo 'raise ImportError("hidden")' >"$work/hidden/torch.py"
export PYTHONPATH="$work/hidden"
set -- --build "$build" --ids B52,B58,B18 --kinds f16-NXC,f32-NCX,tf32-NCX,i8-NXC --tests ''
out=$work/out

# ---- no GPU, and no device is named: before anything is built, by the loader, and then by the tool ----
if ! "$build/tconv-cl" devices --json - | grep -q '"kind": "GPU"'; then
    for command in "sh $sources/scripts/gpu_report.sh" "python3 $sources/scripts/gpu_report"; do
        start=$(date +%s)
        $command "$@" --output "$work/none" --minutes 3 2>"$work/err"
        code=$?
        [ $code = 1 ] && grep -q 'no GPU' "$work/err" && grep -q -- '--device N' "$work/err" || fail "without a GPU: $code"
        [ $(($(date +%s) - start)) -le 10 ] && [ ! -e "$work/none" ] || fail "it began without a GPU"
    done
fi
[ -z "$fake" ] || { build=$fake && unset TCONV_CL_TEST_DEVICE; }
shift 2
set -- --build "$build" "$@" --device "${TCONV_CL_TEST_DEVICE:-$("$build/tconv-cl" devices | sed -n 's/^\([0-9]*\)\*.*/\1/p')}"

# ---- the time is over before the first check ends: a report that says what is missing ----
start=$(date +%s)
sh "$sources/scripts/gpu_report.sh" "$@" --output "$work/short" --minutes 0.03 2>"$work/err"
code=$?
[ $code = 3 ] || fail "--minutes 0.03: $code"
grep -q 'parts are missing' "$work/err" || fail "it does not say that parts are missing"
[ $(($(date +%s) - start)) -le 10 ] || fail "--minutes 0.03 took $(($(date +%s) - start)) s"
grep -q '^- f32-NCX: all layers$' "$work/short/report.md" || fail "$(cat "$work/short/report.md")"

# ---- interrupted after the first slice ----
sh "$sources/scripts/gpu_report.sh" "$@" --output "$out" --minutes 3 2>"$work/err" &
pid=$!
while [ ! -s "$out/f16-NXC-01.slice.json" ]; do
    kill -0 $pid || fail "it ended before the first slice"
    sleep 0.1
done
sh "$sources/scripts/gpu_report.sh" --build "$build" --output "$out" --resume 2>"$work/second" && fail "a second run is let in"
kill -TERM $pid
wait $pid
code=$?
[ "$code" = 143 ] || fail "after SIGTERM: $code"
grep -q '^- i8-NXC: all layers$' "$out/report.md" || fail "$(cat "$out/report.md")"
mkdir "$work/before"
cp "$out"/*.json "$out"/*.log "$work/before"

# ---- goes on ----
sh "$sources/scripts/gpu_report.sh" --build "$build" --output "$out" --minutes 3 --resume 2>"$work/err" || fail "--resume: $?"
python3 - "$work/before" "$out" <<'END' || fail "what was measured"
import glob, json, os, re, sys

before, after = sys.argv[1:]
kept = 0
for path in glob.glob(before + "/*.step.json") + glob.glob(before + "/*.slice.json"):
    with open(path) as old, open(os.path.join(after, os.path.basename(path))) as new:
        old, new = json.load(old), json.load(new)
    if path.endswith(".slice.json"):
        old, new = old["layers"], new["layers"][:len(old["layers"])]
        kept += len(old)
    assert old == new, path
assert kept >= 3, kept

# What the second run asked the tool for is what the first had not measured.
with open(before + "/bench.log", "rb") as log:
    size = len(log.read())
with open(after + "/bench.log", "rb") as log:
    log.seek(size)
    commands = re.findall(r"^\$ .* bench .*--type (\w+) --data-format (\w+)( --math fast)?.* --ids (\S+)", log.read().decode(), re.M)
asked = [("tf32" if fast else element, order, key) for element, order, fast, ids in commands for key in ids.split(",")]
had = set()
for path in glob.glob(before + "/*.slice.json"):
    with open(path) as file:
        slice_ = json.load(file)
    had |= {(*slice_["kind"].split("-"), layer["id"]) for layer in slice_["layers"]}
assert len(asked) == len(set(asked)) and not had & set(asked) and len(had) + len(asked) == 12, (had, asked)
END
grep -q '^Nothing: everything was measured' "$out/report.md" || fail "$(cat "$out/report.md")"
grep -q 'PyTorch is not installed' "$out/report.md" || fail "PyTorch: $(cat "$out/report.md")"
[ "$(grep -c '^| [BS][0-9]* ' "$out/report.md")" = 12 ] || fail "rows: $(cat "$out/report.md")"

# ---- and has nothing left to do ----
before=$(cat "$out"/*.log | cksum)
sh "$sources/scripts/gpu_report.sh" --build "$build" --output "$out" --resume 2>"$work/err" || fail "--resume: $?"
[ "$before" = "$(cat "$out"/*.log | cksum)" ] || fail "measured again"

# ---- a wrong request deletes nothing, and no request what is no report ----
for wrong in "--ids B99" "--kinds f8-NCX" "--tests nobody" "--device 99"; do
    sh "$sources/scripts/gpu_report.sh" "$@" --output "$out" $wrong 2>"$work/err" && fail "$wrong is taken"
done
[ "$before" = "$(cat "$out"/*.log | cksum)" ] || fail "a wrong request deletes"
mkdir "$work/other"
echo kept >"$work/other/file"
for way in "" --resume; do
    sh "$sources/scripts/gpu_report.sh" "$@" --output "$work/other" $way 2>"$work/err" && fail "a folder of others is taken"
done
[ "$(ls "$work/other")" = file ] && [ "$(cat "$work/other/file")" = kept ] || fail "a folder of others is changed"

# ---- what the driver compiled ----
mkdir "$work/empty"
cp "$out/plan.json" "$work/empty"
sh "$sources/scripts/gpu_report.sh" --programs --output "$work/empty" >"$work/err" 2>&1 && fail "--programs of none"
grep -q 'has no programs' "$work/err" || fail "--programs of none"
sh "$sources/scripts/gpu_report.sh" --programs --output "$out" >"$work/err" || fail "--programs"
ls "$out"/programs/*.key >/dev/null || fail "no programs"
