# SPDX-License-Identifier: Apache-2.0
"""What compare.py needs for suites of convolutions with nearest upsampling or pixel shuffle, and of ordinary ones: the
layers, a reference, and how each system computes one in its stock operators.

A layer has two descriptions: `layer["convolution"]` is that of its file, and the layer itself is the transposed
convolution that is equivalent to it. So every function of compare_peers.py computes the layer from the equivalent
filter, `summed`: that is "the same trick", while `STOCK` has the two operators that a network's author writes.
"""

import math

import numpy as np

from compare_peers import LAST, Peer, aligned, ncnn_net, numbers_of, onnx_session, openvino_request, to_first, to_last

FACTORS = ("upsample", "pixel_shuffle")
NUMBERS = ("kernel", "dilations", "pads_begin", "pads_end")


def described(row):
    """A row of the suite with factors, as both descriptions."""
    kind = "shuffle" if row["pixel_shuffle"] else "upsample"
    factors = row["pixel_shuffle"] or row["upsample"]
    own = {name: row[name] for name in NUMBERS} | {"kind": kind, "factors": factors}
    own["out_channels"] = row["out_channels"] * (math.prod(factors) if kind == "shuffle" else 1)
    layer = dict(row, convolution=own, strides=factors, output_padding=[0] * len(factors))
    for name in NUMBERS:
        layer[name] = []
    for s, k, d, begin, end in zip(factors, *(row[name] for name in NUMBERS)):
        pads, span = (begin, end), d * (k - 1)
        layer["kernel"].append(k if s == 1 else s * k if kind == "shuffle" else span + s)
        layer["dilations"].append(d if s == 1 else 1)
        layer["pads_begin"].append((s if kind == "shuffle" else 1) * (span - pads[0]))
        layer["pads_end"].append((s if kind == "shuffle" else 1) * (span - pads[1]))
    return layer


def is_plain(layer):
    """Whether it is an ordinary convolution, which no trick makes faster."""
    return math.prod(layer["strides"]) == 1


def multiply_adds(layer):
    """Of the two operators."""
    own = layer["convolution"]
    grown = math.prod(own["factors"]) if own["kind"] == "upsample" else 1
    weights = own["out_channels"] * layer["in_channels"] // layer["groups"] * math.prod(own["kernel"])
    return layer["batch"] * weights * math.prod(layer["input"]) * grown


def filter_shape(layer):
    own = layer["convolution"]
    return own["out_channels"], layer["in_channels"] // layer["groups"], *own["kernel"]


def summed(layer, w):
    """The equivalent filter (in, out of one group, kernel): sums of the convolution's weights, or another order."""
    own, groups = layer["convolution"], layer["groups"]
    axes = len(own["kernel"])
    if own["kind"] == "shuffle":
        taps = np.flip(w, range(2, axes + 2)).reshape(groups, -1, *own["factors"], *w.shape[1:])
        inner = axes + 2
        order = [at for a in range(axes) for at in (inner + 1 + a, 2 + a)]
        return np.ascontiguousarray(taps.transpose(0, inner, 1, *order)).reshape(
            layer["in_channels"], -1, *layer["kernel"]
        )
    taps = w.astype(np.float64).reshape(groups, -1, *w.shape[1:]).swapaxes(1, 2)
    for a, (s, k, d, t) in enumerate(zip(own["factors"], own["kernel"], own["dilations"], layer["kernel"])):
        step = d if s > 1 else 1
        adds = np.array([[0 <= tap - step * (k - 1 - j) < s for j in range(k)] for tap in range(t)], np.float64)
        taps = np.moveaxis(np.tensordot(taps, adds, (a + 3, 1)), -1, a + 3)
    return np.ascontiguousarray(taps.reshape(layer["in_channels"], -1, *layer["kernel"]), np.float32)


