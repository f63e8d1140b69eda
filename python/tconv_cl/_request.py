# SPDX-License-Identifier: Apache-2.0
"""Turns the arguments of a call into structures of the C library: attributes once, shapes and types at each call."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from ctypes import byref, c_int, c_int64
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from . import _library as c
from ._library import RequestError, RequestTypeError, call, library, shown, text
from ._names import instead_of_list, instead_of_value, refuse
from ._types import element_type, for_c, names_of

CONV_BACKPROP, GROUP_CONV_BACKPROP, ONEAPI_CONV_BACKPROP, UPSAMPLE_CONV = 1, 2, 3, 4
SHUFFLES = {"CRD": 5, "DCR": 6}  # a convolution and pixel shuffle, by the order of the channels
NXC = XIO = 2  # tconv_data_format, tconv_filter_format


class Tensor(NamedTuple):
    """The extents, the tconv_type and the element steps of an array. No steps: it is dense."""

    shape: tuple[int, ...]
    type: int
    steps: tuple[int, ...] = ()


class Window(NamedTuple):
    """Output rows `begin` to `end` of the outermost spatial axis, of data that have `rows` rows in all."""

    rows: int
    begin: int
    end: int


# The members of tconv_problem that a call asks for: lists, and enumerators by their names.
LISTS = tuple(name for name, kind, *_ in c.Problem._fields_ if kind is c.List)
NAMES = tuple(name for name, *_ in c.Problem._fields_ if name in c.NAMED)


class Attributes(NamedTuple):
    """The arguments of a call besides its arrays. Equal attributes compare and hash as equal."""

    lists: tuple[int | tuple[int, ...], ...]  # of LISTS
    names: tuple[int, ...]  # of NAMES
    groups: int | None
    output_type: int
    algorithm: bytes
    math: int
    search: int
    workspace_limit: int
    alpha: float
    beta: float
    activation: int
    a: float
    b: float
    requantize: bool
    data_zero_point: int
    filter_zero_point: int
    output_zero_point: int
    operation: int | None = None  # None: one of the transposed convolutions, by shapes and formats

    def __getattr__(self, name: str) -> Any:
        """A member of LISTS or NAMES."""
        if name in LISTS:
            return self.lists[LISTS.index(name)]
        if name in NAMES:
            return self.names[NAMES.index(name)]
        raise AttributeError(name)

    @property
    def is_oneapi(self) -> bool:
        """Whether a transposed convolution is the oneAPI form: by groups or a format, not by the filter's rank."""
        return self.groups is not None or (self.data_format, self.filter_format) != (1, 1)

    def problem(self, data: Tensor, filter: Tensor) -> c.Problem:
        """The tconv_problem for arrays of these shapes and types."""
        axes = len(data.shape) - 2
        problem = c.Problem(
            data_type=data.type,
            filter_type=filter.type,
            data=_shape("data", data.shape),
            filter=_shape("filter", filter.shape),
            output_type=self.output_type,
            **{name: _list(name, value, axes) for name, value in zip(LISTS, self.lists)},
            **dict(zip(NAMES, self.names)),
        )
        if self.operation is not None or self.is_oneapi:
            problem.operation = ONEAPI_CONV_BACKPROP if self.operation is None else self.operation
            problem.groups = 0 if self.groups is None else self.groups
            return problem
        problem.operation = GROUP_CONV_BACKPROP if len(filter.shape) == len(data.shape) + 1 else CONV_BACKPROP
        problem.data_format = problem.filter_format = 0  # theirs are fixed
        return problem

    def options(self, *, bias: bool, scale: bool, residual: bool) -> c.PlanOptions:
        """The tconv_plan_options for a call with these arrays."""
        epilogue = c.Epilogue(bias=bias, scale=scale, residual=residual)
        options = c.PlanOptions()
        for structure, names in ((epilogue, _EPILOGUE), (options, _OPTIONS)):
            for name in names:
                setattr(structure, name, getattr(self, name))
        options.epilogue = epilogue
        return options


def shuffle_of(argument: str, order: Any) -> int:
    """The operator of a convolution and pixel shuffle whose channels have this order, in any letter case."""
    number = SHUFFLES.get(order.upper()) if isinstance(order, str) else None
    if number is None:
        raise RequestError(f'{argument} is {shown(order)}: it must be "CRD" or "DCR"')
    return number


