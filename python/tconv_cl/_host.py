# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays: upload, run, download on a device of the library's own; large ones in the library's slabs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from ctypes import byref, c_int, c_void_p, cast
from typing import Any

import numpy as np

from . import _library as c
from ._arrays import Arrays, check
from ._device import Device, Filter, Plan, Request, host_device
from ._library import Error, RequestError, call, library, raise_error

READ_WRITE, READ_ONLY, USE_HOST_PTR = 1, 4, 8  # CL_MEM_...
MAP_READ = 1  # CL_MAP_READ
ALIGNMENT = 8  # of the largest element type
HOST_MEMORY, DEVICE_MEMORY, OPENCL = 40, 41, 60  # of status.h
_MEMORY_CODES = {-4: DEVICE_MEMORY, -5: DEVICE_MEMORY, -61: DEVICE_MEMORY, -6: HOST_MEMORY}


def contiguous(arrays: Arrays) -> Arrays:
    """Arrays that lie dense in memory: copies of those that do not. `out` is written, so that it must lie so itself."""
    for name, array in arrays._asdict().items():
        if array is not None and not isinstance(array, np.ndarray):
            raise RequestError(f"{name} is a {type(array).__name__}: a NumPy array is needed, as data is one")
    out = arrays.out
    if out is not None:
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise RequestError("out must be writeable and C-contiguous")
        for name, array in arrays._asdict().items():
            if name != "out" and array is not None and np.may_share_memory(array, out):
                raise RequestError(f"out shares memory with {name}")
    dense = {
        name: np.ascontiguousarray(array)
        for name, array in arrays._asdict().items()
        if array is not None and not array.flags.c_contiguous
    }
    return arrays._replace(**dense)


