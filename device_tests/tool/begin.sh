# SPDX-License-Identifier: Apache-2.0
# What the tests of this folder share. Each reads this file first, and has the arguments TCONV-CL SOURCES COMPARE_NPY.
set -u
tool=$1
sources=$2
vectors=$sources/device_tests/vectors
device=${TCONV_CL_TEST_DEVICE:+--device $TCONV_CL_TEST_DEVICE}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TCONV_CL_CACHE_DIR="$work/cache" # no tuning results of the user's
failures=0

# A small layer as files; its output goes to y.npy.
d=$vectors/data/torch_line
files="--data $d.data.npy --filter $d.filter.npy --output $work/y.npy"

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# value KEY: what b.json, a report of bench, says first.
value() {
    sed -n "s/^ *\"$1\": \(.*[^,]\),*\$/\1/p" "$work/b.json" | head -1
}

# one_layer NAME: a suite of one small layer with the id X.
one_layer() {
    printf 'id,in_channels,out_channels,input,kernel\nX,3,4,5x6,2x2\n' >"$work/$1"
}

# await PATTERN: waits until a line of the output begins so.
await() {
    for i in $(seq 6000); do
        grep -q "^$1" "$work/out" && return
        sleep 0.1
    done
    fail "no line $1: $(cat "$work/out" "$work/err")"
}

# The verdict, at the end of a test.
finish() {
    [ "$failures" = 0 ] || exit 1
    echo "the tool does as it should"
}
