"""Integers without a sign are computed with in types where they have the same value.

The importer takes many of them for signed numbers: the largest byte is below zero, and the greatest of two truths is
False. So an operator with unsigned operands or truths is one on INT32 or INT64 with conversions around it, unless it is
one of those that are right as they are: it moves elements, is right for any bits, or is known to look at the sign. One
that nobody thought of is slower, not wrong. 64 bits have no wider type: there the sign bit is turned over, which keeps
the order, and quotients are corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, defs, helper

from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.prepare import opset_versions
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, replace_nodes
from eyas.frontends.onnx.subgraphs import all_nodes, subgraphs
from eyas.frontends.onnx.types import MOVES, operator

_WIDE: dict[int, int] = {
    TensorProto.BOOL: TensorProto.INT32,
    TensorProto.UINT8: TensorProto.INT32,
    TensorProto.UINT16: TensorProto.INT32,
    TensorProto.UINT32: TensorProto.INT64,
}
_UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)
_UNKNOWN = (TensorProto.INT16, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)
"""What the importer has no casts to."""

_RIGHT = MOVES | frozenset(
    "Add Sub Mul Sum MatMul CumSum ReduceSum BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Equal Less LessOrEqual Greater"
    " GreaterOrEqual Max Min ReduceMax ReduceMin MaxPool NonZero QuantizeLinear DequantizeLinear"
    " DynamicQuantizeLinear MatMulInteger ConvInteger QLinearConv QLinearMatMul Cast CastLike BitCast"
    " ReverseSequence OneHot Unique".split()
)
_ORDERED = frozenset("Clip TopK ArgMax ArgMin ScatterElements ScatterND".split())
"""What asks of 64 bits only which is the greater."""


def keep_signs(model: OnnxModel) -> bool:
    """Rewrites operators on integers without a sign; says whether there were any. Types must have been inferred."""
    version, graph = opset_versions(model).get("", 0), model.proto.graph
    last = {value.name for value in graph.output} - {name for node in all_nodes(graph) for name in node.input}
    empty: set[str] = set()

    def rule(node: onnx.NodeProto, b: Builder) -> Sequence[str] | None:
        if node.domain not in ("", "ai.onnx") or not any(node.input) or next(iter(subgraphs(node)), None) is not None:
            return None
        types = {b.type_of(name) for name in [*node.input, *node.output] if name}
        if 0 in types or not types & {*_WIDE, TensorProto.UINT64, TensorProto.INT16}:
            return None
        if last.issuperset(node.output) and (nothing := _nothing(node, b)) is not None:
            empty.update(node.output)
            return nothing
        if node.op_type == "Cast":
            return cast(node, b)
        if node.op_type in _RIGHT and attribute(node, "reduction", "none") == "none":
            return None
        if b.type_of(node.input[0]) == TensorProto.UINT64:
            return _of_64_bits(node, b)
        return _widened(node, b, version)

    changed = replace_nodes(model, rule)
    for value in graph.output:
        if value.name in empty:
            model.true_types[value.name] = value.type.tensor_type.elem_type
            dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(_signed_type(dtype))
    return changed


def _signed_type(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"i{dtype.itemsize}") if dtype.kind == "u" else dtype


def _nothing(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Results without elements are constants, of signed numbers, since upstream folds them to such."""
    shapes = [b.shape_of(name) for name in node.output if name]
    if not all(shape is not None and 0 in shape for shape in shapes) or b.type_of(node.output[0]) not in _UNSIGNED:
        return None
    types = [_signed_type(b.dtype_of(name)) for name in node.output if name]
    return [b.constant(np.zeros(shape or (), dtype), dtype) for shape, dtype in zip(shapes, types, strict=True)]


