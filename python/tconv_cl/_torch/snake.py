# SPDX-License-Identifier: Apache-2.0
"""Snake and SnakeBeta, as vocoders like BigVGAN have them: modules of classes that torch does not have. They are known
by what their forward computes: x + sin(a x)^2 / (b + number) along the channels of [N, C, L], where a and b are
parameters or their exponentials."""

from __future__ import annotations

import builtins
import dis
import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .call import CALLS, is_unwatched


class Coefficient(NamedTuple):
    parameter: str
    is_logarithm: bool

    def of(self, module: nn.Module) -> Tensor:
        value = module._parameters[self.parameter].detach()
        return torch.exp(value) if self.is_logarithm else value


class Formula(NamedTuple):
    """x + sin(alpha x)^2 / (beta + added)."""

    alpha: Coefficient
    beta: Coefficient
    added: float


def formula_of(module: nn.Module) -> Formula | str:
    """What calling a module computes, if it is Snake or SnakeBeta; else why it is not."""
    cls, parameters = type(module), module._parameters
    if not may_be_snake(cls):
        return "its class does more than Snake"
    forward: Any = cls.forward
    if "forward" in vars(module) or not is_unwatched(module):
        return "it has hooks, or a method that was replaced"
    names = [name for name in forward.__code__.co_names if name not in ("torch", *METHODS)]
    used = {name: value for name in names if (value := parameters.get(name)) is not None}
    numbers = {name: vars(module)[name] for name in names if type(vars(module).get(name)) in (bool, int, float)}
    for name in names:
        if hasattr(cls, name) or not (name in used or name in numbers):
            return f"its forward reads {name}, which is no parameter and no number of its own"
    shapes = tuple((name, tuple(value.shape)) for name, value in used.items())
    return _formula(forward, shapes, tuple(numbers.items()))


def slopes_of(module: nn.Module, weight: Tensor, channels: int) -> tuple[Tensor, Tensor] | str:
    """alpha, and the divisor, for each channel of a layer with this weight; else why the layer does not compute it."""
    formula = formula_of(module)
    if isinstance(formula, str):
        return formula
    if weight.dim() != 3:
        return "it is for layers with one axis"
    if weight.dtype not in (torch.float32, torch.float64):
        return f"the weights have elements of type {weight.dtype}"
    for parameter in dict.fromkeys((formula.alpha.parameter, formula.beta.parameter)):
        value = module._parameters[parameter]
        if type(value) is not nn.Parameter or not value.is_cpu or value.dtype != weight.dtype:
            return f"its {parameter} is no parameter of type {weight.dtype} on the processor"
        if value.numel() != channels:
            return f"its {parameter} has {value.numel()} elements, but the layer has {channels} channels"
    alpha, beta = (one.of(module).reshape(-1).contiguous() for one in (formula.alpha, formula.beta))
    return alpha, beta + formula.added


def is_called_snake(module: nn.Module) -> bool:
    """Whether the author of a module calls it so: then `explain` says why the layer does not compute it."""
    return "snake" in type(module).__name__.lower()


def may_be_snake(cls: type[nn.Module]) -> bool:
    """Whether calling a module of the class only calls its forward, and this reads nothing but parameters, numbers, and
    torch's functions for Snake."""
    # Not by `cls.forward`: that of TorchScript's modules cannot be read without an object.
    forward = next((vars(base)["forward"] for base in cls.__mro__ if "forward" in vars(base)), None)
    return (
        type(forward) is types.FunctionType
        and _reads_little(forward)
        and (cls.__call__, cls._call_impl) == CALLS
        and cls.__getattr__ is nn.Module.__getattr__
        and cls.__getattribute__ is object.__getattribute__
    )


@functools.lru_cache(1024)
def _reads_little(forward: types.FunctionType) -> bool:
    """Whether a forward takes one tensor, and its code names only torch's functions for Snake and attributes: only then
    is it called with terms."""
    code = forward.__code__
    if code.co_freevars or any(isinstance(constant, types.CodeType) for constant in code.co_consts):
        return False
    if code.co_argcount != 2 or code.co_kwonlyargcount or code.co_flags & (VARIADIC | SUSPENDS):
        return False
    if not REFUSED.isdisjoint(instruction.opname for instruction in dis.get_instructions(code)):
        return False
    named = [forward.__globals__.get(name, getattr(builtins, name, None)) for name in code.co_names]
    return "sin" in code.co_names and all(any(value is known for known in _KNOWN) for value in named)


# Instructions: of exceptions, which could hide that a term is no tensor; and what changes or reads other modules.
REFUSED = {"PUSH_EXC_INFO", "SETUP_FINALLY", "SETUP_EXCEPT", "STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME"}
VARIADIC, SUSPENDS = 0x04 | 0x08, 0x20 | 0x80 | 0x200  # flags of code: *args, **kwargs; generators, coroutines


