#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Conformance vectors and layers of models through `tconv-cl run`: all of them with TCONV_CL_TEST_PERCENT=100, half as many percent with
# less (10 without it); a start of the tool takes a second. test_vectors.c has all vectors.
# usage: run_vectors.sh TCONV-CL COMPARE_NPY FOLDER-OF-VECTORS
set -u
tool=$1
compare=$2
vectors=$3
device=${TCONV_CL_TEST_DEVICE:+--device $TCONV_CL_TEST_DEVICE}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
done=0
cases=${TCONV_CL_TEST_SEED:-1}
percent=${TCONV_CL_TEST_PERCENT:-10}

# check NAME WANTED BOUND-OR-EMPTY arguments...
check() {
    name=$1
    wanted=$2
    bound=$3
    shift 3
    cases=$((cases + 1))
    [ "$percent" = 100 ] || [ $((cases * 37 % 200)) -lt "$percent" ] || return 0
    done=$((done + 1))
    if "$tool" run $device --quiet "$@" --output "$work/y.npy" >/dev/null && "$compare" "$work/y.npy" "$wanted" $bound; then
        rm -f "$work/y.npy"
    else
        echo "FAILED: $name: tconv-cl run $*"
        failures=$((failures + 1))
    fi
}

list() { # option "2 2" -> --option 2,2; nothing for an empty list
    [ -z "$2" ] || echo "$1 $(echo "$2" | tr ' ' ,)"
}

attributes() { # strides dilations pads_begin pads_end auto_pad output_padding output_shape
    list --strides "$1"
    list --dilations "$2"
    list --pads-begin "$3"
    list --pads-end "$4"
    echo "--auto-pad $5"
    list --output-padding "$6"
    list --output-shape "$7"
}

tail -n +2 "$vectors/cases.csv" >"$work/cases"
while IFS=, read -r id source rules op dtype how groups data_format filter_format strides dilations begin end auto_pad padding output rest; do
    d=$vectors/data/$id
    formats=
    if [ "$op" = conv_backprop ] && { [ "$groups" != 1 ] || [ "$data_format$filter_format" != NCXOIX ]; }; then
        formats="--groups $groups --data-format $data_format --filter-format $filter_format"
    fi
    bound=
    [ "$how" = close ] && bound=$d.bound.npy
    check "$id" "$d.output.npy" "$bound" --data "$d.data.npy" --filter "$d.filter.npy" --rules "${rules%% *}" $formats \
        $(attributes "$strides" "$dilations" "$begin" "$end" "$auto_pad" "$padding" "$output")
done <"$work/cases"

tail -n +2 "$vectors/ir/layers.csv" >"$work/layers"
while IFS=, read -r model layer rest; do
    d=$vectors/ir/$model.0
    check "$model" "$d.output.npy" "$d.bound.npy" --model "$vectors/ir/$model.xml" --layer "$layer" --data "$d.input.npy"
    check "$model, its only layer" "$d.output.npy" "$d.bound.npy" --model "$vectors/ir/$model.xml" --data "$d.input.npy"
done <"$work/layers"

tail -n +2 "$vectors/onnx/models.csv" >"$work/onnx"
while IFS=, read -r model groups strides dilations begin end auto_pad padding output note; do
    d=$vectors/onnx/$model
    bias=
    [ -e "$d.bias.npy" ] && bias="--bias $d.bias.npy"
    check "$model" "$d.output.npy" "$d.bound.npy" --data "$d.input.npy" --filter "$d.filter.npy" $bias --rules onnx --groups "$groups" \
        --data-format NCX --filter-format OIX $(attributes "$strides" "$dilations" "$begin" "$end" "$auto_pad" "$padding" "$output")
done <"$work/onnx"

