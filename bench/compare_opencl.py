# SPDX-License-Identifier: Apache-2.0
"""Other OpenCL software that compare.py compares with, on the same device, in f32: tinygrad, CLBlast and OpenCV's dnn.

Their kernels are written for GPUs. Each function is like those of compare_peers.py. The device is the first one that
OpenCL lists; OpenCV's is the first processor, unless OPENCV_OPENCL_DEVICE says otherwise. Tensors stay on the device,
but for those of OpenCV.
"""

import ctypes
import functools
import math
import os

import numpy as np
from compare_peers import Peer, wheel


def tinygrad(_, layer, x, w, y, threads):
    """A captured graph (TinyJit), without its search (BEAM). Its transposed convolution inserts zeros."""
    os.environ["DEV"] = "CL"
    from tinygrad import Device, Tensor, TinyJit

    data, weights = Tensor(np.ascontiguousarray(x)).realize(), Tensor(np.ascontiguousarray(w)).realize()
    pads = tuple(zip(layer["pads_begin"], layer["pads_end"]))
    if any(begin != end for begin, end in pads):
        raise ValueError("only the same pads on both sides")

    @TinyJit
    def graph(node):
        return node.conv_transpose2d(
            weights,
            groups=layer["groups"],
            stride=tuple(layer["strides"]),
            dilation=tuple(layer["dilations"]),
            padding=tuple(layer["pads_begin"]),
            output_padding=tuple(layer["output_padding"]),
        ).realize()

    outputs = [None]

    def run():
        outputs[0] = graph(data)
        Device["CL"].synchronize()

    for _ in range(3):  # the second call captures the graph
        run()
    return run, lambda: outputs[0].numpy()


@functools.cache
def opencl():
    """A queue of pyopencl's, with its context."""
    import pyopencl

    device = pyopencl.get_platforms()[0].get_devices()[0]
    return pyopencl.CommandQueue(pyopencl.Context([device]))


def clblast(_, layer, x, w, y, threads):
    """Its GEMM for each image and group into a buffer of columns, which its col2im adds up in the cleared output."""
    import pyopencl

    if x.ndim > 4:
        raise ValueError("col2im has two axes")
    if layer["pads_begin"] != layer["pads_end"] or any(layer["output_padding"]):
        raise ValueError("only the same pads on both sides, and no output padding")
    library, queue = ctypes.CDLL("libclblast.so.1"), opencl()
    groups, batch = layer["groups"], layer["batch"]
    one_axis = len(layer["input"]) == 1

    def two(name, value):
        return [value, *layer[name]] if one_axis else layer[name]

    (height, width), kernel = two("output", 1), two("kernel", 1)
    inner, outer = layer["in_channels"] // groups, layer["out_channels"] // groups
    places, rows, image = math.prod(layer["input"]), outer * math.prod(kernel), outer * height * width
    # (G, outputs of a group x kernel, inputs of a group): no transposition is left for GEMM
    weights = np.ascontiguousarray(w.reshape(groups, inner, rows).transpose(0, 2, 1))
    flags = pyopencl.mem_flags
    data, matrix = (
        pyopencl.Buffer(queue.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(a))
        for a in (x, weights)
    )
    columns, output = (pyopencl.Buffer(queue.context, flags.READ_WRITE, 4 * size) for size in (rows * places, y.size))
    size, number, place = ctypes.c_size_t, ctypes.c_float, ctypes.c_void_p
    of_queue = place(queue.int_ptr)
    last = ctypes.byref(of_queue), None
    axes = [
        size(value)
        for name, absent in (("pads_begin", 0), ("strides", 1), ("dilations", 1))
        for value in two(name, absent)
    ]

    def check(name, status):
        if status != 0:
            raise RuntimeError(f"{name} returns {status}")

    def run():
        pyopencl.enqueue_fill_buffer(queue, output, np.float32(0), 0, 4 * y.size)
        for item in range(batch):
            for group in range(groups):
                at = item * groups + group
                multiplied = library.CLBlastSgemm(
                    *(101, 111, 111, size(rows), size(places), size(inner), number(1)),
                    *(place(matrix.int_ptr), size(group * rows * inner), size(inner)),
                    *(place(data.int_ptr), size(at * inner * places), size(places), number(0)),
                    *(place(columns.int_ptr), size(0), size(places), *last),
                )
                check("CLBlastSgemm", multiplied)
                added = library.CLBlastScol2im(
                    *(151, size(outer), size(height), size(width), *map(size, kernel), *axes),
                    *(place(columns.int_ptr), size(0), place(output.int_ptr), size(at * image), *last),
                )
                check("CLBlastScol2im", added)
        queue.finish()

    def result():
        pyopencl.enqueue_copy(queue, y, output)
        return y

    return run, result


def opencv(_, layer, x, w, y, threads):
    """Its dnn with the target OpenCL. OpenCV 5's wheels run no OpenCL kernel there: Debian's python3-opencv does."""
    os.environ.setdefault("OPENCV_DNN_OPENCL_ALLOW_ALL_DEVICES", "1")
    os.environ.setdefault("OPENCV_OPENCL_DEVICE", ":CPU:")
    import cv2
    from onnx import helper, numpy_helper, TensorProto

    if x.ndim > 4:
        raise ValueError("it crashes with three axes")
    if not cv2.ocl.haveOpenCL():
        raise ValueError("it finds no OpenCL device")
    cv2.ocl.setUseOpenCL(True)
    node = helper.make_node(
        "ConvTranspose",
        ["x", "w"],
        ["y"],
        group=layer["groups"],
        kernel_shape=layer["kernel"],
        strides=layer["strides"],
        dilations=layer["dilations"],
        pads=layer["pads_begin"] + layer["pads_end"],
        output_padding=layer["output_padding"],
    )
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "layer",
        [value("x", TensorProto.FLOAT, x.shape)],
        [value("y", TensorProto.FLOAT, y.shape)],
        [numpy_helper.from_array(np.ascontiguousarray(w), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    net = cv2.dnn.readNetFromONNX(np.frombuffer(model.SerializeToString(), np.uint8))
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    net.setPreferableTarget(cv2.dnn.DNN_TARGET_OPENCL)
    outputs = [None]

    def run():
        net.setInput(x)
        outputs[0] = net.forward()

    return run, lambda: outputs[0]


def version_of_clblast():
    """By the name of the library's file."""
    library = ctypes.CDLL("libclblast.so.1")
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps if "libclblast.so" in line}
    del library
    return os.path.realpath(files.pop()).partition(".so.")[2]


def version_of_opencv():
    import cv2

    return cv2.__version__


OPENCL_PEERS = {
    "tinygrad": Peer(wheel("tinygrad"), tinygrad, ("plain",)),
    "clblast": Peer(version_of_clblast, clblast, ("plain",)),
    "opencv": Peer(version_of_opencv, opencv, ("plain",)),
}