@functools.lru_cache(1024)
def _formula(
    forward: Callable[[Any, Any], Any],
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    numbers: tuple[tuple[str, float], ...],
) -> Formula | str:
    """Calls a forward with terms in place of tensors, and compares what it returns."""
    parameters = {name: Term(("parameter", name), shape) for name, shape in shapes}
    stand_in = types.SimpleNamespace(**parameters, **dict(numbers))
    before = dict(vars(stand_in))
    try:
        result = forward(stand_in, DATA)
    except Exception as error:  # whatever it needs that Snake does not
        return f"its forward does more than Snake ({error})"
    if vars(stand_in) != before:
        return "its forward changes the module"
    if isinstance(result, Term):
        coefficients = [Coefficient(name, logarithm) for name in parameters for logarithm in (False, True)]
        added = {0.0, *_numbers_in(result.key)}
        for formula in (Formula(a, b, number) for a in coefficients for b in coefficients for number in added):
            if result.key == _snake(parameters, formula).key:
                return formula
    return "its forward computes another formula than x + sin(a x)^2 / (b + number)"


def _snake(parameters: dict[str, Term], formula: Formula) -> Term:
    def value(one: Coefficient) -> Term:
        plain = Term(("parameter", one.parameter), None)
        return plain.exp() if one.is_logarithm else plain

    divisor = value(formula.beta) + formula.added if formula.added else value(formula.beta)
    return DATA + (DATA * value(formula.alpha)).sin().pow(2) * divisor.reciprocal()


class Term:
    """A tensor that a forward computes: `key` is its formula, in which the order of factors and summands does not
    count. `shape` is a parameter's; None: the data's."""

    def __init__(self, key: Any, shape: tuple[int, ...] | None) -> None:
        self.key, self.shape = key, shape

    def _with(self, name: str, other: Any) -> Term:
        """The sum or product of both. Equal operands are counted, because a set has each once."""
        if type(other) in (int, float):
            return Term((name, frozenset(((self.key, 0), (("number", other), 0)))), self.shape)
        if type(other) is not Term:
            raise TypeError(f"a {type(other).__name__} is in it")
        shapes = {one.shape for one in (self, other)} - {None}
        if any(len(shape) != 3 or shape[::2] != (1, 1) for shape in shapes):
            raise TypeError("its parameters are not along the channels of [N, C, L]")
        if None not in (self.shape, other.shape):
            raise TypeError("its parameters are combined")
        keys = [self.key, other.key]
        return Term((name, frozenset((key, keys[:at].count(key)) for at, key in enumerate(keys))), None)

    def __add__(self, other: Any) -> Term:
        return self._with("sum", other)

    def __mul__(self, other: Any) -> Term:
        return self if type(other) in (int, float) and other == 1 else self._with("product", other)

    __radd__, __rmul__, add, mul = __add__, __mul__, __add__, __mul__

    def __truediv__(self, other: Any) -> Term:
        if type(other) is not Term:
            raise TypeError("it is divided by what is no tensor")
        return self * other.reciprocal()

    div = __truediv__

    def __rtruediv__(self, other: Any) -> Term:
        return self.reciprocal() * other

    def __pow__(self, exponent: Any) -> Term:
        if type(exponent) not in (int, float) or exponent != 2:
            raise TypeError(f"its power is {exponent}")
        return self._of("square")

    pow = __pow__

    def unsqueeze(self, at: int) -> Term:
        if self.shape is None or type(at) is not int or not -len(self.shape) - 1 <= at <= len(self.shape):
            raise TypeError("an axis is added to what is no parameter")
        at += len(self.shape) + 1 if at < 0 else 0
        return Term(self.key, (*self.shape[:at], 1, *self.shape[at:]))

    def _of(self, name: str) -> Term:
        return Term((name, self.key), self.shape)

    def exp(self) -> Term:
        return self._of("exp")

    def sin(self) -> Term:
        return self._of("sin")

    def square(self) -> Term:
        return self._of("square")

    def reciprocal(self) -> Term:
        return self._of("reciprocal")

    def __bool__(self) -> bool:
        raise TypeError("it depends on values")

    def __eq__(self, other: object) -> bool:
        raise TypeError("it compares values")

    @classmethod
    def __torch_function__(cls, function: Any, kinds: Any, arguments: tuple = (), options: Any = None) -> Term:
        if options or not isinstance(arguments[0], cls):
            raise TypeError("a function of torch has other arguments")
        result: Term = getattr(cls, FUNCTIONS[function])(*arguments)
        return result


DATA = Term(("data",), None)
METHODS = ("unsqueeze", "exp", "sin", "pow", "square", "reciprocal", "add", "mul", "div")
FUNCTIONS: dict[Any, str] = {getattr(torch, name): name for name in METHODS}
_KNOWN = (None, torch, builtins.pow, *FUNCTIONS)  # what names in a forward may mean; None: attributes


def _numbers_in(key: Any) -> set[float]:
    if isinstance(key, tuple) and key[:1] == ("number",):
        return {key[1]}
    return {number for part in key if isinstance(part, (tuple, frozenset)) for number in _numbers_in(part)}
