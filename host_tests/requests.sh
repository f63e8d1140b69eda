#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong requests to the tool: each must end with code 2 and one sentence that has the given words, and
# leave no output file. Right ones: `shape` without any device.
# usage: requests.sh TCONV-CL FOLDER-OF-VECTORS [wine]
set -u
tool=$1
vectors=$2
system=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# No OpenCL platform: none of this may need one.
mkdir "$work/no-platforms"
export OCL_ICD_VENDORS="$work/no-platforms/"
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect CODE "words" arguments...
expect() {
    code=$1
    words=$2
    shift 2
    "$tool" "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    # Of thousands of programs that Wine starts one ends with code 1 and without a word, which the tool never does.
    if [ "$got" = 1 ] && [ "$system" = wine ] && ! grep -q . "$work/out" "$work/err"; then
        "$tool" "$@" >"$work/out" 2>"$work/err" </dev/null
        got=$?
    fi
    [ "$got" = "$code" ] || fail "exit code $got, not $code: $*: $(cat "$work/err")"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "not one line on stderr: $*: $(cat "$work/err")"
    grep -q '^tconv-cl: ' "$work/err" || fail "no 'tconv-cl: ' in front: $*"
    grep -qF -- "$words" "$work/err" || fail "\"$words\" is not said: $*: $(cat "$work/err")"
    [ ! -e "$work/y.npy" ] || fail "an output file appeared: $*"
    [ -z "$(ls "$work" | grep 'y.npy')" ] || fail "a part of an output file is left: $*"
}

# The same rejection by shapes and from files.
shape="shape --data-shape 1,20,8,9 --filter-shape 20,10,3,3"
expect 2 "rank 2" shape --data-shape 1,20 --filter-shape 20,10
expect 2 "rank 9" shape --data-shape 1,2,3,4,5,6,7,8,9 --filter-shape 2,2,3,4,5,6,7,8,9
expect 2 "rank 3" shape --data-shape 1,20,8,9 --filter-shape 20,10,3
expect 2 "20 channels (axis 1)" shape --data-shape 1,20,8,9 --filter-shape 16,10,3,3
expect 2 "3 groups (axis 0) of 7" shape --data-shape 1,20,8,9 --filter-shape 3,7,2,3,3
expect 2 "3 groups do not divide" $shape --groups 3 --data-format NCX --filter-format OIX
expect 2 "; they fit with data_format NCX and filter_format OIX" $shape --groups 2
expect 2 "strides has 3 values" $shape --strides 1,2,3
expect 2 "dilations has 3 values" $shape --dilations 1,2,3
expect 2 "pads_begin has 3 values" $shape --pads-begin 1,2,3
expect 2 "pads_end has 3 values" $shape --pads-end 1,2,3
expect 2 "output_padding has 3 values" $shape --output-padding 1,2,3
expect 2 "output_shape has 3 values" $shape --output-shape 1,2,3
expect 2 "strides is 0 at spatial axis 1" $shape --strides 1,0
expect 2 "dilations is -2 at spatial axis 0" $shape --dilations -2,1
expect 2 "pads_begin is -1 at spatial axis 0" $shape --pads-begin -1,0
expect 2 "pads_end is -7 at spatial axis 1" $shape --pads-end 0,-7
expect 2 "output_padding is -1 at spatial axis 0" $shape --output-padding=-1
expect 2 "output_shape is 0 at spatial axis 1" $shape --output-shape 5,0
expect 2 "extent -9 at spatial axis 1" $shape --pads-begin 0,20
expect 2 "data has extent 0 at axis 1" shape --data-shape 1,0,9,9 --filter-shape 20,10,3,3
expect 2 "filter has extent 0 at axis 1" shape --data-shape 1,20,8,9 --filter-shape 20,0,3,3
expect 2 "data is too large" shape --data-shape 1,20,4611686018427387904,9 --filter-shape 20,10,3,3
expect 2 "overflows 64 bits" $shape --strides 9223372036854775807
expect 2 "does not fit into 64 bits" $shape --strides 99999999999999999999
expect 2 "numbers with commas" $shape --strides 2x2
expect 2 "numbers with commas" $shape --strides 2,
expect 2 "more than 6 numbers" $shape --strides 1,1,1,1,1,1,1
expect 2 "--groups is 0" $shape --groups 0
expect 2 "explicit, valid, same_upper or same_lower" $shape --auto-pad same
expect 2 "spec, openvino or onnx" $shape --rules tensorflow
expect 2 "data_steps has 3 values: it must have one for each of the 4 axes of the data" $shape --data-steps 1440,72,9
expect 2 "data_steps is 0 at axis 2: it must be at least 1" $shape --data-steps 1440,72,0,1
expect 2 "output_steps is 10 at axis 2" $shape --output-steps 1100,110,10,1
expect 2 "it must be at least 11" $shape --output-steps 1100,110,10,1
expect 2 "filter_steps has 1 values: it must have one for each of the 4 axes of the filter" $shape --filter-steps 1
expect 2 "residual_steps is -1 at axis 0: it must be at least 0" $shape --residual-steps -1,110,11,1
expect 2 "data_steps is 9223372036854775807 at axis 1, whose extent is 20: the bytes that the data reaches overflow 63 bits" \
    $shape --data-steps 1,9223372036854775807,9,1