def run(
    arrays: Arrays,
    request: Request,
    devices: list[int],
    memory_limit: int,
    packed: Callable[[Device, Plan], Filter] | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> np.ndarray:
    """Computes dense arrays; `packed` gives the filter where it is not to be packed at each call."""
    device = host_device(devices[0])
    plan = device.plan(request)
    dtype = check(plan, arrays)
    if arrays.out is None:
        arrays = arrays._replace(out=np.empty(plan.output.shape, dtype))
    if plan.empty:
        return arrays.out
    if plan.handle is None:
        _run_in_slabs(plan, arrays, [device, *map(host_device, devices[1:])], memory_limit, progress)
    else:
        _run_whole(device, plan, arrays, packed)
        if progress is not None:
            progress(1, 1)
    return arrays.out


def pack(device: Device, plan: Plan, weights: np.ndarray) -> Filter:
    """Uploads and packs dense weights."""
    queue = library.tconv_host_queue(device.host)
    with ExitStack() as stack:
        memory = _buffer(stack, device, "filter", weights.nbytes)
        _write(queue, "filter", memory, weights, blocking=True)
        return Filter(plan, queue, memory, 0, [])


def _run_in_slabs(
    plan: Plan,
    arrays: Arrays,
    devices: list[Device],
    memory_limit: int,
    progress: Callable[[int, int], Any] | None,
) -> None:
    hosts = (c_void_p * len(devices))(*(device.host for device in devices))
    pointers = {name: None if array is None else array.ctypes.data for name, array in arrays._asdict().items()}
    pointers["output"] = pointers.pop("out")
    raised: list[BaseException] = []

    def done(user: int, slab: int, count: int, total: int) -> bool:
        try:
            progress(count, total)
        except BaseException as error:
            raised.append(error)
        return not raised

    callback = c.Done(done) if progress is not None else c.Done()
    options = c.SlabsOptions(memory_limit=memory_limit, done=cast(callback, c_void_p))
    try:
        call(
            "tconv_slabs_run",
            hosts,
            len(devices),
            byref(plan.problem),
            byref(plan.options),
            byref(options),
            byref(c.Arrays(**pointers)),
        )
    except Error:
        if not raised:
            raise
    if raised:
        raise raised[0]


def _run_whole(device: Device, plan: Plan, arrays: Arrays, packed: Callable[[Device, Plan], Filter] | None) -> None:
    queue = library.tconv_host_queue(device.host)  # in order: every command waits for the one before
    with ExitStack() as stack:
        try:
            _enqueue(stack, device, queue, plan, arrays, packed)
        except BaseException:
            library.clFinish(queue)  # no command outlives the arrays that it reads
            raise


def _enqueue(
    stack: ExitStack,
    device: Device,
    queue: int,
    plan: Plan,
    arrays: Arrays,
    packed: Callable[[Device, Plan], Filter] | None,
) -> None:
    """Ends when the output is there."""
    args = c.Args()
    inputs = {name: getattr(arrays, name) for name in ("data", "bias", "scale", "slope", "residual")}
    inputs = {name: array for name, array in inputs.items() if array is not None}
    for name, array in inputs.items():
        # No two buffers of a command may lie in the same memory, not even to be read.
        alone = not any(np.may_share_memory(array, other) for key, other in inputs.items() if key != name)
        setattr(args, name, c.Buffer(_upload(stack, device, queue, name, array, alone), 0))
    shared = _shares(device, arrays.out)
    output = _buffer(stack, device, "the output", arrays.out.nbytes, arrays.out if shared else None)
    if plan.options.epilogue.beta != 0 and not shared:
        _write(queue, "out", output, arrays.out)
    args.output = c.Buffer(output, 0)
    if plan.workspace_bytes != 0:
        args.workspace = c.Buffer(_buffer(stack, device, "the workspace", plan.workspace_bytes), 0)
    if packed is not None:
        weights = packed(device, plan)
    else:
        weights = Filter(plan, queue, _upload(stack, device, queue, "filter", arrays.filter), 0, [])
    args.filter = weights.handle
    call("tconv_plan_enqueue", plan.handle, queue, byref(args), 0, None, None)
    if shared:
        _map(queue, output, arrays.out)
        return
    code = library.clEnqueueReadBuffer(queue, output, True, 0, arrays.out.nbytes, arrays.out.ctypes.data, 0, None, None)
    _expect(code, "clEnqueueReadBuffer", "downloading the output", arrays.out.nbytes)


def _shares(device: Device, array: np.ndarray) -> bool:
    """Whether kernels may work in the array's own memory, which OpenCL wants aligned to what they access: elements."""
    return device.shares_memory and array.ctypes.data % ALIGNMENT == 0


def _upload(stack: ExitStack, device: Device, queue: int, what: str, array: np.ndarray, alone: bool = True) -> int:
    """A buffer with the array's elements; the array's own memory where the device shares it and no other buffer does."""
    if alone and _shares(device, array):
        return _buffer(stack, device, what, array.nbytes, array, READ_ONLY)
    memory = _buffer(stack, device, what, array.nbytes)
    _write(queue, what, memory, array)
    return memory


def _map(queue: int, memory: int, array: np.ndarray) -> None:
    """Waits for what is written into an array's own memory, and makes it visible there."""
    code = c_int()
    pointer = library.clEnqueueMapBuffer(queue, memory, True, MAP_READ, 0, array.nbytes, 0, None, None, byref(code))
    _expect(code.value, "clEnqueueMapBuffer", "reading the output", array.nbytes)
    unmapped = c_void_p()
    code = library.clEnqueueUnmapMemObject(queue, memory, pointer, 0, None, byref(unmapped))
    _expect(code, "clEnqueueUnmapMemObject", "reading the output", array.nbytes)
    library.clWaitForEvents(1, byref(unmapped))  # the buffer goes now, and the array may
    library.clReleaseEvent(unmapped)


def _buffer(
    stack: ExitStack, device: Device, what: str, size: int, array: np.ndarray | None = None, access: int = READ_WRITE
) -> int:
    """A buffer that is given back when `stack` closes; with `array`, in its memory."""
    code = c_int()
    context = library.tconv_host_context(device.host)
    flags, pointer = (access, None) if array is None else (access | USE_HOST_PTR, array.ctypes.data)
    memory = library.clCreateBuffer(context, flags, size, pointer, byref(code))
    _expect(code.value, "clCreateBuffer", what, size)
    stack.callback(library.clReleaseMemObject, memory)
    return memory


def _write(queue: int, what: str, memory: int, array: np.ndarray, *, blocking: bool = False) -> None:
    code = library.clEnqueueWriteBuffer(queue, memory, blocking, 0, array.nbytes, array.ctypes.data, 0, None, None)
    _expect(code, "clEnqueueWriteBuffer", f"uploading {what}", array.nbytes)


def _expect(code: int, function: str, what: str, size: int) -> None:
    if code != 0:
        sentence = f"{what} needs {size} bytes on the device: {function} failed with {code}"
        raise_error(_MEMORY_CODES.get(code, OPENCL), code, sentence)
