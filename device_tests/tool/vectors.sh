#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Conformance vectors and layers of models through `tconv-cl run`: all of them with TCONV_CL_TEST_PERCENT=100, half as many percent with
# less (2 without it); a start of the tool takes a second. test_vectors.c has all vectors.
# usage: vectors.sh TCONV-CL SOURCES COMPARE_NPY
. "$(dirname "$0")/begin.sh"
compare=$3
done=0
cases=${TCONV_CL_TEST_SEED:-1}
percent=${TCONV_CL_TEST_PERCENT:-2}

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
        fail "$name: tconv-cl run $*"
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

echo "$done runs, $failures failures"
[ "$failures" = 0 ]
