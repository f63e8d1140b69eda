#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tconv-cl report: its sections as text and as JSON, short lines, no private names, and a whole report whatever fails.
# usage: report.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"
kernels=$sources/cl

# report EXIT-CODE VARIABLE=VALUE arguments...: runs it, into out, err and r.json; it always reaches its last line.
report() {
    expected=$1
    setting=$2
    shift 2
    env "$setting" "$tool" report $device --json "$work/r.json" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" = "$expected" ] || fail "exit code $got, not $expected: $setting report $*: $(cat "$work/out" "$work/err")"
    tail -n 1 "$work/out" | grep -qE '^(1 check|(0|[2-9]|[1-9][0-9]+) checks) passed, [0-9]+ refused, [0-9]+ skipped; (1 failure|(0|[2-9]|[1-9][0-9]+) failures)$' || fail "no last line: $(cat "$work/out")"
    [ "$expected" = 0 ] || [ "$(grep -c '^tconv-cl: [0-9]* failures*, the first: ' "$work/err")" = 1 ] || fail "no sentence: $(cat "$work/err")"
}

# ---- a report of what works; the user's folder has a name that nobody else may read ----
mkdir -p "$work/home/secret/cache"
chmod 700 "$work/home/secret/cache"
export TCONV_CL_CACHE_DIR="$work/home/secret/cache"
report 0 HOME="$work/home/secret"
unset TCONV_CL_CACHE_DIR
for words in '^tconv-cl [0-9.]* (headers [0-9.]*), commit [0-9a-z]*, compiled by ' '^system: ' '^processor: .* threads$' '^OpenCL loader: ' '^platform: ' \
    '^environment:$' '^ *TCONV_CL_CACHE_DIR=~/cache$' '^device [0-9]*.*: ' ' compute units, ' '^ *f16 .*sub-groups' '^ *extensions: .*cl_khr_' \
    '^ *cache: ~/cache (used), [0-9]* files' '^ *stored searches: 0 used, 0 imported, 0 of' '^ *C01 .* f32 .* passed, '; do
    grep -q "$words" "$work/out" || fail "no line with $words: $(cat "$work/out")"
done
grep -q secret "$work/out" "$work/err" "$work/r.json" && fail "the user's folder is named: $(cat "$work/out")"
awk 'length > 80 && NF > 1 { bad = 1 } END { exit bad }' "$work/out" || fail "lines of more than 80 characters: $(cat "$work/out")"
python3 - "$work/r.json" "$work/out" <<'END' || fail "the JSON of report: $(cat "$work/r.json")"
import json, re, sys
report, text = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
assert report["version"]["library"] == report["version"]["headers"] and report["version"]["threads"] > 0
assert report["environment"]["TCONV_CL_CACHE_DIR"] == "~/cache"
assert report["platforms"] and any(p["devices"] > 0 for p in report["platforms"])
assert len(report["devices"]) == len(re.findall("^device ", text, re.M))
checks = [c for d in report["devices"] for c in d["check"]]
verdicts = [c["verdict"] for c in checks]
assert all(d["error"] is None and d["driver"] and "cl_khr" in d["extensions"] for d in report["devices"])
for word in ("passed", "refused", "skipped", "failed"):
    assert verdicts.count(word) == report[word], word
assert report["failed"] == 0 and report["passed"] > 0
assert all((c["error"] is None) == (c["verdict"] == "passed") for c in checks)
END
"$tool" report $device --json - >"$work/out" 2>"$work/err" && python3 -c 'import json, sys; json.load(sys.stdin)' <"$work/out" || fail "report --json -: $(cat "$work/err")"

# ---- what fails is a line, and the report goes on ----
cp -r "$kernels" "$work/broken"
echo '#error broken on purpose' >>"$work/broken/common/types.clh"
HOME=$work report 1 TCONV_CL_KERNEL_DIR="$work/broken"
grep -q "$work" "$work/out" "$work/err" "$work/r.json" && fail "a folder in the user's is named: $(cat "$work/out" "$work/err")"
grep -q '^ *C01 .* failed$' "$work/out" && grep -q '^ *tconv-cl check --device [0-9]* --data-shape ' "$work/out" || fail "kernels that do not build: $(cat "$work/out")"
cp -r "$kernels" "$work/wrong"
sed -i 's/return \(RESULTS*_OF(sum)\) + bias;/return \1 + bias + (result_t)1000;/' "$work/wrong/common/epilogue.clh"
report 1 TCONV_CL_KERNEL_DIR="$work/wrong"
tr -s ' \n' ' ' <"$work/out" | grep -q 'failed wrong result: output element [0-9]* is ' || fail "kernels that compute wrongly: $(cat "$work/out")"
for setting in TCONV_CL_MATRIX=some TCONV_CL_CACHE=some TCONV_CL_THREADS=some TCONV_CL_DEVICE=nobodys; do
    report 1 "$setting"
    grep -q "^ *$setting\$" "$work/out" && tr -s ' \n' ' ' <"$work/out" | grep -q "failed: the environment variable ${setting%%=*}[ :]" ||
        fail "$setting: $(cat "$work/out")"
done
report 1 OCL_ICD_VENDORS="$work/nothing/"
grep -q '^failed: no OpenCL device was found' "$work/out" || fail "a report without devices: $(cat "$work/out")"

# ---- requests that are wrong ----
"$tool" report --device 99 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q -- '--device is 99, but there are devices' "$work/err" && [ ! -s "$work/out" ] || fail "a device that does not exist: $(cat "$work/err")"

finish
