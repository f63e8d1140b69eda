# SPDX-License-Identifier: Apache-2.0
"""The structures of _library.py against what a C compiler makes of the public headers."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from tconv_cl._library import MAX_AXES, MAX_RANK, STRUCTURES

INCLUDE = Path(__file__).parents[2] / "include"


def test_sizes_and_offsets(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    lines, wanted = [], []
    for name, structure in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        wanted.append(f"{name} {ctypes.sizeof(structure)}")
        for member, *_ in structure._fields_:
            size = f"sizeof((({name} *)0)->{member})"
            lines.append(f'printf("{name}.{member} %zu %zu\\n", offsetof({name}, {member}), {size});')
            place = getattr(structure, member)
            wanted.append(f"{name}.{member} {place.offset} {place.size}")
    lines.append('printf("limits %d %d\\n", TCONV_MAX_AXES, TCONV_MAX_RANK);')
    wanted.append(f"limits {MAX_AXES} {MAX_RANK}")
    source = tmp_path / "structures.c"
    body = "\n    ".join(lines)
    source.write_text(f"#include <stdio.h>\n#include <tconv_cl/tconv_cl.h>\nint main(void)\n{{\n    {body}\n}}\n")
    program = tmp_path / "structures"
    subprocess.run([compiler, "-I", INCLUDE, source, "-o", program], check=True)
    assert subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines() == wanted
