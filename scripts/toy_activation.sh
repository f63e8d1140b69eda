#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Adds an activation to a copy of the sources, in four files, and tests it there; then shows that each of the four is missed
# where it is forgotten. usage: sh scripts/toy_activation.sh
more="python host_tests/activation_docs.sh"
. "$(dirname "$0")/toy_tree.sh"
fail() {
    echo "$1"
    exit 1
}

# softsign(a): x / (a + |x|). The row, the enumerator, and the formula of the kernels and of the oracle.
number=$(sed -n 's/^ *TCONV_ACTIVATION_[A-Z0-9_]* = \([0-9]*\).*/\1/p' include/tconv_cl/epilogue.h | tail -1)
number=$((number + 1))
sed -i "s/^    A(.*)\$/& \\\\\\n    A(SOFTSIGN, $number, softsign, 1, 0, 0)/" cl/common/activation_list.h
sed -i "s/^} tconv_activation;/    , TCONV_ACTIVATION_SOFTSIGN = $number\n&/" include/tconv_cl/epilogue.h
sed -i 's/^#elif ACTIVATION_relu$/#elif ACTIVATION_softsign\n#define ACTIVATED(type) x \/ ((type)(f->a) + fabs(x))\n&/' cl/common/epilogue.clh
sed -i 's/^FORMULA(relu,/FORMULA(softsign, 0, 8, 0, x \/ (f->a + fabs(x)))\n&/' src/oracle/activation.c
changed=$(diff -rq "$work/before" . | wc -l)
[ "$changed" = 4 ] || fail "$changed files have changed, not 4"

cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug -DTCONV_BUILD_TESTS=OFF >"$work/log" && cmake --build build --parallel "$(nproc)" --target tconv-cl >>"$work/log" 2>&1 ||
    { tail -30 "$work/log"; exit 1; }
tool=build/tconv-cl
"$tool" run --help | tr -s ' \n' ' ' | grep -q ', softsign:A[ ;]' || fail "--help does not list the activation"
"$tool" manual run | grep -q ', softsign:A[ ;]' || fail "the manual does not list the activation"
"$tool" check --activation nobody 2>&1 | grep -q 'or softsign$' || fail "the message does not list the activation"
"$tool" check --activation softsign 2>&1 | grep -q 'softsign takes one number' || fail "its number is not asked for"
check() {
    TCONV_CL_CACHE=off POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable "$tool" check --activation softsign:1.5 --data-shape 1,6,5,7 --filter-shape 6,5,3,3 --strides 2 "$@"
}
check
check --algorithm reference --type f64
python=python3
if ! python3 -c "import numpy" 2>"$work/log"; then
    sh "$root/scripts/packages.sh" python3-venv
    python=$root/build/toy-venv/bin/python
    [ -x "$python" ] || python3 -m venv "$root/build/toy-venv"
    "$python" -m pip install --quiet --constraint "$root/python/versions.txt" numpy
fi
cp build/libtconv_cl.* python/tconv_cl/
mkdir python/tconv_cl-0.dist-info
printf 'Metadata-Version: 2.1\nName: tconv_cl\nVersion: 0\n' >python/tconv_cl-0.dist-info/METADATA
PYTHONPATH=python "$python" -c '
import numpy, tconv_cl
data = numpy.array([[[-3, 0, 5]]], numpy.float32)
output = tconv_cl.conv_transpose(data, numpy.ones((1, 1, 1), numpy.float32), activation=("softsign", 1.5))
numpy.testing.assert_allclose(output, data / (1.5 + abs(data)), rtol=1e-6)
try:
    tconv_cl.conv_transpose(data, data, activation="nobody")
except tconv_cl.RequestError as error:
    assert "or softsign" in str(error), error
'

# Documents that lack it are named.
sh host_tests/activation_docs.sh . >"$work/log" && fail "the documents are not checked"
grep -q 'docs/semantics.md has no activation softsign' "$work/log" || fail "semantics.md is not checked"

# Without one of the four, or with a wrong formula: the kernels from a folder, so that nothing is built again.
kernels() {
    rm -rf "$work/cl"
    cp -R cl "$work/cl"
    sed -i "$1" "$work/cl/common/epilogue.clh"
    TCONV_CL_KERNEL_DIR="$work/cl" check >"$work/log" 2>&1 && fail "$2"
    true
}
kernels 's/^#elif ACTIVATION_softsign$/#elif 0/' "kernels without a formula pass"
grep -q 'the activation has no formula' "$work/log" || fail "kernels without a formula are not told"
kernels 's/(f->a) + fabs(x)/(f->a) + x/' "a wrong formula passes"
compiles() {
    "${CC:-cc}" -std=c11 -fsyntax-only -I src -I cl -I include "$1" 2>"$work/log"
}
# file, what takes the line away, file to compile
forget() {
    cp "$1" "$work/kept"
    compiles "$3" || { cat "$work/log"; fail "$3 does not compile"; }
    sed -i "$2" "$1"
    compiles "$3" && fail "$3 compiles without a line of $1"
    cp "$work/kept" "$1"
}
forget src/oracle/activation.c '/^FORMULA(softsign,/d' src/oracle/activation.c
forget include/tconv_cl/epilogue.h '/TCONV_ACTIVATION_SOFTSIGN/d' src/base/names.c
forget cl/common/activation_list.h '/A(SOFTSIGN/d' src/base/names.c
echo "an activation takes four files, and none of them can be forgotten"
