"""Products of matrices, convolutions, pooling."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from tests.fuzz.ops.base import Op, add, functional, jnp, lax, onnx_call, torch, torch_call
from tests.fuzz.ops.reductions import average, wide
from tests.fuzz.shadow import FLOATS, INTEGERS, Shadow, elementwise, total

PRODUCTS = (*FLOATS, *INTEGERS)


def _product(args, k):
    def multiply(one, other):
        return np.matmul(one, other)

    return total(multiply, args, args[0].shape[-1], wide(args[0].dtype))


def _build_matmul(b):
    first = b.value(PRODUCTS, min_rank=2)
    kind = b.type(first)
    columns = b.choose((1, 2, 3, 5, 8, 16, 17, 31, 33))
    other = [kind.shape[-1], columns]
    if kind.rank > 2 and b.boolean():
        other = [*(1 if b.boolean() else dim for dim in kind.shape[:-2]), *other]
    second = b.operand(kind.dtype, tuple(other))
    return (first, second), {}


add(
    Op(
        "matmul",
        _build_matmul,
        _product,
        torch_call("matmul"),
        lambda a, k: jnp.matmul(*a, precision="highest"),
        onnx_call("MatMul"),
        5,
    )
)


def _build_matmul_left(b):
    """The value on the right, its rows contracted: the layout that weights do not have."""
    second = b.value(PRODUCTS, min_rank=2, max_rank=3)
    kind = b.type(second)
    rows = b.choose((1, 2, 3, 4, 7, 15, 16))
    first = b.operand(kind.dtype, (*kind.shape[:-2], rows, kind.shape[-2]))
    return (first, second), {}


add(
    Op(
        "matmul_left",
        _build_matmul_left,
        _product,
        torch_call("matmul"),
        lambda a, k: jnp.matmul(*a, precision="highest"),
        onnx_call("MatMul"),
        2,
    )
)


def _linear(args, k):
    x, weight, bias = args
    made = total(lambda a, w: np.matmul(a, w.T), [x, weight], x.shape[-1], wide(x.dtype))
    return elementwise(np.add, made, bias)


def _build_linear(b):
    first = b.value(FLOATS, min_rank=1, where=lambda t: isinstance(t.shape[-1], int))
    kind = b.type(first)
    columns = b.choose((1, 3, 4, 8, 17, 32))
    weight = b.leaf(kind.dtype, (columns, kind.shape[-1]), "normal", constant=True)
    return (first, weight, b.leaf(kind.dtype, (columns,), "normal", constant=True)), {}


add(
    Op(
        "linear",
        _build_linear,
        _linear,
        lambda a, k: functional.linear(*a),
        lambda a, k: jnp.matmul(a[0], a[1].T, precision="highest") + a[2],
        lambda emit, a, k: emit("Add", [emit("MatMul", [a[0], emit("Transpose", [a[1]], perm=[1, 0])]), a[2]]),
        3,
    )
)


def _build_attention(b):
    """Query, key and value of one or several heads."""
    kind = b.choose(FLOATS)
    lead = tuple(b.integer(1, 3) for _ in range(b.integer(0, 2)))
    size, rows, keys = b.choose((1, 2, 4, 8)), b.integer(1, 9), b.integer(1, 9)
    query, key = b.operand(kind, (*lead, rows, size)), b.operand(kind, (*lead, keys, size))
    return (query, key), {}


def _scores(args, k):
    return total(lambda q, key: np.matmul(q, np.swapaxes(key, -1, -2)), args, args[0].shape[-1], wide(args[0].dtype))


add(
    Op(
        "scores",
        _build_attention,
        _scores,
        lambda a, k: torch.matmul(a[0], a[1].transpose(-1, -2)),
        lambda a, k: jnp.einsum("...qd,...kd->...qk", *a, precision="highest"),
        weight=2,
    )
)


# Windows: the taps of a kernel as shifted, strided views.


def _taps(x, kernel, strides, dilations):
    """Pairs of an offset in the kernel and the elements that it meets, for spatial axes that come last."""
    sizes = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[-len(kernel) :], kernel, strides, dilations, strict=True)
    ]
    for offset in itertools.product(*(range(k) for k in kernel)):
        window = tuple(
            slice(o * d, o * d + s * (n - 1) + 1, s)
            for o, d, s, n in zip(offset, dilations, strides, sizes, strict=True)
        )
        yield offset, x[(Ellipsis, *window)]


def _convolve(x, weight, k, outside=0):
    axes = len(k["strides"])
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in k["padding"])], constant_values=outside)
    groups, out = k["groups"], None
    for offset, part in _taps(x, weight.shape[2:], k["strides"], k["dilations"]):
        part = part.reshape(part.shape[0], groups, -1, *part.shape[2:])
        tap = weight[(slice(None), slice(None), *offset)].reshape(groups, weight.shape[0] // groups, -1)
        spatial = "hwd"[:axes]
        product = np.einsum(f"ngc{spatial},goc->ngo{spatial}", part, tap)
        out = product if out is None else out + product
    return out.reshape(out.shape[0], -1, *out.shape[3:])


def _conv(args, k):
    terms = int(np.prod(args[1].shape[1:]))
    result = total(lambda x, w: _convolve(x, w, k), args, terms, wide(args[0].dtype))
    weights = np.asarray(args[1].value, np.float64)
    if np.all(np.isfinite(weights)) and np.all(np.isfinite(args[1].errors())):
        return result
    # Whether a weight that is not finite is multiplied by the zeros around the image is nobody's promise.
    lost = (~np.isfinite(weights) | ~np.isfinite(args[1].errors())).astype(np.float64)
    touched = _convolve(np.zeros(args[0].shape), lost, k, outside=1) > 0
    return replace(result, error=np.where(touched, np.inf, result.errors()))


def _window(b, kind, axes):
    """A kernel that fits into the padded image at every size."""
    kernel, padding, strides, dilations = [], [], [], []
    for axis in range(-axes, 0):
        pad = b.integer(0, 2)
        room = kind.smallest(axis) + 2 * pad
        size = b.integer(1, max(1, min(4, room)))
        dilation = b.integer(1, 2) if (size - 1) * 2 + 1 <= room else 1
        kernel.append(size)
        padding.append(pad)
        strides.append(b.integer(1, 3))
        dilations.append(dilation)
    return tuple(kernel), tuple(padding), tuple(strides), tuple(dilations)


def _build_conv(b):
    axes = b.choose((2, 1))
    image = b.value(
        FLOATS,
        min_rank=axes + 2,
        max_rank=axes + 2,
        where=lambda t: isinstance(t.shape[1], int) and all(t.smallest(i) for i in range(t.rank)),
    )
    kind = b.type(image)
    channels = kind.shape[1]
    groups = b.choose([g for g in (1, channels, 2, 3) if channels % g == 0])
    kernel, padding, strides, dilations = _window(b, kind, axes)
    filters = groups * b.integer(1, 4 if groups > 1 else 17)
    weight = b.leaf(kind.dtype, (filters, channels // groups, *kernel), "normal")
    attrs = {"groups": groups, "padding": padding, "strides": strides, "dilations": dilations}
    return (image, weight), attrs


def _torch_conv(a, k):
    function = functional.conv2d if len(k["strides"]) == 2 else functional.conv1d
    return function(a[0], a[1], None, k["strides"], k["padding"], k["dilations"], k["groups"])


def _jax_conv(a, k):
    return lax.conv_general_dilated(
        a[0],
        a[1],
        k["strides"],
        [(p, p) for p in k["padding"]],
        rhs_dilation=k["dilations"],
        feature_group_count=k["groups"],
        precision="highest",
    )


def _onnx_conv(emit, a, k):
    return emit(
        "Conv",
        a,
        strides=k["strides"],
        pads=[*k["padding"], *k["padding"]],
        dilations=k["dilations"],
        group=k["groups"],
    )


add(Op("conv", _build_conv, _conv, _torch_conv, _jax_conv, _onnx_conv, 5))


def _build_pool(b):
    image = b.value(FLOATS, min_rank=4, max_rank=4, where=lambda t: all(t.smallest(i) for i in range(t.rank)))
    kernel, padding, strides, _ = _window(b, b.type(image), 2)
    padding = tuple(min(p, size // 2) for p, size in zip(padding, kernel, strict=True))
    if any(b.type(image).smallest(axis) + 2 * p < size for axis, p, size in zip((2, 3), padding, kernel, strict=True)):
        return None
    return (image,), {"kernel": kernel, "padding": padding, "strides": strides, "average": b.boolean()}


def _pool(args, k):
    (x,) = args
    spread = [(0, 0), (0, 0), *((p, p) for p in k["padding"])]
    ones = (1,) * len(k["kernel"])

    def windows(value, fill):
        padded = np.pad(value, spread, constant_values=fill)
        return np.stack([part for _, part in _taps(padded, k["kernel"], k["strides"], ones)])

    if not k["average"]:
        error = np.max(windows(x.errors(), 0.0), 0)
        return Shadow(np.max(windows(x.value, -np.inf), 0), error, x.dtype)
    count = int(np.prod(k["kernel"]))
    return average(lambda v: windows(v, 0.0).sum(0), x, count)


def _torch_pool(a, k):
    function = functional.avg_pool2d if k["average"] else functional.max_pool2d
    return function(a[0], k["kernel"], k["strides"], k["padding"])


def _jax_pool(a, k):
    window, strides = (1, 1, *k["kernel"]), (1, 1, *k["strides"])
    padding = [(0, 0), (0, 0), *((p, p) for p in k["padding"])]
    x = a[0]
    if not k["average"]:
        return lax.reduce_window(x, np.array(-np.inf, x.dtype), lax.max, window, strides, padding)
    inner = x.astype(jnp.float32) if x.dtype.itemsize == 2 else x
    summed = lax.reduce_window(inner, np.array(0, inner.dtype), lax.add, window, strides, padding)
    return (summed / int(np.prod(k["kernel"]))).astype(x.dtype)


def _onnx_pool(emit, a, k):
    more = {"count_include_pad": 1} if k["average"] else {}
    name = "AveragePool" if k["average"] else "MaxPool"
    pads = [*k["padding"], *k["padding"]]
    return emit(name, a, kernel_shape=k["kernel"], strides=k["strides"], pads=pads, **more)


add(Op("pool", _build_pool, _pool, _torch_pool, _jax_pool, _onnx_pool, 3))
