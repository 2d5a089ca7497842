"""Gradients of convolutions as convolutions, for any number of dimensions, stride, dilation and groups; and so
transposed convolutions with groups.

The importer's own lowering of `aten.convolution_backward` fails for groups, and gives wrong numbers for the transposed
convolution with groups that the gradient of the input is. Here both gradients are plain convolutions:

    y[n, o, q] = sum over i, k of  x[n, i, q s + k d - p] w[o, i, k]
    gx[n, i, r] = sum over o, k of  z[n, o, r + p - k d] w[o, i, k]        z: gy with s - 1 zeros between its elements
    gw[o, i, k] = sum over n, q of  x[n, i, q s + k d - p] gy[n, o, q]     strides and dilations have changed places
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        aten.convolution.default: convolution,
        aten.convolution_backward.default: convolution_backward,
    }


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """With groups, as the gradient of the plain convolution that it is. Volumes with groups of one channel, or of
    integers, are planes that are added up: the importer has no lowering for them."""
    rank = x.dim() - 2
    if rank == 3 and not transposed and groups > 1 and weight.dim() == 5 and not x.is_complex():
        if weight.shape[1] == 1 or not x.is_floating_point():
            steps = _spread(stride, rank), _spread(padding, rank), _spread(dilation, rank)
            return _by_planes(x, weight, bias, *steps, groups)
    if not transposed or groups == 1 or weight.dim() != x.dim() or x.is_complex():
        return NotImplemented
    stride, padding, dilation, more = (_spread(one, rank) for one in (stride, padding, dilation, output_padding))
    kernel = weight.shape[2:]
    sizes = [
        (x.shape[2 + dim] - 1) * stride[dim] - 2 * padding[dim] + dilation[dim] * (kernel[dim] - 1) + 1 + more[dim]
        for dim in range(rank)
    ]
    made = _input_gradient(x, weight, sizes, stride, padding, dilation, groups)
    return made if bias is None else made + bias.reshape([-1] + [1] * rank)


def _by_planes(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    """For each tap along the depth, a convolution of the planes that it sees."""
    taps = weight.shape[2]
    x = aten.constant_pad_nd(x, [0, 0, 0, 0, padding[0], padding[0]], 0)
    count = (x.shape[2] - dilation[0] * (taps - 1) - 1) // stride[0] + 1
    total: Any = None
    for tap in range(taps):
        first = tap * dilation[0]
        planes = x[:, :, first : first + (count - 1) * stride[0] + 1 : stride[0]].transpose(1, 2)
        flat = planes.reshape([x.shape[0] * count, *x.shape[1:2], *x.shape[3:]])
        rest = (None, stride[1:], padding[1:], dilation[1:], False, [0, 0], groups)
        made = aten.convolution(flat, weight[:, :, tap], *rest)
        total = made if total is None else total + made
    volume = total.reshape([x.shape[0], count, *total.shape[1:]]).transpose(1, 2)
    return volume if bias is None else volume + bias.reshape(-1, 1, 1, 1)


def convolution_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of input, weight and bias that `output_mask` asks for."""
    rank = x.dim() - 2
    stride, padding, dilation = (_spread(one, rank) for one in (stride, padding, dilation))
    of_input = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_input = aten.convolution(gradient, weight, None, stride, padding, dilation, False, [0] * rank, groups)
    elif output_mask[0]:
        of_input = _input_gradient(gradient, weight, x.shape[2:], stride, padding, dilation, groups)
    if output_mask[1]:
        # A transposed convolution is the gradient of a plain one, whose input is our output.
        small, large = (x, gradient) if transposed else (gradient, x)
        of_weight = _weight_gradient(large, small, weight.shape, stride, padding, dilation, groups)
    if output_mask[2]:
        of_bias = gradient.sum([0, *range(2, gradient.dim())])
    return of_input, of_weight, of_bias


def _spread(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _input_gradient(
    gradient: Tensor,
    weight: Tensor,
    sizes: Sequence[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    rank, kernel = len(sizes), weight.shape[2:]
    around: list[int] = []
    for dim in reversed(range(rank)):
        reach = dilation[dim] * (kernel[dim] - 1)
        spread = (gradient.shape[2 + dim] - 1) * stride[dim] + 1
        before = reach - padding[dim]
        # Positions behind the last window get zeros too.
        around += [before, sizes[dim] + reach - before - spread]
    turned = _turned(weight, groups)
    rest = (None, [1] * rank, [0] * rank, dilation, False, [0] * rank, groups)
    if all(size == 1 for size in kernel):
        # One tap multiplies what is there, and zeros come between the products.
        return aten.constant_pad_nd(_insert_zeros(aten.convolution(gradient, turned, *rest), stride), around, 0.0)
    spaced = aten.constant_pad_nd(_insert_zeros(gradient, stride), around, 0.0)
    return aten.convolution(spaced, turned, *rest)


def _turned(weight: Tensor, groups: int) -> Tensor:
    """The filter with inputs and outputs exchanged and its taps in the opposite order."""
    kernel = weight.shape[2:]
    if groups == 1:
        exchanged = weight.transpose(0, 1)
    else:
        apart = weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], *kernel).transpose(1, 2)
        exchanged = apart.reshape(groups * weight.shape[1], weight.shape[0] // groups, *kernel)
    long = [dim for dim, size in enumerate(kernel, 2) if size > 1]
    return exchanged.flip(long) if long else exchanged


def _insert_zeros(x: Tensor, stride: list[int]) -> Tensor:
    """`stride - 1` zeros between neighbours: each element becomes a row that starts with it, and rows are joined."""
    for dim, step in enumerate(stride, 2):
        if step == 1:
            continue
        size = x.shape[dim]
        behind = [0, 0] * (x.dim() - 1 - dim) + [0, step - 1]
        rows = aten.constant_pad_nd(x.unsqueeze(dim + 1), behind, 0.0)
        joined = rows.reshape(*x.shape[:dim], size * step, *x.shape[dim + 1 :])
        x = joined.narrow(dim, 0, (size - 1) * step + 1)
    return x


def _weight_gradient(
    x: Tensor,
    gradient: Tensor,
    shape: Sequence[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    """Samples take the place of channels: each input channel is an image, each output channel a filter."""
    rank, samples, inputs = len(stride), x.shape[0], shape[1]
    around: list[int] = []
    for dim in reversed(range(rank)):
        # What the stride leaves over at the end would give further taps.
        reach = (gradient.shape[2 + dim] - 1) * stride[dim] + (shape[2 + dim] - 1) * dilation[dim] + 1
        kept = min(x.shape[2 + dim], reach - padding[dim])
        if kept <= 0:
            return x.new_zeros(tuple(shape))  # all windows see padding alone
        x = x.narrow(2 + dim, 0, kept)
        around += [padding[dim], reach - padding[dim] - kept]
    x = aten.constant_pad_nd(x, around, 0.0) if any(around) else x
    if groups == 1:
        images = x.transpose(0, 1)
    else:
        images = x.reshape(samples, groups, inputs, *x.shape[2:]).transpose(0, 2)
        images = images.reshape(inputs, groups * samples, *x.shape[2:])
    filters = gradient.transpose(0, 1)
    found = aten.convolution(images, filters, None, dilation, [0] * rank, stride, False, [0] * rank, groups)
    return found.transpose(0, 1).contiguous()