# What cannot be computed is refused before anything is written.
d=$vectors/data/torch_line
"$tool" run $device --data "$d.data.npy" --filter "$d.filter.npy" --output "$work/none/y.npy" 2>"$work/err" && failures=$((failures + 1))
grep -q '^tconv-cl: --output' "$work/err" || failures=$((failures + 1))
"$tool" bench $device --data-shape 1,2,9 --filter-shape 2,2,3 --type f16 --output-type i8 >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'output i8' "$work/err" || { echo "FAILED: f16 to i8 is not refused by name"; failures=$((failures + 1)); }
# The same in slabs, and with an epilogue.
"$tool" run $device --data "$d.data.npy" --filter "$d.filter.npy" --output "$work/whole.npy" --activation gelu >/dev/null &&
    "$tool" run $device --data "$d.data.npy" --filter "$d.filter.npy" --output "$work/slabs.npy" --activation gelu \
        --memory-limit 1 >"$work/out" && grep -qE 'in (1 slab|([2-9]|[1-9][0-9]+) slabs) ' "$work/out" && cmp "$work/whole.npy" "$work/slabs.npy" ||
    { echo "FAILED: slabs are not the whole"; failures=$((failures + 1)); }
"$tool" check $device --data-shape 1,2,3,3,3,3 --filter-shape 2,2,2,2,2,2 --algorithm packed_vector >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q '4 spatial axes' "$work/out" || { echo "FAILED: an algorithm that does not accept is not an error"; failures=$((failures + 1)); }
# What no algorithm takes is told once, not for each of them.
"$tool" check $device --data-shape 1,4,5,5 --filter-shape 4,4,3,3 --data-zero-point 3 >"$work/out" 2>"$work/err"
[ $? = 2 ] && [ "$(grep -c ' failed ' "$work/out")" = 1 ] && grep -q 'no zero point' "$work/out" ||
    { echo "FAILED: a request that no algorithm takes"; failures=$((failures + 1)); }
# Fast arithmetic only on request: by name without it, no; with it, yes, and never by itself.
fast="--data-shape 1,40,20,32 --filter-shape 40,30,4,4 --strides 2 --pads-begin 1 --pads-end 1"
"$tool" check $device $fast --algorithm winograd_vector >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'needs math=fast' "$work/out" || { echo "FAILED: fast arithmetic without a request"; failures=$((failures + 1)); }
"$tool" check $device $fast --algorithm winograd_vector --math fast >"$work/out" 2>"$work/err" ||
    { echo "FAILED: check --math fast"; failures=$((failures + 1)); }
"$tool" bench $device $fast --math fast --algorithm winograd_vector --runs 2 --no-ceilings --json "$work/b.json" >"$work/out" 2>"$work/err" ||
    { echo "FAILED: bench --math fast"; failures=$((failures + 1)); }
grep -q '"error_factor": [2-9]' "$work/b.json" || grep -q '"error_factor": [1-9][0-9]' "$work/b.json" ||
    { echo "FAILED: no error_factor of fast arithmetic"; failures=$((failures + 1)); }
"$tool" bench $device $fast --runs 2 --no-ceilings --why >"$work/out" 2>"$work/err" && grep -q 'winograd_vector: it needs math=fast' "$work/err" ||
    { echo "FAILED: --why without fast arithmetic"; failures=$((failures + 1)); }
"$tool" bench $device --ids S10,B18,S5 --runs 2 --json "$work/b.json" >"$work/out" || { echo "FAILED: bench"; failures=$((failures + 1)); }
for key in device peak_gflops bandwidth_gbs layers id layer type algorithm ms_min ms_median runs gflops gbs floor_ms floor_bandwidth_gbs fraction_of_floor \
    max_error error_bound first_call_ms workspace_bytes error geomean_fraction_of_floor; do
    grep -q "\"$key\"" "$work/b.json" || { echo "FAILED: no $key in the JSON of bench"; failures=$((failures + 1)); }
done
"$tool" bench $device --ids B18,S5 --runs 2 --no-ceilings --json "$work/b.json" >"$work/out" && ! grep -q 'peak\|floor/time' "$work/out" &&
    [ "$(awk '$1 == "B18" || $1 == "S5" { print $(NF - 1) }' "$work/out" | tr -d '\n')" = -- ] || { echo "FAILED: bench --no-ceilings"; failures=$((failures + 1)); }
