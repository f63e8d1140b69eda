#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What cannot be computed is refused with a reason: types, algorithms, fast arithmetic, variables of the environment. An empty batch
# is not.
# usage: refusals.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

# What cannot be computed is refused before anything is written.
"$tool" run $device --data "$d.data.npy" --filter "$d.filter.npy" --output "$work/none/y.npy" 2>"$work/err" && fail "a folder that does not exist"
grep -q '^tconv-cl: --output' "$work/err" || fail "a folder that does not exist: $(cat "$work/err")"
"$tool" bench $device --data-shape 1,2,9 --filter-shape 2,2,3 --type f16 --output-type i8 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'output i8' "$work/err" || fail "f16 to i8 is not refused by name"

"$tool" check $device --data-shape 1,2,3,3,3,3 --filter-shape 2,2,2,2,2,2 --algorithm packed_vector >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q '4 spatial axes' "$work/out" || fail "an algorithm that does not accept is not an error"
# Sums of weights may not fit integers; a convolution of stride 1 has none.
convolution="--data-shape 1,4,9,8 --filter-shape 6,2,3,2 --groups 2 --type i8 --output-type i32 --algorithm reference"
"$tool" check $device $convolution --upsample 1,2 >"$work/out" 2>&1
[ $? = 2 ] && grep -q 'only with factors of 1' "$work/out" || fail "integers behind an upsampling: $(cat "$work/out")"
"$tool" check $device $convolution --upsample 1 --dilations 2,3 --data-zero-point 3 >"$work/out" 2>&1 && grep -q '^1 passed' "$work/out" ||
    fail "a convolution of integers: $(cat "$work/out")"
[ "$("$tool" bench $device --suite convolutions --list 2>/dev/null | grep -c -- '--upsample 1')" = 14 ] || fail "--suite convolutions"
# What no algorithm takes is told once, not for each of them.
"$tool" check $device --data-shape 1,4,5,5 --filter-shape 4,4,3,3 --data-zero-point 3 >"$work/out" 2>"$work/err"
[ $? = 2 ] && [ "$(grep -c ' failed ' "$work/out")" = 1 ] && grep -q 'no zero point' "$work/out" ||
    fail "a request that no algorithm takes"

# Fast arithmetic only on request: by name without it, no; with it, yes, and never by itself.
fast="--data-shape 1,40,20,32 --filter-shape 40,30,4,4 --strides 2 --pads-begin 1 --pads-end 1"
"$tool" check $device $fast --algorithm winograd_vector >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'needs math=fast' "$work/out" || fail "fast arithmetic without a request"
"$tool" check $device $fast --algorithm winograd_vector --math fast >"$work/out" 2>"$work/err" ||
    fail "check --math fast"
"$tool" bench $device $fast --math fast --algorithm winograd_vector --runs 2 --no-ceilings --json "$work/b.json" >"$work/out" 2>"$work/err" ||
    fail "bench --math fast"
grep -q '"error_factor": [2-9]' "$work/b.json" || grep -q '"error_factor": [1-9][0-9]' "$work/b.json" ||
    fail "no error_factor of fast arithmetic"
"$tool" bench $device $fast --runs 2 --no-ceilings --why >"$work/out" 2>"$work/err" && grep -q 'winograd_vector: it needs math=fast' "$work/err" ||
    fail "--why without fast arithmetic"

# An empty batch is no error.
for command in check "bench --no-ceilings"; do
    "$tool" $command $device --data-shape 0,2,4 --filter-shape 2,1,3 >"$work/out" 2>&1 && grep -q 'nothing to compute' "$work/out" ||
        fail "$command of an empty batch: $(cat "$work/out")"
done

# A device whose compiler does not take 64-bit integers is refused before it is called: it may end the process. Number 3 is a GPU.
for least in "embedded cles_khr_int64" "V3D VideoCore"; do
    FAKE_OPENCL_LEAST=${least% *} "$tool" bench --device 3 --data-shape 1,2,9 --filter-shape 2,2,3 >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q "^tconv-cl: .*${least#* }.* 64-bit integers.*: take another device" "$work/err" || fail "$least: $(cat "$work/out" "$work/err")"
done

# An environment variable with a value that is not possible is a wrong request.
for variable in TCONV_CL_MATRIX=yes TCONV_CL_CACHE=never TCONV_CL_CACHE_MIB=1GiB; do
    env "$variable" "$tool" check $device --data-shape 1,2,4 --filter-shape 2,1,3 >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q "^tconv-cl: the environment variable ${variable%=*} is \"${variable#*=}\"" "$work/err" ||
        fail "$variable: $(cat "$work/err")"
done

finish
