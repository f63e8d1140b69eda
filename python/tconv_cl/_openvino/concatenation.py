# SPDX-License-Identifier: Apache-2.0
"""A Concat along the channels becomes a part of an operator before it."""

from __future__ import annotations

import numpy as np
from openvino import Node, Output
from openvino.passes import AnyInput, Matcher, MatcherPass
from openvino.utils.node_factory import NodeFactory

from .graph import OURS, extents_of, is_concatenated, only_consumer, values_of
from .layouts import first_order, to_first, to_last


class Concat(MatcherPass):
    """Makes a Concat along the channels a part of one of our operators before it: that with the largest output.

    Its output is written where it belongs, and the other tensors are copied beside it.
    """

    def __init__(self, factory: NodeFactory) -> None:
        super().__init__()
        self.factory = factory
        self.several: set[str] = set()  # see only_consumer
        pattern = AnyInput(lambda output: output.get_node().get_type_name() == "Concat")
        self.register_matcher(Matcher(pattern, "tconv_cl_concat"), self.change)

    def change(self, matcher: Matcher) -> bool:
        concat = matcher.get_match_root()
        parts = concat.input_values()
        ranks = [part.get_partial_shape().rank for part in parts]
        if any(rank.is_dynamic for rank in ranks) or concat.get_attributes()["axis"] % ranks[0].get_length() != 1:
            return False
        found = {
            place: ours for place, part in enumerate(parts) if (ours := _concatenable(part, self.several)) is not None
        }
        if not found:
            return False
        place = max(found, key=lambda i: np.prod(extents_of(parts[i].get_partial_shape()), dtype=np.float64))
        attributes, inputs = found[place].get_attributes(), found[place].input_values()
        last = attributes["channels_last"]
        neighbours = [to_last(part) if last else part for i, part in enumerate(parts) if i != place]
        optional = [*(attributes[name] for name in ("scale", "bias", "residual")), attributes["activation"] == "prelu"]
        end = 2 + sum(optional)
        attributes.update(concat_before=place, concat_after=len(parts) - 1 - place)
        made = self.factory.create(OURS, inputs[:end] + neighbours + inputs[end:], attributes)
        made.set_friendly_name(concat.get_friendly_name())
        result = to_first(made) if last else made
        names = concat.output(0).get_names()
        concat.output(0).replace(result.output(0))
        result.output(0).set_names(names)
        return True


def _concatenable(part: Output, several: set[str]) -> Node | None:
    """Our operator that computes `part` for one consumer only. None if it is another one, or need not be fused."""
    node = part.get_node()
    last = node.get_type_name() == "Transpose"
    if node.get_type_name() not in ("Transpose", OURS) or only_consumer(node, several) is None:
        return None
    if last:
        order, ours = values_of(node.input_value(1)), node.input_value(0).get_node()
        if order is None or order.tolist() != first_order(order.size) or only_consumer(ours) is None:
            return None
        node = ours
    if node.get_type_name() != OURS or node.get_attributes()["channels_last"] != last or is_concatenated(node):
        return None
    batch = part.get_partial_shape()[0]
    # OpenVINO's plugin concatenates plain tensors of one image without a copy.
    return node if last or batch.is_dynamic or batch.get_length() != 1 else None
