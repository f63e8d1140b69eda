# SPDX-License-Identifier: Apache-2.0
"""python -m tconv_cl.fold_onnx IN.onnx OUT.onnx: makes one ConvTranspose of each nearest upsampling and the convolution
behind it, and of each convolution and the pixel shuffle behind it, for runtimes that have no adapter. It needs the
package onnx, no device and no OpenCL."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

try:
    import onnx
    from onnx import ModelProto

    from ._onnx.graph import Extents, Scope, extents_of, graphs_inside, tensors_of
    from ._onnx.pairs import Choice, Layer, Left, enlarger_before, reason_or_layer
    from ._onnx.rewrite import Rewriter
except ImportError as error:
    sentence = f"tconv_cl.fold_onnx needs the package onnx, 1.19 or later: pip install 'tconv_cl[onnx]' ({error})"
    if __name__ == "__main__":
        sys.exit(sentence)
    raise ImportError(sentence) from error

__all__ = ["Pair", "fold"]

MOST_INLINE = 2_000_000_000  # bytes of constants; a file of more than 2 GiB is not read again

EPILOG = """
what is replaced:
  Resize or Upsample, then Conv    one ConvTranspose with sums of the Conv's weights, which are added in f64 and
                                   rounded once: mode nearest, integer factors, Conv of stride 1. With factor 2 and
                                   3 x 3 taps an output takes 4 multiply-adds, not 9.
  Conv, then DepthToSpace          one ConvTranspose with the same weights: CRD or DCR, Conv of stride 1 without a bias,
                                   or with one that all phases of a channel share (others: --add-bias).

Scales, sizes and filters must be constants; the data's extents may be dynamic. Everything else stays as it is, and a
line says why. The model computes the same, but for rounding: docs/semantics.md.

examples:
  python -m tconv_cl.fold_onnx decoder.onnx folded.onnx
  python -m tconv_cl.fold_onnx --no-shuffle decoder.onnx folded.onnx
  python -m tconv_cl.fold_onnx --add-bias espcn.onnx folded.onnx

Which of the two models is faster depends on the runtime: time both.

