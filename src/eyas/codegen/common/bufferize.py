"""From a dispatch function on tensors to plain loops on memory, through upstream bufferisation: what any op of the
input contract has, on every target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, bufferization, tensor

from eyas.codegen.common.places import DIM_ARGS
from eyas.dialects import codegen, flow
from eyas.ir import run_upstream
from eyas.ir.structured import index_constant
from eyas.ir.walk import constant_int, find_ops, remap_operands

_BUFFERIZE = (
    "eliminate-empty-tensors,empty-tensor-to-alloc-tensor,"
    # tm_tensor (scan, scatter, sort) does not know one-shot bufferisation; its own pass takes what is left.
    "one-shot-bufferize{allow-unknown-ops allow-return-allocs-from-loops},func.func(tm-tensor-bufferize),canonicalize,"
    "func.func(tm-tensor-to-loops)"
)
_LOOPS = "convert-linalg-to-loops,buffer-deallocation-pipeline,convert-bufferization-to-memref,canonicalize,cse"
_PARALLEL_LOOPS = "convert-linalg-to-parallel-loops,convert-bufferization-to-memref,lower-affine,canonicalize,cse"


class Interface(Protocol):
    """What the body of an entry function is given by its target."""

    constants: list[mlir.Value]
    """Push constants, as indices."""

    def index(self, value: int) -> mlir.Value:
        """An index constant at the top of the function."""
        ...

    def binding(
        self, ordinal: int, type_: mlir.MemRefType, sizes: Sequence[mlir.Value], strides: Sequence[mlir.Value]
    ) -> mlir.Value:
        """A binding as a memref."""
        ...


def bufferize(module: mlir.Module) -> None:
    """Turns tensors into memrefs and structured ops into loops."""
    _bufferize(module, _LOOPS)


def bufferize_for_many(module: mlir.Module) -> None:
    """As `bufferize`, with loops that say whether their iterations depend on each other. Nothing is deallocated."""
    _bufferize(module, _PARALLEL_LOOPS)


def _bufferize(module: mlir.Module, loops: str) -> None:
    for op in find_ops(module, "flow.reshape"):
        _reshape_inside(op.operation)
    run_upstream(module, f"{_BUFFERIZE},{loops}")


def _reshape_inside(op: mlir.Operation) -> None:
    """A view that a pass left in a branch or a loop, which is inside of a dispatch, through one dimension."""
    source, result = op.operands[0], op.results[0]
    before, after = mlir.RankedTensorType(source.type), mlir.RankedTensorType(result.type)
    if not before.has_static_shape or not after.has_static_shape:
        return
    flat = mlir.RankedTensorType.get([math.prod(before.shape)], before.element_type)
    with mlir.InsertionPoint(op), op.location:
        if before.rank == 0:
            value = tensor.ExpandShapeOp(flat, source, [], [], [1]).result
        else:
            value = source if before.rank == 1 else _collapse(source, flat, before.rank)
        if after.rank == 0:
            value = tensor.CollapseShapeOp(after, value, []).result
        elif after.rank > 1:
            value = tensor.ExpandShapeOp(after, value, [list(range(after.rank))], [], list(after.shape)).result
    result.replace_all_uses_with(value)
    op.erase()


def _collapse(value: mlir.Value, flat: mlir.Type, rank: int) -> mlir.Value:
    return tensor.CollapseShapeOp(flat, value, [list(range(rank))]).result


def in_place_results(function: mlir.OpView) -> dict[int, int]:
    """Results that are written where a tensor argument is: result -> argument."""
    if flow.IN_PLACE not in function.attributes:
        return {}
    pairs = list(mlir.DenseI64ArrayAttr(function.attributes[flow.IN_PLACE]))
    return dict(zip(pairs[1::2], pairs[::2], strict=True))


def inline_body(function: mlir.OpView, interface: Interface) -> None:
    """Clones the dispatch function's body between tensors read from, and written to, the bindings.

    A result that shares its buffer with an argument is written there; bufferisation then leaves alone what is the same.
    """
    block = function.regions[0].blocks[0]
    dims = iter(list(mlir.DenseI64ArrayAttr(function.attributes[DIM_ARGS])) if DIM_ARGS in function.attributes else [])
    in_place = in_place_results(function)
    values: dict[mlir.Value, mlir.Value] = {}
    buffers: list[mlir.Value] = []
    ordinal, constant = 0, 0

    def bind(type_: mlir.RankedTensorType) -> mlir.Value:
        nonlocal ordinal
        shape = list(type_.shape) if type_.rank else []
        dynamic = mlir.ShapedType.get_dynamic_size()
        sizes = [interface.constants[next(dims)] if d == dynamic else interface.index(d) for d in shape]
        strides, running = [], interface.index(1)
        for size in reversed(sizes):
            strides.append(running)
            running = arith.MulIOp(running, size).result
        buffer = interface.binding(ordinal, mlir.MemRefType.get(shape, type_.element_type), sizes, strides[::-1])
        ordinal += 1
        return buffer

    for argument in block.arguments:
        if isinstance(argument.type, mlir.RankedTensorType):
            buffer = bind(argument.type)
            writable = len(buffers) in in_place.values()
            values[argument] = bufferization.ToTensorOp(
                argument.type, buffer, restrict=True, writable=writable or None
            ).result
            buffers.append(buffer)
        else:
            values[argument] = interface.constants[constant]
            constant += 1
    for op in block.operations:
        if op.operation.name == "func.return":
            made = [values[operand] for operand in op.operands]
            if codegen.COPIES_RESULTS in function.attributes:
                # All of them before the first is written.
                made = [one if at in in_place else _copy(one) for at, one in enumerate(made)]
            for position, value in enumerate(made):
                destination = bind(value.type)
                if position in in_place:
                    destination = buffers[in_place[position]]
                bufferization.MaterializeInDestinationOp(None, value, destination, restrict=True, writable=True)
            return
        clone = op.operation.clone().operation
        remap_operands(clone, values)
        _clamp_extracts(clone)
        values.update(zip(op.results, clone.results, strict=True))


def _copy(value: mlir.Value) -> mlir.Value:
    return bufferization.AllocTensorOp(value.type, [], copy=value).result


def _clamp_extracts(op: mlir.Operation) -> None:
    """Reads at computed positions stay inside their tensor, as in the other strategies."""
    for extract in find_ops(op, "tensor.extract"):
        source = extract.operands[0]
        with mlir.InsertionPoint(extract), extract.operation.location:
            for position, index in enumerate(list(extract.operands)[1:]):
                if constant_int(index) is not None:
                    continue
                zero, one = index_constant(0), index_constant(1)
                size = tensor.DimOp(source, index_constant(position)).result
                last = arith.MaxSIOp(arith.SubIOp(size, one).result, zero).result
                clamped = arith.MaxSIOp(arith.MinSIOp(index, last).result, zero).result
                extract.operation.operands[1 + position] = clamped