expect 2 "more than 8 numbers" $shape --data-steps 1,2,3,4,5,6,7,8,9
expect 2 "the layers of a suite have their own" bench --ids B05 --data-steps 3
expect 2 "NCX or NXC" $shape --data-format NHWC
expect 2 "OIX or XIO" $shape --filter-format IOX
expect 2 "swish" bench --ids B05 --activation swish
expect 2 "two numbers" check --activation clamp:2
expect 2 "no number" check --activation relu:1
expect 2 "alpha" bench --ids B05 --alpha one
expect 2 "data-zero-point" check --data-zero-point 300
expect 2 "f32, f16" $shape --type f8
expect 2 "--filter-shape is missing" shape --data-shape 1,2,3
expect 2 "--data-shape is missing" shape --filter-shape 1,2,3
expect 2 "unknown option" shape --stride 2
expect 2 "--stride: unknown option; write --strides 2. See tconv-cl shape --help" $shape --stride 2
expect 2 "did you mean --pads-begin?" shape --pasd-begin=2
expect 2 "--zzzz: unknown option; see tconv-cl shape --help" shape --zzzz
# Names of other systems, with their value; never an option that means something else.
expect 2 "write --pads-begin 1 --pads-end 1." $shape --padding 1
expect 2 "write --pads-begin 1,2 --pads-end 1,2." $shape --padding=1,2
expect 2 "write --pads-begin 1,2 --pads-end 3,4." $shape --pads 1,2,3,4
expect 2 "write --pads-begin 1 --pads-end 1." $shape --pads 1
expect 2 "write --pads-begin and --pads-end, together kernel - stride, the smaller half first; or" $shape --padding same
expect 2 "write nothing if no kernel is smaller than its stride, else --output-padding, stride - kernel." $shape --padding VALID
expect 2 "write --auto-pad same_lower; with --rules onnx" $shape --padding same_lower
expect 2 "write --pads-begin and --pads-end, numbers: \"full\" has no equivalent." $shape --padding full
expect 2 "write --pads-begin 1,1 --pads-end 2,2." $shape --padding 1,1,2,2
expect 2 "write --pads-begin 1,1 --pads-end 2,2." run --padding=1,1,2,2
expect 2 "write --pads-begin 1,2,3,4 --pads-end 1,2,3,4." shape --data-shape 1,2,3,4,5,6 --padding 1,2,3,4
expect 2 "write --pads-begin ... --pads-end ...." $shape --padding 1,2,3
for value in "" 1, 1.5 ,; do
    expect 2 "write --pads-begin ... --pads-end ...." $shape "--padding=$value"
    expect 2 "write --pads-begin ... --pads-end ...." $shape "--pads=$value"
    expect 2 "write --strides ...." $shape "--stride=$value"
done
expect 2 "write --pads-begin ... --pads-end ..." $shape --pad
expect 2 "write --dilations 2." $shape --dilation 2
expect 2 "write --groups 2 --data-format NCX --filter-format OIX." $shape --group=2
expect 2 "write --groups 2 with the --data-format and --filter-format of the tensors." $shape --feature_group_count 2
expect 2 "write --data-format NXC (" $shape --layout NHWC
expect 2 "write --data-format NCX --filter-format OIX (" $shape --layout NCHW
expect 2 "write --data-format NXC (" $shape --data_layout NHWC
expect 2 "write --data-format ... (NXC: channels last" $shape --layout foo
expect 2 "write --filter-format ... (XIO:" $shape --kernel-layout foo
expect 2 "write --type ...." $shape --dtype foo
expect 2 "write --filter ...." run --weight=
expect 2 "the kernel in --filter-shape" $shape --kernel-size 3
for option in kernel_size kernel_h; do
    expect 2 "--$option: unknown option; write the kernel in --filter-shape" $shape --$option 3
done
for option in in_channels Num_Output; do
    expect 2 "--$option: unknown option; write the channels in --filter-shape" $shape --$option 3
done
expect 2 "write --dilations 2." $shape --dilation_rate 2
expect 2 "write --device 1." bench --device_id 1
# Options of one axis or one side: the value of the other one is on the command line, or the default.
expect 2 "write --strides 2,3." $shape --stride-h 2 --stride-w 3
expect 2 "write --strides 2,3." $shape --stride_w=3 --stride_h=2
expect 2 "write --strides 1,3." $shape --stride-w 3
expect 2 "write --strides ...." $shape --stride-w x
expect 2 "write --strides ...." $shape --stride-w
expect 2 "write --dilations 2,1." $shape --dilation-h 2
expect 2 "write --output-padding 0,1." $shape --output-padding-w 1
expect 2 "write --pads-begin 1,0." $shape --pads-begin-h 1
expect 2 "write --pads-begin 1,2 --pads-end 1,2." $shape --pad-h 1 --pad-w 2
expect 2 "write --pads-begin 1,2 --pads-end 0,3." $shape --pad_left 2 --pad_top 1 --pad_right 3
expect 2 "--strides-of-y: unknown option; see" $shape --strides-of-y 2
expect 2 "write --filter-format XIO (" $shape --kernel-layout HWOI
expect 2 "write --type f32." $shape --dtype float32
expect 2 "write --type bf16." $shape --precision=BFloat16
expect 2 "write --type i8." $shape --dtype i8
expect 2 "write --output-type u8." check --out-dtype uint8
expect 2 "write --device gpu." bench --device-id cuda
expect 2 "write --device gpu." bench --device-id CUDA:1
expect 2 "write --device 1." bench --device-id 1
expect 2 "write --type ...." $shape --dtype
expect 2 "write --output-padding: the wanted extent minus the one that \`shape\` prints" $shape --output-size 9
expect 2 "write --activation leaky_relu:0.2." check --negative-slope 0.2
expect 2 "write --type f16." $shape --data-type f16
expect 2 "write --filter w.npy." run --weight w.npy
expect 2 "write --output y.npy." run --out y.npy
expect 2 "it must be NCX or NXC; write NXC" $shape --data-format NHWC
expect 2 "it must be NCX or NXC; write NCX --filter-format OIX" $shape --data-format channels_first
expect 2 "; write silu" check --activation swish
expect 2 "; write leaky_relu:SLOPE" check --activation LeakyReLU
expect 2 "; write clamp:LOW,HIGH" check --activation clip
expect 2 "; write clamp:-1,1" check --activation hardtanh
expect 2 "; write f16" check --output-type half
expect 2 "; write f64" $shape --type double
expect 2 "; write same_upper; with --rules onnx" $shape --auto-pad SAME
expect 2 "--out: unknown option; write --output ..." $shape --out
expect 2 "--residual: unknown option; see" $shape --residual r.npy
expect 2 "--pads-: unknown option; see" $shape --pads- 1
expect 2 "did you mean --output-padding?" $shape --output-p 1
expect 2 "they fit in the oneAPI form with data_format NXC" shape --data-shape 1,8,9,20 --filter-shape 20,10,3,3
expect 2 "did you mean shape?" shapes
expect 2 "did you mean check?" chekc
expect 2 "zzzz is not a command; see" zzzz
expect 2 "did you mean bench?" help bnech
expect 2 "help takes one command" help bench check
expect 2 "did you mean gather_dot?" bench --algorithm gather_dto
expect 2 "algorithms lists those of every device" algorithms --device 0
expect 2 "is not an option" version now
expect 1 "no OpenCL device was found" --budget 5 tune --ids B05
expect 1 "no OpenCL device was found" --math fast bench --ids B05
expect 1 "no OpenCL device was found" --device cpu
expect 2 "missing argument" shape --strides
expect 2 "is not an option" shape 1,2,3
expect 2 "is not a command" shapes
expect 2 "does not exist" bench --algorithm winograd
expect 2 "it must be exact or fast" bench --math quick
expect 2 "it must be exact or fast" check --math ""
expect 2 "no layer of the suite" bench --ids B07,B99
convolution="shape --data-shape 1,6,8,9 --filter-shape 8,6,3,3"
expect 2 "layer has one of them" $convolution --upsample 2 --pixel-shuffle 2
expect 2 "--pixel-shuffle and --strides: the convolution has stride 1" $convolution --pixel-shuffle 2 --strides 2
expect 2 "--upsample and --strides: the convolution has stride 1" $convolution --upsample 2 --strides 2
expect 2 "--pixel-shuffle is not: add it" $convolution --shuffle-order DCR
expect 2 "must be CRD or DCR" $convolution --pixel-shuffle 2 --shuffle-order CDR
expect 2 "pixel shuffle by 3x3 takes 9 of them" $convolution --pixel-shuffle 3
expect 2 "NCX), but the filter wants 5 input channels (axis 1" shape --data-shape 1,6,8,9 --filter-shape 8,5,3,3 --upsample 2
"$tool" $convolution --pixel-shuffle 2 --shuffle-order dcr | grep -q '^output_shape  1,2,12,14$' || fail "shape of a pixel shuffle"
"$tool" bench --list --data-shape 1,6,8,9 --filter-shape 8,6,3,3 --pixel-shuffle 2 --shuffle-order dcr 2>/dev/null |
    grep -q -- '--pixel-shuffle 2,2 --shuffle-order DCR$' || fail "options of a pixel shuffle"
