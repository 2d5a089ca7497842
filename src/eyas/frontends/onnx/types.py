"""ONNX types that the importer does not know (float8, float4, integers of 2 and 4 bits) are held as bytes.

The importer sees INT8 tensors of bits; Cast, QuantizeLinear and their relatives become arithmetic around operators of
ours, `EyasEncode` and `EyasDecode`, which `convert-type-operators` lowers. What only moves elements moves bytes. The
signature keeps the true types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.file import OnnxModel, dtype_of, is_large
from eyas.frontends.onnx.prepare import describe_node
from eyas.frontends.onnx.rewrite.rules import Builder, Tables, attribute, replace_nodes
from eyas.ir.small_types import INTEGERS
from eyas.program.dtypes import STORAGE

DOMAIN = "eyas"
"""The domain of our operators inside an ONNX graph."""

MOVES = frozenset(
    "Compress Concat ConstantOfShape DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Pad"
    " Reshape ScatterElements ScatterND Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose Trilu"
    " Unsqueeze Where".split()
)


def small_name(data_type: int) -> str | None:
    """Our name of a type that is held as bytes; None for others."""
    name = dtype_of(data_type)
    return name if name in STORAGE else None


def hold_as_bytes(model: OnnxModel) -> bool:
    """Rewrites a graph that has small types; says whether it did. Types must have been inferred."""
    tables = Tables(model)
    found = {name for name, value in tables.values.items() if small_name(value.type.tensor_type.elem_type)}
    found |= {name for name, tensor in tables.tensors.items() if small_name(tensor.data_type)}
    if not found:
        return False

    def rule(node: onnx.NodeProto, builder: Builder) -> Sequence[str] | None:
        return _convert(node, builder, model) if found.intersection([*node.input, *node.output]) else None

    replace_nodes(model, rule)
    graph = model.proto.graph
    for value in [*graph.input, *graph.output]:
        if small_name(value.type.tensor_type.elem_type):
            model.true_types[value.name] = value.type.tensor_type.elem_type
    for value in Tables(model).values.values():
        if small_name(value.type.tensor_type.elem_type):
            value.type.tensor_type.elem_type = TensorProto.INT8
    for index, tensor in enumerate(graph.initializer):
        if small_name(tensor.data_type):
            _hold_tensor(model, index)
    return True


def convert(
    b: Builder, value: str, source: int, to: int, like: str, saturate: bool = True, round_mode: str = "up"
) -> str:
    """A value of type `source` as `to`, either of which may be small; `like` is a value with the same shape."""
    if source == to:
        return value
    if name := small_name(source):
        source = TensorProto.INT8 if name in INTEGERS else TensorProto.FLOAT
        value = operator(b, "EyasDecode", value, like, source, dtype=name)
    if name := small_name(to):
        # Our operator takes floats and signed integers.
        if source in (TensorProto.BOOL, TensorProto.UINT8, TensorProto.UINT16):
            value = b.cast(value, TensorProto.INT32)
        elif source in (TensorProto.UINT32, TensorProto.UINT64):
            value = b.cast(value, TensorProto.INT64)
        options = {"dtype": name, "saturate": int(saturate), "round_mode": round_mode}
        return operator(b, "EyasEncode", value, like, TensorProto.INT8, **options)
    return value if source == to else b.cast(value, to)


def operator(b: Builder, op: str, value: str, like: str, to: int, **attributes: object) -> str:
    """One of our operators: elementwise, a result of type `to` with the shape of `like`."""
    result = b.add(op, value, domain=DOMAIN, **attributes)
    b.declare(result, like, to)
    return result


def bit_cast(node: onnx.NodeProto, b: Builder) -> list[str]:
    """BitCast keeps the bits: types of one width."""
    to = attribute(node, "to", 0)
    return [operator(b, "EyasBitcast", node.input[0], node.input[0], TensorProto.INT8 if small_name(to) else to)]


def _convert(node: onnx.NodeProto, b: Builder, model: OnnxModel) -> Sequence[str] | None:
    if node.domain == DOMAIN:
        return None
    if node.domain in ("", "ai.onnx") and node.op_type in _RULES:
        return _RULES[node.op_type](node, b)
    if node.domain not in ("", "ai.onnx") or node.op_type not in MOVES:
        types = {b.type_of(name) for name in [*node.input, *node.output] if name}
        names = ", ".join(sorted(filter(None, map(small_name, types))))
        raise UnsupportedOpError(
            f"{describe_node(node, model)} is not supported: {names} can be moved and converted only; cast to a wider"
            " type first"
        )
    for found in node.attribute:
        if found.HasField("t") and small_name(found.t.data_type):
            found.t.CopyFrom(numpy_helper.from_array(_bytes(numpy_helper.to_array(found.t))))
    return None


def _cast(node: onnx.NodeProto, b: Builder) -> list[str]:
    return [_cast_to(node, b, attribute(node, "to", 0))]


def _cast_like(node: onnx.NodeProto, b: Builder) -> list[str]:
    return [_cast_to(node, b, b.type_of(node.input[1]))]


def _cast_to(node: onnx.NodeProto, b: Builder, to: int) -> str:
    saturate, round_mode = bool(attribute(node, "saturate", 1)), attribute(node, "round_mode", "up")
    return convert(b, node.input[0], b.type_of(node.input[0]), to, node.input[0], saturate, round_mode)


def _quantization(node: onnx.NodeProto, b: Builder) -> Sequence[str] | None:
    from eyas.frontends.onnx.rewrite import quantize

    return (quantize.quantize_linear if node.op_type == "QuantizeLinear" else quantize.dequantize_linear)(node, b)


_RULES: dict[str, Callable[[onnx.NodeProto, Builder], Sequence[str] | None]] = {
    "BitCast": bit_cast,
    "Cast": _cast,
    "CastLike": _cast_like,
    "DequantizeLinear": _quantization,
    "QuantizeLinear": _quantization,
}


def _hold_tensor(model: OnnxModel, index: int) -> None:
    tensor = model.proto.graph.initializer[index]
    if is_large(tensor):
        original = TensorProto()
        original.CopyFrom(tensor)
        read = model.reader(original)
        model.readers[tensor.name] = lambda: _bytes(read())
        held = TensorProto(name=tensor.name, dims=tensor.dims, data_type=TensorProto.INT8)
    else:
        held = numpy_helper.from_array(_bytes(model.reader(tensor)()), tensor.name)
    tensor.CopyFrom(held)


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.int8)
