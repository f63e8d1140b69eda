#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh FOLDER: gets ggml from PyPI, as the package libggml-python has it: FOLDER/source (headers,
# and ggml's tests) and FOLDER/lib (its shared libraries). Needs python3 with pip and venv.
set -eu
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"
cd "$folder"
for kind in --only-binary --no-binary; do # the libraries; the sources
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest packages $kind libggml-python \
        --constraint "$root/python/versions.txt" libggml-python
done
rm -rf wheel sdist source lib
python3 -m zipfile -e packages/libggml_python-*.whl wheel
mkdir sdist
tar -xzf packages/libggml_python-*.tar.gz -C sdist --strip-components=1
ln -s sdist/ggml source
ln -s wheel/libggml/lib64 lib
