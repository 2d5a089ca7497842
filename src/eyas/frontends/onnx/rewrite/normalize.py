"""Rules for normalisations: norms that may be of nothing, layer norms of f64, softmax in half precision, open sizes."""

from __future__ import annotations

import numpy as np
import onnx

from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand

_FLOAT, _HALF, _BFLOAT = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16
# In longer rows a sum of bf16 would lose its last terms; they are summed in f32, by the importer's lowering.
_SHORT_ROW = 32


def lp_normalization(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Rows of zeros stay zeros."""
    rank, kind = b.rank_of(node.input[0]), b.type_of(node.input[0])
    if not rank:
        return None
    axis, x = attribute(node, "axis", -1) % rank, node.input[0]
    narrow = kind in (_HALF, _BFLOAT)
    wide = b.cast(x, _FLOAT) if narrow else x
    terms = b.add("Abs", wide) if attribute(node, "p", 2) == 1 else b.add("Mul", wide, wide)
    norm = _reduce("ReduceSum", terms, [axis], b, since=13)
    if attribute(node, "p", 2) != 1:
        norm = b.add("Sqrt", norm)
    zero = b.constant(0.0, onnx.helper.tensor_dtype_to_np_dtype(_FLOAT if narrow else kind))
    result = b.add("Where", b.add("Equal", norm, zero), zero, b.add("Div", wide, norm))
    return [b.cast(result, kind) if narrow else result]


def layer_norm_of_doubles(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """LayerNormalization and RMSNormalization of f64 in f64, as other runtimes do; the standard's body is in f32."""
    rank, x = b.rank_of(node.input[0]), node.input[0]
    if not rank or b.type_of(x) != onnx.TensorProto.DOUBLE:
        return None
    axes = list(range(attribute(node, "axis", -1) % rank, rank))
    results = []
    if node.op_type == "LayerNormalization":
        mean = _reduce("ReduceMean", x, axes, b, since=18)
        results.append(mean)
        x = b.add("Sub", x, mean)
    variance = _reduce("ReduceMean", b.add("Mul", x, x), axes, b, since=18)
    # An attribute is an f32; its value is kept.
    epsilon = b.constant(np.float64(np.float32(attribute(node, "epsilon", 1e-5))))
    inverse = b.add("Reciprocal", b.add("Sqrt", b.add("Add", variance, epsilon)))
    results.append(inverse)
    made = b.add("Mul", b.add("Mul", x, inverse), node.input[1])
    if bias := operand(node, 2):
        made = b.add("Add", made, bias)
    wanted = [b.cast(result, _FLOAT) for result, name in zip(results, node.output[1:], strict=False) if name]
    return [made, *wanted]


def instance_normalization(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Images of open sizes: the importer takes such a size to be -1 and divides the variance by it."""
    dims, kind = b.dims_of(node.input[0]), b.type_of(node.input[0])
    if dims is None or len(dims) < 3 or None not in dims[2:]:
        return None
    narrow, axes = kind in (_HALF, _BFLOAT), list(range(2, len(dims)))
    x, scale, bias = (b.cast(name, _FLOAT) if narrow else name for name in node.input)
    x = b.add("Sub", x, _reduce("ReduceMean", x, axes, b, since=18))
    variance = _reduce("ReduceMean", b.add("Mul", x, x), axes, b, since=18)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(_FLOAT if narrow else kind)
    epsilon = b.constant(attribute(node, "epsilon", 1e-5), dtype)
    deviation = b.add("Sqrt", b.add("Add", variance, epsilon))
    scale, bias = (b.reshape(one, [1, -1, *[1] * len(axes)]) for one in (scale, bias))
    made = b.add("Add", b.add("Mul", x, b.add("Div", scale, deviation)), bias)
    return [b.cast(made, kind) if narrow else made]


def local_response(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """LRN of open sizes: the squares of neighbouring channels are added up, one neighbour after the other."""
    dims, size, kind = b.dims_of(node.input[0]), attribute(node, "size", 1), b.type_of(node.input[0])
    if (
        dims is None
        or len(dims) < 3
        or None not in dims
        or b.opset < 13
        or kind not in (_FLOAT, onnx.TensorProto.DOUBLE)
    ):
        return None
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    x, around = node.input[0], np.zeros((2, len(dims)), np.int64)
    around[:, 1] = (size - 1) // 2, size // 2
    squares = b.add("Pad", b.add("Mul", x, x), b.constant(around.reshape(-1)), b.constant(0, dtype))
    total = ""
    for first in range(size):
        end = first + 1 - size or np.iinfo(np.int64).max
        part = b.add("Slice", squares, *(b.constant([place], np.int64) for place in (first, end, 1)))
        total = b.add("Add", total, part) if total else part
    scaled = b.add("Mul", total, b.constant(attribute(node, "alpha", 1e-4) / size, dtype))
    base = b.add("Add", scaled, b.constant(attribute(node, "bias", 1.0), dtype))
    return [b.add("Div", x, b.add("Pow", base, b.constant(attribute(node, "beta", 0.75), dtype)))]


def softmax(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Short rows of f16 and bf16 round after each operation, as the type says: attention's tests count the last bit."""
    shape, kind = b.shape_of(node.input[0]), b.type_of(node.input[0])
    if kind not in (_HALF, _BFLOAT) or not shape or b.opset < 13 or 0 in shape:
        return None
    axis = attribute(node, "axis", -1) % len(shape)
    if shape[axis] > _SHORT_ROW:
        return None
    largest = _reduce("ReduceMax", node.input[0], [axis], b, since=18)
    powers = b.add("Exp", b.add("Sub", node.input[0], largest))
    if kind == _HALF:
        total = b.cast(_reduce("ReduceSum", b.cast(powers, _FLOAT), [axis], b, since=13), kind)
    else:
        # One after the other: numbers of eight bits notice the order.
        terms = [b.add("Gather", powers, b.constant([k], np.int64), axis=axis) for k in range(shape[axis])]
        total = terms[0]
        for term in terms[1:]:
            total = b.add("Add", total, term)
    return [b.add("Div", powers, total)]


def _reduce(op: str, value: str, axes: list[int], b: Builder, since: int) -> str:
    """A reduction along axes, which stay; `since` is the opset that made the axes an input."""
    if b.opset < since:
        return b.add(op, value, axes=axes, keepdims=1)
    return b.add(op, value, b.constant(axes, np.int64), keepdims=1)
