#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what is in wheels: licences, the marker of types, library and tool of the system that the name promises, and
that both need nothing but what every such system has, and are hardened where the system has ELF.

usage: check.py [--here] WHEEL...

With --here only those of scripts/wheels.sh --here are there, else all."""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Of each platform tag: the library, and how libraries of that system begin; ELF's names the processor at byte 18.
SYSTEM = {
    "manylinux2014_x86_64": ("libtconv_cl.so", b"\x7fELF", b"\x3e\x00"),
    "manylinux2014_aarch64": ("libtconv_cl.so", b"\x7fELF", b"\xb7\x00"),
    "macosx_11_0_arm64": ("libtconv_cl.dylib", b"\xcf\xfa\xed\xfe\x0c", b""),
    "macosx_11_0_x86_64": ("libtconv_cl.dylib", b"\xcf\xfa\xed\xfe\x07", b""),
    "win_amd64": ("libtconv_cl.dll", b"MZ", b""),
}
HERE = ["manylinux2014_x86_64"]
LINUX_NEEDS = {
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
}
WINDOWS_NEEDS = {"KERNEL32.dll", "msvcrt.dll", "ADVAPI32.dll", "SHELL32.dll", "USER32.dll"}
NEWEST_GLIBC = (2, 17)
# Ours, and of what the tool is linked with; linked.txt says what that is.
LICENSES = ["LICENSE", *(f"LICENSE.{library}" for library in ("expat", "jansson", "libcsv", "popt")), "linked.txt"]
# The extension for OpenVINO is compiled by Debian 12's g++, whose C++ library OpenVINO fits. Its package brings libtbb.
EXTENSION = "tconv_cl_openvino"
EXTENSION_NEEDS = LINUX_NEEDS | {"libstdc++.so.6", "libgcc_s.so.1"}
EXTENSION_GLIBC = (2, 36)
HARDENED = Path(__file__).resolve().parents[2] / "host_tests/hardened.sh"


def fail(wheel: Path, message: str) -> None:
    sys.exit(f"{wheel.name}: {message}")


def output_of(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def check_elf(wheel: Path, library: Path, needs: set[str], newest: tuple[int, int]) -> None:
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "--dynamic", "--wide", str(library))))
    if not needed <= needs:
        fail(wheel, f"{library.name} needs {', '.join(sorted(needed - needs))}")
    for version in re.findall(r"GLIBC_([\d.]+)", output_of("readelf", "--version-info", "--wide", str(library))):
        if tuple(map(int, version.split("."))) > (*newest, 999):
            fail(wheel, f"{library.name} needs GLIBC_{version}")
    subprocess.run(["sh", str(HARDENED), "optimised", str(library)], check=True)


def check_dll(wheel: Path, library: Path) -> None:
    listing = output_of("x86_64-w64-mingw32-objdump", "--private-headers", str(library))
    needed = set(re.findall(r"DLL Name: (\S+)", listing))
    if not needed <= WINDOWS_NEEDS:
        fail(wheel, f"{library.name} needs {', '.join(sorted(needed - WINDOWS_NEEDS))}")


def check_extension(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    library = folder / "tconv_cl/libtconv_cl_openvino.so"
    release = folder / "tconv_cl/openvino_release.txt"
    for path in (library, release, next(folder.glob("*.dist-info")) / "licenses/LICENSE"):
        if not path.exists():
            fail(wheel, f"there is no {path.relative_to(folder)}")
    check_elf(
        wheel,
        library,
        EXTENSION_NEEDS | set(re.findall(r"lib(?:openvino|tbb)\.so\.\d+", str(library.read_bytes()))),
        EXTENSION_GLIBC,
    )
    print(f"{wheel.name}: for OpenVINO {release.read_text().strip()}; {wheel.stat().st_size // 1024} KiB")


def check(wheel: Path, folder: Path) -> None:
    platform = next(known for known in SYSTEM if known in wheel.name)
    if "-py3-none-" not in wheel.name:
        fail(wheel, "not for every Python 3")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(folder)
    name, magic, processor = SYSTEM[platform]
    tool = r"\.data/scripts/tconv-cl" + (r"\.exe$" if magic == b"MZ" else "$")
    licenses = [rf"\.dist-info/licenses/{each}$" for each in LICENSES]
    for wanted in (*licenses, tool, r"^tconv_cl/py\.typed$", rf"^tconv_cl/{re.escape(name)}$"):
        if not any(re.search(wanted, each) for each in names):
            fail(wheel, f"there is no {wanted}")
    binaries = [each for each in names if re.search(r"\.(so|dylib|dll|a|exe)(\.|$)|\.data/scripts/", each)]
    for each in binaries:
        path = folder / each
        start = path.read_bytes()[:20]
        if not start.startswith(magic) or processor and start[18:20] != processor:
            fail(wheel, f"{each} is for another system")
        if magic == b"\x7fELF":
            check_elf(wheel, path, LINUX_NEEDS, NEWEST_GLIBC)
        elif magic == b"MZ":
            check_dll(wheel, path)
    print(f"{wheel.name}: {', '.join(sorted(binaries))}; {wheel.stat().st_size // 1024} KiB")


def main() -> None:
    here = sys.argv[1:2] == ["--here"]
    wheels = [Path(argument) for argument in sys.argv[1 + here :]]
    wanted = {*(HERE if here else SYSTEM), EXTENSION}
    found = {next((tag for tag in SYSTEM if tag in wheel.name), EXTENSION) for wheel in wheels}
    if len(wheels) != len(found) or found != wanted:
        sys.exit(
            f"check.py: these are not the wheels that there should be: {', '.join(wheel.name for wheel in wheels)}"
        )
    for wheel in wheels:
        with tempfile.TemporaryDirectory() as folder:
            (check_extension if wheel.name.startswith(EXTENSION) else check)(wheel, Path(folder))


if __name__ == "__main__":
    main()
