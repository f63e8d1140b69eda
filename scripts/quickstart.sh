#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to results: installs, builds, computes a layer of a real model's file and times the suite of layers, all on PoCL, the
# OpenCL implementation for the processor. Arguments go to `tconv-cl bench`, for example --ids B07,B43.
set -eu
cd "$(dirname "$0")/.."
sh scripts/build.sh
export OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd # only PoCL, whatever else is installed
POCL_AFFINITY=$(sh scripts/pocl_affinity.sh) # a processor for each of its threads: two may share one for whole kernels
export POCL_AFFINITY

model=device_tests/vectors/ir/from_pytorch
echo
echo "== a layer of a PyTorch model that OpenVINO converted ($model.xml)"
build/tconv-cl run --model $model.xml --data $model.0.input.npy --output build/layer.npy
build/device_tests/compare_npy build/layer.npy $model.0.output.npy $model.0.bound.npy
echo "build/layer.npy agrees with what OpenVINO computed ($model.0.output.npy)"

echo
echo "== the benchmark: layers of real networks and constructed ones, each verified in the same run"
build/tconv-cl bench "$@"
