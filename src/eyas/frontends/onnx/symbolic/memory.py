"""What walks of a model share: a node that is as it was, on operands that are as they were, gives what it gave.

While a model is prepared it is walked again after every change, dozens of times where it has branches and loops, and
nearly all of its nodes are as in the walk before. A node is known again by its bytes and by the identity of what is
known of its operands, which every entry keeps alive; so nothing that changes is ever found under an old key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import TensorProto

from eyas.frontends.onnx.symbolic.values import Value


@dataclass(frozen=True)
class Found:
    """What is known of a node's results, where the dimensions can be read that got names there, and from what it
    follows."""

    results: Sequence[Value]
    places: Mapping[str, tuple[str, int]]
    operands: Sequence[Value | None]


@dataclass
class Memory:
    """Of the walks of one model, its subgraphs and its copies."""

    nodes: dict[Any, dict[Any, Found]] = field(default_factory=dict)
    """By the versions of the operators, then by the node and its operands."""
    tensors: dict[bytes, tuple[Value, TensorProto | None]] = field(default_factory=dict)
    """By the bytes of an initializer: what is known of it, and itself if it is small."""
    _values: dict[Any, Value] = field(default_factory=dict)

    def same(self, value: Value) -> Value:
        """The first of all values that are equal to this one, so that who reads it is known again."""
        elements = None
        if value.elements is not None:
            elements = (value.elements.shape, tuple(map(_exact, value.elements.reshape(-1).tolist())))
        shape = None if value.shape is None else tuple(map(_exact, value.shape))
        return self._values.setdefault((value.data_type, shape, elements), value)


def _exact(scalar: Any) -> tuple[type, Any]:
    """What tells scalars apart that Python holds for equal: 1 and True, 0.0 and -0.0."""
    return type(scalar), repr(scalar) if isinstance(scalar, float) else scalar
