# SPDX-License-Identifier: Apache-2.0
"""python -m tconv_cl: prints the package's version and the OpenCL devices that it finds."""

from __future__ import annotations

import argparse
import sys

from . import DeviceInfo, Error, __version__, devices
from ._device import number_of

EPILOG = """
examples:
  python -m tconv_cl                      the devices, with what the library uses of each
  TCONV_CL_DEVICE=cpu python -m tconv_cl  the same; * moves to the first processor
  python -c "import tconv_cl; help(tconv_cl.conv_transpose)"

Benchmarks and the comparison of every kernel with an f64 computation are commands of the tool, which the wheel
brings: tconv-cl bench, tconv-cl check.
"""


def _lines(info: DeviceInfo, default: int) -> list[str]:
    has = {True: "yes", False: "no"}
    return [
        f"{info.number}{'*' if info.number == default else ' '} {info.name}",
        f"     {info.kind}, {info.platform}, driver {info.driver}, {info.version}",
        f"     {info.compute_units} compute units, {_threads(info)}vectors of {info.vector_width} x f32, "
        f"work-groups of up to {info.work_group_limit}",
        f"     memory: {info.global_memory / 2**30:.1f} GiB, {info.allocation_limit / 2**30:.1f} GiB in one buffer, "
        f"{info.local_memory / 2**10:.0f} KiB local",
        f"     f16 {has[info.half_arithmetic]}, f64 {has[info.double_arithmetic]}, sub-groups {has[info.subgroups]}, "
        f"integer dot products {has[info.integer_dot_product]}, matrix unit {has[info.matrix_unit != 0]}",
    ]


def _threads(info: DeviceInfo) -> str:
    """The library's threads, if they compute there."""
    return f"{info.threads} thread{'s' if info.threads > 1 else ''} of the library, " if info.threads else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tconv_cl",
        description="Lists the OpenCL devices that tconv_cl can compute transposed convolutions on.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tconv_cl {__version__}")
    parser.parse_args()
    try:
        found = devices()
        default = number_of(None)
    except Error as error:
        print(f"tconv_cl: {error}", file=sys.stderr)
        return 1
    for info in found:
        print("\n".join(_lines(info, default)))
    print("* is used where no device is named")
    return 0


if __name__ == "__main__":
    sys.exit(main())
