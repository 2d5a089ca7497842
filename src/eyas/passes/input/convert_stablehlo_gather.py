"""`convert-stablehlo-gather`: gathers of dynamic slices and reversals of dynamic tensors read at computed positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir._mlir_libs import _stablehlo
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import generic, index_constant
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import (
    Values,
    elements_of,
    is_unsigned,
    restore,
    signless,
    signless_type,
    sizes_of,
)


@dataclass(frozen=True)
class ConvertStablehloGather(Pass):
    """Turns `stablehlo.dynamic_gather`, and `stablehlo.reverse` on dynamic shapes, into a generic that extracts.

    Upstream lowers the same ops on static shapes. Starts are clamped, as StableHLO says.

        %r = stablehlo.reverse %x, dims = [0] : tensor<?x4xf32>
    becomes
        %r = linalg.generic outs(%e : tensor<?x4xf32>) { linalg.yield (tensor.extract %x[%n - 1 - %i, %j]) }
    """

    name: ClassVar[str] = "convert-stablehlo-gather"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "stablehlo.dynamic_gather", "stablehlo.reverse"):
            op = view.operation
            if op.name == "stablehlo.reverse" and mlir.RankedTensorType(op.results[0].type).has_static_shape:
                continue
            with mlir.InsertionPoint(op), op.location:
                made = _reverse(op) if op.name == "stablehlo.reverse" else _gather(op)
                op.results[0].replace_all_uses_with(restore(made, op.results[0].type))
            op.erase()


def _reverse(op: mlir.Operation) -> mlir.Value:
    operand = signless(op.operands[0])
    sizes = sizes_of(operand)
    turned = set(mlir.DenseI64ArrayAttr(op.attributes["dimensions"]))

    def read(indices: Values) -> mlir.Value:
        at = [
            arith.subi(arith.subi(size, index_constant(1)), index) if dim in turned else index
            for dim, (size, index) in enumerate(zip(sizes, indices, strict=True))
        ]
        return tensor.extract(operand, at)

    return _made(mlir.RankedTensorType(operand.type), sizes, read)


def _gather(op: mlir.Operation) -> mlir.Value:
    operand, starts = signless(op.operands[0]), signless(op.operands[1])
    unsigned = is_unsigned(op.operands[1].type)
    index_type = mlir.IndexType.get()
    extents = [arith.index_cast(index_type, value) for value in elements_of(op.operands[2])]
    numbers = _stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    vector_dim, offset_dims = numbers.index_vector_dim, list(numbers.offset_dims)
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    result = mlir.RankedTensorType(signless_type(op.results[0].type))
    kept = [dim for dim in range(len(extents)) if dim not in numbers.collapsed_slice_dims and dim not in batching]
    batch_dims = [dim for dim in range(result.rank) if dim not in offset_dims]
    start_sizes = [size for dim, size in enumerate(sizes_of(starts)) if dim != vector_dim]
    sizes: Values = [index_constant(0)] * result.rank
    for dim, size in zip(batch_dims, start_sizes, strict=True):
        sizes[dim] = size
    for dim, source in zip(offset_dims, kept, strict=True):
        sizes[dim] = extents[source]
    bounds = [arith.subi(size, extent) for size, extent in zip(sizes_of(operand), extents, strict=True)]
    zero = index_constant(0)

    def read(indices: Values) -> mlir.Value:
        batch = [indices[dim] for dim in batch_dims]
        at: Values = [zero] * len(extents)
        for position, dim in enumerate(numbers.start_index_map):
            place = list(batch)
            if vector_dim < mlir.RankedTensorType(starts.type).rank:
                place.insert(vector_dim, index_constant(position))
            cast = arith.index_castui if unsigned else arith.index_cast
            start = cast(index_type, tensor.extract(starts, place))
            at[dim] = arith.maxsi(arith.minsi(start, bounds[dim]), zero)
        for dim, start_dim in batching.items():
            at[dim] = batch[start_dim if start_dim < vector_dim else start_dim - 1]
        for dim, source in zip(offset_dims, kept, strict=True):
            at[source] = arith.addi(at[source], indices[dim])
        return tensor.extract(operand, at)

    return _made(result, sizes, read)


def _made(type_: mlir.RankedTensorType, sizes: Values, element: Callable[[Values], mlir.Value]) -> mlir.Value:
    """A tensor whose elements are computed from their positions."""
    known = [size if type_.is_dynamic_dim(dim) else type_.shape[dim] for dim, size in enumerate(sizes)]
    empty = tensor.empty(known, type_.element_type)
    op = generic([], [empty], [mlir.AffineMap.get_identity(type_.rank)], ["parallel"] * type_.rank)
    with mlir.InsertionPoint(op.regions[0].blocks[0]):
        linalg.YieldOp([element([linalg.IndexOp(dim).result for dim in range(type_.rank)])])
    return op.results[0]