expect 2 "--layer needs --model" bench --layer up
expect 2 "the layers of a suite have their own" bench --ids B05 --strides 3
expect 2 "the layers of a suite have their own" bench --ids B05 --data-format NXC --groups 3
expect 2 "NCX or NXC" bench --ids B05 --data-format NHWC
expect 2 "have their own" bench --model "$vectors/ir/plain_f32.xml" --data-format NXC
expect 2 "a layer needs --data-shape" bench --strides 3
expect 2 "a layer needs --data-shape" check --strides 3
expect 2 "cannot be given together" check --data-shape 1,2,3 --filter-shape 2,2,2 --ids B05
expect 2 "have their own" bench --model "$vectors/ir/plain_f32.xml" --groups 3
expect 2 "f32, f16" bench --model "$vectors/ir/plain_f32.xml" --type f8
expect 2 "more than 6 numbers" bench --model "$vectors/ir/plain_f32.xml" --output-shape 5,5,5,5,5,5,5
expect 2 "1 to 1000" bench --runs 0
expect 2 "1 to 1000" bench --repeat 0
expect 2 "it must be a number" bench --runs many
expect 2 "devices lists them all" devices --device gpu
expect 2 'is "0,1": it must be a number, gpu, cpu or a part of a name' bench --ids B05 --device 0,1
expect 2 'is "": it must be a number, gpu, cpu or a part of a name' bench --ids B05 --device ""
expect 2 "did you mean --quiet" bench --quite
expect 2 'activation leaky_relu is "x"' bench --ids B05 --activation leaky_relu:x
expect 1 "--json" bench --json "$work/none/x.json"
expect 2 "json is empty: it must name a file" shape --json ""
expect 1 "Is a directory" shape --json "$work"
printf 'id,type,in_channels,out_channels,input,kernel\nX,"f\r\n8",3,4,5,2\n' >"$work/s.csv"
expect 2 'is "f??8"' bench --suite "$work/s.csv"
expect 2 "is not a command" --device 0 -q shapes
printf 'id,in_channels,out_channels,input,kernel,strides\nX,3,4,5x6,2x2,2x0\n' >"$work/s.csv"
expect 2 "row 2 (X): strides is 0 at spatial axis 1" bench --suite "$work/s.csv"
printf 'id,in_channels,out_channels,input,kernel,strides,output_shape\nX,1,1,3x3,3x3,2x2,6x7\n' >"$work/s.csv" # all lists of a request
"$tool" bench --list --suite "$work/s.csv" 2>&1 | grep -q -- '--strides 2,2 --output-shape 6,7$' || fail "output_shape of a suite"
printf 'id,layer,in_channels,out_channels,input,kernel\nX,caf\351,3,4,5x6,2x2\n' >"$work/s.csv"
expect 2 "is not in UTF-8" bench --suite "$work/s.csv"

# Reports: what can be compared, and what cannot.
echo '{"layers": [{"id": "A", "layer": "one", "problem": "p", "ms_median": 2.0, "runs": 9, "spread": 0.05, "algorithm": "x"},
    {"id": "B", "problem": "p", "ms_median": 1.0, "runs": 9, "spread": 0.1}, {"id": "C", "problem": "p", "ms_median": null},
    {"id": "D", "problem": "p", "ms_median": 1.0}, {"id": "F", "problem": "p", "ms_median": 3.0, "runs": 2, "spread": 0.1}]}' >"$work/old.json"
echo '{"layers": [{"id": "A", "layer": "one", "problem": "p", "ms_median": 1.0, "runs": 9, "spread": 0.05, "algorithm": "y"},
    {"id": "B", "problem": "p", "ms_median": 1.15, "runs": 9, "spread": 0.1}, {"id": "C", "problem": "p", "ms_median": 1.0},
    {"id": "D", "problem": "q", "ms_median": 1.0}, {"id": "E", "problem": "p", "ms_median": 1.0},
    {"id": "F", "problem": "p", "ms_median": 1.0, "runs": 2, "spread": 0.1}]}' >"$work/new.json"
