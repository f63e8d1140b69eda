#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# For a machine with a GPU: tests the library on it, times the suite in f32, f16 and i8 with both data formats, times the same layers
# with PyTorch (cuDNN, MIOpen, oneDNN) where that is installed, and writes one report. What it needs besides drivers it installs.
set -u
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOF'
usage: scripts/gpu_report.sh [OPTION...]
  --short           a trial: six layers, ten seconds of each kind, few tests
  --ids B01,B07     only these layers of the suite
  --seconds S       stop timing a kind (type and data format) after S seconds; default: never
  --percent P       share of their problems that device tests sample; default 10
  --device N        number of the device, as tconv-cl devices lists them; default: the one with *
  --output FOLDER   where report.md and all logs go; default build/gpu_report
EOF
}

ids= seconds=0 percent=10 device= output=build/gpu_report short=
while [ $# -gt 0 ]; do
    option=$1
    case $option in
    --short)
        short=yes ids=${ids:-B02,B07,B10,B23,B26,B43}
        [ "$seconds" != 0 ] || seconds=10
        shift
        continue
        ;;
    --help)
        usage
        exit 0
        ;;
    --ids | --seconds | --percent | --device | --output) ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    if [ $# -lt 2 ]; then
        usage >&2
        exit 2
    fi
    case $option in
    --ids) ids=$2 ;;
    --seconds) seconds=$2 ;;
    --percent) percent=$2 ;;
    --device) device=$2 ;;
    --output) output=$2 ;;
    esac
    shift 2
done

rm -rf "$output"
mkdir -p "$output" || exit 2
start=$(date +%s)
failures=0
kinds="f32-NCX f32-NXC f16-NCX f16-NXC i8-NCX i8-NXC"
steps=10
number=0

# step NAME WHAT COMMAND...: its output goes into NAME.log, its outcome into the summary
step() {
    name=$1 what=$2
    shift 2
    number=$((number + 1))
    printf '[%2d/%d] %5d s: %s ... ' "$number" "$steps" $(($(date +%s) - start)) "$what"
    if "$@" >"$output/$name.log" 2>&1; then outcome=passed; else
        outcome=FAILED
        failures=$((failures + 1))
    fi
    echo "$outcome"
    echo "$what: $outcome ($name.log)" >>"$output/summary"
}

tests() {
    if [ -n "$short" ]; then build/device_tests/test_accesses; else
        TCONV_CL_TEST_PERCENT=$percent ctest --test-dir build --label-regex device --output-on-failure
    fi
}

# A time limit interrupts the tool, which then writes what it has. In the background, timeout would signal twice, which ends it.
bench() { # TYPE FORMAT
    json=$output/bench-$1-$2.json
    set -- build/tconv-cl bench --device "$device" --repeat "$repeat" --type "$1" --data-format "$2" --json "$json" ${ids:+--ids "$ids"}
    [ "$seconds" = 0 ] || set -- timeout --foreground --signal=INT "$seconds" "$@"
    code=0
    "$@" || code=$?
    [ -s "$json" ] || return 1
    [ "$code" = 0 ] || [ "$code" = 124 ]
}

step build "build" sh scripts/build.sh
if [ ! -x build/tconv-cl ]; then
    cat "$output/build.log" >&2
    exit 1
fi
build/tconv-cl devices >"$output/devices.txt" 2>&1
[ -n "$device" ] || device=$(sed -n 's/^\([0-9]*\)\*.*/\1/p' "$output/devices.txt")
if [ -z "$device" ]; then
    cat "$output/devices.txt" >&2
    exit 1
fi
export TCONV_CL_TEST_DEVICE="$device"
# The line behind a device's name begins with its kind. A launch on a GPU takes longer than many layers.
repeat=$(sed -n "/^$device\*\{0,1\} /{n;s/^ *GPU,.*/10/p;}" "$output/devices.txt")
repeat=${repeat:-1}
echo "device: $(sed -n "s/^$device\*\{0,1\} *//p" "$output/devices.txt"); logs: $output"
step tests "device tests" tests
step check "check of a built-in set with every algorithm" build/tconv-cl check --device "$device"
for kind in $kinds; do
    step "bench-$kind" "suite, $kind" bench "${kind%-*}" "${kind#*-}"
done
step torch "the same layers with PyTorch" python3 scripts/gpu_report.py torch "$output" --seconds "$seconds" --ids "$ids"
python3 scripts/gpu_report.py report "$output" || exit 1
echo "$failures of $steps steps failed; the report: $output/report.md"
[ "$failures" = 0 ]