Exit status: 0: OUT is written, also if there was nothing to fold; 1: a file cannot be read or written, or is no model;
2: the command line is wrong.
"""


class Pair(NamedTuple):
    """Two nodes that were, or might have been, made one ConvTranspose.

    `name`: of the Conv, or of its output; `operators`: both, in their order; `reason`: why they stay, or "";
    `macs_of_output`: multiply-adds for an output far from borders and an input channel, before and after; `macs`: those
    of one image, or None if its extents are not known.
    """

    name: str
    operators: tuple[str, str]
    reason: str = ""
    macs_of_output: tuple[float, float] = (0, 0)
    macs: tuple[int, int] | None = None


def fold(model: ModelProto, *, shuffle: bool = True, add_bias: bool = False) -> list[Pair]:
    """Changes `model` in place: makes one ConvTranspose of each pair that can be one. Returns all pairs.

    `shuffle`: False leaves each convolution and pixel shuffle as they are.
    `add_bias`: a bias that differs between the phases of a pixel shuffle becomes an Add of a constant as large as an
    output, if its extents are known. All constants of the model must be in memory, as `onnx.load` reads them.
    """
    pairs, rewriter, choice = [], Rewriter(model), Choice(shuffle, add_bias)
    for scope in list(_scopes(model, model.graph, None, extents_of(model))):
        for node in scope.nodes:
            found = reason_or_layer(node, scope, choice)
            if found is None:
                continue
            operators = _operators(node, scope) if isinstance(found, str) else (found.first.op_type, found.last.op_type)
            pair = Pair(node.name or node.output[0], operators, found if isinstance(found, str) else "")
            if isinstance(found, Layer):
                try:
                    rewriter.put(found, scope)
                    pair = pair._replace(macs_of_output=found.macs_of_output, macs=found.macs)
                except Left as left:
                    pair = pair._replace(reason=str(left))
            pairs.append(pair)
    rewriter.finish()
    return pairs + [pair for function in model.functions for pair in _pairs_inside(model, function)]


def _pairs_inside(model: ModelProto, function: onnx.FunctionProto) -> Iterator[Pair]:
    """Those of a function, which all its calls share: they stay."""
    scope = Scope(model, onnx.GraphProto(node=function.node), None, {})
    for node in scope.nodes:
        if reason_or_layer(node, scope, Choice()) is not None:
            reason = (
                f"they are in the function {function.name}: onnx.inliner.inline_local_functions puts it into the graph"
            )
            yield Pair(node.name or node.output[0], _operators(node, scope), reason)


def _scopes(
    model: ModelProto, graph: onnx.GraphProto, outer: Scope | None, extents: dict[str, Extents]
) -> Iterator[Scope]:
    scope = Scope(model, graph, outer, extents)
    yield scope
    for node in scope.nodes:
        for inner in graphs_inside(node):
            yield from _scopes(model, inner, scope, extents)


def _operators(conv: onnx.NodeProto, scope: Scope) -> tuple[str, str]:
    before = enlarger_before(conv, scope)
    if before is not None:
        return before.op_type, "Conv"
    return "Conv", "DepthToSpace"


# ---- the command ----


class _Failure(Exception):
    """A sentence, and the exit status."""

    def __init__(self, sentence: str, status: int = 1) -> None:
        super().__init__(sentence)
        self.status = status


def _read(path: Path, output: Path) -> ModelProto:
    """A model with all its constants. Fails if writing the output would change one of its files."""
    if output.is_dir():
        raise _Failure(f"OUT is {output}, a folder: it must be the name of a file", 2)
    try:
        model = onnx.load(path, format="protobuf", load_external_data=False)
        external = {
            entry.value
            for tensor in tensors_of(model)
            for entry in tensor.external_data
            if tensor.data_location == onnx.TensorProto.EXTERNAL and entry.key == "location"
        }
        for name in (path, *(path.parent / location for location in sorted(external))):
            for written in (output, _data_of(output)):
                if _is_same(name, written):
                    raise _Failure(f"OUT is {output}, but {name} is a file of IN, which stays as it is", 2)
        onnx.checker.check_model(path)
        onnx.load_external_data_for_model(model, str(path.parent))
    except OSError as error:
        raise _Failure(f"{error.filename or path} cannot be read: {error.strerror or error}") from error
    except _Failure:
        raise
    except Exception as error:  # the parser's and the checker's: they have no common class
        raise _Failure(f"{path} is not a complete and valid ONNX model: {_line(error)}") from error
    return model


def _write(model: ModelProto, output: Path) -> None:
    """A valid model, whole or not at all. Data of more than 2 GB are in a file beside it, which is there first."""
    large = sum(len(tensor.raw_data) for tensor in tensors_of(model)) > MOST_INLINE
    data = _data_of(output)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as folder:
            whole = Path(folder, output.name)
            onnx.save(model, whole, format="protobuf", save_as_external_data=large, location=data.name)
            onnx.checker.check_model(whole)
            if Path(folder, data.name).exists():
                output.unlink(missing_ok=True)  # of an earlier call: its data are replaced
                os.replace(Path(folder, data.name), data)
            os.replace(whole, output)
    except OSError as error:
        raise _Failure(f"{output} cannot be written: {error.strerror or error}") from error
    except Exception as error:  # the checker's
        raise _Failure(f"{output} is not written, because it would not be valid: {_line(error)}") from error


def _data_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.data")


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _line_of(pair: Pair) -> str:
    first, last = pair.operators
    beside = f"the {first} before it" if last == "Conv" else f"the {last} behind it"
    if pair.reason:
        return f'Conv "{pair.name}" and {beside} stay: {pair.reason}'
    before, after = pair.macs_of_output
    saved = "" if before == after else f"; {before:g} -> {after:.4g} multiply-adds for each output and input channel"
    return f'Conv "{pair.name}" and {beside} are one ConvTranspose{saved}'


def _summary(pairs: list[Pair]) -> str:
    if not pairs:
        return "no Conv has a Resize or Upsample before it or a DepthToSpace behind it: OUT computes as IN does"
    folded = [pair for pair in pairs if not pair.reason]
    counted = [pair.macs for pair in folded if pair.macs is not None]
    text = f"{len(folded)} of {len(pairs)} pairs are one ConvTranspose now"
    if counted:
        before, after = (sum(macs[i] for macs in counted) for i in range(2))
        text += f"; multiply-adds of one image: {before:,} before, {after:,} after"
    unknown = len(folded) - len(counted)
    return f"{text}; {unknown} with unknown extents {'is' if unknown == 1 else 'are'} not counted" if unknown else text


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tconv_cl.fold_onnx",
        description="Makes one ConvTranspose of each nearest upsampling and convolution, and of each convolution and\n"
        "pixel shuffle, of an ONNX model, for runtimes that tconv-cl has no adapter for.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", metavar="IN.onnx", type=Path, help="the model; it stays as it is")
    parser.add_argument("output", metavar="OUT.onnx", type=Path, help="the model that is written, whole or not at all")
    parser.add_argument(
        "--add-bias",
        action="store_true",
        help="for runtimes that fuse an Add: if the phases of a pixel shuffle have different biases, an Add of a "
        "constant as large as an output, for float and double and known extents",
    )
    parser.add_argument(
        "--no-shuffle",
        action="store_true",
        help="leave Conv and DepthToSpace as they are: one ConvTranspose takes as many multiply-adds, and is slower "
        "where its code is slower than that of Conv",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--version", action="version", version=f"tconv_cl {version('tconv_cl')}")
    given = parser.parse_args(arguments)
    try:
        model = _read(given.input, given.output)
        pairs = fold(model, shuffle=not given.no_shuffle, add_bias=given.add_bias)
        _write(model, given.output)
    except _Failure as failure:
        print(f"tconv_cl.fold_onnx: {failure}", file=sys.stderr)
        return failure.status
    if not given.quiet:
        print(*map(_line_of, pairs), _summary(pairs), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
