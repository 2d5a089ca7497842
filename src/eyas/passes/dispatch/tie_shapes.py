"""`tie-shapes`: states the dynamic dimensions of every tensor in terms of function arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, tensor

from eyas.dialects import flow
from eyas.ir import Pass, run_upstream
from eyas.ir.walk import constant_int, defining_op, entry_block, find_ops, functions, is_tensor, remap_operands

_RESOLVE = "resolve-ranked-shaped-type-result-dims,resolve-shaped-type-result-dims,canonicalize,cse"

# On an scf.for or scf.while: what it carries keeps its shape. On an scf.if: its else branch yields values from outside.
KEEPS_SHAPE = "flow.keeps_shape"


@dataclass(frozen=True)
class TieShapes(Pass):
    """Adds a `flow.tie_shape` for each op result with dynamic dimensions.

    The dimensions are first written as `tensor.dim` of the result; upstream's shape reification then moves them up to
    the arguments, so that later passes can size buffers without the tensor.

        %1 = linalg.generic ... -> tensor<?x4xf32>
      becomes
        %1 = linalg.generic ... -> tensor<?x4xf32>
        flow.tie_shape %1, %d0          // %d0 = tensor.dim %arg0, %c0
    """

    name: ClassVar[str] = "tie-shapes"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            for op in list(entry_block(function).operations):
                for result in op.results:
                    if is_tensor(result) and not mlir.ShapedType(result.type).has_static_shape:
                        _tie(op, result)
        run_upstream(module, _RESOLVE)
        while _look_through(module):
            run_upstream(module, _RESOLVE)


def _look_through(module: mlir.Module) -> bool:
    """Takes sizes of which upstream knows nothing from where they come from: those of tm_tensor results from the
    operands that they are written to, those of loops that keep shapes from before the loop, those of conditions from
    where their branches were asked."""
    changed = False
    for dim in find_ops(module, "tensor.dim"):
        owner = defining_op(dim.operands[0])
        if owner is not None and owner.name.startswith("tm_tensor."):
            number = mlir.OpResult(dim.operands[0]).result_number
            dim.operation.operands[0] = owner.operands[len(owner.operands) - len(owner.results) + number]
            changed = True
        elif owner is not None and KEEPS_SHAPE in owner.attributes:
            dim.operation.operands[0] = _kept(owner, mlir.OpResult(dim.operands[0]).result_number)
            changed = True
        elif owner is not None and owner.name == "scf.if" and (size := _tied(dim.operands[0], dim.operands[1])):
            dim.result.replace_all_uses_with(size)
            changed = True
    return changed


def _tied(value: mlir.Value, index: mlir.Value) -> mlir.Value | None:
    """The size that the value's `flow.tie_shape` states for a dimension."""
    number = constant_int(index)
    for use in value.uses:
        user = use.owner.opview if isinstance(use.owner, mlir.Operation) else use.owner
        if isinstance(user, flow.TieShapeOp):
            places = [dim for _, dim in flow.dynamic_dims([value])]
            size = list(user.dims)[places.index(number)] if number in places else None
            owner = None if size is None else defining_op(size)
            is_asking = owner is not None and owner.name == "tensor.dim" and owner.operands[0] == value
            return None if is_asking else size
    return None


def _tie(op: mlir.OpView, result: mlir.Value) -> None:
    source = result
    if op.operation.name == "scf.if" and KEEPS_SHAPE not in op.operation.attributes and _can_be_asked(op.operation):
        _tie_branches(op.operation, result)
        return
    if KEEPS_SHAPE in op.operation.attributes:
        source = _kept(op.operation, mlir.OpResult(result).result_number)
    with mlir.InsertionPoint.after(op), op.operation.location:
        dims = [
            tensor.DimOp(value, arith.ConstantOp(mlir.IndexType.get(), dim).result).result
            for value, dim in flow.dynamic_dims([source])
        ]
        flow.TieShapeOp(result, dims)


def _can_be_asked(op: mlir.Operation) -> bool:
    """Whether copies of the branches, outside, would go away once their sizes are known."""
    names = [inner.operation.name for region in op.regions for inner in region.blocks[0].operations]
    known = all(name.startswith(("arith.", "linalg.", "math.", "scf.yield", "tensor.")) for name in names)
    return known and not find_ops(op, "cf.assert")


def _tie_branches(op: mlir.Operation, result: mlir.Value) -> None:
    """Sizes of what an scf.if yields: those of copies of its branches, of which only the sizes will be left."""
    number = mlir.OpResult(result).result_number
    sides = []
    with mlir.InsertionPoint(op), op.location:
        for region in op.regions:
            copies: dict[mlir.Value, mlir.Value] = {}
            *body, end = list(region.blocks[0].operations)
            for inner in body:
                copy = inner.operation.clone()
                remap_operands(copy, copies)
                copies.update(zip(inner.operation.results, copy.results, strict=True))
            value = end.operands[number]
            sides.append(copies.get(value, value))
        dims = []
        for _, dim in flow.dynamic_dims([result]):
            index = arith.ConstantOp(mlir.IndexType.get(), dim).result
            then, other = (tensor.DimOp(side, index).result for side in sides)
            dims.append(arith.SelectOp(op.operands[0], then, other).result)
    with mlir.InsertionPoint.after(op), op.location:
        flow.TieShapeOp(result, dims)


def _kept(op: mlir.Operation, number: int) -> mlir.Value:
    """A value from before the op with the shape of one of its results."""
    if op.name == "scf.for":
        return op.operands[3 + number]
    if op.name == "scf.if":
        return list(op.regions[1].blocks[0].operations)[-1].operands[number]
    assert op.name == "scf.while", op.name
    before = op.regions[0].blocks[0]
    forwarded = list(before.operations)[-1].operands[1 + number]
    if isinstance(forwarded.owner, mlir.Block) and forwarded.owner == before:
        return op.operands[mlir.BlockArgument(forwarded).arg_number]
    # What never changes is not carried any more.
    return forwarded
