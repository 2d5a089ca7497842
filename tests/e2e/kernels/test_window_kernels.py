# ruff: noqa: E501 - lines of IR are as long as they are
"""Convolutions and pooling."""

from __future__ import annotations

import itertools

import numpy as np
import programs as p
import pytest
from kernel_texts import multiply_add


def conv_nhwc(x, w, stride, dilation):
    """The plain definition, in f64."""
    (n, h, width, _), (kh, kw, _, f) = x.shape, w.shape
    oh, ow = ((size - dilation * (k - 1) - 1) // stride + 1 for size, k in ((h, kh), (width, kw)))
    out = np.zeros((n, oh, ow, f))
    for i, j in itertools.product(range(kh), range(kw)):
        part = x[:, i * dilation : i * dilation + stride * (oh - 1) + 1 : stride]
        part = part[:, :, j * dilation : j * dilation + stride * (ow - 1) + 1 : stride]
        out += np.einsum("nhwc,cf->nhwf", part.astype(np.float64), w[i, j].astype(np.float64))
    return out


@pytest.mark.parametrize(
    ("image", "filter_", "stride", "dilation"),
    [
        ((1, 7, 7, 3), (3, 3, 3, 16), 1, 1),
        ((2, 9, 11, 5), (3, 3, 5, 7), 2, 1),
        ((1, 15, 13, 4), (3, 5, 4, 33), 1, 2),
        ((1, 16, 16, 17), (1, 1, 17, 31), 1, 1),
        ((1, 17, 17, 8), (1, 1, 8, 8), 2, 1),
        ((1, 7, 33, 1), (7, 7, 1, 1), 3, 1),
        ((3, 5, 5, 2), (5, 5, 2, 64), 1, 1),
        ((1, 20, 20, 3), (4, 2, 3, 15), 3, 2),
    ],
)
def test_convolution(rng, image, filter_, stride, dilation):
    x, w = p.random_array(rng, image, "f32"), p.random_array(rng, filter_, "f32")
    expected = conv_nhwc(x, w, stride, dilation).astype(np.float32)
    a, b, c = p.tensor_type(image), p.tensor_type(filter_), p.tensor_type(expected.shape)
    attributes = f"{{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}"
    lines = p.filled("init", expected.shape, "f32", "0.0")
    lines += f"%z = linalg.conv_2d_nhwc_hwcf {attributes} ins(%x, %w : {a}, {b}) outs(%init : {c}) -> {c}\n"
    p.assert_both(p.main([("x", a), ("w", b)], lines, [("z", c)]), [x, w], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("groups", "per_group"), [(2, 5), (4, 3), (3, 16)])
def test_grouped_convolution(rng, groups, per_group):
    """Loops n, h, w, g, f and the sums kh, kw, c."""
    n, h, w, kh, kw, c = 2, 6, 9, 3, 3, 4
    image, filter_, out = (n, h + 2, w + 2, groups, c), (groups, kh, kw, c, per_group), (n, h, w, groups, per_group)
    maps = [p.affine(8, [0, "b + f", "c + g", 3, 7]), p.affine(8, [3, 5, 6, 7, 4]), p.affine(8, [0, 1, 2, 3, 4])]
    a, b, r = (p.tensor_type(shape) for shape in (image, filter_, out))
    lines = p.filled("init", out, "f32", "0.0")
    lines += p.generic(
        "z", [("x", a, maps[0]), ("w", b, maps[1])], ("init", r, maps[2]), "ppppprrr", multiply_add("f32"), "f32"
    )
    x, k = p.random_array(rng, image, "f32"), p.random_array(rng, filter_, "f32")
    parts = [conv_nhwc(x[:, :, :, g], k[g], 1, 1) for g in range(groups)]
    expected = np.stack(parts, axis=3).astype(np.float32)
    p.assert_both(p.main([("x", a), ("w", b)], lines, [("z", r)]), [x, k], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("samples", "positions", "taps", "inputs", "outputs", "stride"),
    [
        (8, (2, 2), (3, 3), 48, 40, 1),
        (5, (4, 3), (3, 2), 33, 17, 2),
        (9, (1, 1), (3, 3), 16, 21, 1),
        (3, (7, 5), (1, 1), 70, 9, 2),
        (8, (4, 4), (3, 3), 130, 8, 1),
    ],
)
def test_gradient_of_a_filter(rng, samples, positions, taps, inputs, outputs, stride):
    """Loops f, h, w, c and the sums n, oh, ow: lanes read the image, and rows share what they read."""
    (oh, ow), (kh, kw) = positions, taps
    image = (samples, (oh - 1) * stride + kh, (ow - 1) * stride + kw, inputs)
    gradient, out = (samples, oh, ow, outputs), (outputs, kh, kw, inputs)
    window = [4, f"f * {stride} + b", f"g * {stride} + c", 3]
    maps = [p.affine(7, window), p.affine(7, [4, 5, 6, 0]), p.affine(7, [0, 1, 2, 3])]
    a, b, r = (p.tensor_type(shape) for shape in (image, gradient, out))
    lines = p.filled("init", out, "f32", "0.0")
    lines += p.generic(
        "z", [("x", a, maps[0]), ("g", b, maps[1])], ("init", r, maps[2]), "pppprrr", multiply_add("f32"), "f32"
    )
    x, g = p.random_array(rng, image, "f32"), p.random_array(rng, gradient, "f32")
    expected = np.zeros(out)
    for i, j in itertools.product(range(kh), range(kw)):
        part = x[:, i : i + stride * (oh - 1) + 1 : stride, j : j + stride * (ow - 1) + 1 : stride]
        expected[:, i, j] = np.einsum("nhwc,nhwf->fc", part.astype(np.float64), g.astype(np.float64))
    program = p.main([("x", a), ("g", b)], lines, [("z", r)])
    p.assert_both(program, [x, g], expected.astype(np.float32), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "stride"), [(1, 1), (7, 1), (16, 2), (33, 1), (64, 2)])
