#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Layers of models: converted ones, several in one model, constants that were compressed.
# usage: models.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

"$tool" bench $device --model "$vectors/ir/plain_f32.xml" --runs 1 --no-ceilings >"$work/out" || fail "bench --model"
# A model that tconv_cl.openvino.convert changed: the same layer, with the filter behind it.
sed -e 's/type="ConvolutionBackpropData" version="[a-z0-9]*"/type="TransposedConvolution" version="tconv_cl"/' \
    -e 's/<data strides=/<data grouped="false" bias="false" activation="relu" channels_last="false" strides=/' \
    "$vectors/ir/plain_f32.xml" >"$work/converted.xml"
cp "$vectors/ir/plain_f32.bin" "$work/converted.bin"
for model in "$vectors/ir/plain_f32.xml" "$work/converted.xml"; do
    "$tool" run $device --data "$vectors/ir/plain_f32.0.input.npy" --model "$model" --output "$work/${model##*/}.npy" 2>"$work/err" >"$work/out"
done
cmp "$work/plain_f32.xml.npy" "$work/converted.xml.npy" && grep -q "what was fused into 1 of its layers is left out" "$work/err" ||
    fail "a converted model"
# A model in which it put a convolution with an upsampling, whose filter has the output channels first.
awk '/<dim>5</ && filter == 0 && layer == 1 { sub(/5/, "4"); filter = 1; print; next }
    /<dim>4</ && filter == 1 && layer == 1 { sub(/4/, "5"); filter = 2 }
    /<layer id/ { layer = $2 ~ /"1"/ ? 1 : 0 }
    { sub(/shape="5, 4, 3, 3"/, "shape=\"4, 5, 3, 3\""); sub(/output_padding="1, 0"/, "output_padding=\"0, 0\""); print }' \
    "$work/converted.xml" | sed 's/<data grouped/<data form="upsample" grouped/' >"$work/upsample.xml"
sed 's/form="upsample"/form="other"/' "$work/upsample.xml" >"$work/other.xml"
cp "$vectors/ir/plain_f32.bin" "$work/upsample.bin"
cp "$vectors/ir/plain_f32.bin" "$work/other.bin"
"$tool" check $device --model "$work/upsample.xml" --algorithm reference >"$work/out" 2>&1 && grep -q '^1 passed' "$work/out" &&
    "$tool" bench $device --model "$work/upsample.xml" --list 2>/dev/null | grep -q -- '--upsample 2,2' ||
    fail "a converted upsampling: $(cat "$work/out")"
"$tool" bench $device --model "$work/other.xml" --runs 1 --no-ceilings >"$work/out" 2>&1
[ $? = 2 ] && grep -q 'its form is "other"' "$work/out" || fail "an unknown form: $(cat "$work/out")"
# All layers of a model: one open in its batch, one of another length; constants that were compressed, behind a Convert to
# f64.
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
    fail "check of a model with two layers: $(cat "$work/out")"
"$tool" bench $device --model "$work/two.xml" --data-shape 3,8,9 --runs 1 --no-ceilings >"$work/out" 2>&1 && grep -q '^2 of 2' "$work/out" ||
    fail "bench of a model with two layers: $(cat "$work/out")"
"$tool" bench $device --model "$work/two.xml" --data-shape 3,8,10 --runs 1 --no-ceilings >"$work/out" 2>&1
[ $? = 2 ] && grep -q 'fits no layer' "$work/out" || fail "data that fit no layer: $(cat "$work/out")"
"$tool" bench $device --model "$work/wide.xml" --runs 1 --no-ceilings >"$work/out" 2>&1 && grep -q '^1 of 1' "$work/out" ||
    grep -q 'double precision' "$work/out" ||
    fail "a filter behind a Convert to f64: $(cat "$work/out")"

finish
