#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --trace writes the spans of host and device.
# usage: trace.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"
export TCONV_CL_THREADS=off # one lane; threads.sh has more

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

finish
