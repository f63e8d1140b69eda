# SPDX-License-Identifier: Apache-2.0
"""The systems that compare.py compares with: how each computes one layer of the suite.

Each function is given one of its variants, the layer, data (N, C, ...), filter (in, out of one group, kernel...), an
array for the output, a number of threads and, if it knows several, an element type. It returns (run, result): `run` is
what is timed, `result` gives the output of the last run of any variant as NC[D]HW. Both keep alive what the other
needs. An exception is a refusal.
"""

import ctypes
import functools
import importlib.metadata
import math
import tempfile
from typing import Callable, NamedTuple

import numpy as np

LISTS = ("input", "kernel", "strides", "dilations", "pads_begin", "pads_end", "output_padding")


def aligned(shape, value=np.nan):
    """A new f32 array that begins at a cache line, as every system's own memory does."""
    count = math.prod(shape)
    room = np.empty(count + 16, np.float32)
    begin = -room.ctypes.data % 64 // 4
    array = room[begin : begin + count].reshape(shape)
    array[...] = value
    return array


class Element(NamedTuple):
    """An element type to compare: how numbers of data and filter are stored, and oneDNN's names of that."""

    data: type
    filter: type
    tolerance: float  # largest |y - reference| / max |reference| that rounding explains


# bf16 is stored in the upper half of an f32. Bytes are compared exactly.
ELEMENTS = {
    "f32": Element(np.float32, np.float32, 1e-4),
    "bf16": Element(np.uint16, np.uint16, 1e-2),
    "i8": Element(np.int8, np.int8, 1e-9),
    "u8": Element(np.uint8, np.int8, 1e-9),
}


def stored(a, kind):
    """Numbers that the type has, in that type, in the same order in memory and from a cache line on."""
    if kind is np.float32:
        return a
    axes = sorted(range(a.ndim), key=lambda axis: -a.strides[axis])
    room = np.empty(a.size + 64, kind)
    begin = -room.ctypes.data % 64 // room.itemsize
    array = room[begin : begin + a.size].reshape([a.shape[axis] for axis in axes]).transpose(np.argsort(axes))
    array[...] = np.ascontiguousarray(a).view(np.uint32) >> 16 if kind is np.uint16 else a
    return array


def numbers_of(a):
    """What `stored` stored, as f32."""
    return (a.astype(np.uint32) << 16).view(np.float32) if a.dtype == np.uint16 else a.astype(np.float32)


def to_last(a):
    return aligned((a.shape[0], *a.shape[2:], a.shape[1]), np.moveaxis(a, 1, -1))


def to_first(a):
    return np.moveaxis(a, -1, 1)


def openvino_request(node, data, given, y, kind, threads):
    """What computes the node of `data`, bound to both arrays, and the output as it will have it."""
    import openvino as ov

    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.Core().compile_model(ov.Model([node], [data]), "CPU", options)
    y = stored(y.reshape(tuple(compiled.output().shape)), kind)
    request = compiled.create_infer_request()
    request.set_input_tensor(ov.Tensor(given, shared_memory=True))
    request.set_output_tensor(ov.Tensor(y, shared_memory=True))
    return lambda given=given: request.infer(share_outputs=True), y


def openvino(variant, layer, x, w, y, threads, element=ELEMENTS["f32"]):
    """Bytes: as its quantized models have them, with steps of powers of two: so its passes compute with integers."""
    from openvino import opset13 as op

    plain, rank, real = variant == "plain", x.ndim, element is ELEMENTS["f32"]
    given = stored(x if plain else to_last(x), element.data)
    data = node = op.parameter(list(given.shape), element.data)
    weights = op.constant(
        stored(w.reshape(layer["groups"], -1, *w.shape[1:]) if layer["groups"] > 1 else w, element.filter)
    )
    if not real:
        node = op.multiply(op.convert(node, "f32"), np.float32(0.5))
        weights = op.multiply(op.convert(weights, "f32"), np.float32(0.5))
    if not plain:
        node = op.transpose(node, [0, rank - 1, *range(1, rank - 1)])
    attributes = {name: layer[name] for name in ("strides", "pads_begin", "pads_end", "dilations", "output_padding")}
    convolution = op.convolution_backprop_data if layer["groups"] == 1 else op.group_convolution_backprop_data
    node = convolution(node, weights, auto_pad="explicit", **attributes)
    if not real:
        low, high = np.iinfo(element.data).min, np.iinfo(element.data).max
        node = op.fake_quantize(node, *(np.array(v, np.float32) for v in (low / 4, high / 4, low, high)), 256)
        node = op.convert(node, element.data)
    if not plain:
        node = op.transpose(node, [0, *range(2, rank), 1])
    run, y = openvino_request(node, data, given, y, element.data, threads)
    return run, lambda: numbers_of(y if plain else to_first(y))


