#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times transposed convolutions whose output is concatenated with a skip connection, as in every U-Net: as the runtime
computes it, with tconv-cl, and with tconv-cl that writes into the concatenated tensor.

    python bench/concat.py openvino
    python bench/concat.py onnxruntime
    python bench/concat.py torch --ids B23,U-Net

A layer of the suite, without groups and pads, stands behind a 1x1 convolution. Its output is concatenated with a skip
of as many channels, an input of the graph (OpenVINO: a 1x1 convolution of it); a 3x3 convolution with 8 outputs
follows. U-Net has four levels of 32 to 512 channels for an image of 192 x 192, two 3x3 convolutions at each step, and
random weights.

Python needs the runtime and the package tconv_cl, as docs/openvino.md, docs/onnxruntime.md and docs/torch.md install
them. The three graphs run in turn; the median of each counts, with two threads or as many as there are processors.
Their results are compared. Prints a table: a ratio above 1 says that the fused graph is faster."""

import argparse
import csv
import math
import os
import statistics
import sys
import time

import numpy as np
from chains import HERE, TOLERANCE, Layer

UNET = "U-Net"
IDS = f"B22,B23,B59,B62,{UNET}"
LEVELS, CHANNELS, EXTENT = 4, 32, 192  # of U-Net; channels at the first level
# What graphs of layers assume.
PLAIN = {"groups": "1", "pads_begin": "0", "pads_end": "0", "output_padding": "0", "dilations": "1"}
VARIANTS = "stock", "apart", "fused"
TURN = 0.3  # seconds


def chain(make, layer):
    """The layer between a 1x1 and a 3x3 convolution."""
    extents = [(x - 1) * s + k for x, s, k in zip(layer.input, layer.strides, layer.kernel)]
    x, skip = make.input(layer.data.shape), make.skip([layer.data.shape[0], layer.outer, *extents])
    joined = make.decode(skip, make.convolution(x, layer.inner, layer.inner, 1), layer.filter, layer.strides)
    return make.convolution(joined, 2 * layer.outer, 8, 3)


def unet(make):

    def twice(node, before, after):
        return make.relu(make.convolution(make.relu(make.convolution(node, before, after, 3)), after, after, 3))

    node, skips = twice(make.input([1, 3, EXTENT, EXTENT]), 3, CHANNELS), []
    for level in range(LEVELS):
        skips.append(node)
        node = twice(make.pool(node), CHANNELS << level, CHANNELS << (level + 1))
    for level in reversed(range(LEVELS)):
        channels = CHANNELS << level
        node = make.decode(skips[level], node, make.weights(2 * channels, channels, 2, 2), [2, 2])
        node = twice(node, 2 * channels, channels)
    return make.convolution(node, CHANNELS, 2, 1)


class Network:
    """What chain and unet make their graphs of; `self.arrays` are the inputs. The same weights for each variant.
    Without `spin`, idle threads of ONNX Runtime sleep."""

    def __init__(self, variant, spin):
        self.variant, self.spin, self.arrays, self.axes = variant, spin, [], 0
        self.draw = np.random.default_rng(0)

    def weights(self, *shape):
        return (self.draw.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))).astype(np.float32)

    def input(self, shape):
        self.axes = len(shape) - 2
        self.arrays.append(self.draw.standard_normal(shape).astype(np.float32))
        return self.given(len(self.arrays) - 1)

    def skip(self, shape):
        return self.input(shape)

    def convolution(self, node, before, after, extent):
        return self.convolved(node, self.weights(after, before, *[extent] * self.axes))


class OpenVINO(Network):
    def __init__(self, variant, spin):
        super().__init__(variant, spin)
        self.parameters = []

    def given(self, index):
        from openvino import opset13 as ops

        self.parameters.append(ops.parameter(list(self.arrays[index].shape), np.float32))
        return self.parameters[-1]

    def skip(self, shape):
        return self.convolution(self.input(shape), shape[1], shape[1], 1)  # channels last, as in networks

    def convolved(self, node, weights):
        from openvino import opset13 as ops

        pads, one = [extent // 2 for extent in weights.shape[2:]], [1] * (weights.ndim - 2)
        return ops.convolution(node, ops.constant(weights), one, pads, pads, one)

    def relu(self, node):
        from openvino import opset13 as ops

        return ops.relu(node)

    def pool(self, node):
        from openvino import opset1 as ops

        return ops.max_pool(node, [2, 2], [0, 0], [0, 0], [2, 2])

    def decode(self, skip, node, weights, strides):
        from openvino import opset13 as ops

        return ops.concat([skip, ops.convolution_backprop_data(node, ops.constant(weights), strides)], 1)

    def finish(self, output):
        import openvino

        model = openvino.Model([output], self.parameters)
        if self.variant != "stock":
            import tconv_cl.openvino

            tconv_cl.openvino.convert(model, fuse_concat=self.variant == "fused")
        options = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        request = openvino.Core().compile_model(model, "CPU", options).create_infer_request()
        for i, array in enumerate(self.arrays):
            request.get_input_tensor(i).data[...] = array

        def run():
            request.infer()
            return request.get_output_tensor().data

        return run


class ONNXRuntime(Network):
    def __init__(self, variant, spin):
        super().__init__(variant, spin)
        self.nodes, self.constants = [], {}

    def add(self, operator, *inputs, **attributes):
        from onnx import helper

        names = []
        for i, one in enumerate(inputs):
            names.append(one if isinstance(one, str) else f"c{len(self.nodes)}_{i}")
            if not isinstance(one, str):
                self.constants[names[-1]] = one
        self.nodes.append(helper.make_node(operator, names, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def given(self, index):
        return f"x{index}"

    def convolved(self, node, weights):
        return self.add("Conv", node, weights, pads=[extent // 2 for extent in weights.shape[2:]] * 2)

    def relu(self, node):
        return self.add("Relu", node)

    def pool(self, node):
        return self.add("MaxPool", node, kernel_shape=[2, 2], strides=[2, 2])

    def decode(self, skip, node, weights, strides):
        return self.add("Concat", skip, self.add("ConvTranspose", node, weights, strides=strides), axis=1)

    def finish(self, output):
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper

        value = helper.make_tensor_value_info
        inputs = [value(f"x{i}", TensorProto.FLOAT, array.shape) for i, array in enumerate(self.arrays)]
        constants = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "graph", inputs, [value(output, TensorProto.FLOAT, None)], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
        options = onnxruntime.SessionOptions()
        if self.variant != "stock":
            import tconv_cl.onnxruntime

            tconv_cl.onnxruntime.session_options(options, fuse_concat=self.variant == "fused")
        options.log_severity_level = 3
        if not self.spin:
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(model, options)
        feeds = {f"x{i}": array for i, array in enumerate(self.arrays)}
        return lambda: session.run(None, feeds)[0]


class PyTorch(Network):
    """Steps of (result, function, operands); a tensor is freed after its last use."""

    def __init__(self, variant, spin):
        super().__init__(variant, spin)
        self.steps = []

    def add(self, function, *operands):
        self.steps.append((f"v{len(self.steps)}", function, operands))
        return self.steps[-1][0]

    def given(self, index):
        return f"x{index}"

    def module(self, name, weights, before, after, **options):
        import tconv_cl.torch
        import torch

        kind = getattr(torch.nn, f"{name}{self.axes}d")
        module = kind(before, after, weights.shape[2:], bias=False, **options).eval()
        module.weight.data = torch.from_numpy(weights)
        if self.variant != "stock":
            tconv_cl.torch.convert(module, fallback="error")
        return module

    def convolved(self, node, weights):
        padding = [extent // 2 for extent in weights.shape[2:]]
        return self.add(self.module("Conv", weights, weights.shape[1], weights.shape[0], padding=padding), node)

    def relu(self, node):
        import torch

        return self.add(torch.relu, node)

    def pool(self, node):
        import torch

        return self.add(lambda x: torch.nn.functional.max_pool2d(x, 2), node)

    def decode(self, skip, node, weights, strides):
        import tconv_cl.torch
        import torch

        up = self.module("ConvTranspose", weights, weights.shape[0], weights.shape[1], stride=strides)
        if self.variant == "fused":
            return self.add(lambda skip, x: tconv_cl.torch.conv_transpose_cat([skip, (up, x)]), skip, node)
        return self.add(lambda skip, x: torch.cat([skip, up(x)], 1), skip, node)

    def finish(self, output):
        import torch

        last = {name: i for i, (_, _, operands) in enumerate(self.steps) for name in operands}
        inputs = {f"x{i}": torch.from_numpy(array) for i, array in enumerate(self.arrays)}

        def run():
            values = dict(inputs)
            with torch.inference_mode():
                for i, (result, function, operands) in enumerate(self.steps):
                    values[result] = function(*(values[name] for name in operands))
                    for name in set(operands):
                        if last[name] == i:
                            del values[name]
            return values[output].numpy()

        return run


RUNTIMES = {"openvino": OpenVINO, "onnxruntime": ONNXRuntime, "torch": PyTorch}


def measure(graphs, seconds, clock):
    """The median milliseconds of each, and the results. Each graph runs several times in its turn, and the first run
    does not count: threads of the runtime that ran before wait awake for up to 50 ms."""
    results = [graph() for graph in graphs]
    times = [[] for _ in graphs]
    end = time.perf_counter() + seconds * len(graphs)
    while time.perf_counter() < end or len(times[0]) < 5:
        for graph, its in zip(graphs, times):
            graph()
            turn = time.perf_counter() + TURN
            while time.perf_counter() < turn:
                begin = clock()
                graph()
                its.append(1e3 * (clock() - begin))
    return [statistics.median(its) for its in times], results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtime", choices=RUNTIMES)
    parser.add_argument("--ids", default=IDS, help="layers of the suite, and U-Net (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="for each graph (%(default)s)")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="of all threads together, which waits of threads add to: for busy machines",
    )
    arguments = parser.parse_args()
    with open(os.path.join(HERE, "suite.csv"), newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    names = arguments.ids.split(",")
    unknown = set(names) - {*rows, UNET}
    if unknown:
        parser.error(f"bench/suite.csv has no {', '.join(sorted(unknown))}")
    for row in [rows[name] for name in names if name != UNET]:
        if any(set(row[key].split("x")) != {value} for key, value in PLAIN.items()):
            parser.error(
                f"{row['id']} has groups, pads, output padding or dilations, "
                "which the layers of these graphs do not have"
            )
    print("| layer | stock ms | apart ms | fused ms | stock / fused | apart / fused | difference |")
    print(f"|{'---|' * 7}")
    ratios, wrong = [], False
    for name in names:
        makers = [RUNTIMES[arguments.runtime](variant, not arguments.cpu_time) for variant in VARIANTS]
        graphs = [make.finish(unet(make) if name == UNET else chain(make, Layer(rows[name]))) for make in makers]
        times, results = measure(
            graphs, arguments.seconds, time.process_time if arguments.cpu_time else time.perf_counter
        )
        difference = max(np.abs(result - results[0]).max() for result in results[1:]) / np.abs(results[0]).max()
        wrong |= not difference <= TOLERANCE
        ratios.append((times[0] / times[2], times[1] / times[2]))
        title = UNET if name == UNET else f"{name} {rows[name]['layer']}"
        cells = [title, *(f"{ms:.3f}" for ms in times), *(f"{ratio:.2f}" for ratio in ratios[-1]), f"{difference:.0e}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    means = (math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios))
    print(f"| geometric mean | | | | {' | '.join(f'{mean:.2f}' for mean in means)} | |")
    return "a result is wrong" if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
