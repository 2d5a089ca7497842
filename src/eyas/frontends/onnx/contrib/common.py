"""What the rules for `com.microsoft` share: refusals, arithmetic in f32, and activations by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import TensorProto, helper

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand

HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)

# Activations that other operators have fused, with the parameters that they take in this order.
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}


def refuse(node: onnx.NodeProto, b: Builder, why: str) -> NoReturn:
    raise UnsupportedOpError(f"{b.describe(node)} is not supported: {why}")


def refuse_attributes(node: onnx.NodeProto, b: Builder, **neutral: Any) -> None:
    """Refuses attributes that have other values than these, for which the operator does what its rule says."""
    for name, value in neutral.items():
        given = attribute(node, name, value)
        if given != value:
            refuse(node, b, f"its attribute {name} is {given}; {value} is what is known")


def refuse_inputs(node: onnx.NodeProto, b: Builder, **places: int) -> None:
    """Refuses inputs, given by name and place, that a rule has no meaning for."""
    for name, place in places.items():
        if operand(node, place):
            refuse(node, b, f"it has the input {name}")


def refuse_results(node: onnx.NodeProto, b: Builder, **places: int) -> None:
    """Refuses results that a rule does not compute."""
    for name, place in places.items():
        if place < len(node.output) and node.output[place]:
            refuse(node, b, f"it has the result {name}")


def is_ready(node: onnx.NodeProto, b: Builder, *places: int) -> bool:
    """Whether type and rank of these inputs, or of all that there are, are known."""
    names = [operand(node, place) for place in places] if places else list(node.input)
    return all(b.type_of(name) and b.rank_of(name) is not None for name in names if name)


class Floats:
    """Numbers of a float type, computed in f32 where the type is narrower."""

    def __init__(self, kind: int, b: Builder):
        self.b, self.kind = b, kind
        self.computed = TensorProto.FLOAT if kind in HALVES else kind
        self.dtype = helper.tensor_dtype_to_np_dtype(self.computed)

    def read(self, value: str) -> str:
        return value if self.kind == self.computed else self.b.cast(value, self.computed)

    def write(self, value: str) -> str:
        return value if self.kind == self.computed else self.b.cast(value, self.kind)

    def number(self, value: float) -> str:
        return self.b.constant(value, self.dtype)


def activate(node: onnx.NodeProto, value: str, name: str, parameters: Sequence[float], kind: int, b: Builder) -> str:
    """An activation that an operator names; nothing for no name."""
    if not name:
        return value
    if name not in _ACTIVATIONS:
        refuse(node, b, f"its activation is {name}; known are {', '.join(_ACTIVATIONS)}")
    if name == "Clip":
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        return b.add("Clip", value, *(b.constant(limit, dtype) for limit in parameters[:2]))
    return b.add(name, value, **dict(zip(_ACTIVATIONS[name], parameters, strict=False)))


def results(node: onnx.NodeProto, *values: str) -> list[str]:
    """Those results that the node has names for."""
    return [value for value, name in zip(values, node.output, strict=False) if name]


def axis_of(node: onnx.NodeProto, name: str, default: int, rank: int) -> int:
    return attribute(node, name, default) % rank


def whole(values: Sequence[int], b: Builder) -> str:
    return b.constant(list(values), np.int64)