def onnx_session(nodes, constants, x, y, threads):
    """What runs the nodes from "x" to "y", bound to both arrays."""
    import onnx
    import onnxruntime as ort

    helper, real = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", real, x.shape)],
        [helper.make_tensor_value_info("y", real, y.shape)],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = [ort.OrtValue.ortvalue_from_numpy(a) for a in (x, y)]
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", values[0])
    binding.bind_ortvalue_output("y", values[1])
    return lambda keep=values: session.run_with_iobinding(binding)


def onnxruntime(_, layer, x, w, y, threads):
    import onnx

    node = onnx.helper.make_node(
        "ConvTranspose",
        ["x", "w"],
        ["y"],
        strides=layer["strides"],
        pads=layer["pads_begin"] + layer["pads_end"],
        dilations=layer["dilations"],
        group=layer["groups"],
        output_padding=layer["output_padding"],
    )
    return onnx_session([node], {"w": w}, x, y, threads), lambda: y


LAST = []  # the output of a peer that makes it itself; one at a time


def pytorch(variant, layer, x, w, _, threads, element=ELEMENTS["f32"]):
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    rank = len(layer["input"])
    if rank > 3:
        raise ValueError("it knows up to three axes")
    # Its pads are the same at both ends: the smallest such form that covers the output, then a view of the wanted part.
    padding, extra, crop = [], [], [slice(None), slice(None)]
    for _, _, s, d, begin, end, op, o in zip(*(layer[name] for name in (*LISTS, "output"))):
        pad = max(0, min(begin, end - op + max(s, d) - 1))
        padding.append(pad)
        extra.append(max(0, pad - (end - op)))
        crop.append(slice(begin - pad, begin - pad + o))
    data, weight = torch.from_numpy(x), torch.from_numpy(w)
    if element is ELEMENTS["bf16"]:
        data, weight = data.bfloat16(), weight.bfloat16()
    if variant == "channels last":
        if rank == 1:
            raise ValueError("its channels last are of two or three axes")
        order = {"memory_format": torch.channels_last if rank == 2 else torch.channels_last_3d}
        data, weight = data.contiguous(**order), weight.contiguous(**order)
    convolve = getattr(torch.nn.functional, f"conv_transpose{rank}d")

    def run():
        torch.backends.mkldnn.enabled = variant != "plain, without oneDNN"
        LAST.clear()
        LAST.append(
            convolve(data, weight, None, layer["strides"], padding, extra, layer["groups"], layer["dilations"])[
                tuple(crop)
            ]
        )

    return run, lambda: LAST[0].float().numpy()


