"""`convert-stablehlo-scatter`: scatters become loops over the updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir._mlir_libs import _stablehlo
from torch_mlir.dialects import arith, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import (
    Values,
    inline_scalars,
    is_unsigned,
    nest,
    restore,
    signless,
    sizes_of,
    when,
)


@dataclass(frozen=True)
class ConvertStablehloScatter(Pass):
    """Turns `stablehlo.scatter` into `scf.for` over the indices and, inside, over one window.

    A window that does not lie inside the operand is left out as a whole, as XLA does and JAX's modes expect; the
    StableHLO text would leave out single elements.

        %r = stablehlo.scatter(%x, %indices, %updates) ({ add })
    becomes
        %r = scf.for %i ... iter_args(%t = %x) {
          %start = tensor.extract %indices[%i, 0]
          scf.if %inside { scf.for %w ... {
            %sum = %t[%start, %w] + %updates[%i, %w]
            tensor.insert %sum into %t[%start, %w]
          } }
        }
    """

    name: ClassVar[str] = "convert-stablehlo-scatter"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "stablehlo.scatter"):
            with mlir.InsertionPoint(op), op.location:
                results = _convert(op.operation)
                for old, new in zip(op.operation.results, results, strict=True):
                    old.replace_all_uses_with(restore(new, old.type))
            op.operation.erase()


def _convert(op: mlir.Operation) -> Values:
    count = len(op.results)
    inputs = [signless(value) for value in op.operands[:count]]
    starts_unsigned = is_unsigned(op.operands[count].type)
    starts, updates = signless(op.operands[count]), [signless(value) for value in op.operands[count + 1 :]]
    numbers = _stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    window_dims = list(numbers.update_window_dims)
    batching = dict(zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    vector_dim = numbers.index_vector_dim
    rank = mlir.RankedTensorType(inputs[0].type).rank
    windowed = [dim for dim in range(rank) if dim not in numbers.inserted_window_dims and dim not in batching]
    update_sizes = sizes_of(updates[0])
    scatter_dims = [dim for dim in range(len(update_sizes)) if dim not in window_dims]
    sizes = sizes_of(inputs[0])
    zero, one = index_constant(0), index_constant(1)
    extents = [one] * rank
    for dim, update_dim in zip(windowed, window_dims, strict=True):
        extents[dim] = update_sizes[update_dim]

    def start_of(scatter: Values) -> Values:
        start = [zero] * rank
        for position, dim in enumerate(numbers.scattered_dims_to_operand_dims):
            at = list(scatter)
            if vector_dim < mlir.RankedTensorType(starts.type).rank:
                at.insert(vector_dim, index_constant(position))
            cast = arith.index_castui if starts_unsigned else arith.index_cast
            start[dim] = cast(mlir.IndexType.get(), tensor.extract(starts, at))
        for dim, index_dim in batching.items():
            start[dim] = scatter[index_dim if index_dim < vector_dim else index_dim - 1]
        return start

    def scatter_one(scatter: Values, carried: Values) -> Values:
        start = start_of(scatter)
        inside = arith.constant(mlir.IntegerType.get_signless(1), 1)
        for dim in range(rank):
            last = arith.subi(sizes[dim], extents[dim])
            for fits in (
                arith.cmpi(arith.CmpIPredicate.sge, start[dim], zero),
                arith.cmpi(arith.CmpIPredicate.sle, start[dim], last),
            ):
                inside = arith.andi(inside, fits)

        def element(window: Values, tensors: Values) -> Values:
            at, update_at = list(start), [zero] * len(update_sizes)
            for dim, update_dim, index in zip(windowed, window_dims, window, strict=True):
                at[dim], update_at[update_dim] = arith.addi(start[dim], index), index
            for update_dim, index in zip(scatter_dims, scatter, strict=True):
                update_at[update_dim] = index
            old = [tensor.extract(value, at) for value in tensors]
            new = [tensor.extract(value, update_at) for value in updates]
            made = inline_scalars(op.regions[0].blocks[0], [*old, *new])
            return [tensor.insert(value, into, at) for value, into in zip(made, tensors, strict=True)]

        return when(inside, carried, lambda: nest([update_sizes[dim] for dim in window_dims], carried, element))

    return nest([update_sizes[dim] for dim in scatter_dims], inputs, scatter_one)
