#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what is in wheels: the licence, the marker of types, the one library of the system that the name promises, and
that this library needs nothing but what every such system has.

usage: check.py WHEEL..."""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Of each platform tag: the library, how `file` would begin it, what lists its needs, and what these may be.
SYSTEM = {
    "manylinux2014_x86_64": ("libtconv_cl.so", b"\x7fELF\x02", "x86_64"),
    "manylinux2014_aarch64": ("libtconv_cl.so", b"\x7fELF\x02", "aarch64"),
    "macosx_11_0_arm64": ("libtconv_cl.dylib", b"\xcf\xfa\xed\xfe", "arm64"),
    "win_amd64": ("libtconv_cl.dll", b"MZ", "x86-64"),
}
LINUX_NEEDS = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"}
WINDOWS_NEEDS = {"KERNEL32.dll", "msvcrt.dll", "ADVAPI32.dll", "SHELL32.dll", "USER32.dll"}
NEWEST_GLIBC = (2, 17)


def fail(wheel: Path, message: str) -> None:
    sys.exit(f"{wheel.name}: {message}")


def output_of(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def check_elf(wheel: Path, library: Path) -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "--dynamic", "--wide", str(library))))
    if not needed <= LINUX_NEEDS:
        fail(wheel, f"{library.name} needs {', '.join(sorted(needed - LINUX_NEEDS))}")
    for version in re.findall(r"GLIBC_([\d.]+)", output_of("readelf", "--version-info", "--wide", str(library))):
        if tuple(map(int, version.split("."))) > (*NEWEST_GLIBC, 999):
            fail(wheel, f"{library.name} needs GLIBC_{version}")


def check_dll(wheel: Path, library: Path) -> None:
    listing = output_of("x86_64-w64-mingw32-objdump", "--private-headers", str(library))
    needed = set(re.findall(r"DLL Name: (\S+)", listing))
    if not needed <= WINDOWS_NEEDS:
        fail(wheel, f"{library.name} needs {', '.join(sorted(needed - WINDOWS_NEEDS))}")


def check(wheel: Path, folder: Path) -> None:
    tag = wheel.stem.split("-", 4)[-1].removeprefix("none-")
    platform = next((known for known in SYSTEM if known in wheel.name), None)
    if platform is None:
        fail(wheel, f"no platform that is known: {tag}")
    if "-py3-none-" not in wheel.name:
        fail(wheel, "not for every Python 3")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(folder)
    name, magic, _ = SYSTEM[platform]
    for wanted in (r"\.dist-info/licenses/LICENSE$", r"^tconv_cl/py\.typed$", rf"^tconv_cl/{re.escape(name)}$"):
        if not any(re.search(wanted, each) for each in names):
            fail(wheel, f"there is no {wanted}")
    binaries = [each for each in names if re.search(r"\.(so|dylib|dll|a|exe)(\.|$)", each)]
    for each in binaries:
        path = folder / each
        if path.read_bytes()[: len(magic)] != magic:
            fail(wheel, f"{each} is for another system")
        if magic.startswith(b"\x7fELF"):
            check_elf(wheel, path)
        elif name.endswith(".dll"):
            check_dll(wheel, path)
    print(f"{wheel.name}: {', '.join(sorted(binaries))}; {wheel.stat().st_size // 1024} KiB")


def main() -> None:
    wheels = [Path(argument) for argument in sys.argv[1:]]
    if len(wheels) != len(SYSTEM):
        sys.exit(f"check.py: {len(wheels)} wheels, not {len(SYSTEM)}")
    for wheel in wheels:
        with tempfile.TemporaryDirectory() as folder:
            check(wheel, Path(folder))


if __name__ == "__main__":
    main()
