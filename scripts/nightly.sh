#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests at full size, which take hours, in two lanes at the same time: on PoCL every problem with every algorithm, optimised,
# tensors at inaccessible pages; a larger sample than in .ci/run, drawn anew, on Intel's CPU runtime, rusticl, Oclgrind and with
# sanitizers, and one on PoCL 6; all programs for GPUs through offline compilers; many programs for AMD, executed on this computer; the fuzz
# targets. Goes on after a failure, prints a summary, and ends with 1 where a step failed.
# Debian 12, as root or with sudo. The logs are in build/nightly.
# usage: nightly.sh [--resume] [SECONDS-OF-EACH-FUZZ-TARGET]      300 without it
#   --resume   go on with an interrupted run of the same commit, with its seed: steps that passed are not run again
set -u
cd "$(dirname "$0")/.."
resume=
if [ "${1:-}" = --resume ]; then
    resume=yes
    shift
fi
seconds=${1:-300}
case $seconds in
*[!0-9]*)
    echo "usage: nightly.sh [--resume] [SECONDS-OF-EACH-FUZZ-TARGET]" >&2
    exit 2
    ;;
esac
work=$PWD/build/nightly
commit=$(git rev-parse HEAD 2>/dev/null || echo none)
if [ -n "$resume" ]; then
    if [ "$commit" = none ] || [ "$(cat "$work/commit" 2>/dev/null)" != "$commit" ]; then
        echo "--resume: build/nightly has no run of commit $commit; start without --resume" >&2
        exit 2
    fi
    TCONV_CL_TEST_SEED=$(cat "$work/seed")
else
    TCONV_CL_TEST_SEED=${TCONV_CL_TEST_SEED:-$(date +%Y%m%d)}
    TCONV_CL_TEST_SEED=$((TCONV_CL_TEST_SEED % 1000000))
    rm -rf "$work"
    mkdir -p "$work"
    echo "$commit" >"$work/commit"
    echo "$TCONV_CL_TEST_SEED" >"$work/seed"
fi
export TCONV_CL_TEST_SEED
export TCONV_CL_TEST_VERDICTS=off # nothing passes because it has passed before
touch "$work/summary"
grep ' passed ' "$work/summary" >"$work/passed" # what an earlier run left
cp "$work/passed" "$work/summary"
echo "TCONV_CL_TEST_SEED=$TCONV_CL_TEST_SEED"

# step NAME COMMAND...
step() {
    step=$1
    shift
    if grep -q "^$step  *passed " "$work/passed"; then return; fi
    begin=$(date +%s)
    if "$@" >"$work/$step.log" 2>&1; then result=passed; else result=FAILED; fi
    printf '%-28s %-7s %6d s\n' "$step" "$result" "$(($(date +%s) - begin))" | tee -a "$work/summary"
    [ "$result" = passed ] || tail -n 20 "$work/$step.log"
}

# percent P COMMAND...
percent() {
    share=$1
    shift
    env TCONV_CL_TEST_PERCENT="$share" "$@"
}

# Oclgrind exits with 0 whatever it finds: its log must be empty. usage: oclgrind_test NAME ARGUMENTS...
oclgrind_test() {
    log=$work/oclgrind_$1.txt
    test=build/device_tests/test_$1
    shift
    rm -f "$log"
    percent 9 oclgrind --data-races --uninitialized --max-wgsize 64 --local-mem-size 16384 --build-options -cl-opt-disable \
        --log "$log" "$test" "$@" && [ ! -s "$log" ] || { head -n 60 "$log"; return 1; }
}

# The kernels' code for a vendor's GPUs, executed on this computer. usage: executed_code VENDOR SUITE CASES
executed_code() {
    python3 device_tests/executed/executed_code.py "$1" "build/device_tests/$1_code" "$2" "device_tests/executed/$1/$3" --no-defects
}

sanitized() { # FOLDER SANITIZERS
    cmake -S . -B "build/nightly/$1" -DCMAKE_C_COMPILER=clang -DTCONV_SANITIZE="$2" -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
        cmake --build "build/nightly/$1" --parallel "$(nproc)"
}

