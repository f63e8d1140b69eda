# SPDX-License-Identifier: Apache-2.0
"""Whether OpenCL finds a GPU, which is asked before anything is built. As a program it ends with 1, and says so, if
there is none. Without an OpenCL loader nothing is known yet."""

import ctypes
import sys

NONE = (
    "no GPU: %s. Install the driver of the GPU, with OpenCL; --device N measures another device, as "
    "`tconv-cl devices` numbers them"
)
GPU = 4  # CL_DEVICE_TYPE_GPU


def find_gpu():
    """True, False, or None if there is no loader."""
    try:
        opencl = ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        return None
    count = ctypes.c_uint(0)
    if opencl.clGetPlatformIDs(0, None, ctypes.byref(count)) != 0:
        return False
    platforms = (ctypes.c_void_p * count.value)()
    opencl.clGetPlatformIDs(count, platforms, None)
    for platform in platforms:
        found = ctypes.c_uint(0)
        kind = ctypes.c_uint64(GPU)
        code = opencl.clGetDeviceIDs(ctypes.c_void_p(platform), kind, 0, None, ctypes.byref(found))
        if code == 0 and found.value > 0:
            return True
    return False


if __name__ == "__main__":
    sys.exit("gpu_report.sh: " + NONE % "OpenCL finds none" if find_gpu() is False else 0)
