# SPDX-License-Identifier: Apache-2.0
"""Computes pyopencl arrays on the queue of `data`, in its context, without copies and without waiting."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import addressof, byref
from typing import Any

from . import _library as c
from ._arrays import Arrays, check, element_steps
from ._device import Layers, Owner, Request, context_device, owned, wait_list
from ._library import RequestError, call


def is_array(array: Any) -> bool:
    """True for a pyopencl array. Does not import pyopencl if nobody else did."""
    module = sys.modules.get("pyopencl.array")
    if module is None:
        return False
    kind: type = module.Array
    return isinstance(array, kind)


def check_arrays(arrays: Arrays) -> None:
    """Checks everything that does not need a plan."""
    for name, array in arrays._asdict().items():
        if array is None:
            continue
        if not is_array(array):
            raise RequestError(f"{name} is a {type(array).__name__}: it must be a pyopencl array, as data is one")
        if name in ("data", "filter", "residual", "out"):
            if element_steps(array, least=0 if name == "residual" else 1) is None:
                raise RequestError(
                    f"{name} has strides of {array.strides} bytes: pyopencl arrays are not copied, and these strides "
                    "must be positive"
                )
        elif not array.flags.c_contiguous:
            raise RequestError(f"{name} is not C-contiguous, and pyopencl arrays are not copied: make it so first")
    if arrays.data.queue is None:
        raise RequestError("data has no queue: give it one with data.with_queue(queue)")
    context = arrays.data.queue.context.int_ptr
    for name, array in arrays._asdict().items():
        if array is not None and array.context is not None and array.context.int_ptr != context:
            raise RequestError(f"{name} belongs to another context than the queue of data")
        if name != "out" and array is not None and arrays.out is not None and _overlap(name, array, arrays.out):
            raise RequestError(f"out shares memory with {name}: give it memory of its own")


FILTER_VERSION = 1  # of the filter of a layer or stream, which stays as it is


def run(arrays: Arrays, request: Request, layers: Layers | None = None) -> Any:
    """Enqueues the call; the output carries its event. `layers` have the filter, which is not packed at each call."""
    import pyopencl.array

    data, queue = arrays.data, arrays.data.queue
    device = context_device(queue.context.int_ptr, queue.device.int_ptr)
    resolved = device.resolved(request)
    dtype = check(resolved, arrays)
    if arrays.out is None:
        out = pyopencl.array.empty(queue, resolved.output.shape, dtype, allocator=data.allocator)
        arrays = arrays._replace(out=out)
    if resolved.empty:
        return arrays.out
    layer = device.layer if layers is None else layers.on([device])
    asked = (layer.handle, byref(resolved.problem), byref(resolved.options))
    version = 0 if layers is None else FILTER_VERSION
    with resolved.listening():
        event = enqueue(arrays, queue, version, lambda *how: call("tconv_layer_run", *asked, *how))
    assert event is not None
    return arrays.out


def enqueue(arrays: Arrays, queue: Any, filter_version: int, start: Callable[[Any, Any], None]) -> Any:
    """Calls `start` with the tconv_tensors of checked arrays, and a tconv_run that waits for their events. Returns the
    event, which `out` then carries; None: nothing had to be computed."""
    import pyopencl

    tensors = c.Tensors(filter_version=filter_version)
    for name, array in arrays._asdict().items():
        if array is not None:
            setattr(tensors, "output" if name == "out" else name, place(array))
    count, waits = wait_list([event.int_ptr for array in arrays if array is not None for event in array.events])
    owner = Owner()  # until pyopencl has the event
    done = owned(owner, "clReleaseEvent")
    start(byref(tensors), byref(c.Run(queue=queue.int_ptr, wait_count=count, wait=waits, done=addressof(done))))
    if done.value is None:
        return None
    event = pyopencl.Event.from_int_ptr(done.value, retain=True)
    arrays.out.add_event(event)
    return event


def _overlap(name: str, array: Any, out: Any) -> bool:
    """Whether an array and `out` overlap. For views the library tells that itself, but it never sees the filter and
    `out` in one call."""
    if name != "filter" and not (array.flags.c_contiguous and out.flags.c_contiguous):
        return False
    one, other = place(array), place(out)
    if (one.memory, one.pointer) != (other.memory, other.pointer):
        return False
    return bool(array.offset < out.offset + _reach(out) and out.offset < array.offset + _reach(array))


def _reach(array: Any) -> int:
    """The bytes from the first element to the end of the last one."""
    if array.size == 0:
        return 0
    return int(sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides)) + array.dtype.itemsize)


def place(array: Any) -> c.Tensor:
    if array.base_data is None:  # an array without elements has no memory
        return c.Tensor()
    shared = getattr(array.base_data, "svm_ptr", None)  # pyopencl.tools.SVMAllocator
    if shared is not None:
        return c.Tensor(None, array.offset, shared)
    return c.Tensor(array.base_data.int_ptr, array.offset)