echo '[1, 2' >"$work/cut.json"
echo '{"layers": [{"id": "A", "gain": 1.0}]}' >"$work/tune.json"
expect 2 "compare needs two reports" compare
expect 2 "compare needs two reports" compare "$work/old.json"
expect 2 "third is not an option" compare "$work/old.json" "$work/new.json" third
expect 2 "compare reads reports and needs no device" compare "$work/old.json" "$work/new.json" --device 0
expect 2 "the old report and the new report are both -" compare - -
expect 2 "--json and the old report are both" compare "$work/old.json" "$work/new.json" --json "$work/old.json"
expect 1 "none.json cannot be opened: No such file" compare "$work/old.json" "$work/none.json"
expect 1 "cut.json is no JSON: line 2" compare "$work/cut.json" "$work/new.json"
expect 2 "is not a report of tconv-cl bench" compare "$work/tune.json" "$work/new.json"
echo '{"schema": 2, "layers": []}' >"$work/next.json"
expect 2 "has another schema than 1" compare "$work/next.json" "$work/new.json"
if [ "$system" = wine ]; then reason="opened: Permission denied"; else reason="read: Is a directory"; fi
expect 1 "report $work cannot be $reason" compare "$work" "$work/new.json"
expect 1 "No such file" compare "$work/old.json" "$work/new.json" --json "$work/none/c.json"
expect 1 "--compare $work/cut.json is no JSON" bench --ids B05 --compare "$work/cut.json"
expect 2 "--compare $work/tune.json is not a report of tconv-cl bench" bench --ids B05 --compare "$work/tune.json"
expect 2 "--suite and --compare are both -: stdin can be read once" bench --compare - --suite -
expect 2 "--csv and --compare are both" bench --ids B05 --csv "$work/old.json" --compare "$work/old.json"
expect 2 "--fail is given, but without --compare" bench --ids B05 --fail
echo '{"layers": [{"id": "F", "problem": "p", "ms_median": 1.0, "runs": 2, "spread": 0.1}]}' >"$work/few.json"
expect 1 "--fail can judge no layer: 1 are in both reports" compare "$work/old.json" "$work/few.json" --fail
for command in bench check; do
    "$tool" $command --help | tr -s '\n ' ' ' | grep -q 'max error is the largest error .* as a fraction of the bound' || fail "$command --help says nothing of max error"
    "$tool" manual $command | grep -q '^max error is the largest error' || fail "manual $command says nothing of max error"
done
expect 2 "--csv and --suite are both" bench --suite "$work/old.json" --csv "$work/old.json"
expect 2 "--json and --csv are both -: the results need a file of their own" bench --ids B05 --json - --csv -
expect 2 "--no-ceilings leaves out the roofline" bench --ids B05 --no-ceilings --plot "$work/x.svg"
expect 1 "--csv" bench --csv "$work/none/x.csv"
expect 1 "--trace" bench --trace "$work/none/x.json"
expect 2 "--json and --trace are both" bench --ids B05 --json "$work/x.json" --trace "$work/x.json"
expect 2 "--model is -: a model needs a name" bench --model -
[ ! -e "$work/x.svg" ] || fail "a picture that was refused"

# compare: faster, slower and alike by the noise of both; what is in one only, of another problem, or not timed.
"$tool" compare "$work/old.json" "$work/new.json" --json "$work/c.json" >"$work/out" 2>"$work/err" || fail "compare: $(cat "$work/err")"
for row in 'A    one .* 2 .* 1  2.000  10.0% faster, by y, before x' 'B .* 0.870  20.0%' 'C .* not timed in .*old.json' \
    'D .* another problem in each' 'E .* only in .*new.json' 'F .* 3.000      -'; do
    grep -qE "^$row\$" "$work/out" || fail "compare has no row \"$row\": $(cat "$work/out")"
done
grep -q '^3 layers in both; geometric mean of old / new time 1.734$' "$work/out" && grep -q '^faster beyond noise: 1 A$' "$work/out" &&
    grep -q '^slower beyond noise: 0$' "$work/out" || fail "the last lines of compare: $(cat "$work/out")"
"$tool" compare - "$work/old.json" <"$work/new.json" >"$work/out" && grep -q '^slower beyond noise: 1 A$' "$work/out" || fail "compare from stdin"
grep -q '"geomean_ratio": 1.73' "$work/c.json" && [ "$(grep -c '"verdict": null' "$work/c.json")" = 4 ] &&
    [ "$(grep -c '"note": null' "$work/c.json")" = 2 ] || fail "the JSON of compare: $(cat "$work/c.json")"
