"""What is known of vectors of sizes that a graph computes: `Shape`, a slice of it, `Concat` with numbers, `Reshape`.

Where a batch is open, graphs of TensorFlow compute the shapes that they reshape to; all but the batch are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Dim = int | str | None
"""A size: a number, the name of an open one, or nothing known."""


def entries_after(
    op: str, inputs: Sequence[Any], attributes: Mapping[str, Any], known: Mapping[str, list[Dim]]
) -> list[Dim] | None:
    """The entries of an operator's result, a vector or a scalar of sizes; None when it is something else."""
    if op == "Shape":
        return list(inputs[0].dims)
    held = [_entries(one, known) for one in inputs]
    if op == "Concat" and all(one is not None for one in held):
        return [entry for one in held if one is not None for entry in one]
    if not held or held[0] is None:
        return None
    if op in ("Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape"):
        return held[0]
    if op == "Gather" and isinstance(inputs[1], np.ndarray):
        return [held[0][int(index)] for index in inputs[1].reshape(-1)]
    if op == "Slice" and all(isinstance(one, np.ndarray) for one in inputs[1:]):
        start, end, *rest = (one.reshape(-1) for one in inputs[1:])
        step = int(rest[1][0]) if len(rest) > 1 else 1
        return held[0][int(start[0]) : int(end[0]) : step] if step > 0 else None
    if op in ("Add", "Sub", "Mul") and len(held) == 2 and held[1] is not None and len(held[0]) == len(held[1]):
        return [_arithmetic(op, a, b) for a, b in zip(held[0], held[1], strict=True)]
    return None


def _entries(tensor: Any, known: Mapping[str, list[Dim]]) -> list[Dim] | None:
    if tensor is None:
        return None
    if isinstance(tensor, np.ndarray):
        is_vector = tensor.ndim <= 1 and tensor.size <= 64 and tensor.dtype.kind in "iu"
        return [int(number) for number in tensor.reshape(-1)] if is_vector else None
    return known.get(tensor.name)


def _arithmetic(op: str, a: Dim, b: Dim) -> Dim:
    if not isinstance(a, int) or not isinstance(b, int):
        return None
    return a + b if op == "Add" else a - b if op == "Sub" else a * b