def shuffled(y, factors, reshape, transpose):
    """Pixel shuffle of any number of axes, in a system's own reshape and transpose."""
    batch, channels, *extents = y.shape
    axes = len(factors)
    y = reshape(y, (batch, channels // math.prod(factors), *factors, *extents))
    y = transpose(y, (0, 1, *(at for a in range(axes) for at in (axes + 2 + a, 2 + a))))
    return reshape(y, (batch, channels // math.prod(factors), *(f * e for f, e in zip(factors, extents))))


def reference(layer, x, w):
    """The two operators by their definitions, in f64: enlarge, pad, add up every tap's products, shuffle."""
    own, groups = layer["convolution"], layer["groups"]
    x, w = x.astype(np.float64), w.astype(np.float64)
    if own["kind"] == "upsample":
        for a, factor in enumerate(own["factors"]):
            x = x.repeat(factor, a + 2)
    x = np.pad(x, [(0, 0), (0, 0), *zip(own["pads_begin"], own["pads_end"])])
    spatial = list(zip(x.shape[2:], own["kernel"], own["dilations"]))
    extents = [e - d * (k - 1) for e, k, d in spatial]
    y = np.zeros((x.shape[0], groups, w.shape[0] // groups, math.prod(extents)))
    for at in np.ndindex(*own["kernel"]):
        where = tuple(slice(j * d, j * d + e) for j, (_, _, d), e in zip(at, spatial, extents))
        part = x[(slice(None), slice(None), *where)].reshape(x.shape[0], groups, w.shape[1], -1)
        y += w[(slice(None), slice(None), *at)].reshape(groups, -1, w.shape[1]) @ part
    y = y.reshape(x.shape[0], w.shape[0], *extents)
    return (shuffled(y, own["factors"], np.reshape, np.transpose) if own["kind"] == "shuffle" else y).astype(np.float32)


def enlarges(own):
    return own["kind"] == "upsample" and math.prod(own["factors"]) > 1


def shuffles(own):
    return own["kind"] == "shuffle" and math.prod(own["factors"]) > 1


def square(own):
    """The one factor of all axes; a system that knows no other refuses."""
    if len(set(own["factors"])) > 1:
        raise ValueError("it knows one factor for all axes")
    return own["factors"][0]


def openvino(variant, layer, x, w, y, threads):
    from openvino import opset13 as op

    own, groups, rank, plain = layer["convolution"], layer["groups"], x.ndim, variant == "plain"
    given = x if plain else to_last(x)
    data = node = op.parameter(list(given.shape), np.float32)
    if not plain:
        node = op.transpose(node, [0, rank - 1, *range(1, rank - 1)])
    if enlarges(own):
        modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        scales, axes = np.array(own["factors"], np.float32), np.arange(2, rank)
        node = op.interpolate(node, scales, "nearest", "scales", axes=axes, **modes)
    pads = own["pads_begin"], own["pads_end"]
    ones, dilations = [1] * (rank - 2), own["dilations"]
    weights = op.constant(w if groups == 1 else w.reshape(groups, -1, *w.shape[1:]))
    node = (op.convolution if groups == 1 else op.group_convolution)(node, weights, ones, *pads, dilations)
    if shuffles(own):
        node = op.depth_to_space(node, "depth_first", square(own))
    if not plain:
        node = op.transpose(node, [0, *range(2, rank), 1])
    run, y = openvino_request(node, data, given, y, np.float32, threads)
    return run, lambda: numbers_of(y if plain else to_first(y))


def onnxruntime(_, layer, x, w, y, threads):
    import onnx

    own, node, nodes = layer["convolution"], onnx.helper.make_node, []
    constants = {"w": w}
    if enlarges(own):
        constants["scales"] = np.array([1, 1, *own["factors"]], np.float32)
        modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        nodes.append(node("Resize", ["x", "", "scales"], ["enlarged"], **modes))
    last = "convolved" if shuffles(own) else "y"
    pads = own["pads_begin"] + own["pads_end"]
    numbers = {"pads": pads, "dilations": own["dilations"], "group": layer["groups"]}
    nodes.append(node("Conv", ["enlarged" if enlarges(own) else "x", "w"], [last], **numbers))
    if shuffles(own) and x.ndim == 4:
        nodes.append(node("DepthToSpace", [last], ["y"], blocksize=square(own), mode="CRD"))
    elif shuffles(own):
        names = []

        def reshape(array, shape):
            constants[f"shape{len(names)}"] = np.array(shape, np.int64)
            source, target = names[-1] if names else last, "y" if names else "split"
            nodes.append(node("Reshape", [source, f"shape{len(names)}"], [target]))
            names.append(target)
            return np.broadcast_to(np.float32(0), shape)

        def transpose(array, order):
            nodes.append(node("Transpose", [names[-1]], ["moved"], perm=order))
            names.append("moved")
            return array.transpose(order)

        extents = [e // f for e, f in zip(y.shape[2:], own["factors"])]
        shuffled(np.broadcast_to(np.float32(0), (x.shape[0], w.shape[0], *extents)), own["factors"], reshape, transpose)
    return onnx_session(nodes, constants, x, y, threads), lambda: y


def pytorch(variant, layer, x, w, _, threads):
    import torch
    import torch.nn.functional as functional

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    own, rank = layer["convolution"], len(layer["input"])
    if rank > 3:
        raise ValueError("it knows up to three axes")
    if own["pads_begin"] != own["pads_end"]:
        raise ValueError("its pads are the same at both ends")
    data, weight = torch.from_numpy(x), torch.from_numpy(w)
    if variant == "channels last":
        if rank == 1:
            raise ValueError("its channels last are of two or three axes")
        order = {"memory_format": torch.channels_last if rank == 2 else torch.channels_last_3d}
        data, weight = data.contiguous(**order), weight.contiguous(**order)
    convolve = getattr(functional, f"conv{rank}d")
    factors = tuple(map(float, own["factors"]))

    def run():
        torch.backends.mkldnn.enabled = variant != "plain, without oneDNN"
        LAST.clear()
        enlarged = functional.interpolate(data, scale_factor=factors, mode="nearest") if enlarges(own) else data
        y = convolve(enlarged, weight, None, 1, own["pads_begin"], own["dilations"], layer["groups"])
        if shuffles(own) and rank == 2:
            y = functional.pixel_shuffle(y, square(own))
        elif shuffles(own):
            y = shuffled(y, own["factors"], torch.reshape, torch.permute)
        LAST.append(y)

    return run, lambda: LAST[0].numpy()


def ncnn(_, layer, x, w, y, threads):
    own, groups, rank = layer["convolution"], layer["groups"], x.ndim - 2
    if rank > 3 or (rank != 2 and math.prod(own["factors"]) > 1):
        raise ValueError("it enlarges and shuffles planes only")
    nodes, source = [], "x"
    if enlarges(own):
        height, width = own["factors"]
        nodes.append(f"Interp i 1 1 x u 0=1 1={height:.1f} 2={width:.1f}")
        source = "u"
    parameters = {0: w.shape[0], 6: w.size} | ({7: groups} if groups > 1 else {})
    # Its numbers for an axis' kernel, dilation and pads; the last axis first.
    keys = ((1, 2, 4, 15), (11, 12, 14, 16), (21, 22, 24, 17))
    for numbers, values in zip(keys, reversed(list(zip(*(own[name] for name in NUMBERS))))):
        parameters.update(zip(numbers, values))
    kind = ("ConvolutionDepthWise" if groups > 1 else "Convolution") + ("1D", "", "3D")[rank - 1]
    target = "c" if shuffles(own) else "y"
    nodes.append(f"{kind} c 1 1 {source} {target} {' '.join(f'{k}={v}' for k, v in sorted(parameters.items()))}")
    if shuffles(own):
        nodes.append(f"PixelShuffle p 1 1 c y 0={square(own)}")
    return ncnn_net(nodes, w, x, threads), lambda: np.stack(LAST).reshape(y.shape)


# The compute function and the variants of each system that is timed with its stock operators.
STOCK = {
    "openvino": (openvino, ("plain", "channels last")),
    "onnxruntime": (onnxruntime, ("plain",)),
    "pytorch": (pytorch, ("plain", "plain, without oneDNN", "channels last")),
    "ncnn": (ncnn, ("plain",)),
}


def computations(peer: Peer, name, layer, w):
    """Each way in which a system computes the layer: (form, compute, variants, filter)."""
    if name in STOCK:
        yield ("stock", *STOCK[name], w)
    if not is_plain(layer):
        weights = summed(layer, w)
        yield "same", peer.compute, peer.variants, aligned(weights.shape, weights)
