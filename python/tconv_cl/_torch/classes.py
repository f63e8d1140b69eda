# SPDX-License-Identifier: Apache-2.0
"""The classes of converted modules whose class is a subclass of torch's."""

from __future__ import annotations

from functools import cache
from typing import Any

from torch import nn

from .fusion import FORWARDS


@cache
def subclass_of(ours: type[nn.Module], own: type[nn.Module]) -> type[nn.Module]:
    """A subclass of a class of tconv-cl's, whose forward it has or makes, and of the module's own class."""
    names = {"__module__": ours.__module__, "__qualname__": own.__qualname__, "__doc__": own.__doc__}
    if hasattr(ours, "forward_of"):
        names["forward"] = ours.forward_of(own)
    made: type[nn.Module] = type(own.__name__, (ours, own), {**names, "__reduce_ex__": _reduce})
    FORWARDS[made] = made.forward
    return made


def own_class(cls: type[nn.Module]) -> type[nn.Module] | None:
    """The module's own class, if `subclass_of` made this one of it."""
    return cls.__bases__[1] if vars(cls).get("__reduce_ex__") is _reduce else None


def _reduce(self: nn.Module, protocol: Any) -> Any:
    """For pickle and copy: these classes are not variables of a Python module."""
    cls = next(cls for cls in type(self).__mro__ if vars(cls).get("__reduce_ex__") is _reduce)
    reduced = super(cls, self).__reduce_ex__(protocol)
    if not isinstance(reduced, tuple) or reduced[1][:1] != (cls,):
        return reduced
    function, arguments, *rest = reduced
    return _made_again, (function, *cls.__bases__, *arguments[1:]), *rest


def _made_again(function: Any, ours: type[nn.Module], own: type[nn.Module], *arguments: Any) -> Any:
    return function(subclass_of(ours, own), *arguments)