"$tool" compare "$work/old.json" "$work/new.json" --json - | grep -q '^{' || fail "compare --json -"
for variables in "NO_COLOR= TERM=xterm" "NO_COLOR=1 TERM=xterm" "NO_COLOR= TERM=dumb"; do
    [ "$system" != wine ] || break # Wine draws what a program writes to a terminal anew
    env $variables script -qec "'$tool' compare '$work/new.json' '$work/old.json'" /dev/null </dev/null | tr -d '\r' >"$work/out"
    awk '{ gsub(/\033\[[0-9]*m/, "") } length > 100 { bad = 1 } END { exit bad }' "$work/out" || fail "compare on a terminal: $(cat "$work/out")"
    [ "$variables" = "NO_COLOR= TERM=xterm" ] && wanted=1 || wanted=0
    [ "$(grep -c "^$(printf '\033')\[33mA .*slower" "$work/out")" = "$wanted" ] || fail "colours with $variables: $(cat "$work/out")"
done

cp "$vectors"/data/torch_line.data.npy "$vectors"/data/torch_line.filter.npy "$work"
d=$work/torch_line # a path without spaces: some commands below are one text
run="run --output $work/y.npy"
expect 2 "--data is missing" $run --filter "$d.filter.npy"
expect 2 "--filter is missing" $run --data "$d.data.npy"
expect 2 "--output is missing" run --data "$d.data.npy" --filter "$d.filter.npy"
expect 1 "is not a .npy file" $run --data "$vectors/cases.csv" --filter "$d.filter.npy"
expect 1 "is not a .npy file" $run --data "$d.data.npy" --filter "$vectors/cases.csv"
expect 1 "cannot be opened" $run --data "$work/none.npy" --filter "$d.filter.npy"
for start in '\001\000' '\002\000\020\000'; do
    printf "\\223NUMPY$start" >"$work/odd.npy"
    expect 1 "odd.npy is cut off: it ends before its header" $run --data "$work/odd.npy" --filter "$d.filter.npy"
done
printf '\223NUMPY\011\000' >"$work/odd.npy"
expect 1 "has version 9 of the .npy format" $run --data "$work/odd.npy" --filter "$d.filter.npy"
for shape_of in '(1, -8)|an extent is negative' '(8.0, 8)|its extents must be whole numbers' '(x,)|its extents must be whole numbers' \
    '[1, 8]|it must be a tuple' '(99999999999999999999,)|an extent does not fit into 64 bits' \
    '(1,1,1,1,1,1,1,1,1,1)|it has too many extents: up to 9 can be read'; do
    printf '\223NUMPY\001\000\200\000%-128s' "{'descr': '<f4', 'fortran_order': False, 'shape': ${shape_of%|*}, }" >"$work/odd.npy"
    expect 2 "odd.npy has the shape ${shape_of%|*}, : ${shape_of#*|}" $run --data "$work/odd.npy" --filter "$d.filter.npy"
done
expect 2 "strides is 0" $run --data "$d.data.npy" --filter "$d.filter.npy" --strides 0
expect 2 "strides has 2 values" $run --data "$d.data.npy" --filter "$d.filter.npy" --strides 1,1
expect 2 "channels" $run --data "$d.data.npy" --filter "$vectors/data/torch_dcgan.filter.npy"
expect 2 "--bias has rank 3" $run --data "$d.data.npy" --filter "$d.filter.npy" --bias "$d.data.npy"
expect 2 "--type is f16" $run --data "$d.data.npy" --filter "$d.filter.npy" --type f16
expect 2 "unknown option" $run --data "$d.data.npy" --filter "$d.filter.npy" --data-shape 1,2,3
expect 2 "cannot be given together" $run --model "$vectors/ir/plain_f32.xml" --data "$d.data.npy" --filter "$d.filter.npy"
expect 2 "file of their own" $run --data "$d.data.npy" --filter "$d.filter.npy" --json "$work/y.npy"
expect 2 "file of their own" $run --data "$d.data.npy" --filter "$d.filter.npy" --json "$work/./y.npy"
cp "$d.filter.npy" "$work/w.npy"
expect 2 "file of their own" $run --data "$d.data.npy" --filter "$work/w.npy" --json "$work/../$(basename "$work")/w.npy"
cp "$vectors/ir/plain_f32.bin" "$vectors/ir/plain_f32.xml" "$work"
expect 2 "file of their own" $run --data "$d.data.npy" --model "$work/plain_f32.xml" --json "$work/plain_f32.bin"
# An output in the place of an input: by another name of it, a link, a hard link; the input stays.
cp "$d.data.npy" "$work/x.npy"
ln -s x.npy "$work/soft.npy"
ln "$work/x.npy" "$work/hard.npy"
for output in x.npy ./x.npy soft.npy hard.npy; do
    expect 2 "--output and --data are both $work/x.npy" run --data "$work/x.npy" --filter "$d.filter.npy" --output "$work/$output"
done
expect 2 "--output and --filter are both" run --data "$d.data.npy" --filter "$work/x.npy" --output "$work/soft.npy"
for option in bias scale slope residual initial; do
    expect 2 "--output and --$option are both" run --data "$d.data.npy" --filter "$d.filter.npy" --$option "$work/x.npy" --output "$work/soft.npy"
done
for output in plain_f32.xml plain_f32.bin; do
    expect 2 "file of their own" run --data "$d.data.npy" --model "$work/plain_f32.xml" --output "$work/$output"
done
cmp -s "$d.data.npy" "$work/x.npy" || fail "an input was overwritten"
expect 1 "no OpenCL device was found" run --output - --data "$d.data.npy" --filter "$d.filter.npy"
expect 2 "--json and --output are both -" run --output - --data "$d.data.npy" --filter "$d.filter.npy" --json -
expect 2 "--data and --filter are both -: stdin can be read once" run --output - --data - --filter -
cp "$vectors/ir/plain_f32.xml" "$work/alone.xml"
expect 1 "alone.bin, which cannot be opened" $run --model "$work/alone.xml" --data "$vectors/ir/plain_f32.0.input.npy"
expect 2 "its data has shape" $run --model "$vectors/ir/plain_f32.xml" --data "$d.data.npy"
expect 2 "a layer of a --model has its own" $run --model "$vectors/ir/plain_f32.xml" --data "$vectors/ir/plain_f32.0.input.npy" --strides 2
expect 2 "is not a transposed convolution" $run --model "$vectors/ir/plain_f32.xml" --data "$vectors/ir/plain_f32.0.input.npy" --layer down
expect 1 "is not a model" $run --model "$vectors/cases.csv" --data "$d.data.npy"
sed 's/type="ConvolutionBackpropData" version="[a-z0-9]*"/type="TransposedConvolution" version="tconv_cl"/' \
    "$vectors/ir/plain_f32.xml" >"$work/converted.xml"
sed -i 's/<data strides=/<data activation="relu" requantize="true" strides=/' "$work/converted.xml"
cp "$vectors/ir/plain_f32.bin" "$work/converted.bin"
expect 2 "tconv_cl.openvino.convert made it compute with integers" $run --model "$work/converted.xml" --data "$vectors/ir/plain_f32.0.input.npy"
printf '\010\010decoder' >"$work/decoder.ONNX"
for command in "$run --data $d.data.npy" "bench" "bench --list"; do
    expect 2 "convert it with \`pip install openvino\` and \`ovc '$work/decoder.ONNX' --compress_to_fp16=False\`" $command --model "$work/decoder.ONNX"
done
# The edges of a loop that carry values connect no ports.
sed 's#</edges>#</edges><back_edges><edge from-layer="10" to-layer="3"/></back_edges>#' "$vectors/ir/plain_f32.xml" >"$work/loop.xml"
cp "$vectors/ir/plain_f32.bin" "$work/loop.bin"
"$tool" bench --list --model "$work/loop.xml" >"$work/out" 2>"$work/err" && grep -q -- '--data-shape' "$work/out" || fail "back edges: $(cat "$work/out" "$work/err")"
for option in compare csv plot trace runs repeat; do
    expect 2 "--$option is given, but --list times nothing" bench --list --$option "$work/none"
done
expect 1 "no OpenCL device was found" $run --data "$d.data.npy" --filter "$d.filter.npy"
expect 1 "no OpenCL device was found" bench --ids B07
expect 1 "no OpenCL device was found" --no-ceilings bench --ids B07
expect 1 "no OpenCL device was found" bench --ids S8 --data-format NXC
expect 1 "no OpenCL device was found" check
expect 1 "no OpenCL device was found" devices
export TCONV_CL_DEVICE=gpu
expect 1 "no OpenCL device was found" bench --ids B07
unset TCONV_CL_DEVICE

# Right requests without a device.
"$tool" shape --data-shape 1,20,224,224 --filter-shape 20,10,3,3 --strides 2 --pads-begin 1 --pads-end 1 --json "$work/s.json" ||
    fail "shape fails"
for words in '"operator": "ConvolutionBackpropData"' '"rules": "spec"' '447' '"macs"' '"pads_begin"' '"groups": 1'; do
    grep -qF "$words" "$work/s.json" || fail "$words is not in the JSON of shape"
done
"$tool" shape --data-shape 1,1,2 --filter-shape 1,1,3 --strides 2 --auto-pad same_upper --rules onnx 2>"$work/err" | grep -q '^output_shape  1,1,4$' ||
    fail "shape under the onnx rules"
grep -q "than the published formulas" "$work/err" || fail "the rules' difference is not told"
"$tool" shape --quiet --data-shape 1,1,2 --filter-shape 1,1,3 --strides 2 --auto-pad same_upper --rules onnx 2>&1 >/dev/null | grep -q . &&
    fail "--quiet still tells"
# auto_pad without an effect is told in one line: not under the rules where it has one, nor for other modes.
for pad in same_upper same_lower; do
    for rules in spec openvino; do
        "$tool" shape --data-shape 1,1,2 --filter-shape 1,1,3 --auto-pad $pad --rules $rules >"$work/out" 2>"$work/err" ||
            fail "shape --auto-pad $pad --rules $rules"
        [ "$(wc -l <"$work/err")" = 1 ] && grep -q "^tconv-cl: auto_pad $pad has no effect .* under the rules $rules:" "$work/err" ||
            fail "no notice about $pad under the rules $rules: $(cat "$work/err")"
        grep -q '^pads_begin    0$' "$work/out" || fail "$pad makes pads under the rules $rules"
    done
    "$tool" shape --quiet --data-shape 1,1,2 --filter-shape 1,1,3 --auto-pad $pad 2>&1 >/dev/null | grep -q . && fail "--quiet still tells of $pad"
done
for request in "valid" "same_upper --output-shape 2" "same_upper --rules onnx --output-padding 0"; do
    "$tool" shape --data-shape 1,1,2 --filter-shape 1,1,3 --auto-pad $request 2>&1 >/dev/null | grep -q 'has no effect' && fail "a notice about $request"
done
# So are pads, with an output shape or an auto_pad; but not zeros, nor where the rules keep them.
for request in "--output-shape 2" "--output-shape 2 --rules onnx" "--auto-pad valid" "--auto-pad same_lower --rules onnx"; do
    "$tool" shape --data-shape 1,1,2 --filter-shape 1,1,3 --pads-end 1 $request 2>&1 >/dev/null | grep -q '^tconv-cl: the given pads have no effect: ' ||
        fail "no notice about pads with $request"
    "$tool" shape --data-shape 1,1,2 --filter-shape 1,1,3 --pads-end 0 $request 2>&1 >/dev/null | grep -q 'given pads' && fail "a notice about zeros with $request"
done
for request in "" "--output-shape 2 --rules openvino"; do
    "$tool" shape --data-shape 1,1,2 --filter-shape 1,1,3 --pads-end 1 $request 2>&1 >/dev/null | grep -q 'given pads' && fail "a notice about pads: $request"
done
line="--data-shape 1,1,2 --filter-shape 1,1,3 --auto-pad same_upper"
for request in "bench $line" "run --data $d.data.npy --filter $d.filter.npy --output $work/y.npy --auto-pad same_lower"; do
    "$tool" $request 2>&1 >/dev/null | grep -q 'has no effect' || fail "no notice: $request"
done
# Formats that were left out, where the tensors also fit the other ones.
for formats in "" "--data-format NCX" "--data-format NCX --filter-format OIX"; do
    "$tool" shape --data-shape 1,4,4 --filter-shape 4,2,4 --groups 2 $formats >"$work/out" 2>"$work/err" || fail "shape $formats"
    case $formats in
    *OIX) [ ! -s "$work/err" ] || fail "a notice about $formats: $(cat "$work/err")" ;;
    *NCX) grep -q '^tconv-cl: filter_format XIO is taken, .* the tensors also fit OIX: give the format$' "$work/err" || fail "no notice about $formats" ;;
    *) grep -q '^tconv-cl: data_format N.* the tensors also fit NCX and OIX: give the formats$' "$work/err" || fail "no notice about $formats" ;;
    esac
