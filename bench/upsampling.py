#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times upsampling layers of networks: nearest upsampling and a convolution, and a convolution and pixel shuffle, as
the runtime computes them and as tconv-cl does in it.

    python bench/upsampling.py openvino
    python bench/upsampling.py onnxruntime --ids U01,U10
    python bench/upsampling.py torch --channels-last --math fast --type bfloat16

The layers are those of bench/upsampling.csv, each the whole graph. C1 and C2 are blocks of a U-Net: the enlarged data
are concatenated with a tensor of as many channels, then convolved. Python needs the runtime and the package tconv_cl,
as docs/openvino.md, docs/onnxruntime.md and docs/torch.md install them. The two graphs run in turn; medians count.
There are two threads. Prints a table: above 1, tconv-cl is faster. A layer that the adapter leaves to the runtime is
not timed, and its ratio is 1."""

import argparse
import csv
import math
import os
import statistics
import sys
import time

import numpy as np
from chains import HERE

TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}  # of the largest output
NO_3D_SHUFFLE = "U20"  # PyTorch and ONNX have none
BLOCKS = {"C1": ("U-Net, 64 and 64 to 64 channels", 64, 64), "C2": ("U-Net, 256 and 256 to 256 channels", 256, 16)}


def numbers(word):
    return [int(number) for number in word.split("x")] if word else []


class Layer:
    """One of the table, with data and weights. `beside` is what is concatenated with the enlarged data."""

    def __init__(self, name, row):
        self.beside = None
        if name in BLOCKS:
            self.name, channels, extent = BLOCKS[name]
            self.outer, self.pads, self.upsample, self.shuffle = channels, ([1, 1], [1, 1]), [2, 2], []
            self.groups, self.data = 1, self.random(1, [1, channels, extent, extent])
            self.beside = self.random(2, [1, channels, 2 * extent, 2 * extent])
            self.weights = self.random(3, [channels, 2 * channels, 3, 3], 18 * channels)
            return
        self.name, self.groups = row["layer"], int(row["groups"])
        self.upsample, self.shuffle = numbers(row["upsample"]), numbers(row["pixel_shuffle"])
        self.pads = numbers(row["pads_begin"]), numbers(row["pads_end"])
        self.outer = int(row["out_channels"]) * math.prod(self.shuffle)
        inner, kernel = int(row["in_channels"]), numbers(row["kernel"])
        self.data = self.random(1, [int(row["batch"]), inner, *numbers(row["input"])])
        terms = inner // self.groups * math.prod(kernel)
        self.weights = self.random(3, [self.outer, inner // self.groups, *kernel], terms)

    @staticmethod
    def random(seed, shape, terms=1):
        return (np.random.default_rng(seed).standard_normal(shape, np.float32) / math.sqrt(terms)).astype(np.float32)

    @property
    def axes(self):
        return len(self.pads[0])

    @property
    def inputs(self):
        return [self.data] if self.beside is None else [self.data, self.beside]


class PyTorch:
    def __init__(self, layer, ours, arguments):
        import torch
        from torch import nn
        from torch.nn import functional

        torch.set_num_threads(2)
        kind = getattr(torch, arguments.type)
        convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[layer.axes - 1](
            layer.weights.shape[1] * layer.groups,
            layer.outer,
            layer.weights.shape[2:],
            1,
            layer.pads[0],
            1,
            layer.groups,
            False,
        )
        convolution.weight.data = torch.from_numpy(layer.weights)

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = convolution

            def forward(self, x, skip):
                return self.conv(torch.cat([functional.interpolate(x, scale_factor=2.0), skip], 1))

        if layer.beside is not None:
            model = Block()
        elif layer.upsample:
            model = nn.Sequential(nn.Upsample(scale_factor=tuple(map(float, layer.upsample))), convolution)
        else:
            model = nn.Sequential(convolution, nn.PixelShuffle(layer.shuffle[0]))
        self.torch, self.model, self.left = torch, model.to(kind).eval(), ""
        self.inputs = [torch.from_numpy(each).to(kind) for each in layer.inputs]
        if arguments.channels_last and layer.axes > 1:
            form = (torch.channels_last, torch.channels_last_3d)[layer.axes - 2]
            self.model, self.inputs = self.model.to(memory_format=form), [x.to(memory_format=form) for x in self.inputs]
        if ours:
            import tconv_cl.torch

            tconv_cl.torch.convert(self.model, math=arguments.math)
            before = tconv_cl.torch.statistics().computed
            self.run()
            if tconv_cl.torch.statistics().computed == before:
                self.left = "; ".join(tconv_cl.torch.explain(self.model).left.values()) or "left at the call"

    def run(self):
        with self.torch.inference_mode():
            return self.model(*self.inputs)

    def output(self):
        return self.run().float().numpy()


class ONNXRuntime:
    def __init__(self, layer, ours, arguments):
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper

        nodes, last = [], "x"
        if layer.upsample:
            mode = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            nodes.append(helper.make_node("Resize", ["x", "", "s"], ["u"], **mode))
            last = "u"
        if layer.beside is not None:
            nodes.append(helper.make_node("Concat", [last, "skip"], ["both"], axis=1))
            last = "both"
        nodes.append(helper.make_node("Conv", [last, "w"], ["y"], pads=sum(layer.pads, []), group=layer.groups))
        if layer.shuffle:
            nodes.append(helper.make_node("DepthToSpace", ["y"], ["z"], blocksize=layer.shuffle[0], mode="CRD"))
        value, constants = helper.make_tensor_value_info, {"w": layer.weights}
        if layer.upsample:
            constants["s"] = np.array([1, 1, *layer.upsample], np.float32)
        self.feeds = dict(zip(("x", "skip"), layer.inputs))
        graph = helper.make_graph(
            nodes,
            "layer",
            [value(name, TensorProto.FLOAT, array.shape) for name, array in self.feeds.items()],
            [value(nodes[-1].output[0], TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        options, self.left = onnxruntime.SessionOptions(), ""
        options.log_severity_level, options.intra_op_num_threads = 3, 2
        if ours:
            import tconv_cl
            import tconv_cl.onnxruntime

            with tconv_cl.trace() as events:
                tconv_cl.onnxruntime.session_options(options, math=arguments.math)
                self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            before = tconv_cl.onnxruntime.statistics().computed
            self.run()
            if tconv_cl.onnxruntime.statistics().computed == before:
                self.left = "; ".join({event.message for event in events if event.kind == "fallback"}) or "no pair"
        else:
            self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)

    def run(self):
        return self.session.run(None, self.feeds)[0]

    output = run


class OpenVINO:
    def __init__(self, layer, ours, arguments):
        import openvino
        from openvino import opset13 as ops

        inputs = [ops.parameter(list(array.shape), np.float32) for array in layer.inputs]
        node, one = inputs[0], [1] * layer.axes
        if layer.upsample:
            mode = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            axes = np.arange(2, 2 + layer.axes)
            node = ops.interpolate(node, np.array(layer.upsample, np.float32), "nearest", "scales", axes=axes, **mode)
        if layer.beside is not None:
            node = ops.concat([node, inputs[1]], 1)
        node = ops.convolution(node, layer.weights, one, *layer.pads, one)
        if layer.shuffle:
            node = ops.depth_to_space(node, "depth_first", layer.shuffle[0])
        model, self.left = openvino.Model([node], inputs), ""
        if ours:
            import tconv_cl.openvino

            told = tconv_cl.openvino.explain(tconv_cl.openvino.convert(model, math=arguments.math))
            self.left = "; ".join(told.left.values())
        options = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 2}
        self.request = openvino.Core().compile_model(model, "CPU", options).create_infer_request()
        for at, array in enumerate(layer.inputs):
            self.request.get_input_tensor(at).data[...] = array

    def run(self):
        self.request.infer()

    def output(self):
        self.run()
        return self.request.get_output_tensor().data.copy()


RUNTIMES = {"openvino": OpenVINO, "onnxruntime": ONNXRuntime, "torch": PyTorch}


def medians(graphs, seconds, least):
    """Milliseconds of graphs that run in turn."""
    taken = [[] for _ in graphs]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[0]) < least:
        for graph, found in zip(graphs, taken):
            start = time.perf_counter()
            graph.run()
            found.append(time.perf_counter() - start)
    return [statistics.median(found) * 1e3 for found in taken]


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtime", choices=RUNTIMES)
    parser.add_argument("--ids", help="layers of bench/upsampling.csv, C1 and C2 (default: all)")
    parser.add_argument("--math", default="exact", choices=("exact", "fast"))
    parser.add_argument("--seconds", type=float, default=3, help="for both graphs (%(default)s)")
    parser.add_argument("--least", type=int, default=5, help="runs of each, also beyond these seconds (%(default)s)")
    parser.add_argument("--channels-last", action="store_true", help="PyTorch: tensors with channels last")
    parser.add_argument("--type", default="float32", choices=TOLERANCE, help="PyTorch: of the elements")
    arguments = parser.parse_args()
    if arguments.runtime != "torch" and (arguments.channels_last or arguments.type != "float32"):
        parser.error("--channels-last and --type are for torch")
    with open(os.path.join(HERE, "upsampling.csv"), newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    names = arguments.ids.split(",") if arguments.ids else [*rows, *BLOCKS]
    if unknown := set(names) - {*rows, *BLOCKS}:
        parser.error(f"bench/upsampling.csv has no {', '.join(sorted(unknown))}")
    if arguments.runtime != "openvino":
        names = [name for name in names if name != NO_3D_SHUFFLE]
    print("| layer | stock ms | with tconv-cl ms | stock / ours | difference |\n|---|---|---|---|---|")
    ratios, wrong = {}, False
    for name in names:
        layer = Layer(name, rows.get(name))
        stock, ours = (RUNTIMES[arguments.runtime](layer, ours, arguments) for ours in (False, True))
        form = (
            "with a concatenation" if layer.beside is not None else "upsampling" if layer.upsample else "pixel shuffle"
        )
        if ours.left:
            ratios.setdefault(form, []).append(1)
            print(f"| {name} {layer.name} | | left: {ours.left} | 1 | |", flush=True)
            continue
        wanted, output = stock.output(), ours.output()
        difference = np.abs(wanted - output).max() / np.abs(wanted).max()
        wrong |= not difference <= TOLERANCE[arguments.type]
        del wanted, output
        one, other = medians((stock, ours), arguments.seconds, arguments.least)
        ratios.setdefault(form, []).append(one / other)
        print(f"| {name} {layer.name} | {one:.2f} | {other:.2f} | {one / other:.2f} | {difference:.0e} |", flush=True)
        del stock, ours
    for form, its in ratios.items():
        print(f"| {form}: geometric mean, worst | | | {mean(its):.2f}, {min(its):.2f} | |")
    return "a result is wrong" if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