for key in peak_gflops bandwidth_gbs launch_us floor_ms fraction_of_floor geomean_fraction_of_floor; do
    grep -q "\"$key\": null" "$work/b.json" || { echo "FAILED: $key is known without ceilings"; failures=$((failures + 1)); }
done
grep -q '"bandwidth_by_working_set": \[\]' "$work/b.json" || { echo "FAILED: bandwidths without ceilings"; failures=$((failures + 1)); }
"$tool" bench $device --model "$vectors/ir/plain_f32.xml" --runs 1 --no-ceilings >"$work/out" || { echo "FAILED: bench --model"; failures=$((failures + 1)); }
# A model that tconv_cl.openvino.convert changed: the same layer, with the filter behind it.
sed -e 's/type="ConvolutionBackpropData" version="[a-z0-9]*"/type="TransposedConvolution" version="tconv_cl"/' \
    -e 's/<data strides=/<data grouped="false" bias="false" activation="relu" channels_last="false" strides=/' \
    "$vectors/ir/plain_f32.xml" >"$work/converted.xml"
cp "$vectors/ir/plain_f32.bin" "$work/converted.bin"
for model in "$vectors/ir/plain_f32.xml" "$work/converted.xml"; do
    "$tool" run $device --data "$vectors/ir/plain_f32.0.input.npy" --model "$model" --output "$work/${model##*/}.npy" 2>"$work/err" >"$work/out"
done
cmp "$work/plain_f32.xml.npy" "$work/converted.xml.npy" && grep -q "what was fused into 1 of its layers is left out" "$work/err" ||
    { echo "FAILED: a converted model"; failures=$((failures + 1)); }
# All layers of a model: one open in its batch, one of another length; constants that were compressed, behind a Convert to f64; an
# empty batch.
sed 's/<dim>2</<dim>-1</' "$vectors/ir/plain_f16.xml" | awk '
    /<layer id="3"/ { copying = 1 }
    copying { copy = copy $0 "\n" }
    { print }
    copying && /<\/layer>/ {
        copying = 0
        sub(/id="3" name="up"/, "id=\"9\" name=\"again\"", copy)
        gsub(/<dim>9</, "<dim>11<", copy)
        printf "%s", copy
    }
    /to-layer="3"/ { sub(/to-layer="3"/, "to-layer=\"9\""); print }' >"$work/two.xml"
sed 's/FP32/FP64/; s/"f32"/"f64"/' "$vectors/ir/plain_f16.xml" >"$work/wide.xml"
cp "$vectors/ir/plain_f16.bin" "$work/two.bin"
cp "$vectors/ir/plain_f16.bin" "$work/wide.bin"
"$tool" check $device --model "$work/two.xml" --data-shape 3,8,9 --algorithm reference >"$work/out" 2>&1 && grep -q '^2 passed' "$work/out" ||
    { echo "FAILED: check of a model with two layers: $(cat "$work/out")"; failures=$((failures + 1)); }
"$tool" bench $device --model "$work/two.xml" --data-shape 3,8,9 --runs 1 --no-ceilings >"$work/out" 2>&1 && grep -q '^2 of 2' "$work/out" ||
    { echo "FAILED: bench of a model with two layers: $(cat "$work/out")"; failures=$((failures + 1)); }
"$tool" bench $device --model "$work/two.xml" --data-shape 3,8,10 --runs 1 --no-ceilings >"$work/out" 2>&1
[ $? = 2 ] && grep -q 'fits no layer' "$work/out" || { echo "FAILED: data that fit no layer: $(cat "$work/out")"; failures=$((failures + 1)); }
"$tool" bench $device --model "$work/wide.xml" --runs 1 --no-ceilings >"$work/out" 2>&1 && grep -q '^1 of 1' "$work/out" ||
    grep -q 'double precision' "$work/out" ||
    { echo "FAILED: a filter behind a Convert to f64: $(cat "$work/out")"; failures=$((failures + 1)); }
