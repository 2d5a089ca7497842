"""Loops that count in tensors of no dimensions, as JAX's do, rewritten to count in numbers."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import scf, tensor

from eyas.ir.structured import clone_body, split_operands
from eyas.ir.walk import is_tensor


def unwrap(loop: mlir.Operation) -> bool:
    """Gives an `scf.while` integers in place of what it carries as tensors of one integer; says whether it did. Only
    where no result of them is used: a dispatch gives tensors.

    What is computed with them is arithmetic on tensors of no dimensions, which becomes arithmetic on numbers. Extracts
    of what was just put into a tensor are left for the canonicaliser.
    """
    if not any(_is_number(value.type) for value in [*loop.operands, *loop.results]):
        return False
    if any(_is_number(result.type) and list(result.uses) for result in loop.results):
        return False
    with mlir.InsertionPoint(loop), loop.location:
        made = scf.WhileOp([_unwrapped(result.type) for result in loop.results], [_number(v) for v in loop.operands])
        blocks = [(loop.regions[0].blocks[0], made.before), (loop.regions[1].blocks[0], made.after)]
        for old, region in blocks:
            types = [_unwrapped(argument.type) for argument in old.arguments]
            new = mlir.Block.create_at_start(region, types, [loop.location] * len(types))
            _move(old, new)
        for name in loop.attributes:
            made.operation.attributes[name] = loop.attributes[name]
    with mlir.InsertionPoint.after(made.operation), loop.location:
        for result, new in zip(loop.results, made.results, strict=True):
            result.replace_all_uses_with(_wrapped(new, result.type))
    loop.erase()
    return True


def _is_number(type_: mlir.Type) -> bool:
    if not isinstance(type_, mlir.RankedTensorType):
        return False
    return type_.rank == 0 and isinstance(type_.element_type, mlir.IntegerType)


def _unwrapped(type_: mlir.Type) -> mlir.Type:
    return mlir.RankedTensorType(type_).element_type if _is_number(type_) else type_


def _number(value: mlir.Value) -> mlir.Value:
    return tensor.extract(value, []) if _is_number(value.type) else value


def _wrapped(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    return tensor.from_elements(type_, [value]) if value.type != type_ else value


def _move(old: mlir.Block, new: mlir.Block) -> None:
    """Moves the ops of a block whose arguments and last op have other types."""
    with mlir.InsertionPoint(new):
        for argument, value in zip(old.arguments, new.arguments, strict=True):
            argument.replace_all_uses_with(_wrapped(value, argument.type))
        end = list(old.operations)[-1].operation
        anchor = scf.YieldOp([])  # until the block has its end
    for view in list(old.operations)[:-1]:
        view.operation.move_before(anchor.operation)
    with mlir.InsertionPoint(anchor), end.location:
        operands = [_number(value) for value in end.operands]
        if end.name == "scf.condition":
            scf.ConditionOp(operands[0], operands[1:])
        else:
            scf.YieldOp(operands)
    anchor.operation.erase()
    end.erase()
    for view in list(new.operations):
        if view.operation.name == "linalg.generic" and _is_arithmetic(view.operation):
            _write_out(view.operation)


def _is_arithmetic(op: mlir.Operation) -> bool:
    """A generic of no loops on integers."""
    values = [*op.operands, *op.results]
    return all(_is_number(value.type) or not is_tensor(value) for value in values) and len(op.results) > 0


def _write_out(op: mlir.Operation) -> None:
    body = op.regions[0].blocks[0]
    if any(view.operation.name in ("linalg.index", "tensor.extract") for view in body.operations):
        return
    inputs, inits = split_operands(op)
    with mlir.InsertionPoint(op), op.location:
        used = [bool(list(argument.uses)) for argument in body.arguments]
        values = {
            argument: _number(value)
            for argument, value, is_used in zip(body.arguments, [*inputs, *inits], used, strict=True)
            if is_used
        }
        holder = scf.ExecuteRegionOp([])
        block = mlir.Block.create_at_start(holder.regions[0], [])
        yielded = clone_body(body, block, values)
        for view in list(block.operations):
            view.operation.move_before(holder.operation)
        holder.operation.erase()
        made = [_wrapped(value, result.type) for value, result in zip(yielded, op.results, strict=True)]
    for result, new in zip(op.results, made, strict=True):
        result.replace_all_uses_with(new)
    op.erase()