def cast(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A cast that the importer does not have; also one that another rule wrote."""
    source, to = b.type_of(node.input[0]), attribute(node, "to", 0)
    if not source or not {source, to} & set(_UNKNOWN):
        return None
    if source == to:
        return [b.add("Identity", node.input[0])]
    known = b.value_of(node.input[0])
    if known is not None and known.dtype.kind in "biu" and (dtype := helper.tensor_dtype_to_np_dtype(to)).kind in "iu":
        return [b.constant(known.astype(dtype))]  # upstream folds it to signed numbers
    return [convert(b, node.input[0], node.input[0], source, to)]


def convert(b: Builder, value: str, like: str, source: int, to: int) -> str:
    """A value of any type of numbers in another; `like` is a value of the graph with the same shape."""
    signs = {"unsigned": int(source in (*_UNSIGNED, TensorProto.BOOL)), "to_unsigned": int(to in _UNSIGNED)}
    return operator(b, "EyasConvert", value, like, to, **signs)


def _widened(node: onnx.NodeProto, b: Builder, version: int) -> list[str] | None:
    if node.op_type == "Abs" and b.type_of(node.input[0]) in _WIDE:
        return [b.add("Identity", node.input[0])]
    schema = defs.get_schema(node.op_type, version or defs.onnx_opset_version())
    given = {result.type_str for result in schema.outputs}
    inputs = []
    for place, name in enumerate(node.input):
        wide = _WIDE.get(b.type_of(name)) if name else None
        if wide is not None:
            slot = schema.inputs[min(place, len(schema.inputs) - 1)]
            accepted = f"tensor({'int32' if wide == TensorProto.INT32 else 'int64'})" in slot.types
            if b.type_of(name) == TensorProto.BOOL and not (accepted and slot.type_str in given):
                wide = None  # a truth that decides: as a number an attention mask would be added
            elif not accepted:
                return None
        inputs.append(name if wide is None else convert(b, name, name, b.type_of(name), wide))
    if inputs == list(node.input):
        return None
    return _around(node, b, inputs, lambda value, like: _narrowed(b, value, like))


def _narrowed(b: Builder, value: str, like: str) -> str:
    kind = b.type_of(like)
    return value if kind not in _WIDE else convert(b, value, like, _WIDE[kind], kind)


def _around(node: onnx.NodeProto, b: Builder, inputs: Sequence[str], back: Callable[[str, str], str]) -> list[str]:
    """The node on other operands, with its results as they are promised."""
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    made = b.add_many(node.op_type, len(node.output), *inputs, **attributes)
    return [back(value, like) for value, like in zip(made, node.output, strict=True) if like]


def _of_64_bits(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    x = node.input[0]
    if node.op_type == "Abs":
        return [b.add("Identity", x)]
    if node.op_type == "Sign":
        is_set = b.add("Not", b.add("Equal", x, b.constant(0, np.uint64)))
        return [convert(b, is_set, x, TensorProto.BOOL, TensorProto.UINT64)]
    if node.op_type in ("Div", "Mod"):
        return [_quotient(node, b)]
    if node.op_type not in _ORDERED or attribute(node, "reduction", "max") not in ("max", "min"):
        return None
    turned = [_turned(b, name) if b.type_of(name) == TensorProto.UINT64 else name for name in node.input]

    def back(value: str, like: str) -> str:
        if b.type_of(like) != TensorProto.UINT64:
            return value
        return operator(b, "EyasBitcast", b.add("BitwiseXor", value, _lowest(b)), like, TensorProto.UINT64)

    return _around(node, b, turned, back)


def _signed(b: Builder, name: str) -> str:
    return operator(b, "EyasBitcast", name, name, TensorProto.INT64)


def _lowest(b: Builder) -> str:
    return b.constant(np.iinfo(np.int64).min, np.int64)


def _turned(b: Builder, name: str) -> str:
    """Signed numbers in the same order."""
    return b.add("BitwiseXor", _signed(b, name), _lowest(b))


def _quotient(node: onnx.NodeProto, b: Builder) -> str:
    """Of half the dividend, which has a sign, doubled; it is at most 1 too small. A divisor beyond the sign bit goes
    into the dividend once or not at all."""
    like = node.output[0]
    shape = b.add("Shape", b.add("Add", *node.input))
    x, divisor = (b.add("Expand", name, shape) for name in node.input)
    for name in (x, divisor):
        b.declare(name, like, TensorProto.UINT64)
    cast = [operator(b, "EyasBitcast", name, like, TensorProto.INT64) for name in (x, divisor)]
    half = b.add("BitShift", x, b.constant(1, np.uint64), direction="RIGHT")
    halved = operator(b, "EyasBitcast", half, like, TensorProto.INT64)
    is_large = b.add("Less", cast[1], b.constant(0, np.int64))
    safe = b.add("Where", is_large, b.constant(1, np.int64), cast[1])
    near = b.add("Mul", b.add("Div", halved, safe), b.constant(2, np.int64))
    rest = operator(b, "EyasBitcast", b.add("Sub", cast[0], b.add("Mul", near, safe)), like, TensorProto.UINT64)
    near = b.add("Add", near, b.cast(b.add("GreaterOrEqual", rest, divisor), TensorProto.INT64))
    quotient = b.add("Where", is_large, b.cast(b.add("GreaterOrEqual", x, divisor), TensorProto.INT64), near)
    made = quotient
    if node.op_type == "Mod":
        made = b.add("Sub", cast[0], b.add("Mul", quotient, cast[1]))
    return operator(b, "EyasBitcast", made, like, TensorProto.UINT64)
