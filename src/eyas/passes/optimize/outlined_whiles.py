"""The steps of an `scf.while` as a function that the host program runs as long as it says so."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, func, tensor

from eyas.dialects import flow
from eyas.ir.walk import is_tensor, nested_operands
from eyas.passes.dispatch.tie_shapes import KEEPS_SHAPE
from eyas.passes.optimize.outlining import Known, Outlining


def outline_while(module: mlir.Module, op: mlir.Operation, name: str) -> bool:
    """Makes a function of a step, and a call that runs it until its first result is false; says whether that was
    possible.

    The condition is computed for the first step before the loop, and by each step for the next one. What is carried
    must be of the same size in all steps; scalars are carried as tensors.

        %r:2 = scf.while (%i = %0, %x = %a) {        %go = arith.cmpi slt, %0, %n
          %go = arith.cmpi slt, %i, %n           =>  %r:2 = call @main_loop_0(%go, %0', %a, ...) {flow.while = @..}
          scf.condition(%go) %i, %x } do { ...       func @main_loop_0_step(%i, %x, ...) { ... return %go, %i+1, %y }
    """
    outlining = Outlining(module, op)
    before, body = (region.blocks[0] for region in op.regions)
    used = [value for block in (before, body) for view in block.operations for value in nested_operands(view.operation)]
    captured = outlining.captured(used)
    if captured is None or not all(_stays(value, op) for value in body.arguments):
        return False
    *conditions, condition = (view.operation for view in before.operations)
    *steps, end = (view.operation for view in body.operations)
    with mlir.InsertionPoint(op), op.location:
        # Outside, what is known is what there is.
        known: Known = dict(zip(before.arguments, op.operands, strict=True))
        known |= {value: value for inner in conditions for value in nested_operands(inner) if _is_of(value, op.block)}
        outlining.copy(conditions, known)
        go, *first = (known.get(value, value) for value in condition.operands)
        starts = [_boxed(value) for value in first]
    states = [value.type for value in starts]
    entry = outlining.begin(
        f"{name}_step",
        [*states, *(value.type for value in captured)],
        [mlir.RankedTensorType.get([], go.type), *states],
    )
    with mlir.InsertionPoint(entry), op.location:
        given = list(entry.arguments)
        known = dict(zip(captured, given[len(states) :], strict=True))
        known |= {
            value: _unboxed(box, value.type) for value, box in zip(body.arguments, given[: len(states)], strict=True)
        }
        outlining.copy(steps, known)
        following = [outlining.make_again(value, known) for value in end.operands]
        known |= dict(zip(before.arguments, following, strict=True))
        outlining.copy(conditions, known)
        func.ReturnOp([_boxed(outlining.make_again(value, known)) for value in condition.operands])
    call = outlining.declare(name, [go, *starts, *captured], states)
    call.attributes[flow.WHILE] = mlir.FlatSymbolRefAttr.get(f"{name}_step")
    call.attributes[KEEPS_SHAPE] = mlir.UnitAttr.get()
    with mlir.InsertionPoint(op), op.location:
        for old, new in zip(op.results, call.results, strict=True):
            if list(old.uses):
                old.replace_all_uses_with(_unboxed(new, old.type))
    op.erase()
    return True


def _stays(value: mlir.Value, op: mlir.Operation) -> bool:
    """Whether what is carried has the same size in all steps."""
    if not is_tensor(value):
        return isinstance(value.type, mlir.IndexType | mlir.IntegerType | mlir.FloatType)
    return KEEPS_SHAPE in op.attributes or mlir.RankedTensorType(value.type).has_static_shape


def _is_of(value: mlir.Value, block: mlir.Block) -> bool:
    return (value.owner if isinstance(value.owner, mlir.Block) else value.owner.operation.block) == block


def _boxed(value: mlir.Value) -> mlir.Value:
    """A scalar as a tensor; an index as an integer."""
    if is_tensor(value):
        return value
    if isinstance(value.type, mlir.IndexType):
        value = arith.index_cast(mlir.IntegerType.get_signless(64), value)
    return tensor.FromElementsOp(mlir.RankedTensorType.get([], value.type), [value]).result


def _unboxed(box: mlir.Value, type_: mlir.Type) -> mlir.Value:
    if isinstance(type_, mlir.RankedTensorType):
        return box
    value = tensor.ExtractOp(box, []).result
    return arith.index_cast(type_, value) if isinstance(type_, mlir.IndexType) else value
