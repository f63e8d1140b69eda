#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Counts under Oclgrind what the kernels for GPUs do: the multiply-adds that they execute against those that the host tells of, and the
# memory requests of warps against a limit of each algorithm.
# usage: oclgrind_counts.sh [KINDS]      f32:NCX,f32:NXC,f16:NXC without it; the limits are not for f16:NCX, whose halves gather_group
#                                        stores one by one
set -eu
cd "$(dirname "$0")/.."
python3 device_tests/oclgrind/issued.py build/tconv-cl build/host_tests/gpu_programs device_tests/oclgrind/small_layers.csv
# Each algorithm is held to what it reaches; a new one without limits of its own is held to those that are wanted of all.
python3 device_tests/oclgrind/warp_requests.py --kinds "${1:-f32:NCX,f32:NXC,f16:NXC}" --gate matrix_group:elsewhere=2:sectors=2:stores=0.12 \
    --gate col2im_group:elsewhere=2:sectors=1.05:stores=0.12 --gate gather_group:sectors=3.4:stores=0.12 \
    --gate tiled_group:local=4:elsewhere=2:sectors=2.7:stores=0.12 --gate direct_group:sectors=5:stores=0.5
