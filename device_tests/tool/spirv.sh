# SPDX-License-Identifier: Apache-2.0
# Modules of SPIR-V (scripts/spirv.py): every program of a small layer is compiled and valid. Where the device takes
# SPIR-V, the outputs are right, and a broken module, or one of other options, leaves the source.
. "$(dirname "$0")/begin.sh"
clang=${TCONV_CL_TEST_CLANG:-clang-14} translator=${TCONV_CL_TEST_LLVM_SPIRV:-llvm-spirv-14}
for needed in "$clang" "$translator" spirv-val python3; do
    command -v "$needed" >/dev/null || { echo "skipped: there is no $needed"; exit 77; }
done
export TCONV_CL_CACHE=off

# layer [OPTION...]: checks a layer, by default all algorithms, and prints where each program came from, and errors.
layer() {
    # shellcheck disable=SC2086
    "$tool" check $device --data-shape 1,3,5,6 --filter-shape 3,4,3,3 --strides 2 "$@" --trace "$work/t.json" \
        >"$work/out" 2>&1 || fail "a layer: $(cat "$work/out")"
    python3 - "$work/t.json" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))
for event in events["traceEvents"] if isinstance(events, dict) else events:
    if event.get("cat") == "program" and event["args"]["from"] != "memory":
        print(event["args"]["from"], event["name"], event["args"]["error"])
END
}

compile() {
    python3 "$sources/scripts/spirv.py" --trace "$work/t.json" --clang "$clang" --llvm-spirv "$translator" "$@" \
        >"$work/log" 2>&1 || fail "$(cat "$work/log")"
}

layer >"$work/plain"
grep -q '^compiler' "$work/plain" || fail "no program: $(cat "$work/plain")"
grep -q '^spirv' "$work/plain" && fail "a module without TCONV_CL_SPIRV"
compile "$work/modules"
export TCONV_CL_SPIRV="$work/modules"
layer >"$work/taken"
if ! grep -q '^spirv' "$work/taken"; then # rusticl takes the modules of its own target
    compile --target mesa64 "$work/modules"
    layer >"$work/taken"
fi
if ! grep -q '^spirv' "$work/taken"; then
    [ "${TCONV_CL_TEST_SPIRV:-}" = required ] && fail "no module was taken: $(cat "$work/taken")"
    [ "$failures" = 0 ] || exit 1
    echo "all modules are valid; this device takes none"
    exit 0
fi
grep -q '^compiler' "$work/taken" && fail "a program without its module: $(cat "$work/taken")"

# Weights of other types, and so other options.
"$tool" check $device --type f16 --data-shape 1,3,5,6 --filter-shape 3,4,3,3 --strides 2 --algorithm reference \
    --trace "$work/t.json" >"$work/out" 2>&1 || fail "another type: $(cat "$work/out")"
grep -q '"from": *"spirv"' "$work/t.json" && fail "a module of other options was taken"

# broken WHY: no module is taken, the trace says why, and every program is compiled.
broken() {
    layer --algorithm reference >"$work/broken"
    grep -q '^spirv.* None' "$work/broken" && fail "a broken module was taken: $(cat "$work/broken")"
    grep -q "^spirv.*$1" "$work/broken" || fail "the trace does not tell why: $(cat "$work/broken")"
    grep -q '^compiler.* None' "$work/broken" || fail "the source was not compiled: $(cat "$work/broken")"
}

# change FUNCTION SEALED: gives every module what the function makes of it, with its right hash if SEALED is 1.
change() {
    python3 - "$sources" "$work/modules" "$1" "$2" <<'END'
import pathlib, sys
sys.path.insert(0, sys.argv[1] + "/scripts")
import spirv
for path in pathlib.Path(sys.argv[2]).iterdir():
    module = eval(sys.argv[3])(path.read_bytes()[8:])
    seed = int(path.name.split(".")[1], 16) if sys.argv[4] == "1" else 0
    path.write_bytes(spirv.hash_more(seed, module).to_bytes(8, "little") + module)
END
}

cp -r "$work/modules" "$work/whole"
change "lambda m: m" 0 # as a module of another program has its hash
broken "the module of another program"
for file in "$work"/whole/*; do
    head -c $(($(wc -c <"$file") / 8 * 4)) "$file" >"$work/modules/${file##*/}"
done
broken "is damaged"
change "lambda m: b'no module of SPIR-V.'" 1
broken "is not a SPIR-V module of version 1"
for file in "$work"/modules/*; do echo 'short' >"$file"; done
broken "is damaged"
finish
