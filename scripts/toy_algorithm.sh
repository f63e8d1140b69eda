#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Adds the algorithm of examples/algorithm as docs/adding-an-algorithm.md says, to a copy of the sources, and tests it
# there; then once more with a wrong kernel, which must be found. usage: sh scripts/toy_algorithm.sh
more=
. "$(dirname "$0")/toy_tree.sh"
toy=$root/examples/algorithm
# Steps 1 to 6: the kernels, their table, and the host's part
cp "$toy/toy.cl" "$toy/toy_table.h" cl/any/
cp "$toy/toy.c" src/algorithm/any/
# Step 7: its row in the registry, its file in CMakeLists.txt, its tile's parameter
sed -i 's/^    A(reference)/    A(toy) A(reference)/' src/algorithm/registry.h
sed -i 's|^    int run; |    int items; /* of a work-group */\n&|' src/algorithm/tile.h
sed -i 's|src/algorithm/registry.c|src/algorithm/any/toy.c &|' CMakeLists.txt
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DTCONV_BUILD_TESTS=OFF >"$work/log" && cmake --build build --parallel "$(nproc)" --target tconv-cl >>"$work/log" 2>&1 ||
    { tail -30 "$work/log"; exit 1; }
tool=build/tconv-cl
"$tool" algorithms | grep -q '^toy ' || { echo "toy is not listed"; exit 1; }
check() {
    TCONV_CL_CACHE=off "$tool" check --algorithm "toy items=64" --data-shape 2,6,19 --filter-shape 3,2,4,5 --strides 2 --dilations 3 --pads-begin 1 --pads-end 4 "$@"
}
for type in f32 f64 i8; do check --type "$type"; done
check --data-shape 2,6,9000 # so much that threads of a CPU device share the launch
check --groups 1 --data-format NXC --data-shape 2,19,6 --filter-shape 5,4,6
"$tool" check --algorithm toy --data-shape 1,3,4,5 --filter-shape 3,2,3,3 2>&1 | grep -q '2 spatial axes; it takes one' ||
    { echo "a refusal is not told"; exit 1; }
mkdir "$work/wrong"
cp -R cl/. "$work/wrong"
sed -i 's/k \* table\[TOY_DILATION\]/k * (table[TOY_DILATION] + 1)/' "$work/wrong/any/toy.cl"
TCONV_CL_KERNEL_DIR="$work/wrong" check >"$work/log" 2>&1 && { echo "a wrong kernel passes"; exit 1; }
echo "the algorithm of the example works, and a wrong one is found"
