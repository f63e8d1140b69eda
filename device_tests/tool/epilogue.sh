#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Epilogues: their tensors are checked before anything runs, and slabs compute the same.
# usage: epilogue.sh TCONV-CL SOURCES
. "$(dirname "$0")/begin.sh"

# Slabs give the same bits as the whole: of tensors that take more than a MiB together.
python3 - "$work/large.npy" "$work/taps.npy" <<'END'
import struct, sys
for path, shape in zip(sys.argv[1:], ((1, 2, 70, 1000), (2, 2, 1, 3))):
    count = shape[0] * shape[1] * shape[2] * shape[3]
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)).ljust(117) + "\n"
    numbers = struct.pack(f"<{count}f", *(i * 7 % 11 / 4 - 1 for i in range(count)))
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + numbers)
END
run="run $device --data $work/large.npy --filter $work/taps.npy --activation gelu"
"$tool" $run --output "$work/whole.npy" >"$work/out" && ! grep -q slab "$work/out" &&
    "$tool" $run --output "$work/slabs.npy" --memory-limit 1 >"$work/out" && grep -qE 'in ([2-9]|[1-9][0-9]+) slabs ' "$work/out" &&
    cmp "$work/whole.npy" "$work/slabs.npy" ||
    fail "slabs are not the whole: $(cat "$work/out")"

# Tensors of the epilogue that do not fit are refused before anything runs.
"$tool" run $device --data "$vectors/ir/plain_f32.0.input.npy" --model "$vectors/ir/plain_f32.xml" --output "$work/o.npy" --quiet >/dev/null ||
    fail "a layer of a model"
model="--model $vectors/ir/plain_f32.xml --data $vectors/ir/plain_f32.0.input.npy"
refuse() { # WORDS-OF-THE-MESSAGE arguments...
    words=$1
    shift
    rm -f "$work/y.npy"
    "$tool" run $device $model --output "$work/y.npy" --quiet "$@" >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q -- "$words" "$work/err" && [ ! -e "$work/y.npy" ] ||
        fail "run $*: $(cat "$work/err")"
}
refuse "one number for each output channel" --activation prelu
refuse "only for --activation prelu, snake and snakebeta" --slope "$work/o.npy"
refuse "only for --activation snakebeta" --slope2 "$work/o.npy" --slope "$work/o.npy" --activation snake
refuse "slope2 is missing: --activation snakebeta takes two numbers" --slope "$work/o.npy" --activation snakebeta
refuse "needs the initial output" --beta 2
refuse "without --beta it has no effect" --initial "$work/o.npy"
refuse "one axis with the" --bias "$work/o.npy"
refuse "has extent" --residual "$vectors/ir/plain_f32.0.input.npy"
"$tool" run $device $model --output "$work/y.npy" --residual "$work/o.npy" --json - --quiet >"$work/out" && grep -q '"algorithm"' "$work/out" ||
    fail "run with a residual"
"$tool" run $device $model --output "$work/y.npy" --beta 0.5 --initial "$work/o.npy" --memory-limit 1 >"$work/out" 2>"$work/err" ||
    fail "run with --beta in slabs: $(cat "$work/err")"
"$tool" check $device --type u8 --filter-type i8 --output-type i8 --requantize --with-scale --alpha 0.5 --activation relu \
    --data-shape 1,5,6,7 --filter-shape 5,6,3,3 --strides 2 >"$work/out" 2>"$work/err" || fail "check of a quantised layer"
"$tool" check $device --filter-type f16 --upsample 2 --with-bias --data-shape 1,5,6,7 --filter-shape 6,5,3,3 >"$work/out" 2>"$work/err" ||
    fail "check of a filter of f16: $(cat "$work/err")"
"$tool" check $device --beta 2 --activation snake --with-residual --data-shape 1,5,6,7 --filter-shape 5,6,3,3 >"$work/out" 2>"$work/err" ||
    fail "check with --beta: $(cat "$work/err")"

finish
