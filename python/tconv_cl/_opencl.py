# SPDX-License-Identifier: Apache-2.0
"""Computes pyopencl arrays on the queue of `data`, in its context, without copies and without waiting."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import _library as c
from ._arrays import Arrays, check, element_steps
from ._device import Device, Execution, Filter, Plan, Request, context_device
from ._library import RequestError


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
        if name in ("data", "residual", "out"):
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


def run(arrays: Arrays, request: Request, packed: Callable[[Device, Plan], Filter] | None = None) -> Any:
    """Enqueues the call; the output carries its event. `packed` gives a filter that is not packed at each call."""
    import pyopencl
    import pyopencl.array

    data, queue = arrays.data, arrays.data.queue
    device = context_device(queue.context.int_ptr, queue.device.int_ptr)
    plan = device.plan(request)
    dtype = check(plan, arrays)
    if arrays.out is None:
        out = pyopencl.array.empty(queue, plan.output.shape, dtype, allocator=data.allocator)
        arrays = arrays._replace(out=out)
    if plan.empty:
        return arrays.out
    args = c.Tensors()
    if plan.workspace_bytes != 0:  # OpenCL keeps the buffer until its commands are done
        workspace = pyopencl.Buffer(queue.context, pyopencl.mem_flags.READ_WRITE, plan.workspace_bytes)
        args.workspace = c.Tensor(workspace.int_ptr, 0)
    weights = (packed or (lambda device, plan: pack(plan, queue, arrays.filter)))(device, plan)
    args.packed = weights.handle
    for name in ("data", "bias", "scale", "slope", "residual"):
        array = getattr(arrays, name)
        if array is not None:
            setattr(args, name, _place(array))
    args.output = _place(arrays.out)
    events = [event for name, array in arrays._asdict().items() if array is not None for event in array.events]
    waits = [weights.event, *(event.int_ptr for event in events)]
    execution = Execution(plan, queue.int_ptr, args, waits)
    arrays.out.add_event(pyopencl.Event.from_int_ptr(execution.event, retain=True))
    return arrays.out


def pack(plan: Plan, queue: Any, weights: Any) -> Filter:
    """Enqueues the packing of a pyopencl array of weights."""
    events = list(weights.events)
    return Filter(plan, queue.int_ptr, _place(weights), [event.int_ptr for event in events])


def _overlap(name: str, array: Any, out: Any) -> bool:
    """Whether an array and `out` overlap. For views the library tells that itself, but it never sees the filter and
    `out` in one call."""
    if name != "filter" and not (array.flags.c_contiguous and out.flags.c_contiguous):
        return False
    one, other = _place(array), _place(out)
    if (one.memory, one.pointer) != (other.memory, other.pointer):
        return False
    return bool(array.offset < out.offset + _reach(out) and out.offset < array.offset + _reach(array))


def _reach(array: Any) -> int:
    """The bytes from the first element to the end of the last one."""
    if array.size == 0:
        return 0
    return int(sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides)) + array.dtype.itemsize)


def _place(array: Any) -> c.Tensor:
    if array.base_data is None:  # an array without elements has no memory
        return c.Tensor()
    shared = getattr(array.base_data, "svm_ptr", None)  # pyopencl.tools.SVMAllocator
    if shared is not None:
        return c.Tensor(None, array.offset, shared)
    return c.Tensor(array.base_data.int_ptr, array.offset)