def forward(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments among which `upsample` or `pixel_shuffle` may have factors: as those of one operator."""
    upsample, shuffle = given["upsample"], given["pixel_shuffle"]
    operation = shuffle_of("shuffle_order", given["shuffle_order"])
    if upsample is None and shuffle is None:
        return dict(given)
    if upsample is not None and shuffle is not None:
        raise RequestError("upsample and pixel_shuffle are given: a layer has one of them")
    name = "pixel_shuffle" if upsample is None else "upsample"
    if given["strides"] is not DEFAULTS["strides"]:
        raise RequestError(f"strides is given beside {name}: the convolution has stride 1; leave strides out")
    return {**given, "strides": given[name], "operation": operation if upsample is None else UPSAMPLE_CONV}


def steps_of(steps: tuple[int, ...]) -> c.Steps:
    """The tconv_steps of a tensor. One of a wrong rank is refused without them."""
    return c.Steps(len(steps), steps) if len(steps) <= c.MAX_RANK else c.Steps()


# The members of tconv_epilogue and tconv_plan_options that a call asks for.
_EPILOGUE = tuple(name for name, *_ in c.Epilogue._fields_ if name in Attributes._fields)
_OPTIONS = tuple(name for name, *_ in c.PlanOptions._fields_ if name in Attributes._fields)


def resolve(problem: c.Problem) -> c.Geometry:
    """Resolves pads, output shape and output type of a problem, without a device."""
    geometry = c.Geometry()
    call("tconv_resolve", byref(problem), byref(geometry))
    return geometry


def window_input(geometry: c.Geometry, begin: int, end: int) -> tuple[int, int]:
    """The input rows that these output rows take; at least one."""
    first, last = c_int64(), c_int64()
    call("tconv_window_input", byref(geometry), begin, end, byref(first), byref(last))
    return first.value, last.value


def rows_at(data_format: int) -> int:
    """The index of the outermost spatial axis in data and output."""
    return 1 if data_format == NXC else 2


def window_of(output_rows: Any, data_rows: Any) -> Window | None:
    """Reads the arguments output_rows and data_rows of a call."""
    if output_rows is None and data_rows is None:
        return None
    if output_rows is None or data_rows is None:
        raise RequestError("output_rows and data_rows go together: which rows, and how many rows all data have")
    rows = _integers("output_rows", output_rows)
    if isinstance(rows, int) or len(rows) != 2:
        raise RequestError(f"output_rows is {output_rows!r}: it must be (begin, end)")
    return Window(integer("data_rows", data_rows, 0), *rows)


def with_rows(shape: tuple[int, ...], axis: int, rows: int) -> tuple[int, ...]:
    return (*shape[:axis], rows, *shape[axis + 1 :])


def extents(shape: c.Shape) -> tuple[int, ...]:
    return tuple(shape.dim[: shape.rank])


# What stands for an option that is not given; None: the library's default.
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys((*LISTS, *NAMES, "groups", "output_type", "search")),
    **dict.fromkeys(("strides", "dilations"), 1),
    **dict.fromkeys(("pads_begin", "pads_end", "output_padding", "workspace_limit", "beta"), 0),
    **dict.fromkeys(("data_zero_point", "filter_zero_point", "output_zero_point"), 0),
    **{"auto_pad": "explicit", "rules": "spec", "data_format": "NCX", "filter_format": "OIX"},
    **{"algorithm": "auto", "math": "exact", "alpha": 1, "activation": "none", "requantize": False},
}


def attributes_of(**options: Any) -> Attributes:
    """Reads the attributes of a call, _convolution.Options."""
    if not options.keys() <= DEFAULTS.keys():
        refuse("conv_transpose", options, frozenset(DEFAULTS))
    return attributes_among({**DEFAULTS, **options})


_options_of = operator.itemgetter(*DEFAULTS)
_PLAIN = frozenset((int, float, str, bool, type(None)))  # types of values that never change
_MOST_READ = 256
_read: dict[tuple[Any, ...], Attributes] = {}  # by what was given


def attributes_among(given: dict[str, Any]) -> Attributes:
    """The same from a function's arguments: from its locals() before it has others. All of them must be there. Equal
    attributes are one object, until many others were read."""
    values = _options_of(given)
    types = tuple(map(type, values))  # 1, 1.0 and True are equal
    key: tuple[Any, ...] = (values, types, given.get("operation"))
    if not _PLAIN.issuperset(types):
        own, inner = list(values), []
        for i, kind in enumerate(types):
            if kind is tuple or kind is list:
                own[i] = tuple(values[i])
                inner.append(tuple([type(one) for one in own[i]]))
        if not _PLAIN.issuperset([type(value) for value in own if type(value) is not tuple]) or not all(
            map(_PLAIN.issuperset, inner)
        ):
            return _one(_attributes_among(given))
        key = (tuple(own), types, given.get("operation"), *inner)
    read = _read.get(key)
    if read is None:
        read = _one(_attributes_among(given))
        if len(_read) >= _MOST_READ:
            _read.clear()
        _read[key] = read
    return read


@lru_cache(maxsize=_MOST_READ)
def _one(attributes: Attributes) -> Attributes:
    """The first of equal attributes."""
    return attributes


def _attributes_among(given: dict[str, Any]) -> Attributes:
    activation, a, b = _activation(given["activation"])
    groups = given["groups"]
    if groups is not None and integer("groups", groups) < 1:
        raise RequestError(f"groups is {groups}: it must be at least 1")
    return Attributes(
        lists=tuple([read(name, given[name]) for name, read in _LIST_READERS]),
        names=tuple([read(name, given[name]) for name, read in _NAME_READERS]),
        groups=None if groups is None else integer("groups", groups),
        output_type=output_type_of(given["output_type"]),
        algorithm=text("algorithm", given["algorithm"]),
        math=_number_of("math", given["math"]),
        search=_number_or_none("search", given["search"]),
        workspace_limit=integer("workspace_limit", given["workspace_limit"], 0),
        alpha=_real("alpha", given["alpha"]),
        beta=_real("beta", given["beta"]),
        activation=activation,
        a=a,
        b=b,
        requantize=flag("requantize", given["requantize"]),
        data_zero_point=integer("data_zero_point", given["data_zero_point"], -128, 255),
        filter_zero_point=integer("filter_zero_point", given["filter_zero_point"], -128, 255),
        output_zero_point=integer("output_zero_point", given["output_zero_point"], -128, 255),
        operation=given.get("operation"),
    )


def number_of(argument: str, kind: str, name: Any) -> int:
    """The number behind one of the library's names, in any letter case."""
    number = c_int()
    if not isinstance(name, str) or not getattr(library, f"tconv_{kind}_from_name")(for_c(name), byref(number)):
        names = names_of(kind)
        error = RequestError if isinstance(name, str) else RequestTypeError
        hint = instead_of_value(argument, name, names)
        raise error(f"{argument} is {shown(name)}: it must be {', '.join(names[:-1])} or {names[-1]}{hint}")
    return number.value


def output_type_of(wanted: Any) -> int:
    """The tconv_type for the argument output_type: None (as the data), a name of the library, or a NumPy type."""
    if wanted is None:
        return 0
    if isinstance(wanted, str):
        return number_of("output_type", "type", wanted)
    return element_type("output_type", wanted)


_number_of_text = lru_cache(maxsize=64)(number_of)


def _number_of(argument: str, name: Any) -> int:
    """The number behind a name; what is no text cannot be looked up, and is refused."""
    find = _number_of_text if isinstance(name, str) else number_of
    return find(argument, argument, name)


def _number_or_none(argument: str, name: Any) -> int:
    return 0 if name is None else _number_of(argument, name)


def integer(argument: str, value: Any, least: int = -(2**63), most: int = 2**63 - 1) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise RequestTypeError(f"{argument} is {value!r}: it must be an integer") from None
    if not least <= number <= most:
        raise RequestError(f"{argument} is {number}: it must be {least} to {most}")
    return number


def flag(argument: str, value: Any) -> bool:
    """Reads what is true or false: not any object, since an array of one zero, or "no", would count as either."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise RequestTypeError(f"{argument} is {shown(value)}: it must be True or False")


def called(argument: str, value: Any) -> None:
    """Refuses what cannot be called, before work begins."""
    if not callable(value):
        raise RequestTypeError(f"{argument} is {shown(value)}: it must be a function")


def shape_of(argument: str, value: Any) -> tuple[Any, ...]:
    """Reads the entries of a shape; each is still to be read."""
    try:
        if not is_list(value) or len(getattr(value, "shape", (0,))) != 1:
            raise TypeError
        return tuple(value)
    except TypeError:
        hint = "; write its .shape" if hasattr(value, "shape") else ""
        raise RequestTypeError(f"{argument} is {shown(value)}: it must be a shape, a list of extents{hint}") from None


def is_list(value: Any) -> bool:
    """True for values in an order: not for text, bytes, sets and dictionaries, of which Python makes lists too."""
    if isinstance(value, (list, tuple)):
        return True
    others = (str, bytes, bytearray, memoryview, Set, Mapping)
    return (isinstance(value, Iterable) or hasattr(value, "__getitem__")) and not isinstance(value, others)


def _integers(argument: str, value: Any) -> int | tuple[int, ...]:
    """Reads one number for every axis, or one number for each."""
    if isinstance(value, int) or not (is_list(value) or isinstance(value, str)):
        return integer(argument, value)
    try:
        values = tuple(value)
    except TypeError:
        return integer(argument, value)
    return tuple(integer(argument, one) for one in values)


def _integers_or_none(argument: str, value: Any) -> int | tuple[int, ...]:
    return () if value is None else _integers(argument, value)


# How each is read; None is a value only where it is the default.
_LIST_READERS = tuple((name, _integers_or_none if DEFAULTS[name] is None else _integers) for name in LISTS)
_NAME_READERS = tuple((name, _number_or_none if DEFAULTS[name] is None else _number_of) for name in NAMES)


def _real(argument: str, value: Any) -> float:
    try:
        if isinstance(value, (str, bytes, bytearray)):  # Python makes numbers of these too
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise RequestTypeError(f"{argument} is {shown(value)}: it must be a number") from None
    except OverflowError:
        raise RequestError(f"{argument} is {shown(value)}: it does not fit a number of 64 bits") from None


def _activation(value: str | tuple[Any, ...]) -> tuple[int, float, float]:
    """A name, or a name and the activation's numbers: "relu", ("leaky_relu", 0.1), ("clamp", -1, 1)."""
    given: Sequence[Any] = value if isinstance(value, Sequence) and is_list(value) else (value,)
    if not given:
        raise RequestError(f"activation is {value!r}: it must be a name, or a name and its numbers")
    name, *numbers = given
    if isinstance(name, str) and ":" in name:
        known, *texts = name.replace(",", ":").split(":")  # as the tool's --activation
        raise RequestError(f"activation is {name!r}: write ({', '.join([repr(known), *texts])})")
    number = _number_of("activation", name)
    wanted = library.tconv_activation_parameter_count(number)
    if len(numbers) != wanted:
        example = (name, *((), (0.1,), (-1, 1))[wanted]) if wanted else name
        by_channel = '; "prelu" takes a slope for each output channel' if name == "leaky_relu" else ""
        raise RequestError(
            f"activation is {value!r}: {name} takes {wanted} number{'s' if wanted != 1 else ''}, for example "
            f"{example!r}{by_channel}"
        )
    a, b = (*(_real("activation", one) for one in numbers), 0.0, 0.0)[:2]
    return number, a, b


def _shape(argument: str, shape: tuple[int, ...]) -> c.Shape:
    if len(shape) > c.MAX_RANK:
        raise RequestError(f"{argument} has rank {len(shape)}: it must be at most {c.MAX_RANK}")
    return c.Shape(len(shape), tuple(integer(argument, extent) for extent in shape))


def _list(argument: str, value: int | tuple[int, ...], axes: int) -> c.List:
    if isinstance(value, int):
        value = (value,) * max(1, min(axes, c.MAX_AXES))
    if len(value) > c.MAX_AXES:
        raise RequestError(f"{argument} has {len(value)} entries: it may have at most {c.MAX_AXES}")
    if len(value) != axes:
        hint = instead_of_list(argument, value, axes)
        if hint:
            raise RequestError(
                f"{argument} has {len(value)} values: it must have one for each of the {axes} spatial axes{hint}", 3
            )
    return c.List(len(value), value)