done
for command in bench run shape devices check; do
    "$tool" $command --help | grep -q -- '--json' || fail "$command --help"
    "$tool" $command --usage | grep -q -- '--json' || fail "$command --usage"
done
"$tool" -q --device=3 --version | grep -q tconv-cl || fail "--version behind other options"
"$tool" -qj- shape --data-shape 1,1,2 --filter-shape 1,1,3 | grep -q '"macs": 6' || fail "a command behind a cluster of options"
if [ "$system" != wine ]; then # there stdout is a pipe, which has no path
    small="-q shape --data-shape 1,1,2 --filter-shape 1,1,3"
    "$tool" $small --json /dev/stdout | grep -q '"macs": 6' || fail "--json /dev/stdout"
    # A file that stdout, stderr or a descriptor stands in is written there, not replaced.
    "$tool" $small --json - >"$work/right.json"
    ln -s /dev/stdout "$work/to_stdout"
    for path in /dev/stdout /dev/fd/1 /proc/self/fd/1 "$work/to_stdout" "$work/z" /dev/stderr /dev/fd/2 /dev/fd/3; do
        echo keep >"$work/z"
        case $path in
        *err | */2) "$tool" $small --json $path 2>>"$work/z" ;;
        */3) "$tool" $small --json $path 3>>"$work/z" ;;
        *) "$tool" $small --json "$path" >>"$work/z" ;;
        esac || fail "--json $path: exit code $?"
        [ "$(head -1 "$work/z")" = keep ] && sed 1d "$work/z" | cmp -s - "$work/right.json" || fail "--json $path: $(cat "$work/z")"
    done
    "$tool" $small --json /dev/fd/3 3<"$work/z" 2>"$work/err"
    [ $? = 1 ] && grep -q 'json /dev/fd/3 cannot be written: Bad file descriptor$' "$work/err" || fail "--json of an input: $(cat "$work/err")"
    "$tool" $small --json /dev/stdout >/dev/full 2>"$work/err"
    [ $? = 1 ] && grep -q 'json /dev/stdout cannot be written: No space' "$work/err" || fail "--json /dev/stdout is full: $(cat "$work/err")"
    "$tool" $small --json /dev/null >/dev/null || fail "--json /dev/null"
