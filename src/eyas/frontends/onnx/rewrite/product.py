"""Rules for products of batches of matrices, where the importer's own lowering does not take their shapes.

It takes the larger of two batch sizes, so that one beside none would be one; it has no vector beside a batch, and one
open size at most in a batch of integers or of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from eyas.frontends.onnx.rewrite.rules import Builder

_INTEGERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64)
Size = int | str


def mat_mul(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A vector beside a batch of matrices becomes a matrix; where sizes are open, batches are made equal."""
    left, right = (b.shape_of(name) for name in node.input)
    if left is None or right is None:
        return _without_batch(node, b) or _in_one_batch(node, b) or _of_equal_batches(node, b)
    if 1 not in (len(left), len(right)) or max(len(left), len(right)) < 3:
        return None
    if len(left) == 1:
        product = b.add("MatMul", b.reshape(node.input[0], [1, left[0]]), node.input[1])
        return [b.reshape(product, [*right[:-2], right[-1]])]
    product = b.add("MatMul", node.input[0], b.reshape(node.input[1], [right[0], 1]))
    return [b.reshape(product, left[:-1])]


def _without_batch(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A batch of one matrix is that matrix."""
    shapes = [b.dims_of(name) for name in node.input]
    for index, (shape, other) in enumerate(zip(shapes, reversed(shapes), strict=True)):
        if shape is None or other is None or not 3 <= len(shape) <= len(other) or any(dim != 1 for dim in shape[:-2]):
            continue
        axes, inputs = list(range(len(shape) - 2)), list(node.input)
        if b.opset < 13:
            inputs[index] = b.add("Squeeze", inputs[index], axes=axes)
        else:
            inputs[index] = b.add("Squeeze", inputs[index], b.constant(axes, np.int64))
        return [b.add("MatMul", *inputs)]
    return None


def _of_equal_batches(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Matrices are repeated where a batch is known to be 1 or 0 beside another size."""
    batches = _batches(node, b)
    if batches is None or not any({0, 1} & {*pair} and pair[0] != pair[1] for pair in zip(*batches, strict=True)):
        return None
    sizes = _common(node, b, batches)
    made = [
        name if batch == batches[1 - side] or not sizes else b.add("Expand", name, b.vector([*sizes, 1, 1]))
        for side, (name, batch) in enumerate(zip(node.input, batches, strict=True))
    ]
    return [b.add("MatMul", *made)]


def _in_one_batch(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Integers, and what is empty, in one batch instead of several that are beside each other."""
    batches = _batches(node, b)
    if batches is None or len(batches[0]) < 2:
        return None
    if b.type_of(node.input[0]) not in _INTEGERS and not any(0 in batch for batch in batches):
        return None
    sizes = _common(node, b, batches)
    count: Size = 1
    for size in sizes:
        count = _product(b, count, size)
    sides = []
    for name in node.input:
        rows, columns = b.size(name, -2), b.size(name, -1)
        whole = b.add("Expand", name, b.vector([*sizes, 1, 1]))
        sides.append(b.add("Reshape", whole, b.vector([count, rows, columns]), **_zeros(b)))
    result = [*sizes, b.size(node.input[0], -2), b.size(node.input[1], -1)]
    return [b.add("Reshape", b.add("MatMul", *sides), b.vector(result), **_zeros(b))]


def _batches(node: onnx.NodeProto, b: Builder) -> list[list[int | str | None]] | None:
    """The sizes in front of each side's matrices, as types have them, beginning with 1 where one side has fewer."""
    ranks = [b.rank_of(name) for name in node.input]
    if any(rank is None or rank < 2 for rank in ranks):
        return None
    known = [rank for rank in ranks if rank is not None]
    return [
        [1] * (max(known) - rank) + [b.name_of(name, axis) for axis in range(rank - 2)]
        for name, rank in zip(node.input, known, strict=True)
    ]


def _common(node: onnx.NodeProto, b: Builder, batches: Sequence[Sequence[int | str | None]]) -> list[Size]:
    """The sizes of the result's batch: where one side has 1, the other's."""
    sizes: list[Size] = []
    for place, (one, other) in enumerate(zip(*batches, strict=True)):
        side = 1 if one == 1 or (isinstance(other, int) and other != 1) else 0
        rank = b.rank_of(node.input[side]) or 0
        sizes.append(b.size(node.input[side], place + rank - 2 - len(batches[0])) if (one, other) != (1, 1) else 1)
    return sizes


def _product(b: Builder, one: Size, other: Size) -> Size:
    if isinstance(other, int):
        return b.times(one, other)
    return b.times(other, one) if isinstance(one, int) else b.add("Mul", one, other)


def _zeros(b: Builder) -> dict[str, int]:
    """That a size of 0 is meant as it is."""
    return {"allowzero": 1} if b.opset >= 14 else {}
