# SPDX-License-Identifier: Apache-2.0
"""The C library through ctypes: its structures and functions as include/tconv_cl declares them, and its errors.

tests/test_structures.py compares every structure with what a C compiler makes of the headers.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from ctypes import POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double, c_int, c_int32, c_int64
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ._callbacks import raise_kept

NO_DEVICE = 42  # of tconv_status
MAX_AXES = 6
MAX_RANK = MAX_AXES + 3
# The enumerations whose values have names. A member of tconv_problem that is called as its enumeration is one of them.
NAMED = ("type", "auto_pad", "rules", "math", "search", "data_format", "filter_format", "activation")


class Error(RuntimeError):
    """The work failed: no device, no memory, an OpenCL call. A wrong request is a `RequestError` instead.

    `status` is a `tconv_status` of status.h, `opencl_code` the code of the OpenCL call that failed, else 0.
    """

    __module__ = "tconv_cl"

    def __init__(self, message: str, status: int, opencl_code: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.opencl_code = opencl_code

    def __reduce__(self) -> tuple[Any, ...]:
        return Error, (str(self), self.status, self.opencl_code)


class RequestError(ValueError):
    """The request is wrong, or this version or device cannot do it: trying again does not help.

    `status` is a `tconv_status` of status.h; TCONV_ERROR_ARGUMENT for what the package finds before the library does.
    """

    __module__ = "tconv_cl"

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class RequestTypeError(RequestError, TypeError):
    """An argument is of a type that the package cannot take: a `TypeError` as well."""

    __module__ = "tconv_cl"


def shown(value: Any) -> str:
    """A value for a sentence: what is long, such as an array, by its type."""
    text = repr(value)
    long = len(text) > 100 or "\n" in text or getattr(value, "shape", ()) != ()
    return f"a {type(value).__name__}" if long else text


def text(argument: str, value: Any) -> bytes:
    """A string for C, which ends at a zero."""
    if not isinstance(value, str):
        raise RequestTypeError(f"{argument} is {shown(value)}: it must be a name")
    if "\0" in value:
        raise RequestError(f"{argument} is {value!r}: it must not have a zero character")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise RequestError(f"{argument} is {value!r}: it must be text in Unicode") from error


class CError(Structure):
    _fields_ = [("status", c_int), ("opencl_code", c_int), ("message", c_char * 1000)]


class Shape(Structure):
    _fields_ = [("rank", c_int), ("dim", c_int64 * MAX_RANK)]


class List(Structure):
    _fields_ = [("count", c_int), ("value", c_int64 * MAX_AXES)]


class Steps(Structure):
    _fields_ = [("count", c_int), ("value", c_int64 * MAX_RANK)]


class Sized(Structure):
    """A structure that begins with its own size."""

    def __init__(self, *args: Any, **members: Any) -> None:
        super().__init__(*args, **members)
        self.struct_size = ctypes.sizeof(self)


class Problem(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("operation", c_int),
        ("rules", c_int),
        ("data_type", c_int),
        ("filter_type", c_int),
        ("output_type", c_int),
        ("auto_pad", c_int),
        ("data", Shape),
        ("filter", Shape),
        ("strides", List),
        ("dilations", List),
        ("pads_begin", List),
        ("pads_end", List),
        ("output_padding", List),
        ("output_shape", List),
        ("groups", c_int64),
        ("data_format", c_int),
        ("filter_format", c_int),
        ("data_steps", Steps),
        ("output_steps", Steps),
        ("residual_steps", Steps),
        ("filter_steps", Steps),
    ]


class Geometry(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("axes", c_int),
        ("batch", c_int64),
        ("groups", c_int64),
        ("group_in_channels", c_int64),
        ("group_out_channels", c_int64),
        ("input", c_int64 * MAX_AXES),
        ("kernel", c_int64 * MAX_AXES),
        ("stride", c_int64 * MAX_AXES),
        ("dilation", c_int64 * MAX_AXES),
        ("pad_begin", c_int64 * MAX_AXES),
        ("pad_end", c_int64 * MAX_AXES),
        ("output", c_int64 * MAX_AXES),
        ("output_shape", Shape),
        ("data_format", c_int),
        ("output_type", c_int),
        ("macs", c_uint64),
        ("data_bytes", c_uint64),
        ("filter_bytes", c_uint64),
        ("output_bytes", c_uint64),
        ("residual_bytes", c_uint64),
        ("epilogue_channels", c_int64),
    ]


class Epilogue(Structure):
    _fields_ = [
        ("bias", c_bool),
        ("scale", c_bool),
        ("residual", c_bool),
        ("requantize", c_bool),
        ("activation", c_int),
        ("alpha", c_double),
        ("beta", c_double),
        ("a", c_double),
        ("b", c_double),
        ("data_zero_point", c_int32),
        ("filter_zero_point", c_int32),
        ("output_zero_point", c_int32),
        ("reserved", c_uint32 * 13),
    ]


class PlanOptions(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("algorithm", c_char_p),
        ("epilogue", Epilogue),
        ("workspace_limit", c_uint64),
        ("math", c_int),
        ("output_begin", c_int64),
        ("output_end", c_int64),
        ("search", c_int),
        ("search_ms", c_uint32),
        ("search_progress", c_void_p),
        ("search_context", c_void_p),
    ]


class Tensor(Structure):
    _fields_ = [("memory", c_void_p), ("offset", c_size_t), ("pointer", c_void_p), ("host", c_void_p)]


class Tensors(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("data", Tensor),
        ("filter", Tensor),
        ("packed", c_void_p),
        ("output", Tensor),
        ("bias", Tensor),
        ("scale", Tensor),
        ("slope", Tensor),
        ("residual", Tensor),
        ("workspace", Tensor),
        ("filter_version", c_uint64),
        ("slope2", Tensor),
    ]


_PLACE = f"{3 * ctypes.sizeof(c_void_p)}x"  # of a tconv_tensor whose host array follows
_HOST_TENSORS = struct.Struct(f"@N{_PLACE}P{_PLACE}PP{_PLACE}P{_PLACE}P{_PLACE}P{_PLACE}P{_PLACE}P{_PLACE}PQ{_PLACE}P")
assert _HOST_TENSORS.size == ctypes.sizeof(Tensors)


def host_tensors(
    data: int,
    filter: int,
    output: int,
    *,
    bias: int = 0,
    scale: int = 0,
    slope: int = 0,
    slope2: int = 0,
    residual: int = 0,
    filter_version: int = 0,
) -> bytes:
    """A tconv_tensors of arrays of the host, by their addresses. Structures of ctypes take too long for every call."""
    return _HOST_TENSORS.pack(
        _HOST_TENSORS.size, data, filter, 0, output, bias, scale, slope, residual, 0, filter_version, slope2
    )


# tconv_progress: user, slab, number of finished slabs, of all slabs; false stops.
Progress = ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p, c_int64, c_int64)


class Run(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("queue", c_void_p),
        ("wait_count", c_uint32),
        ("wait", c_void_p),
        ("done", c_void_p),
        ("memory_limit", c_uint64),
        ("progress", c_void_p),
        ("user", c_void_p),
        ("on_threads", c_void_p),
        ("pool", c_void_p),
        ("threads", c_uint64),
    ]


class LayerCounts(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("runs", c_uint64),
        ("plans_made", c_uint64),
        ("plans_kept", c_uint64),
        ("filters_packed", c_uint64),
        ("in_slabs", c_uint64),
        ("weight_bytes", c_uint64),
    ]


# tconv_filter_use.
FILTER_VARIES, FILTER_WATCHED = 0, 2


class StreamOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("columns", c_int64)]


class StreamInfo(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("pushed", c_int64),
        ("returned", c_int64),
        ("stride", c_int64),
        ("lag", c_int64),
        ("history", c_int64),
        ("bytes", c_uint64),
    ]


STREAM_FLUSH = -1  # TCONV_STREAM_FLUSH


# tconv_search_progress: context, algorithm, index, count, best_ms; false stops.
SearchProgress = ctypes.CFUNCTYPE(c_bool, c_void_p, c_char_p, c_int, c_int, c_double)


class TraceEvent(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int),
        ("piece", c_int32),
        ("pieces", c_int32),
        ("begin_ns", c_uint64),
        ("end_ns", c_uint64),
        ("device", c_void_p),
        ("plan", c_void_p),
        ("problem", c_char_p),
        ("algorithm", c_char_p),
        ("tile", c_char_p),
        ("name", c_char_p),
        ("source", c_char_p),
        ("options", c_char_p),
        ("message", c_char_p),
        ("queue", c_void_p),
        ("event", c_void_p),
        ("offset", c_size_t * 3),
        ("global", c_size_t * 3),
        ("local", c_size_t * 3),
        ("command_buffer", c_void_p),
        ("given_problem", c_void_p),
        ("given_options", c_void_p),
    ]


# tconv_trace_callback: context, event.
Trace = ctypes.CFUNCTYPE(None, c_void_p, POINTER(TraceEvent))


class DeviceInfo(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char * 128),
        ("vendor", c_char * 128),
        ("driver", c_char * 128),
        ("version", c_char * 128),
        ("platform", c_char * 128),
        ("kind", c_int),
        ("compute_units", c_uint32),
        ("vector_width", c_uint32),
        ("work_group_limit", c_uint64),
        ("work_item_limit", c_uint64 * 3),
        ("local_memory", c_uint64),
        ("global_memory", c_uint64),
        ("allocation_limit", c_uint64),
        ("dedicated_local", c_bool),
        ("fma", c_bool),
        ("half_arithmetic", c_bool),
        ("double_arithmetic", c_bool),
        ("subgroups", c_bool),
        ("integer_dot_product", c_bool),
        ("subgroup_least", c_uint32),
        ("matrix_unit", c_int),
        ("clock_mhz", c_uint32),
        ("cache_bytes", c_uint64),
        ("constant_kib", c_uint32),
        ("architecture", c_int),
        ("image_pixels", c_uint64),
    ]


# The structures by their names in C.
STRUCTURES: dict[str, type[Structure]] = {
    "tconv_error": CError,
    "tconv_shape": Shape,
    "tconv_list": List,
    "tconv_steps": Steps,
    "tconv_problem": Problem,
    "tconv_geometry": Geometry,
    "tconv_epilogue": Epilogue,
    "tconv_plan_options": PlanOptions,
    "tconv_tensor": Tensor,
    "tconv_tensors": Tensors,
    "tconv_run": Run,
    "tconv_layer_counts": LayerCounts,
    "tconv_stream_options": StreamOptions,
    "tconv_stream_info": StreamInfo,
    "tconv_trace_event": TraceEvent,
    "tconv_device_info": DeviceInfo,
}

_error = POINTER(CError)
_handle = POINTER(c_void_p)

# Functions that return a tconv_status and take a tconv_error as their last argument, which `call` adds.
_CALLS: dict[str, tuple[Any, ...]] = {
    "tconv_resolve": (POINTER(Problem), POINTER(Geometry)),
    "tconv_window_input": (POINTER(Geometry), c_int64, c_int64, POINTER(c_int64), POINTER(c_int64)),
    "tconv_device_count": (POINTER(c_int),),
    "tconv_device_at": (c_int, c_void_p, _handle),
    "tconv_device_find": (c_char_p, POINTER(c_int)),
    "tconv_device_describe": (c_void_p, POINTER(DeviceInfo)),
    "tconv_device_create": (c_void_p, c_void_p, _handle),
    "tconv_device_set_trace": (c_void_p, c_uint32, Trace, c_void_p),
    "tconv_device_prepare": (c_void_p, POINTER(Problem), POINTER(Shape), POINTER(PlanOptions), POINTER(c_int)),
    "tconv_device_open": (c_int, _handle),
    "tconv_layer_create": (_handle, c_int, c_int, _handle),
    "tconv_layer_plan": (c_void_p, POINTER(Problem), POINTER(PlanOptions), _handle),
    # The tensors are a Tensors, by reference, or the bytes of host_tensors.
    "tconv_layer_run": (c_void_p, POINTER(Problem), POINTER(PlanOptions), c_void_p, POINTER(Run)),
    "tconv_layer_count": (c_void_p, POINTER(LayerCounts)),
    "tconv_stream_create": (c_void_p, POINTER(Problem), POINTER(PlanOptions), POINTER(StreamOptions), _handle),
    "tconv_stream_push": (c_void_p, c_int64, c_void_p, POINTER(Run)),
    "tconv_stream_flush": (c_void_p, c_void_p, POINTER(Run)),
    "tconv_stream_reset": (c_void_p, c_int64, POINTER(Tensor), POINTER(Run)),
    "tconv_stream_describe": (c_void_p, POINTER(StreamInfo)),
}

# All other functions: result and arguments.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "tconv_status_is_request": (c_bool, c_int),
    "tconv_process_forked": (c_bool,),
    "tconv_threads_enable": (c_bool,),
    "tconv_device_release": (None, c_void_p),
    "tconv_device_least_macs": (c_uint64, c_void_p),
    "tconv_device_threads": (c_int, c_void_p),
    "tconv_device_properties": (POINTER(DeviceInfo), c_void_p),
    "tconv_plan_release": (None, c_void_p),
    "tconv_plan_explain": (c_int, c_void_p, c_char_p, c_size_t),
    "tconv_layer_release": (None, c_void_p),
    "tconv_stream_release": (None, c_void_p),
    "tconv_stream_algorithm": (c_char_p, c_void_p),
    "tconv_stream_outputs": (c_int64, c_void_p, c_int64),
    "tconv_hash": (None, c_void_p, c_size_t, POINTER(c_uint64 * 2)),
    "tconv_on_openmp": (None, c_void_p, c_void_p, c_void_p),
    "tconv_bias_type": (c_int, POINTER(Epilogue), c_int),
    "tconv_scale_type": (c_int, c_int),
    "tconv_activation_parameter_count": (c_int, c_int),
    "tconv_activation_slope_count": (c_int, c_int),
    **{f"tconv_{kind}_name": (c_char_p, c_int) for kind in NAMED},
    **{f"tconv_{kind}_from_name": (c_bool, c_char_p, POINTER(c_int)) for kind in NAMED},
}

# OpenCL's own functions: through the library's link to the loader or, if the library opens the loader at run time, from
# the loader of this name, so that both use the same one.
_OPENCL: dict[str, tuple[Any, ...]] = {
    "clReleaseEvent": (c_int, c_void_p),
}
_SYSTEM = {
    "win32": ("libtconv_cl.dll", "OpenCL.dll"),
    "darwin": ("libtconv_cl.dylib", "/System/Library/Frameworks/OpenCL.framework/OpenCL"),
}
_LIBRARY_NAME, _LOADER_NAME = _SYSTEM.get(sys.platform, ("libtconv_cl.so", "libOpenCL.so.1"))


def _missing(handle: int) -> int:
    """Stands for OpenCL's functions if there is no loader: then there is no object to call them with."""
    raise Error(f"there is no OpenCL loader, {_LOADER_NAME}", NO_DEVICE)