def test_depthwise_convolution(rng, channels, stride):
    image, filter_ = (2, 11, 9, channels), (3, 3, channels)
    x, w = p.random_array(rng, image, "f32"), p.random_array(rng, filter_, "f32")
    planes = [conv_nhwc(x[..., c : c + 1], w[:, :, c][..., None, None], stride, 1) for c in range(channels)]
    expected = np.concatenate(planes, axis=3).astype(np.float32)
    a, b, c = p.tensor_type(image), p.tensor_type(filter_), p.tensor_type(expected.shape)
    lines = p.filled("init", expected.shape, "f32", "0.0")
    lines += (
        f"%z = linalg.depthwise_conv_2d_nhwc_hwc {{strides = dense<{stride}> : tensor<2xi64>,"
        f" dilations = dense<1> : tensor<2xi64>}} ins(%x, %w : {a}, {b}) outs(%init : {c}) -> {c}\n"
    )
    p.assert_both(p.main([("x", a), ("w", b)], lines, [("z", c)]), [x, w], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "start"), [("max", "0xFF800000"), ("min", "0x7F800000"), ("sum", "0.0")])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1), (3, 2)])
def test_pooling(rng, kind, start, window, stride):
    image = (2, 9, 7, 17)
    x = p.random_array(rng, image, "f32")
    oh, ow = ((size - window) // stride + 1 for size in image[1:3])
    parts = np.stack([
        x[:, i : i + stride * (oh - 1) + 1 : stride, j : j + stride * (ow - 1) + 1 : stride]
        for i in range(window) for j in range(window)
    ])  # fmt: skip
    expected = getattr(parts, kind)(axis=0)
    a, c = p.tensor_type(image), p.tensor_type(expected.shape)
    lines = p.filled("init", expected.shape, "f32", start)
    lines += f"%window = tensor.empty() : tensor<{window}x{window}xf32>\n"
    lines += (
        f"%z = linalg.pooling_nhwc_{kind} {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}"
        f" ins(%x, %window : {a}, tensor<{window}x{window}xf32>) outs(%init : {c}) -> {c}\n"
    )
    tolerance = 1e-5 if kind == "sum" else 0.0
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("width", "taps", "stride", "dilation", "padding"),
    [(9, 3, 1, 1, 1), (10, 3, 2, 1, 1), (16, 3, 1, 12, 12), (12, 7, 2, 1, 3), (5, 3, 1, 4, 4), (1, 3, 1, 1, 1)],
    ids=str,
)
@pytest.mark.parametrize("kind", ["depthwise", "dense"])
def test_windows_that_leave_the_image(rng, kind, width, taps, stride, dilation, padding):
    """Padding is not read, whatever taps are left: of some rows all, of others one."""
    channels, filters = 5, 19
    image = (1, 7, width, channels)
    padded = (1, 7 + 2 * padding, width + 2 * padding, channels)
    x = p.random_array(rng, image, "f32")
    wide = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    shape = (taps, taps, channels) if kind == "depthwise" else (taps, taps, channels, filters)
    w = p.random_array(rng, shape, "f32")
    if kind == "depthwise":
        planes = [
            conv_nhwc(wide[..., c : c + 1], w[:, :, c][..., None, None], stride, dilation) for c in range(channels)
        ]
        expected, name = np.concatenate(planes, axis=3).astype(np.float32), "depthwise_conv_2d_nhwc_hwc"
    else:
        expected, name = conv_nhwc(wide, w, stride, dilation).astype(np.float32), "conv_2d_nhwc_hwcf"
    a, b, c, d = (p.tensor_type(one) for one in (image, shape, expected.shape, padded))
    lines = p.filled("init", expected.shape, "f32", "0.0")
    lines += (
        f"%zero = arith.constant 0.0 : f32\n"
        f"%p = tensor.pad %x low[0, {padding}, {padding}, 0] high[0, {padding}, {padding}, 0] {{\n"
        f"^bb0(%i: index, %j: index, %k: index, %l: index):\n tensor.yield %zero : f32\n}} : {a} to {d}\n"
        f"%z = linalg.{name} {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}"
        f" ins(%p, %w : {d}, {b}) outs(%init : {c}) -> {c}\n"
    )
    p.assert_both(p.main([("x", a), ("w", b)], lines, [("z", c)]), [x, w], expected, rtol=1e-4, atol=1e-4)