for command in check "bench --no-ceilings"; do
    "$tool" $command $device --data-shape 0,2,4 --filter-shape 2,1,3 >"$work/out" 2>&1 && grep -q 'nothing to compute' "$work/out" ||
        { echo "FAILED: $command of an empty batch: $(cat "$work/out")"; failures=$((failures + 1)); }
done

# The list of devices, for people and for programs.
"$tool" devices >"$work/out" && grep -q 'integer dot products' "$work/out" || { echo "FAILED: devices"; failures=$((failures + 1)); }
"$tool" devices --json - >"$work/out" && grep -q '"local_memory"' "$work/out" || { echo "FAILED: devices --json"; failures=$((failures + 1)); }

# An environment variable with a value that is not possible is a wrong request.
for variable in TCONV_CL_MATRIX=yes TCONV_CL_CACHE=never TCONV_CL_CACHE_MIB=1GiB; do
    env "$variable" "$tool" check $device --data-shape 1,2,4 --filter-shape 2,1,3 >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q "^tconv-cl: the environment variable ${variable%=*} is \"${variable#*=}\"" "$work/err" ||
        { echo "FAILED: $variable: $(cat "$work/err")"; failures=$((failures + 1)); }
done

# Tensors of the epilogue that do not fit are refused before anything runs.
"$tool" run $device --data "$vectors/../vectors/ir/plain_f32.0.input.npy" --model "$vectors/ir/plain_f32.xml" --output "$work/o.npy" --quiet >/dev/null ||
    { echo "FAILED: a layer of a model"; failures=$((failures + 1)); }
model="--model $vectors/ir/plain_f32.xml --data $vectors/ir/plain_f32.0.input.npy"
refuse() { # WORDS-OF-THE-MESSAGE arguments...
    words=$1
    shift
    rm -f "$work/y.npy"
    "$tool" run $device $model --output "$work/y.npy" --quiet "$@" >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q -- "$words" "$work/err" && [ ! -e "$work/y.npy" ] ||
        { echo "FAILED: run $*: $(cat "$work/err")"; failures=$((failures + 1)); }
}
refuse "one number for each output channel" --activation prelu
refuse "only --activation prelu and snake" --slope "$work/o.npy"
refuse "needs the initial output" --beta 2
refuse "without --beta it has no effect" --initial "$work/o.npy"
refuse "one axis with the" --bias "$work/o.npy"
refuse "has extent" --residual "$vectors/ir/plain_f32.0.input.npy"
"$tool" run $device $model --output "$work/y.npy" --residual "$work/o.npy" --json - --quiet >"$work/out" && grep -q '"algorithm"' "$work/out" ||
    { echo "FAILED: run with a residual"; failures=$((failures + 1)); }
"$tool" run $device $model --output "$work/y.npy" --beta 0.5 --initial "$work/o.npy" --memory-limit 1 >"$work/out" 2>"$work/err" ||
    { echo "FAILED: run with --beta in slabs: $(cat "$work/err")"; failures=$((failures + 1)); }
"$tool" check $device --type u8 --filter-type i8 --output-type i8 --requantize --with-scale --alpha 0.5 --activation relu \
    --data-shape 1,5,6,7 --filter-shape 5,6,3,3 --strides 2 >"$work/out" 2>"$work/err" || { echo "FAILED: check of a quantised layer"; failures=$((failures + 1)); }
"$tool" check $device --beta 2 --activation snake --with-residual --data-shape 1,5,6,7 --filter-shape 5,6,3,3 >"$work/out" 2>"$work/err" ||
    { echo "FAILED: check with --beta: $(cat "$work/err")"; failures=$((failures + 1)); }

echo "$done runs, $failures failures"
[ "$failures" = 0 ]
