"""Rules for reductions: those along nothing, sums of powers that overflow, and products of dynamic dimensions."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.rewrite.half import in_f32
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand
from eyas.frontends.onnx.rewrite.sizes import product as size_product
from eyas.frontends.onnx.types import DOMAIN

_UNSIGNED = (TensorProto.UINT32, TensorProto.UINT64)
_HALVES = (TensorProto.BFLOAT16, TensorProto.FLOAT16)
_FLOATS = (*_HALVES, TensorProto.FLOAT, TensorProto.DOUBLE)
_INTEGERS = (*_UNSIGNED, TensorProto.INT32, TensorProto.INT64)


def norm_of_one(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """ReduceL2, ReduceLogSum and ReduceLogSumExp of single elements: the importer aborts on some of them."""
    dims, axes = b.dims_of(node.input[0]), _axes(node, b)
    if dims is None or axes is None:
        return None
    if any(dims[axis] != 1 for axis in axes) or (axes and not attribute(node, "keepdims", 1)):
        return None
    type_ = b.type_of(node.input[0])
    if node.op_type == "ReduceLogSum" and type_ in _INTEGERS:
        return [b.cast(b.add("Log", b.cast(node.input[0], TensorProto.DOUBLE)), type_)]
    if node.op_type == "ReduceLogSumExp" or type_ in _UNSIGNED:
        return [node.input[0]]
    return [b.add("Abs" if node.op_type == "ReduceL2" else "Log", node.input[0])]


def log_sum_exp(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The largest element is taken out of the sum, so that it does not overflow; the importer leaves it in."""
    dims, axes, type_ = b.dims_of(node.input[0]), _axes(node, b), b.type_of(node.input[0])
    if (same := norm_of_one(node, b)) is not None or dims is None or not axes or type_ not in _FLOATS:
        return same
    if any(dims[axis] == 0 for axis in axes) or b.opset < 10:
        return None
    wide = b.cast(node.input[0], TensorProto.FLOAT) if type_ in _HALVES else node.input[0]
    kind = np.float64 if type_ == TensorProto.DOUBLE else np.float32
    given = {"axes": axes} if b.opset < 18 else {}
    largest = b.add("ReduceMax", wide, *([] if given else [b.constant(axes, np.int64)]), keepdims=1, **given)
    # Beside an infinity the sum is right as it is.
    largest = b.add("Where", b.add("IsInf", largest), b.constant(0, kind), largest)
    powers = b.add("Exp", b.add("Sub", wide, largest))
    given = {"axes": axes} if b.opset < 13 else {}
    total = b.add("ReduceSum", powers, *([] if given else [b.constant(axes, np.int64)]), keepdims=1, **given)
    made = b.add("Add", b.add("Log", total), largest)
    if not attribute(node, "keepdims", 1):
        made = b.add("Squeeze", made, *([] if given else [b.constant(axes, np.int64)]), **given)
    return [b.cast(made, type_) if type_ in _HALVES else made]


def mean(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Of integers: the sum, divided as integers are. Of halves: in f32."""
    type_, axes = b.type_of(node.input[0]), _axes(node, b)
    if type_ not in _INTEGERS or not axes:
        return in_f32(node, b)
    keep = {"keepdims": attribute(node, "keepdims", 1)}
    given = {"axes": axes} if b.opset < 13 else {}
    total = b.add("ReduceSum", node.input[0], *([] if given else [b.constant(axes, np.int64)]), **keep, **given)
    count = size_product([b.size(node.input[0], axis) for axis in axes], b)
    if isinstance(count, int):
        return [b.add("Div", total, b.constant(count, onnx.helper.tensor_dtype_to_np_dtype(type_)))]
    return [b.add("Div", total, b.cast(b.reshape(count, []), type_))]


def product(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """ReduceProd of a tensor with dynamic dimensions as an operator of ours; the importer knows static ones."""
    dims, axes = b.dims_of(node.input[0]), _axes(node, b)
    if dims is None or axes is None or None not in dims:
        return None
    if not axes:
        return [node.input[0]]
    made = b.add("EyasProduct", node.input[0], domain=DOMAIN, axes=axes)
    type_ = onnx.TypeProto()
    type_.CopyFrom(b.value_type(node.input[0]) or type_)
    shape = type_.tensor_type.shape
    for axis in reversed(axes):
        del shape.dim[axis]
    b.declare_type(made, type_)
    if not attribute(node, "keepdims", 1):
        return [made]
    if b.opset < 13:
        return [b.add("Unsqueeze", made, axes=axes)]
    return [b.add("Unsqueeze", made, b.constant(axes, np.int64))]


def _axes(node: onnx.NodeProto, b: Builder) -> list[int] | None:
    """The dimensions that are reduced, in order; None when they are not known."""
    rank, given = b.rank_of(node.input[0]), attribute(node, "axes", [])
    if rank is None:
        return None
    if name := operand(node, 1):
        value = b.value_of(name)
        if value is None:
            return None
        given = value.reshape(-1)
    if len(given) == 0:
        return [] if attribute(node, "noop_with_empty_axes", 0) else list(range(rank))
    return sorted({int(axis) % rank for axis in given}) if rank else []
