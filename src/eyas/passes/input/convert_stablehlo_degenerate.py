"""`convert-stablehlo-degenerate`: tensors without elements, reductions over nothing, reshapes to the same shape and
barriers go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import linalg, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import empty_like
from eyas.passes.input.stablehlo_scalars import restore, signless, signless_type

_NAMES = ("stablehlo.reduce", "stablehlo.optimization_barrier", "stablehlo.reshape")


@dataclass(frozen=True)
class ConvertStablehloDegenerate(Pass):
    """Replaces what upstream has no lowering for because there is nothing to do.

    What makes a tensor without elements is an empty tensor; a reduction over no dimension is its input, one of no
    elements its initial value, and a barrier against XLA's own rewrites is what it holds. A reshape to the same shape
    is its input: upstream's lowering of one of an unsigned scalar ends the process.

        %a = stablehlo.slice %x [4:4] : (tensor<4xf32>) -> tensor<0xf32>
        %b = stablehlo.reduce(%x init: %c) applies stablehlo.or across dimensions = []
    becomes
        %a = tensor.empty() : tensor<0xf32>
        %b = %x
    """

    name: ClassVar[str] = "convert-stablehlo-degenerate"

    def run(self, module: mlir.Module) -> None:
        for op in _candidates(module):
            with mlir.InsertionPoint(op), op.location:
                values = _replacement(op)
            if values is None:
                continue
            for old, new in zip(op.results, values, strict=True):
                old.replace_all_uses_with(new)
            op.erase()


def _reduction(op: mlir.Operation) -> list[mlir.Value] | None:
    """Over no dimension it is its input; over one without elements, the initial value everywhere."""
    over = list(mlir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    inputs, inits = list(op.operands)[: len(op.results)], list(op.operands)[len(op.results) :]
    if not over:
        return inputs
    source = mlir.RankedTensorType(inputs[0].type)
    # Nothing to reduce, or nothing to make: either way the initial values are all there is.
    if all(source.is_dynamic_dim(dim) or source.shape[dim] for dim in range(source.rank)):
        return None
    kept = [dim for dim in range(source.rank) if dim not in over]
    made = []
    for init, result in zip(inits, op.results, strict=True):
        scalar = tensor.extract(signless(init), [])
        shape = list(mlir.RankedTensorType(result.type).shape)
        empty = empty_like(inputs[0], shape, kept, scalar.type)
        made.append(restore(linalg.fill(scalar, outs=[empty]), result.type))
    return made


def _candidates(module: mlir.Module) -> list[mlir.Operation]:
    """Reductions, barriers, and all that makes nothing, those outside regions of other ops first."""
    found: list[mlir.Operation] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name in _NAMES or _is_empty(op):
            found.append(op)
            return mlir.WalkResult.SKIP  # what is inside goes with it
        return mlir.WalkResult.ADVANCE

    module.operation.walk(visit, mlir.WalkOrder.PRE_ORDER)
    return found


def _is_empty(op: mlir.Operation) -> bool:
    """All results are static and have no elements."""
    if not op.name.startswith("stablehlo.") or not op.results:
        return False
    types = [result.type for result in op.results]
    return all(
        isinstance(type_, mlir.RankedTensorType) and type_.has_static_shape and 0 in type_.shape for type_ in types
    )


def _replacement(op: mlir.Operation) -> list[mlir.Value] | None:
    if op.name == "stablehlo.optimization_barrier":
        return list(op.operands)
    if _is_empty(op):
        return [
            restore(tensor.empty(list(result.type.shape), signless_type(result.type.element_type)), result.type)
            for result in op.results
        ]
    if op.name == "stablehlo.reshape":
        return [op.operands[0]] if op.operands[0].type == op.results[0].type else None
    return _reduction(op)
