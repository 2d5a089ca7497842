"""Runs a scalar linalg body on vectors: each op on vector operands becomes the same op on vectors.

What is uniform across lanes stays scalar until it meets a vector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref, scf, vector

from eyas.codegen.common.emission.values import BAD_DATA, Memory, clone_op
from eyas.codegen.common.sizes import Size
from eyas.dialects import flow

# In sums of products reordering is not allowed, fusing a multiply and an add is: that is what every BLAS does. Between
# elementwise ops nothing is fused: frameworks round after each, and a*b + c*d of two ops must be what they have.
_CONTRACTED = {"arith.addf", "arith.subf", "arith.mulf"}
# Which of two zeros a maximum over many elements is, is nobody's promise; asking for one of them costs as much again.
_FOLDED = {"arith.maximumf", "arith.minimumf"}


@dataclass(frozen=True)
class Lane:
    """Where a body runs: how many lanes, which of them are on, and what `linalg.index` means there."""

    memory: Memory
    width: int
    mask: mlir.Value | None
    index: Callable[[int], mlir.Value]
    first: Callable[[int, Size], mlir.Value | None]
    """The index of the first lane along a loop of the body, when the loop stays below a size."""
    sums: bool
    """Whether the body adds to a sum; only there may a multiply and an add be fused."""


def evaluate_body(body: mlir.Block | None, arguments: list[mlir.Value | None], lane: Lane) -> list[mlir.Value]:
    """The values that the body yields for these arguments; a missing body yields its first argument."""
    if body is None:
        assert arguments[0] is not None
        return [arguments[0]]
    values: dict[mlir.Value, mlir.Value | None] = dict(zip(body.arguments, arguments, strict=True))

    def get(value: mlir.Value) -> mlir.Value:
        if value not in values:
            values[value] = lane.memory.scalar(value)
        found = values[value]
        assert found is not None, "a body reads an output that has no initial value"
        return found

    olds = list(body.arguments)[len(body.arguments) - len(list(body.operations)[-1].operands) :]
    for op in body.operations:
        op = op.operation
        if op.name == "linalg.yield":
            return [get(operand) for operand in op.operands]
        if op.name == "linalg.index":
            values[op.results[0]] = lane.index(op.attributes["dim"].value)
        elif op.name == "cf.assert":
            _check(get(op.operands[0]), lane)
        elif op.name == "tensor.extract":
            values[op.results[0]] = _extract(op, [get(operand) for operand in list(op.operands)[1:]], lane)
        else:
            results = _apply(op, [get(operand) for operand in op.operands], lane)
            if op.name in _FOLDED and any(operand in olds for operand in op.operands):
                results[0].owner.attributes["fastmath"] = mlir.Attribute.parse("#arith.fastmath<nsz>")
            values.update(zip(op.results, results, strict=True))
    raise AssertionError("a linalg body ends with linalg.yield")


def _apply(op: mlir.Operation, operands: list[mlir.Value], lane: Lane) -> list[mlir.Value]:
    types = [result.type for result in op.results]
    if any(isinstance(operand.type, mlir.VectorType) for operand in operands):
        scalar_condition = op.name == "arith.select" and not isinstance(operands[0].type, mlir.VectorType)
        operands = [
            operand if scalar_condition and position == 0 else lane.memory.as_width(operand, operand.type, lane.width)
            for position, operand in enumerate(operands)
        ]
        types = [mlir.VectorType.get([lane.width], type_) for type_ in types]
    clone = clone_op(op, operands, types)
    if lane.sums and op.name in _CONTRACTED:
        clone.attributes["fastmath"] = mlir.Attribute.parse("#arith.fastmath<contract>")
    return list(clone.results)


def _check(condition: mlir.Value, lane: Lane) -> None:
    """A failed assert makes the workgroup report an error; memory stays safe because reads are clamped."""
    i1, i32 = mlir.IntegerType.get_signless(1), mlir.IntegerType.get_signless(32)
    if isinstance(condition.type, mlir.VectorType):
        if lane.mask is not None:
            off = arith.XOrIOp(lane.mask, lane.memory.ones_mask(lane.width)).result
            condition = arith.OrIOp(condition, off).result
        condition = vector.ReductionOp(i1, vector.CombiningKind.AND, condition).result
    failed = arith.XOrIOp(condition, lane.memory.at.constant(i1, 1)).result
    branch = scf.IfOp(failed)
    with mlir.InsertionPoint(branch.then_block):
        memref.StoreOp(lane.memory.at.constant(i32, BAD_DATA), lane.memory.at.status, [lane.memory.at.index(0)])
        scf.YieldOp([])


def _extract(op: mlir.Operation, indices: list[mlir.Value], lane: Lane) -> mlir.Value:
    """Reads a tensor at computed positions, each clamped into its dimension unless the op says that it lies inside.

    Positions that are a loop's own index, and no more than the loop counts, need no clamp; when that is the loop of the
    lanes and the last dimension, the lanes are neighbours and no gather is needed.
    """
    memory = lane.memory
    storage = memory.tensors[op.operands[0]]
    address = memory.at.index(0)
    width = max((i.type.shape[0] for i in indices if isinstance(i.type, mlir.VectorType)), default=1)
    neighbours = False
    for position, (index, size, stride) in enumerate(zip(indices, storage.shape, storage.strides, strict=True)):
        lanes = index.type.shape[0] if isinstance(index.type, mlir.VectorType) else 1
        if size == Size(1):
            continue
        first = _first_of_loop(op.operands[1 + position], size, lane)
        if first is not None and lanes > 1 and stride == Size(1) and not _any_vector(indices[:position]):
            neighbours, index = True, first
        elif first is None and flow.WITHIN not in op.attributes:
            last = arith.SubIOp(memory.size(size), memory.at.index(1)).result
            low = memory.splat(memory.at.index(0), lanes)
            index = arith.MaxSIOp(arith.MinSIOp(index, memory.splat(last, lanes)).result, low).result
        address = memory.add(address, memory.multiply_sizes(index, stride))
    if neighbours:
        return memory.load(storage, address, width, Size(1), lane.mask)
    if width == 1:
        return memory.load(storage, address, 1, Size(0), None)
    return memory.gather_tensor(storage, memory.as_width(address, address.type, width), width, lane.mask)


def _first_of_loop(position: mlir.Value, size: Size, lane: Lane) -> mlir.Value | None:
    """The index of the first lane, when a position is the index of a loop that stays below `size`."""
    owner = position.owner
    if isinstance(owner, mlir.Block) or owner.name != "linalg.index":
        return None
    return lane.first(owner.attributes["dim"].value, size)


def _any_vector(values: list[mlir.Value]) -> bool:
    return any(isinstance(value.type, mlir.VectorType) for value in values)
