"""`tie-shapes`: states the dynamic dimensions of every tensor in terms of function arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, tensor

from eyas.dialects import flow
from eyas.ir import Pass, run_upstream
from eyas.ir.walk import (
    constant_int,
    defining_op,
    entry_block,
    find_ops,
    functions,
    is_tensor,
    nested_operands,
    remap_operands,
)

# Not cse: it would take a copy of what a branch does for the original, and keep it outside.
_RESOLVE = "resolve-ranked-shaped-type-result-dims,resolve-shaped-type-result-dims,canonicalize"

# On what loops (scf.for, scf.while, flow.while): what it carries keeps its shape. On an scf.if: its else branch yields
# values from outside.
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
        # Where sizes depend on the data of a branch, copies of what makes them are left, which have sizes as well.
        while _tie_all(module):
            resolve_sizes(module)
        run_upstream(module, "cse")


def resolve_sizes(module: mlir.Module) -> None:
    """Writes sizes in terms of function arguments, as far as they follow from them."""
    run_upstream(module, _RESOLVE)
    while _look_through(module):
        run_upstream(module, _RESOLVE)


def tie_branches(op: mlir.Operation) -> None:
    """Ties what an `scf.if` gives to sizes that are known before it."""
    for result in op.results:
        sizes = [_size_of_branches(op, mlir.OpResult(result).result_number, dim) for _, dim in _varying(result)]
        if sizes:
            with mlir.InsertionPoint.after(op), op.location:
                flow.TieShapeOp(result, sizes)


def _varying(value: mlir.Value) -> list[tuple[mlir.Value, int]]:
    return flow.dynamic_dims([value]) if is_tensor(value) else []


def _tie_all(module: mlir.Module) -> bool:
    """Ties what is not tied yet; says whether there was anything."""
    changed = False
    for function in functions(module):
        for op in list(entry_block(function).operations):
            for result in op.results:
                if _varying(result) and not any(use.owner.operation.name == "flow.tie_shape" for use in result.uses):
                    _tie(op, result)
                    changed = True
    return changed


def _look_through(module: mlir.Module) -> bool:
    """Takes sizes of which upstream knows nothing from where they come from: those of tm_tensor results from the
    operands that they are written to, those of loops that keep shapes from before the loop, those of conditions from
    copies of their branches."""
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
        elif owner is not None and owner.name == "scf.if" and owner.parent.operation.name == "func.func":
            index = constant_int(dim.operands[1])
            assert index is not None, "sizes are asked by number"
            size = _size_of_branches(owner, mlir.OpResult(dim.operands[0]).result_number, index)
            dim.result.replace_all_uses_with(size)
            dim.operation.erase()
            changed = True
    return changed


def _tie(op: mlir.OpView, result: mlir.Value) -> None:
    source = result
    if KEEPS_SHAPE in op.operation.attributes:
        source = _kept(op.operation, mlir.OpResult(result).result_number)
    with mlir.InsertionPoint.after(op), op.operation.location:
        dims = [
            tensor.DimOp(value, arith.ConstantOp(mlir.IndexType.get(), dim).result).result
            for value, dim in flow.dynamic_dims([source])
        ]
        flow.TieShapeOp(result, dims)


def _size_of_branches(op: mlir.Operation, number: int, index: int) -> mlir.Value:
    """A size of what an scf.if yields, known before it: that of copies of what its branches yield, of which only the
    sizes will be left. A condition inside is asked in the same way when it is its turn."""
    sizes = []
    with mlir.InsertionPoint(op), op.location:
        at = arith.ConstantOp(mlir.IndexType.get(), index).result
        for region in op.regions:
            *_, end = region.blocks[0].operations
            sizes.append(tensor.DimOp(_copied(end.operands[number], region.blocks[0], {}), at).result)
        return arith.SelectOp(op.operands[0], *sizes).result


def _copied(value: mlir.Value, block: mlir.Block, copies: dict[mlir.Value, mlir.Value]) -> mlir.Value:
    """A copy of a value of a block and of all that it is made of, at the insertion point. Asserts stay in the block:
    they hold where the branch is taken."""
    owner = defining_op(value)
    if value in copies or owner is None or owner.block != block:
        return copies.get(value, value)
    for operand in nested_operands(owner):
        _copied(operand, block, copies)
    copy = owner.clone().operation
    remap_operands(copy, copies)
    for check in find_ops(copy, "cf.assert"):
        check.operation.erase()
    copies.update(zip(owner.results, copy.results, strict=True))
    return copies[value]


def _kept(op: mlir.Operation, number: int) -> mlir.Value:
    """A value from before the op with the shape of one of its results."""
    if op.name == "scf.for":
        return op.operands[3 + number]
    if flow.is_while(op):
        return op.operands[1 + number]
    if op.name == "scf.if":
        return list(op.regions[1].blocks[0].operations)[-1].operands[number]
    assert op.name == "scf.while", op.name
    before = op.regions[0].blocks[0]
    forwarded = list(before.operations)[-1].operands[1 + number]
    if isinstance(forwarded.owner, mlir.Block) and forwarded.owner == before:
        return op.operands[mlir.BlockArgument(forwarded).arg_number]
    # What never changes is not carried any more.
    return forwarded
