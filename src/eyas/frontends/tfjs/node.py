"""A node of a graph model: its operands, and its options as Python values."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eyas.errors import UnsupportedOpError
from eyas.frontends.tensorflow.graph import Graph
from eyas.frontends.tensorflow.moves import known

if TYPE_CHECKING:
    from eyas.frontends.tfjs.graph import GraphTranslation

# TensorFlow.js computes with these three types; the others of TensorFlow become one of them.
DTYPES = {
    **dict.fromkeys(("DT_FLOAT", "DT_HALF", "DT_DOUBLE", "DT_BFLOAT16"), np.float32),
    **dict.fromkeys(("DT_INT32", "DT_INT64", "DT_INT16", "DT_INT8", "DT_UINT8", "DT_UINT16"), np.int32),
    "DT_BOOL": np.bool_,
}
# Numbers of types in the enumeration of TensorFlow, which some converters write.
_TYPE_NUMBERS = {1: "DT_FLOAT", 2: "DT_DOUBLE", 3: "DT_INT32", 4: "DT_UINT8", 9: "DT_INT64", 10: "DT_BOOL"}


@dataclass(frozen=True)
class Node:
    """One node with its operands; options by name as Python values."""

    translation: GraphTranslation
    op: str
    name: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any]

    @property
    def g(self) -> Graph:
        return self.translation.g

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def numbers(self, index: int, what: str) -> list[int]:
        return known(self.g, self.inputs[index], what).reshape(-1).tolist()

    def refuse(self, why: str) -> UnsupportedOpError:
        return UnsupportedOpError(f"{self.g.description}: {self.op} '{self.name}' is not supported: {why}")


Rule = Callable[[Node], Any]


def decode(value: Any) -> Any:
    """An attribute of a node: text is in base64, numbers may be text."""
    if not isinstance(value, dict) or not value:
        return None
    ((kind, content),) = list(value.items())[:1]
    if kind == "s":
        return (
            base64.b64decode(content).decode("utf-8", "replace")
            if isinstance(content, str)
            else bytes(content).decode()
        )
    if kind == "i":
        return int(content)
    if kind == "f":
        return float(content)
    if kind == "type":
        return _TYPE_NUMBERS.get(content, content)
    if kind == "list":
        if not content:
            return []
        ((inner, items),) = list(content.items())[:1]
        return [decode({inner: item}) for item in items]
    if kind == "shape":
        return [int(dim.get("size", -1)) for dim in (content or {}).get("dim", [])]
    return content


def dtype_of(node: Node, name: str) -> np.dtype:
    found = node.get(name)
    if found not in DTYPES:
        raise node.refuse(f"its type is {found}")
    return np.dtype(DTYPES[found])
