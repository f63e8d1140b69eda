# SPDX-License-Identifier: Apache-2.0
"""What `explain` of the modules for other runtimes returns."""

from __future__ import annotations

from typing import NamedTuple


class Layer(NamedTuple):
    """A transposed convolution of a model, or a convolution with nearest upsampling or pixel shuffle."""

    name: str
    kind: str  # its class or operator
    converted: bool  # tconv-cl computes it
    note: str  # what it computes besides, or why it is not converted
    upsamples: bool = False  # it has nearest upsampling or pixel shuffle


def fused_note(names: list[str]) -> str:
    """The note of a layer that is computed with operators of these names."""
    return f"with {' and '.join(names)}, if no gradient is asked for" if names else ""


class Explanation(tuple[Layer, ...]):
    """The layers of a model, in its order. Its text has a line for each."""

    __slots__ = ()

    @property
    def converted(self) -> list[str]:
        """The names of those that tconv-cl computes."""
        return [layer.name for layer in self if layer.converted]

    @property
    def left(self) -> dict[str, str]:
        """The names of the others, with the reasons."""
        return {layer.name: layer.note for layer in self if not layer.converted}

    def __str__(self) -> str:
        upsamplings = [layer for layer in self if layer.upsamples]
        others = [layer for layer in self if not layer.upsamples]
        counts = [
            f"{sum(layer.converted for layer in layers)} of {len(layers)} {what}"
            for layers, what in ((others, "transposed convolutions"), (upsamplings, "upsamplings"))
            if layers or what == "transposed convolutions" and not upsamplings
        ]
        lines = [f"tconv-cl computes {' and '.join(counts)}"]
        for layer in self:
            words = (layer.name or "(the model)", layer.kind, "tconv-cl" if layer.converted else "left")
            lines.append(f"  {', '.join(words)}{': ' if layer.note else ''}{layer.note}")
        return "\n".join(lines)

    __repr__ = __str__
