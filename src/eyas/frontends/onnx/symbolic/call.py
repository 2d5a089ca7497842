"""What a rule for the shapes of a node's results sees: the node, and what is known of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import onnx
from onnx import helper

from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.values import Value

Size: TypeAlias = ex.Integer | None
Shape: TypeAlias = Sequence[Size] | None


@dataclass(frozen=True)
class Call:
    node: onnx.NodeProto
    inputs: list[Value | None]
    opset: int

    def attribute(self, name: str, default: Any = None) -> Any:
        for found in self.node.attribute:
            if found.name == name:
                return helper.get_attribute_value(found)
        return default

    def shape(self, index: int = 0) -> tuple[ex.Integer, ...] | None:
        value = self.inputs[index] if index < len(self.inputs) else None
        return None if value is None else value.shape

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def elements(self, index: int, attribute: str = "") -> list[Any] | None:
        """The elements of an operand, or of the attribute that older opsets have in its place."""
        if not self.has(index):
            given = self.attribute(attribute) if attribute else None
            return None if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
        elements = self.inputs[index].elements  # type: ignore[union-attr]
        return None if elements is None else list(elements.reshape(-1))

    def count(self, index: int) -> int | None:
        """How many elements a vector has."""
        shape = self.shape(index)
        return shape[0] if shape is not None and len(shape) == 1 and isinstance(shape[0], int) else None