class OneDnn:
    """The few calls of oneDNN's C API that are needed here. The numbers are its enumerators."""

    SRC, DST, WEIGHTS = 1, 17, 33
    TYPE = {np.float32: 3, np.uint16: 2, np.int8: 5, np.uint8: 6}
    MEMORY_OF = {SRC: 129, WEIGHTS: 131, DST: 133}  # what to ask a primitive's description for

    class Argument(ctypes.Structure):
        _fields_ = [("index", ctypes.c_int), ("memory", ctypes.c_void_p)]

    def __init__(self):
        files = importlib.metadata.files("onednn-cpu-gomp")
        self.library = ctypes.CDLL(str(next(file.locate() for file in files if file.name == "libdnnl.so.3")))
        self.library.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self.library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        self.engine = self.make("engine_create", 1, ctypes.c_size_t(0))  # a CPU
        self.stream = self.make("stream_create", self.engine, 1)  # in order

    def make(self, name, *arguments):
        handle = ctypes.c_void_p()
        status = getattr(self.library, "dnnl_" + name)(ctypes.byref(handle), *arguments)
        if status != 0:
            raise ValueError("oneDNN does not implement it" if status == 3 else f"dnnl_{name} returns {status}")
        return handle

    @staticmethod
    def numbers(values):
        return (ctypes.c_int64 * 12)(*values)

    def implementation(self, description):
        """The name of what oneDNN would run."""
        name = ctypes.c_char_p()
        self.library.dnnl_primitive_desc_query(description, 8, 0, ctypes.byref(name))
        return name.value.decode()

    def describe(self, array):
        return self.make(
            "memory_desc_create_with_strides",
            array.ndim,
            self.numbers(array.shape),
            self.TYPE[array.dtype.type],
            self.numbers(s // array.itemsize for s in array.strides),
        )

    def any_format(self, array):
        return self.make(
            "memory_desc_create_with_tag", array.ndim, self.numbers(array.shape), self.TYPE[array.dtype.type], 1
        )

    def memory(self, description, array=None):
        """Memory in `array`, or in a new one. Arrays stay with the handle: oneDNN does not own them."""
        if array is None:
            array = aligned((self.library.dnnl_memory_desc_get_size(description) // 4 + 1,), 0)
        memory = self.make("memory_create", description, self.engine, ctypes.c_void_p(array.ctypes.data))
        memory.array, memory.description = array, description
        return memory

    def step(self, description, memories):
        """A function that executes the described primitive with {argument: memory}."""
        primitive = self.make("primitive_create", description)
        arguments = (self.Argument * len(memories))(*((index, memory.value) for index, memory in memories.items()))
        execute, stream, count = self.library.dnnl_primitive_execute, self.stream, len(memories)

        def run(keep=memories):
            if execute(primitive, stream, count, arguments) != 0:
                raise ValueError("dnnl_primitive_execute fails")

        return run

    def reorder(self, source, target):
        description = self.make(
            "reorder_primitive_desc_create", source.description, self.engine, target.description, self.engine, None
        )
        return self.step(description, {self.SRC: source, self.DST: target})


@functools.cache
def onednn_library():
    return OneDnn()


def onednn(variant, layer, x, w, y, _, element=ELEMENTS["f32"]):
    if x.ndim > 5:
        raise ValueError("it knows up to three axes")
    dnn = onednn_library()
    if variant == "channels last":
        x, y = to_first(to_last(x)), to_first(y.reshape(y.shape[0], *y.shape[2:], y.shape[1]))
    weights = w.reshape(layer["groups"], -1, *w.shape[1:]).swapaxes(1, 2)  # group, out, in, kernel
    if layer["groups"] == 1:
        weights = weights[0]
    x, weights, y = stored(x, element.data), stored(weights, element.filter), stored(y, element.data)
    own_format = variant in ("own format", "plain, reordered")
    describe = dnn.any_format if own_format else dnn.describe
    # The output's extents say the rest.
    ends = [end - op for end, op in zip(layer["pads_end"], layer["output_padding"])]
    description = dnn.make(
        "deconvolution_forward_primitive_desc_create",
        dnn.engine,
        96,
        10,
        describe(x),
        dnn.any_format(weights),
        None,
        describe(y),
        dnn.numbers(layer["strides"]),
        dnn.numbers(d - 1 for d in layer["dilations"]),
        dnn.numbers(layer["pads_begin"]),
        dnn.numbers(ends),
        None,
    )
    if element is not ELEMENTS["f32"] and "ref:" in dnn.implementation(description):
        raise ValueError("it has only its reference for that")  # of minutes
    own = {
        a: dnn.memory(ctypes.c_void_p(dnn.library.dnnl_primitive_desc_query_md(description, q, 0)))
        for a, q in dnn.MEMORY_OF.items()
    }
    user_x, user_y = dnn.memory(dnn.describe(x), x), dnn.memory(dnn.describe(y), y)
    dnn.reorder(dnn.memory(dnn.describe(weights), weights), own[dnn.WEIGHTS])()
    if not own_format:
        own[dnn.SRC], own[dnn.DST] = user_x, user_y
    steps = [dnn.step(description, own)]
    if own_format:
        into, out_of = dnn.reorder(user_x, own[dnn.SRC]), dnn.reorder(own[dnn.DST], user_y)
        into()
        if variant == "plain, reordered":
            steps = [into, *steps, out_of]
    wait = dnn.library.dnnl_stream_wait

    def run():
        for step in steps:
            step()
        wait(dnn.stream)

    def result():
        if variant == "own format":
            out_of()
            wait(dnn.stream)
        return numbers_of(y)

    return run, result


def ncnn_net(nodes, weights, x, threads):
    """The function that runs the nodes from "x" to "y". One of the nodes has weights. ncnn has no batches: the function
    calls it for each item of the batch."""
    import ncnn as library

    net = library.Net()
    net.opt.num_threads = threads
    for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, option, False)
    text = "\n".join(["7767517", f"{len(nodes) + 1} {len(nodes) + 1}", "Input x 0 1 x", *nodes, ""])
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(4) + weights.tobytes())
        file.flush()
        if net.load_param_mem(text) or net.load_model(file.name):
            raise ValueError("it does not load the layer")
    items = [library.Mat(item).clone() for item in x]

    def run():
        LAST.clear()
        for item in items:
            extractor = net.create_extractor()
            extractor.input("x", item)
            code, output = extractor.extract("y")
            if code != 0:
                raise ValueError(f"it returns {code}")
            LAST.append(output)

    return run


def ncnn(_, layer, x, w, y, threads):
    rank, groups = len(layer["input"]), layer["groups"]
    if rank > 3:
        raise ValueError("it knows up to three axes")
    parameters = {0: layer["out_channels"], 6: w.size, 7: groups}
    # Its numbers for an axis' kernel, stride, dilation, pads and output padding; the last axis first.
    keys = ((1, 3, 2, 4, 15, 18), (11, 13, 12, 14, 16, 19), (21, 23, 22, 24, 17, 20))
    names = ("kernel", "strides", "dilations", "pads_begin", "pads_end", "output_padding")
    for numbers, values in zip(keys, reversed(list(zip(*(layer[name] for name in names))))):
        parameters.update(zip(numbers, values))
    kind = ("DeconvolutionDepthWise" if groups > 1 else "Deconvolution") + ("1D", "", "3D")[rank - 1]
    by_output = w.reshape(groups, -1, *w.shape[1:]).swapaxes(1, 2)
    node = f"{kind} d 1 1 x y {' '.join(f'{k}={v}' for k, v in sorted(parameters.items()))}"
    return ncnn_net([node], by_output, x, threads), lambda: np.stack(LAST).reshape(y.shape)


class Peer(NamedTuple):
    version: Callable  # raises if it is not installed
    compute: Callable
    variants: tuple  # those that begin with "plain" read and write NC[D]HW
    types: tuple = ("f32",)  # of more than one, `compute` is told which


def wheel(name):
    return functools.partial(importlib.metadata.version, name)


CPU_PEERS = {
    "openvino": Peer(wheel("openvino"), openvino, ("plain", "channels last"), ("f32", "i8", "u8")),
    "onnxruntime": Peer(wheel("onnxruntime"), onnxruntime, ("plain",)),
    "pytorch": Peer(wheel("torch"), pytorch, ("plain", "plain, without oneDNN", "channels last"), ("f32", "bf16")),
    "onednn": Peer(
        wheel("onednn-cpu-gomp"), onednn, ("plain", "plain, reordered", "channels last", "own format"), tuple(ELEMENTS)
    ),
    "ncnn": Peer(wheel("ncnn"), ncnn, ("plain",)),
}
