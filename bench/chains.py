#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a small graph, as layers stand in networks: a 1x1 convolution, a transposed convolution, a 1x1 convolution; as
the runtime computes it, and with tconv-cl in it.

    python bench/chains.py openvino                    f32
    python bench/chains.py onnxruntime --quantized     with integers
    python bench/chains.py torch --channels-last --ids B08,B33
    python bench/chains.py onnxruntime --requests 4    by four threads at once

OpenVINO and ONNX Runtime keep small layers (B18), as they do in applications: docs/openvino.md, least_macs.

Python needs the runtime and the package tconv_cl, as docs/openvino.md, docs/onnxruntime.md and docs/torch.md install
them. The two graphs run in turn, in bursts; the least time of each counts, or with --medians its median, which shows
when threads get into each other's way. There are two threads, or as many as there are processors. The results of the
two are compared. With --quantized, data and weights are 8-bit: FakeQuantize in OpenVINO, QuantizeLinear and
DequantizeLinear in ONNX Runtime. With --requests, as many threads call the same graph at once, and milliseconds are
the elapsed time for each call: the least, or the median, of the bursts. Prints a table: above 1, tconv-cl is faster."""

import argparse
import concurrent.futures
import csv
import math
import os
import statistics
import sys
import threading
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
REQUESTED_IDS = "B26,B33,B08"  # by several threads: small, medium and large
IDS = "B08,B09,B18,B23,B26,B31,B33,B44,B48,B54,B59,B62,B66"  # of the suite; 1-D, 3-D and depthwise among them
TOLERANCE = 1e-4  # of the largest output; with 8-bit levels two of these
LISTS = ("input", "kernel", "strides", "dilations", "pads_begin", "pads_end", "output_padding")


class Layer:
    """One of the suite, with data, weights, and the weights of the convolutions around it."""

    def __init__(self, row):
        for name in LISTS:
            setattr(self, name, [int(extent) for extent in row[name].split("x")])
        self.groups, self.inner, self.outer = (int(row[name]) for name in ("groups", "in_channels", "out_channels"))
        self.axes = len(self.input)
        draw, one = np.random.default_rng(0), [1] * self.axes

        def scaled(terms, *shape):
            return (draw.standard_normal(shape) / math.sqrt(terms)).astype(np.float32)

        self.data = scaled(1, int(row["batch"]), self.inner, *self.input)
        self.before = scaled(self.inner, self.inner, self.inner, *one)
        terms = self.inner // self.groups * math.prod(self.kernel)
        self.filter = scaled(terms, self.inner, self.outer // self.groups, *self.kernel)
        self.after = scaled(self.outer, 8, self.outer, *one)


class OpenVINO:
    """FakeQuantize has 256 levels from -4 to 4 for data, and 255 levels to the largest number for weights."""

    def __init__(self, layer, ours, arguments):
        import openvino
        from openvino import opset13 as ops

        def levels(node, low, high, count):
            bounds = (ops.constant(np.array(bound, np.float32)) for bound in (low, high, low, high))
            return ops.fake_quantize(node, *bounds, count) if arguments.quantized else node

        def weights(values):
            return levels(ops.constant(values), -np.abs(values).max(), np.abs(values).max(), 255)

        def data(node):
            return levels(node, -4, 4 - 8 / 256, 256)

        def convolution(node, values):
            one, zero = [1] * layer.axes, [0] * layer.axes
            return ops.convolution(data(node), weights(values), one, zero, zero, one)

        x = ops.parameter(list(layer.data.shape), np.float32)
        shape = [layer.groups, layer.inner // layer.groups, *layer.filter.shape[1:]]
        grouped = layer.groups > 1
        node = (ops.group_convolution_backprop_data if grouped else ops.convolution_backprop_data)(
            data(convolution(x, layer.before)),
            weights(layer.filter.reshape(shape) if grouped else layer.filter),
            layer.strides,
            None,
            layer.pads_begin,
            layer.pads_end,
            layer.dilations,
            output_padding=layer.output_padding,
        )
        model = openvino.Model([convolution(node, layer.after)], [x])
        if ours:
            import tconv_cl.openvino

            tconv_cl.openvino.convert(model)  # not where the layer is small
        hint = "LATENCY" if arguments.requests == 1 else "THROUGHPUT"
        options = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": hint}
        if arguments.requests > 1:
            options["PERFORMANCE_HINT_NUM_REQUESTS"] = arguments.requests
        compiled = openvino.Core().compile_model(model, "CPU", options)
        self.requests = [compiled.create_infer_request() for _ in range(arguments.requests)]
        for request in self.requests:
            request.get_input_tensor().data[...] = layer.data

    def run(self, thread=0):
        self.requests[thread].infer()

    def output(self):
        return self.requests[0].get_output_tensor().data.copy()


class ONNXRuntime:
    """Quantized, each tensor is one of u8 or, for weights, i8."""

    def __init__(self, layer, ours, arguments):
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper

        nodes, constants = [], {}

        def add(operator, inputs, output, **attributes):
            nodes.append(helper.make_node(operator, inputs, [output], **attributes))
            return output

        def data(name):
            if not arguments.quantized:
                return name
            constants["step"], constants["zero"] = np.array(8 / 256, np.float32), np.array(128, np.uint8)
            quantized = add("QuantizeLinear", [name, "step", "zero"], name + "_u8")
            return add("DequantizeLinear", [quantized, "step", "zero"], name + "_widened")

        def weights(name, values):
            if not arguments.quantized:
                constants[name] = values
                return name
            step = np.abs(values).max() / 127
            constants[name] = np.round(values / step).astype(np.int8)
            constants[name + "_step"] = np.array(step, np.float32)
            constants[name + "_zero"] = np.array(0, np.int8)
            return add("DequantizeLinear", [name, name + "_step", name + "_zero"], name + "_widened")

        options = {
            "strides": layer.strides,
            "dilations": layer.dilations,
            "pads": layer.pads_begin + layer.pads_end,
            "output_padding": layer.output_padding,
            "group": layer.groups,
            "kernel_shape": layer.kernel,
        }
        node = add("Conv", [data("x"), weights("before", layer.before)], "u")
        node = add("ConvTranspose", [data(node), weights("filter", layer.filter)], "v", **options)
        add("Conv", [data(node), weights("after", layer.after)], "y")
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes,
            "chain",
            [value("x", TensorProto.FLOAT, layer.data.shape)],
            [value("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
        if ours:
            import tconv_cl.onnxruntime

            options = tconv_cl.onnxruntime.session_options()
        else:
            options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session, self.feeds = onnxruntime.InferenceSession(model, options), {"x": layer.data}

    def run(self, thread=0):
        return self.session.run(None, self.feeds)[0]

    output = run


class PyTorch:
    def __init__(self, layer, ours, arguments):
        import torch

        self.torch = torch
        assert layer.pads_begin == layer.pads_end, "PyTorch has the same pads on both sides"
        convolution = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[layer.axes - 1]
        transposed = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[layer.axes - 1]
        self.model = torch.nn.Sequential(
            convolution(layer.inner, layer.inner, 1, bias=False),
            transposed(
                layer.inner,
                layer.outer,
                layer.kernel,
                layer.strides,
                layer.pads_begin,
                layer.output_padding,
                layer.groups,
                False,
                layer.dilations,
            ),
            convolution(layer.outer, 8, 1, bias=False),
        ).eval()
        for module, values in zip(self.model, (layer.before, layer.filter, layer.after)):
            module.weight.data = torch.from_numpy(values)
        self.data = torch.from_numpy(layer.data)
        if arguments.channels_last and layer.axes > 1:
            form = (torch.channels_last, torch.channels_last_3d)[layer.axes - 2]
            self.model, self.data = self.model.to(memory_format=form), self.data.to(memory_format=form)
        if ours:
            import tconv_cl.torch

            tconv_cl.torch.convert(self.model)

    def run(self, thread=0):
        with self.torch.inference_mode():
            return self.model(self.data)

    def output(self):
        return self.run().numpy()


RUNTIMES = {"openvino": OpenVINO, "onnxruntime": ONNXRuntime, "torch": PyTorch}


def at_once(graph, requests, seconds):
    """The elapsed seconds for each run of the graph while threads run it at once."""
    begun = threading.Barrier(requests)

    def call(thread):
        try:
            graph.run(thread)  # a runtime may prepare each thread
        finally:
            begun.wait()  # even after an error: the other threads wait for this one
        begin, runs = time.perf_counter(), 0
        while time.perf_counter() < begin + seconds:
            graph.run(thread)
            runs += 1
        return begin, time.perf_counter(), runs

    with concurrent.futures.ThreadPoolExecutor(requests) as pool:
        begins, ends, runs = zip(*pool.map(call, range(requests)))
    return (max(ends) - min(begins)) / sum(runs)


def measure(graphs, requests, seconds, of, bursts=8):
    """The milliseconds of each: `of` is a function of all its times."""
    for graph in graphs:
        graph.run()
        graph.run()
    times = [[] for _ in graphs]
    for _ in range(bursts):
        for i, graph in enumerate(graphs):
            if requests > 1:
                times[i].append(at_once(graph, requests, seconds / bursts))
                continue
            end = time.perf_counter() + seconds / bursts
            while time.perf_counter() < end:
                begin = time.perf_counter()
                graph.run()
                times[i].append(time.perf_counter() - begin)
    return [of(each) * 1e3 for each in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtime", choices=RUNTIMES)
    parser.add_argument("--ids", help=f"layers of the suite ({IDS}; with --requests {REQUESTED_IDS})")
    parser.add_argument("--channels-last", action="store_true", help="PyTorch: tensors with channels last")
    parser.add_argument("--quantized", action="store_true", help="OpenVINO and ONNX Runtime: layers of integers")
    parser.add_argument("--seconds", type=float, default=2.5, help="for each graph (%(default)s)")
    parser.add_argument("--requests", type=int, default=1, help="threads that call at once (%(default)s)")
    parser.add_argument("--medians", action="store_true", help="medians in place of least times")
    arguments = parser.parse_args()
    if arguments.channels_last and arguments.runtime != "torch" or arguments.quantized and arguments.runtime == "torch":
        parser.error("--channels-last is for torch, --quantized for openvino and onnxruntime")
    if arguments.requests < 1:
        parser.error("--requests is at least 1")
    ids = (arguments.ids or (IDS if arguments.requests == 1 else REQUESTED_IDS)).split(",")
    with open(os.path.join(HERE, "suite.csv"), newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    unknown = set(ids) - set(rows)
    if unknown:
        parser.error(f"bench/suite.csv has no {', '.join(sorted(unknown))}")
    print("| layer | stock ms | with tconv-cl ms | stock / ours | difference |\n|---|---|---|---|---|")
    ratios, wrong = [], False
    for name in ids:
        layer = Layer(rows[name])
        graphs = [RUNTIMES[arguments.runtime](layer, ours, arguments) for ours in (False, True)]
        stock, ours = measure(
            graphs, arguments.requests, arguments.seconds, statistics.median if arguments.medians else min
        )
        outputs = [graph.output() for graph in graphs]
        difference = np.abs(outputs[0] - outputs[1]).max() / np.abs(outputs[0]).max()
        wrong |= not difference <= (2 / 256 if arguments.quantized else TOLERANCE)
        ratios.append(stock / ours)
        print(
            f"| {name} {rows[name]['layer']} | {stock:.3f} | {ours:.3f} | {stock / ours:.2f} | {difference:.0e} |",
            flush=True,
        )
    print(f"| geometric mean | | | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} | |")
    return "a result is wrong" if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