def _load_opencl(library: ctypes.CDLL) -> dict[str, Any]:
    if hasattr(library, next(iter(_OPENCL))):
        loader = library
    else:
        try:
            loader = ctypes.CDLL(_LOADER_NAME)
        except OSError:
            return dict.fromkeys(_OPENCL, _missing)
    functions = {}
    for name, (result, *its) in _OPENCL.items():
        functions[name] = getattr(loader, name)
        functions[name].restype, functions[name].argtypes = result, its
    return functions


def _open() -> ctypes.CDLL:
    path = Path(__file__).with_name(_LIBRARY_NAME)
    try:
        # CDLL releases the interpreter lock during every call: threads compile, upload and wait side by side.
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(
            f"tconv_cl cannot load its library ({error}): install the package again",
            name="tconv_cl",
            path=str(path),
        ) from error


def _load(library: ctypes.CDLL) -> SimpleNamespace:
    """Loads the functions above and no other: ctypes would pass pointers to an undeclared function as 32-bit
    numbers."""
    for name, arguments in _CALLS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = c_int, [*arguments, _error]
    for name, (result, *its) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, its
    ours = {name: getattr(library, name) for name in (*_CALLS, *_FUNCTIONS)}
    return SimpleNamespace(**ours, **_load_opencl(library))


