#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets, one after another, each on one processor for so many seconds, and prints a table; ends with 1 where one of them crashed.
# Builds them into build/fuzzing; what they find stays there: inputs that reach new code in corpus/NAME, and crashes in crashes/.
# usage: nightly.sh [SECONDS [TARGET...]]      without any: 600 seconds of every target
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-600}
[ $# = 0 ] || shift
work=$PWD/build/fuzzing
mkdir -p "$work/crashes"
cmake -S . -B "$work" -DTCONV_FUZZ=ON -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo >"$work/build.log"
cmake --build "$work" --parallel "$(nproc)" --target fuzzers >>"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
[ $# -gt 0 ] || set -- $(sed -n 's/^ *tconv_fuzz(\([a-z]*\) .*/\1/p' fuzz/CMakeLists.txt)

# The last figure that libFuzzer printed behind $1.
figure() {
    sed -n "s/.* $1: *\([0-9]*\).*/\1/p" "$log" | tail -n 1
}

# No block above 64 MiB, no process above 512, no input that takes 10 seconds. Blocks that are free again need no quarantine of 256 MiB.
export ASAN_OPTIONS=quarantine_size_mb=32
failed=0
printf '%-10s %12s %9s %8s %9s %7s %8s\n' target executions exec/s edges features corpus crashes
for name in "$@"; do
    log=$work/$name.log
    mkdir -p "$work/corpus/$name"
    dictionary=
    [ ! -f "fuzz/$name.dict" ] || dictionary=-dict=$PWD/fuzz/$name.dict
    crashes=0
    "$work/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=512 -malloc_limit_mb=64 \
        -print_final_stats=1 -artifact_prefix="$work/crashes/$name-" $dictionary "$work/corpus/$name" "fuzz/corpus/$name" >"$log" 2>&1 ||
        crashes=1
    printf '%-10s %12s %9s %8s %9s %7s %8s\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")" "$(figure cov)" "$(figure ft)" "$(figure corp)" $crashes
    if [ $crashes != 0 ]; then
        failed=1
        grep -aE 'MISMATCH|ERROR|runtime error|SUMMARY|Test unit written' "$log" || tail -n 20 "$log"
    fi
done
exit $failed
