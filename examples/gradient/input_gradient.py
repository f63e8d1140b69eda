#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradient of a convolution with respect to its data, by PyTorch and by tconv-cl.

    python examples/gradient/input_gradient.py

Python needs torch and the package tconv_cl, as docs/torch.md installs them. `tconv_cl.conv_input_gradient` takes what
`torch.nn.grad.conv2d_input` takes: the shape of the data, the weights and the gradient of the output. Several sizes of
the data give the same output with a stride above 1; the shape decides. The last line trains through a function whose
backward pass is tconv-cl's. The script fails if a gradient differs by more than rounding explains."""

import itertools

import torch

import tconv_cl

TOLERANCE = 1e-5  # of the largest element: sums of at most some hundred products in f32


def difference(wanted, dx):
    return float((dx - wanted).abs().max() / wanted.abs().max())


class Convolution(torch.autograd.Function):
    """A convolution of PyTorch's whose gradient with respect to the data is tconv-cl's: the same bits in every run."""

    @staticmethod
    def forward(ctx, data, weight, stride, padding):
        ctx.save_for_backward(data, weight)
        ctx.stride, ctx.padding = stride, padding
        return torch.nn.functional.conv2d(data, weight, None, stride, padding)

    @staticmethod
    def backward(ctx, grad):
        data, weight = ctx.saved_tensors
        to_data = tconv_cl.conv_input_gradient(
            data.shape, weight, grad, strides=ctx.stride, pads_begin=ctx.padding, pads_end=ctx.padding
        )
        to_weight = torch.nn.grad.conv2d_weight(data, weight.shape, grad, ctx.stride, ctx.padding)
        return torch.from_numpy(to_data), to_weight, None, None


def main():
    torch.manual_seed(1)
    print("size      stride  padding  dilation  groups  difference")
    largest, count = 0.0, 0
    sizes, groups = ((12, 12), (13, 12), (13, 15)), (1, 2)
    for size, stride, padding, dilation, group in itertools.product(sizes, (1, 2, 3), ((0, 0), (1, 2)), (1, 2), groups):
        data = torch.randn(2, 4, *size)
        weight = torch.randn(6, 4 // group, 3, 3)
        output = torch.nn.functional.conv2d(data, weight, None, stride, padding, dilation, group)
        grad = torch.randn_like(output)
        wanted = torch.nn.grad.conv2d_input(data.shape, weight, grad, stride, padding, dilation, group)
        dx = tconv_cl.conv_input_gradient(
            data.shape, weight, grad, strides=stride, pads_begin=padding, pads_end=padding, dilations=dilation,
            groups=group,
        )  # fmt: skip
        found = difference(wanted, torch.from_numpy(dx))
        largest, count = max(largest, found), count + 1
        if count % 12 == 1:
            print(f"{size[0]} x {size[1]}   {stride:<6}  {padding}   {dilation:<8}  {group:<6}  {found:.0e}")
    assert largest < TOLERANCE, largest

    data, weight = torch.randn(1, 4, 9, 9, requires_grad=True), torch.randn(6, 4, 3, 3)
    Convolution.apply(data, weight, 2, 1).square().sum().backward()
    own = data.grad
    data.grad = None
    torch.nn.functional.conv2d(data, weight, None, 2, 1).square().sum().backward()
    largest = max(largest, difference(data.grad, own))
    assert largest < TOLERANCE, largest
    print(f"{count} gradients and a backward pass: the largest difference is {largest:.0e} of the largest element")


if __name__ == "__main__":
    main()
