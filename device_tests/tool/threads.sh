#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On PoCL threads of the tool compute, on the device without threads that the tool asks PoCL for. It is no further device of the list, and
# outputs have the same bits whatever the number of threads.
# usage: threads.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"
unset POCL_DEVICES TCONV_CL_THREADS

# names: what the list of devices has, without its marks; its arguments are variables.
names() {
    env "$@" "$tool" devices | sed -n 's/^\([0-9][0-9]*\)[* ] /\1 /p'
}

names TCONV_CL_THREADS=off >"$work/off"
grep -qE '^[0-9]+ (pthread|cpu)-' "$work/off" || { echo "skipped: PoCL drives no processor here"; exit 77; }
number=$(sed -n -E 's/^([0-9]+) (pthread|cpu)-.*/\1/p' "$work/off" | head -1)
device="--device $number"

# ---- the list ----
names TCONV_CL_THREADS=3 >"$work/out"
cmp -s "$work/off" "$work/out" || fail "the list changes: $(cat "$work/off" "$work/out")"
for offers in "pthread basic" "basic pthread"; do
    names POCL_DEVICES="$offers" >"$work/out"
    cmp -s "$work/off" "$work/out" || fail "the list with POCL_DEVICES=$offers: $(cat "$work/off" "$work/out")"
done

# told WORDS NUMBER VARIABLE=VALUE...: the lines and the JSON of devices say so.
told() {
    words=$1
    threads=$2
    shift 2
    env "$@" "$tool" devices | tr -s ' \n' ' ' | grep -q "threads: $words" || fail "devices with $*: $(env "$@" "$tool" devices)"
    env "$@" "$tool" devices --json - | grep -q "\"threads\": $threads\$" || fail "devices --json with $*: $(env "$@" "$tool" devices --json -)"
}
told "3 of this process, on PoCL's basic device" 3 TCONV_CL_THREADS=3
told "PoCL's own, since TCONV_CL_THREADS is off" 0 TCONV_CL_THREADS=off
told "PoCL's own, since it offers no basic device (POCL_DEVICES is \"pthread\")" 0 POCL_DEVICES=pthread
TCONV_CL_THREADS=3 "$tool" report $device --json "$work/r.json" >"$work/out" 2>"$work/err" && grep -q "^ *threads: 3 of this process" "$work/out" &&
    grep -q '^ *POCL_DEVICES=pthread basic (set by tconv-cl)$' "$work/out" && grep -q '"threads": 3' "$work/r.json" || fail "report: $(cat "$work/out" "$work/err")"
TCONV_CL_THREADS=many "$tool" run $device $files >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'TCONV_CL_THREADS is "many": set it to off, or to a number' "$work/err" || fail "a wrong number of threads: $(cat "$work/err")"
TCONV_CL_THREADS=many "$tool" devices >"$work/out" 2>"$work/err" && grep -q 'TCONV_CL_THREADS is "many"' "$work/out" || fail "devices with a wrong number: $(cat "$work/out" "$work/err")"

# ---- the same bits ----
python3 - "$work" <<'END'
import random, struct, sys
random.seed(1)
for name, shape in (("x", (1, 16, 40, 40)), ("w", (16, 16, 4, 4))):
    count = shape[0] * shape[1] * shape[2] * shape[3]
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(f"{sys.argv[1]}/{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack(f"<{count}f", *(random.uniform(-1, 1) for _ in range(count))))
END
layer="--data $work/x.npy --filter $work/w.npy --strides 2 --pads-begin 1 --pads-end 1"
TCONV_CL_THREADS=off "$tool" run $device $layer --output "$work/off.npy" --json "$work/r.json" 2>"$work/err" || fail "run: $(cat "$work/err")"
said() {
    sed -n "s/^ *\"$1\": \"*\([^\",]*\)\"*,*\$/\1/p" "$work/r.json" | head -1
}
for algorithm in "$(said algorithm) $(said tile)" col2im_vector reference; do
    TCONV_CL_THREADS=off "$tool" run $device $layer --algorithm "$algorithm" --output "$work/off.npy" --quiet 2>"$work/err" || fail "run by $algorithm: $(cat "$work/err")"
    for threads in 1 2 3; do
        TCONV_CL_THREADS=$threads "$tool" run $device $layer --algorithm "$algorithm" --output "$work/y.npy" --quiet 2>"$work/err" && cmp -s "$work/off.npy" "$work/y.npy" ||
            fail "other bits with $threads threads, by $algorithm: $(cat "$work/err")"
    done
done

# ---- bench: launches in pieces, in a lane for each thread; also the device object of the second first call has threads ----
problem="--data-shape 1,16,40,40 --filter-shape 16,16,4,4 --strides 2 --pads-begin 1 --pads-end 1"
for by in "" "--algorithm reference"; do
    TCONV_CL_THREADS=3 "$tool" bench $device $problem $by --runs 5 --no-ceilings --trace "$work/t.json" --json "$work/b.json" >"$work/out" 2>"$work/err" || fail "bench $by: $(cat "$work/err")"
    grep -q '^device.*, 3 threads$' "$work/out" && [ "$(value first_call_warm_ms)" != null ] || fail "bench $by: $(cat "$work/out")"
    python3 - "$work/t.json" <<'END' || fail "the trace of bench $by"
import json, sys
spans = [event for event in json.load(open(sys.argv[1]))["traceEvents"] if event["ph"] == "X"]
launches = [event for event in spans if event["cat"] == "launch"]
assert len(launches) == sum(event["cat"] == "enqueue" for event in spans)
assert max(event["args"]["pieces"] for event in launches) >= 3
# The seven runs of the layer, and its two packings: every piece once in each.
runs = [e["args"] for e in launches if e["name"] == launches[-1]["name"]]
for pieces in {run["pieces"] for run in runs}:
    numbers = [run["piece"] for run in runs if run["pieces"] == pieces]
    assert all(numbers.count(n) == numbers.count(0) for n in range(pieces)), (pieces, numbers)
lanes = {}
for event in sorted(launches, key=lambda event: event["ts"]):
    assert event["ts"] > lanes.get(event["tid"], 0) - 0.01, "launches overlap in a lane"
    lanes[event["tid"]] = event["ts"] + event["dur"]
assert 1 in lanes and len(lanes) <= 5, lanes # two device objects have two threads each, besides the calling one
END
done

finish
