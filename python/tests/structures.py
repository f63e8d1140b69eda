# SPDX-License-Identifier: Apache-2.0
"""The structures of _library.py against what a C compiler makes of the public headers, and the members of a request
against the options of the package's functions. Needs a C compiler and no other package, so that scripts/toy_member.sh
can run it: usage: structures.py FOLDER, where FOLDER has the modules and the library beside them."""

from __future__ import annotations

import ast
import ctypes
import importlib
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

INCLUDE = Path(__file__).parents[2] / "include"

# Members that follow from the arrays of a call, or from its other options.
IMPLIED = {"struct_size", "operation", "data_type", "filter_type", "data", "filter"}
IMPLIED |= {"data_steps", "output_steps", "residual_steps", "filter_steps"}


def layouts(library: ModuleType, compiler: str) -> list[str]:
    """The lines of sizes and offsets in which Python and C differ: `name size` and `name.member offset size`."""
    lines, ours = [], []
    for name, structure in library.STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        ours.append(f"{name} {ctypes.sizeof(structure)}")
        for member, *_ in structure._fields_:
            size = f"sizeof((({name} *)0)->{member})"
            lines.append(f'printf("{name}.{member} %zu %zu\\n", offsetof({name}, {member}), {size});')
            place = getattr(structure, member)
            ours.append(f"{name}.{member} {place.offset} {place.size}")
    lines.append('printf("limits %d %d\\n", TCONV_MAX_AXES, TCONV_MAX_RANK);')
    ours.append(f"limits {library.MAX_AXES} {library.MAX_RANK}")
    body = "\n    ".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "structures.c"), Path(folder, "structures")
        source.write_text(f"#include <stdio.h>\n#include <tconv_cl/tconv_cl.h>\nint main(void)\n{{\n    {body}\n}}\n")
        subprocess.run([compiler, "-I", INCLUDE, source, "-o", program], check=True)
        theirs = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return [f"{mine} in Python, {other} in C" for mine, other in itertools.zip_longest(ours, theirs) if mine != other]


def missing_options(library: ModuleType, folder: Path) -> list[str]:
    """The members of the problem and the epilogue that a call cannot ask for."""
    options, *functions = arguments(folder)
    problem = {name for name, *_ in library.Problem._fields_} - IMPLIED
    epilogue = {name for name, *_ in library.Epilogue._fields_} - {"bias", "scale", "residual", "a", "b", "reserved"}
    missing = [f"{name} is not in Options" for name in sorted((problem | epilogue) - options)]
    for function, names, wanted in zip(
        ("conv_transpose", "output_shape"), functions, (options, problem - {"output_type"})
    ):
        missing += [f"{function} does not take {name}" for name in sorted(wanted - names)]
    return missing


def arguments(folder: Path) -> list[set[str]]:
    """The names of Options, and of the arguments of conv_transpose and output_shape."""
    found = {}
    for node in ast.parse(Path(folder, "_convolution.py").read_text()).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {line.target.id for line in node.body if isinstance(line, ast.AnnAssign)}
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = {argument.arg for argument in node.args.args + node.args.kwonlyargs}
    return [found[name] for name in ("Options", "conv_transpose", "output_shape")]


def load(folder: Path) -> ModuleType:
    """The module _library without the package's own, which needs NumPy."""
    package = ModuleType("tconv_cl")
    package.__path__ = [str(folder)]
    sys.modules["tconv_cl"] = package
    return importlib.import_module("tconv_cl._library")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    module = load(path)
    differences = layouts(module, "cc") + missing_options(module, path)
    for difference in differences:
        print(difference)
    sys.exit(bool(differences))
