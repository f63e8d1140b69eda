#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds examples/opencv against an installation, runs both programs on the OpenCL device that OpenCV takes, and tests the layer. Skipped (77) without OpenCV's
# headers. usage: opencv.sh BUILD-FOLDER SOURCE-FOLDER
set -eu
build=$1
source=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
include=
for folder in /usr/include/opencv4 /usr/local/include/opencv4 /usr/include/opencv5 /usr/local/include/opencv5; do
    [ -n "$include" ] || [ ! -e "$folder/opencv2/dnn.hpp" ] || [ ! -e "$folder/opencv2/imgcodecs.hpp" ] || include=$folder
done
[ -n "$include" ] || { echo "skipped: no opencv2/dnn.hpp or imgcodecs.hpp; install libopencv-dnn-dev and libopencv-imgcodecs-dev"; exit 77; }
cmake --install "$build" --prefix "$work/prefix" >"$work/log"
cmake -S "$source/examples/opencv" -B "$work/programs" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Debug \
    -DOPENCV_INCLUDE="$include" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" >>"$work/log"
cmake --build "$work/programs" >>"$work/log" || { cat "$work/log"; exit 1; }

# OpenCV takes a GPU only, unless it is told otherwise; its dnn module, too.
export OPENCV_OPENCL_DEVICE= OPENCV_DNN_OPENCL_ALLOW_ALL_DEVICES=1 OPENCV_OPENCL_CACHE_ENABLE=0
"$work/programs/super_resolution" --compare "$source/examples/opencv/astronaut.png" "$work/row.png" "$work/grid.png"
"$work/programs/super_resolution" "$source/examples/opencv/astronaut.png" "$work/doubled.png"
[ -s "$work/row.png" ] && [ -s "$work/grid.png" ] && [ -s "$work/doubled.png" ] || { echo "a picture is missing"; exit 1; }
"$work/programs/dnn_layer" >"$work/out" || { cat "$work/out"; exit 1; }
cat "$work/out"
[ "$(grep -c 'target OpenCL: tconv-cl, UMat;' "$work/out")" = 3 ] || { echo "cv::dnn copies tensors to the host"; exit 1; }
# The layer's parameters, types and tensors.
libs=$(dirname "$(find "$work/prefix" -name 'tconv_cl.pc')")
c++ -std=c++17 -Wall -Wextra -Werror -I "$source/examples/opencv" -isystem "$include" "$source/device_tests/installed/opencv_layer.cpp" \
    -o "$work/layer" $(PKG_CONFIG_PATH=$libs pkg-config --cflags --libs tconv_cl) -lopencv_dnn -lopencv_core -lOpenCL -Wl,-rpath,"$(dirname "$libs")"
OPENCV_LOG_LEVEL=FATAL "$work/layer" || exit 1
# Without a device there is a sentence.
if OPENCV_OPENCL_DEVICE=disabled "$work/programs/super_resolution" "$source/examples/opencv/astronaut.png" "$work/none.png" 2>"$work/err"; then
    echo "computed without a device"
    exit 1
fi
grep -q 'OpenCV has no OpenCL device' "$work/err" && [ ! -e "$work/none.png" ] || { cat "$work/err"; exit 1; }