fi

# Two reports of bench are compared without a device.
# report_of ID MS...: a report of such layers on stdout
report_of() {
    printf '{"schema": 1, "layers": ['
    comma=
    while [ $# -gt 0 ]; do
        printf '%s{"id": "%s", "layer": "one, \\"two\\"", "ms_median": %s, "runs": 9, "spread": 0.01}' "$comma" "$1" "$2"
        comma=,
        shift 2
    done
    echo ']}'
}
report_of A 2 B 1 C 1 >"$work/old.json"
report_of B 1.5 A 1 D 1 >"$work/new.json"
"$tool" compare "$work/old.json" "$work/new.json" --csv "$work/c.csv" --json "$work/c.json" >"$work/out" || fail "compare --csv"
cat >"$work/right.csv" <<'END'
id,layer,ms_old,ms_new,ratio,noise,verdict,note
"B","one, ""two""",1,1.5,0.666666667,0.02,"slower",
"A","one, ""two""",2,1,2,0.02,"faster",
END
head -3 "$work/c.csv" | cmp -s - "$work/right.csv" && sed -n 4p "$work/c.csv" | grep -q '^"D",.*,,,,,,"only in .*new.json"$' ||
    fail "compare --csv: $(cat "$work/c.csv")"
[ "$(wc -l <"$work/c.csv")" = 5 ] && grep -q '^B .* slower' "$work/out" && grep -q '"layers_in_both": 2' "$work/c.json" || fail "compare --csv: $(cat "$work/out")"
"$tool" compare "$work/old.json" "$work/new.json" --csv - --fail 2>"$work/err" >"$work/out"
[ $? = 1 ] && cmp -s "$work/out" "$work/c.csv" || fail "compare --csv - --fail: $(cat "$work/out" "$work/err")"
expect 2 "--json and --csv are both" compare "$work/old.json" "$work/new.json" --csv "$work/x" --json "$work/x"
# Two outputs to one stream, however it is named.
if [ "$system" != wine ]; then
    mkfifo "$work/pipe"
    for path in "- /dev/stdout" "/dev/fd/1 -" "/proc/self/fd/1 /dev/stdout" "$work/z -" "/dev/stderr /dev/fd/2" "/dev/fd/3 -" "$work/pipe $work/pipe"; do
        "$tool" compare "$work/old.json" "$work/new.json" --csv ${path#* } --json ${path% *} >"$work/z" 3>&1 2>"$work/err"
        [ $? = 2 ] && grep -q '^tconv-cl: --json and --csv are both .*: the results need a file of their own$' "$work/err" &&
            [ ! -s "$work/z" ] || fail "two outputs, $path: $(cat "$work/z" "$work/err")"
    done
    "$tool" compare "$work/old.json" "$work/new.json" --csv /dev/null --json /dev/null -q >/dev/null || fail "two outputs to /dev/null"
    # stdout's or stdin's file is an input, too; stdin is read once.
    cp "$work/old.json" "$work/z"
    "$tool" compare "$work/z" "$work/new.json" --csv - >>"$work/z" 2>"$work/err"
    [ $? = 2 ] && grep -q -- '--csv and the old report are both .*/z: ' "$work/err" && cmp -s "$work/old.json" "$work/z" || fail "stdout is an input: $(cat "$work/err")"
    "$tool" compare - "$work/new.json" --csv "$work/z" <"$work/z" >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q -- '--csv and the old report are both -: ' "$work/err" && cmp -s "$work/old.json" "$work/z" || fail "stdin is an output: $(cat "$work/err")"
    cat "$work/old.json" | "$tool" compare - /dev/stdin >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q 'are both -: stdin can be read once$' "$work/err" || fail "stdin twice: $(cat "$work/err")"
    "$tool" compare /dev/stdin /dev/stdin <"$work/old.json" | grep -q '^3 layers in both' || fail "the file of stdin twice"
fi
if [ "$system" != wine ]; then # where the tool starts no Python
    mkdir "$work/python"
    printf '#!/bin/sh\ncase $2 in import*) ;; *) grep -q geomean_ratio && echo "<svg/>" ;; esac\n' >"$work/python/python3"
    chmod +x "$work/python/python3"
    PATH="$work/python:$PATH" "$tool" compare "$work/old.json" "$work/new.json" --plot "$work/x.svg" --quiet >"$work/out" 2>&1 &&
        [ "$(cat "$work/x.svg")" = "<svg/>" ] || fail "compare --plot: $(cat "$work/out")"
    PATH="$work/python:$PATH" "$tool" compare "$work/old.json" "$work/new.json" -q --plot /dev/full >"$work/out" 2>"$work/err"
    [ $? = 1 ] && [ "$(cat "$work/err")" = "tconv-cl: --plot /dev/full cannot be written: No space left on device" ] || fail "a full --plot: $(cat "$work/err")"
    if python3 -c 'import matplotlib' 2>"$work/err"; then
        printf '{"layers": [{"id": "$x^{$ <\\u0007\\ufffe", "ms_median": 1}]}' >"$work/odd.json"
        "$tool" compare -q "$work/odd.json" "$work/odd.json" --plot "$work/odd.svg" && grep -qF '>$x^{$ &lt;??<' "$work/odd.svg" &&
            python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" "$work/odd.svg" || fail "a picture with an odd id"
        rm -f "$work/odd.svg"
    fi
    printf '#!/bin/sh\necho /some/where/python3\nexit 1\n' >"$work/python/python3"
    PATH="$work/python:$PATH" "$tool" compare "$work/old.json" "$work/new.json" --plot "$work/y.svg" >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q 'needs matplotlib, which /some/where/python3 lacks: run /some/where/python3 -m pip install matplotlib' "$work/err" &&
        [ ! -s "$work/out" ] && [ ! -e "$work/y.svg" ] || fail "compare --plot without matplotlib: $(cat "$work/err")"
fi
# Numbers that no run has: what is not known is not judged.
# numbers MS REST: a report of one layer on stdout
numbers() {
    printf '{"layers": [{"id": "A", "ms_median": %s%s}]}\n' "$1" "$2"
}
numbers 1 ', "runs": 9, "spread": 0.01' >"$work/one.json"
for numbers in '0.5|, "runs": 9, "spread": -5|A .* 2[.]000      -' '0.5|, "runs": 9, "spread": 1e308|A .* 2[.]000      -' \
    '0.5|, "runs": 9, "spread": 300|A .* 2[.]000 30001[.]0%' '0.5|, "runs": 9, "spread": 1e200|A .* 2[.]000 1e[+]202%' \
    '0.5|, "runs": -9, "spread": 0.1|A .* 2[.]000      -' '0.5|, "runs": 1e300, "spread": 0.1|A .* 2[.]000  11[.]0% faster' \
    '1e-320|, "runs": 9, "spread": 0.1|A .* times of 1 and .*e-32. ms have no ratio' '1e308||A .* times of 1 and 1e[+]308 ms have no ratio' \
    '-1||A .* not timed in .*' '0||A .* not timed in .*' '1e300||A .* 1 *1e[+]300 1e-300      -'; do
    rest=${numbers#*|}
    numbers "${numbers%%|*}" "${rest%%|*}" >"$work/odd.json"
    "$tool" compare "$work/one.json" "$work/odd.json" --json "$work/c.json" >"$work/out" || fail "compare with $numbers"
    grep -qxE "${rest#*|}" "$work/out" && ! grep -qi 'inf\|nan' "$work/out" "$work/c.json" || fail "compare with $numbers: $(cat "$work/out")"
done
grep -q '^1 layer in both; geometric mean of old / new time 1e-300$' "$work/out" || fail "compare with an odd mean: $(cat "$work/out")"
for repeat in 4294967297 1099511627776 -3 9223372036854775807; do
    echo "{\"repeat\": $repeat, \"layers\": []}" >"$work/odd.json"
    "$tool" compare "$work/one.json" "$work/odd.json" 2>&1 >"$work/out" | grep -q "have --repeat 1, of .* $repeat: what" || fail "compare with --repeat $repeat"
done
# As many layers as take a second: to look for each among all takes ten minutes.
awk 'BEGIN { printf "{\"layers\": ["; for (i = 0; i < 100000; i++) printf "%s{\"id\": \"layer%d\", \"ms_median\": 1}", i ? ", " : "", i; print "]}" }' >"$work/many.json"
"$tool" compare "$work/many.json" "$work/many.json" | grep -q '^100000 layers in both; geometric mean of old / new time 1.000$' || fail "compare of many layers"

# full arguments...: what stdout does not take is failed work.
full() {
    "$tool" "$@" >/dev/full 2>"$work/err"
    got=$?
    [ "$got" = 1 ] || fail "exit code $got, not 1, where stdout is full: $*"
    grep -q '^tconv-cl: the results cannot be written to stdout' "$work/err" || fail "no sentence about a full stdout: $*"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "not one line about a full stdout: $*: $(cat "$work/err")"
}
full --help
full --version
for command in bench run shape devices check; do
    full $command --help
    full $command '-?'
    full $command --usage
done
full bench --algorithm list
full shape --data-shape 1,1,2 --filter-shape 1,1,3
full shape --data-shape 1,1,2 --filter-shape 1,1,3 --json -
full compare "$work/old.json" "$work/new.json"
full compare "$work/old.json" "$work/new.json" --csv -
"$tool" --version | grep -q '^tconv-cl [0-9]*\.[0-9]*\.[0-9]*$' || fail "--version"
"$tool" --help | grep -q 'Exit code' || fail "--help"
"$tool" -V | grep -q '^tconv-cl [0-9]' && "$tool" version | grep -q '^tconv-cl [0-9]' || fail "-V, version"
[ "$("$tool" bench -V)" = "$("$tool" --version)" ] || fail "bench -V"
[ "$("$tool" -h)" = "$("$tool" --help)" ] && [ "$("$tool" help)" = "$("$tool" --help)" ] || fail "-h, help"
for command in help manual completion; do
    [ "$("$tool" $command --help)" = "$("$tool" --help)" ] || fail "$command --help"
done
[ "$("$tool" help bench)" = "$("$tool" bench --help)" ] && [ "$("$tool" bench -h)" = "$("$tool" bench --help)" ] || fail "help bench"
"$tool" | tail -1 | grep -q '^To start the benchmark: tconv-cl bench$' || fail "no command"
"$tool" algorithms | grep -q '^reference  *one work-item' || fail "algorithms"
[ "$("$tool" algorithms --json - | grep -c '"summary"')" = "$("$tool" algorithms | wc -l)" ] || fail "algorithms --json"
[ "$("$tool" algorithms --json - | sed -n 's/.*"name": "\(.*\)".*/\1/p')" = "$("$tool" algorithms | cut -d' ' -f1)" ] ||
    fail "algorithms: a name and its summary run together"
"$tool" bench --algorithm list | grep -q '^reference ' || fail "--algorithm list"
# Letters that no code page of Windows has together. Wine reads the environment by the locale.
LC_ALL=C.UTF-8 POCL_LETTERS='žluť–плюс' "$tool" report 2>"$work/err" | grep 'POCL_LETTERS=žluť–плюс' >"$work/out" || fail "report: a variable that is not ASCII"

[ "$failures" = 0 ] || exit 1
echo "all requests answered as they should be"