_opened = _open()
library = _load(_opened)


def _enable_threads() -> None:
    """Lets the library's threads compute on a processor, as tconv_threads_enable says, by a variable that PoCL reads.
    `os.environ` is a copy of the environment: it gets the variable, too, for programs that this one starts. A program
    that uses pyopencl chooses among PoCL's devices itself, and PoCL would list the one without threads first."""
    if "pyopencl" not in sys.modules and library.tconv_threads_enable():
        os.environ["POCL_DEVICES"] = "pthread basic"


_enable_threads()


def by_addresses(name: str) -> Any:
    """One of _CALLS that takes addresses, as integers, bytes or references: ctypes checks these in half the time."""
    function = _opened[name]  # by an index ctypes makes another object, which `library` does not have
    function.restype, function.argtypes = c_int, [c_void_p] * len(getattr(library, name).argtypes)
    return function


def raise_error(status: int, opencl_code: int, message: str) -> None:
    """Raises the exception for `status`, with the library's sentence."""
    if library.tconv_status_is_request(status):
        raise RequestError(message, status)
    raise Error(message, status, opencl_code)


def call_checked(function: Any, *arguments: Any) -> None:
    """Calls a function whose last argument is an error, which becomes an exception with the library's sentence. An
    exception of a callback takes precedence."""
    error = CError()
    status = function(*arguments, byref(error))
    raise_kept()
    if status != 0:
        raise_error(error.status, error.opencl_code, error.message.decode(errors="replace"))


def call(name: str, *arguments: Any) -> None:
    """Calls one of _CALLS; an error becomes an exception."""
    call_checked(getattr(library, name), *arguments)


def create(name: str, *arguments: Any) -> int:
    """Calls one of _CALLS whose last argument receives a new object, which is returned."""
    handle = c_void_p()
    call(name, *arguments, byref(handle))
    assert handle.value is not None
    return handle.value