# ---- PoCL, and what is built with sanitizers ----
lane_pocl() {
    for name in algorithms vectors types special slabs api layer layer_queue layer_weights cache search threads determinism resources phones probe programs words launches fork faults passed_over; do
        step "pocl_$name" percent 100 sh scripts/on_platform.sh pocl "build/device_tests/test_$name"
    done
    for name in algorithms types special api; do
        step "mali_$name" percent 15 env TCONV_CL_TEST_AS=Mali-G78 sh scripts/on_platform.sh pocl "build/device_tests/test_$name"
        step "powervr_$name" percent 15 env TCONV_CL_TEST_AS="PowerVR 4 KiB" sh scripts/on_platform.sh pocl "build/device_tests/test_$name"
    done
    for test in device_tests/tool/*.sh; do
        name=$(basename "$test" .sh)
        [ "$name" = begin ] ||
            step "pocl_tool_$name" percent 100 sh scripts/on_platform.sh pocl sh "$test" build/tconv-cl . build/device_tests/compare_npy
    done
    step pocl_pages sh scripts/on_platform.sh pocl sh device_tests/pages.sh build/device_tests/test_launches cl
    step pocl_groups_of_16 percent 15 env POCL_MAX_WORK_GROUP_SIZE=16 sh scripts/on_platform.sh pocl build/device_tests/test_algorithms
    step build_address_sanitizer sanitized address address,undefined,float-cast-overflow
    step address_sanitizer percent 15 sh scripts/on_platform.sh pocl sh scripts/address_sanitizer.sh build/nightly/address
    step build_thread_sanitizer sanitized thread thread
    for name in threads layer slabs resources; do
        step "thread_sanitizer_$name" percent 100 env TSAN_OPTIONS=ignore_noninstrumented_modules=1 sh scripts/on_platform.sh pocl \
            "build/nightly/thread/device_tests/test_$name"
    done
}

# ---- the other implementations, compilers for GPUs, fuzz targets ----
lane_others() {
    for name in algorithms vectors types special words activations slabs api pointers recording stream layer_queue layer_weights layer cache search trace threads \
        cancel determinism resources phones launches probe workspaces fork faults passed_over; do
        step "intel_$name" percent 30 sh scripts/on_platform.sh intel "build/device_tests/test_$name"
        step "rusticl_$name" percent 15 sh scripts/on_platform.sh rusticl "build/device_tests/test_$name"
    done
    step oclgrind_accesses oclgrind_test accesses 100
    step oclgrind_slabs oclgrind_test slabs
    step oclgrind_layer oclgrind_test layer
    step oclgrind_counts sh scripts/oclgrind_counts.sh
    step gpu_programs sh scripts/on_platform.sh intel build/platforms/intel/bin/python3 scripts/offline_gate.py --require amd,intel,nvidia
    step phone_tools sh scripts/mesa_tools.sh
    step phone_programs python3 scripts/mesa_gate.py
    step amd_code executed_code amd device_tests/executed/layers.csv nightly.txt
    step amd_code_suite executed_code amd bench/suite.csv suite.txt
    step intel_code executed_code intel device_tests/executed/layers.csv nightly.txt
    step nvidia_code executed_code nvidia device_tests/executed/layers.csv nightly.txt
    for target in armhf macos; do step cross_$target sh scripts/cross.sh $target; done
    step pocl_6 sh scripts/newer_pocl.sh 15
    step dist sh scripts/dist.sh
    step fuzz sh fuzz/nightly.sh "$seconds"
}

sh scripts/build.sh || exit 1
sh scripts/packages.sh clang libclang-rt-14-dev oclgrind python3-venv mesa-opencl-icd clang-14 llvm-14 clang-19 lld-19 llvm-19 intel-opencl-icd || exit 1
sh scripts/on_platform.sh intel true || exit 1
sh scripts/libclc_14.sh || exit 1
trap 'trap - INT; kill -TERM 0; exit 130' INT # what is started with & ignores Ctrl-C, and would go on
lane_pocl &
lane=$!
lane_others
wait "$lane" || printf '%-28s FAILED  it ended before its last step\n' lane_pocl | tee -a "$work/summary"

echo
echo "nightly, TCONV_CL_TEST_SEED=$TCONV_CL_TEST_SEED:"
cat "$work/summary"
failed=$(grep -c ' FAILED ' "$work/summary")
echo "$failed steps failed"
[ "$failed" = 0 ]
