"""Rules for operators of several steps on f16 and bf16: computed in f32, rounded once, as the standard's values are."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from eyas.frontends.onnx.rewrite.rules import Builder

_HALF = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def in_f32(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """The same operator on f32; the importer would round after each step, or has no lowering for halves."""
    kind = b.type_of(node.output[0]) or b.type_of(node.input[0])
    if kind not in _HALF:
        return None
    inputs = [b.cast(name, TensorProto.FLOAT) if name and b.type_of(name) in _HALF else name for name in node.input]
    attributes = {found.name: helper.get_attribute_value(found) for found in node.attribute}
    return [b.cast(b.add(node.op_type, *inputs, **attributes), kind)]
