#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A signal ends the tool after the work that it has done is written.
# usage: interrupt.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

# ---- an interruption leaves what there is ----
# interrupt SIGNAL PATTERN arguments...: JSON goes to i.json; a shell's background job ignores SIGINT unless told otherwise
interrupt() {
    signal=$1
    pattern=$2
    shift 2
    : >"$work/out" # await must not find a line of the run before
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

# ---- a second signal ends the program wherever it is: here it waits for a reader of its JSON ----
mkfifo "$work/pipe"
: >"$work/out"
"$tool" bench $device --ids S5,B18 --no-ceilings --json "$work/pipe" >"$work/out" 2>"$work/err" &
await S5
kill -s TERM $!
sleep 2
kill -s TERM $!
wait $!
got=$?
[ "$got" = 143 ] || fail "exit code $got, not 143, after two signals"

finish
