"""`convert-torch-control-flow`: loops and branches of the torch dialect become scf on tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, linalg, scf, tensor

from eyas.errors import UnsupportedOpError
from eyas.ir import Pass, mlir
from eyas.ir.locations import describe_location
from eyas.ir.structured import generic
from eyas.ir.walk import defining_op, find_ops
from eyas.passes.input.torch_values import builtin_type

# What a loop carries beside tensors.
_SCALARS = {"!torch.int": "i64", "!torch.float": "f64", "!torch.bool": "i1"}


@dataclass(frozen=True)
class ConvertTorchControlFlow(Pass):
    """Turns `torch.prim.Loop` into `scf.while` and `torch.prim.If` into `scf.if` before the importer's lowering does.

    That lowering forgets the count of a loop with a condition, and the condition of a loop whose first one is known;
    and a mere choice between two tensors becomes an `arith.select` of them that it then refuses: here it is one of
    elements. What a loop carries keeps its type, so that it is marked as keeping shapes.

        %r = torch.prim.Loop %n, %c, init(%a) { ^bb0(%i, %x): ... torch.prim.Loop.condition %d, iter(%y) }
      becomes
        %r:2 = scf.while (%go = %c and 0 < %n, %k = 0, %x = %a) { scf.condition(%go) %k, %x } do {
          ... scf.yield %d and %k + 1 < %n, %k + 1, %y
        } attributes {flow.keeps_shape}
    """

    name: ClassVar[str] = "convert-torch-control-flow"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "torch.prim.Loop", "torch.prim.If"):
            with mlir.InsertionPoint(op), op.operation.location:
                (_convert_loop if op.operation.name == "torch.prim.Loop" else _convert_if)(op.operation)


def _convert_if(op: mlir.Operation) -> None:
    condition = _to_builtin(op.operands[0], op)
    _choose_elements(op, condition)
    types = [_builtin_type(result.type, op) for result in op.results]
    chosen = scf.IfOp(condition, types, has_else=True)
    for region, block in zip(op.regions, (chosen.then_block, chosen.else_block), strict=True):
        inner = [view.operation for view in region.blocks[0].operations]
        with mlir.InsertionPoint(block):
            end = scf.YieldOp([])
        for moved in inner[:-1]:
            moved.move_before(end.operation)
        with mlir.InsertionPoint(end), inner[-1].location:
            scf.YieldOp([_to_builtin(value, op) for value in inner[-1].operands])
        end.operation.erase()
    for result, new in zip(op.results, chosen.results, strict=True):
        result.replace_all_uses_with(_to_torch(new, result.type))
    op.erase()


def _choose_elements(op: mlir.Operation, condition: mlir.Value) -> None:
    """Replaces results for which both branches give a tensor from outside of one static type."""
    ends = [list(region.blocks[0].operations)[-1].operation for region in op.regions]
    for number, result in enumerate(op.results):
        values = [end.operands[number] for end in ends]
        for value in values:
            owner = defining_op(value)
            if owner is not None and owner.name == "torch.vtensor.literal":
                owner.move_before(op)
        is_inside = any((owner := defining_op(value)) is not None and owner.parent == op for value in values)
        type_ = builtin_type(result.type)
        if is_inside or type_ is None or not type_.has_static_shape or values[0].type != values[1].type:
            continue
        left, right = (_to_builtin(value, op) for value in values)
        identity = mlir.AffineMap.get_identity(type_.rank)
        init = tensor.EmptyOp(list(type_.shape), type_.element_type).result
        choice = generic([left, right], [init], [identity] * 3, ["parallel"] * type_.rank)
        body = choice.regions[0].blocks[0]
        with mlir.InsertionPoint(body):
            linalg.YieldOp([arith.select(condition, body.arguments[0], body.arguments[1])])
        result.replace_all_uses_with(_to_torch(choice.results[0], result.type))


def _convert_loop(op: mlir.Operation) -> None:
    i1, i64 = (mlir.IntegerType.get_signless(width) for width in (1, 64))
    trip, condition = _to_builtin(op.operands[0], op), _to_builtin(op.operands[1], op)
    initial = [_to_builtin(value, op) for value in list(op.operands)[2:]]
    types = [value.type for value in initial]
    zero = arith.constant(i64, 0)
    go = arith.andi(condition, arith.cmpi(arith.CmpIPredicate.slt, zero, trip))
    loop = scf.WhileOp([i64, *types], [go, zero, *initial])
    loop.operation.attributes["flow.keeps_shape"] = mlir.UnitAttr.get()
    locations = [op.location] * (2 + len(types))
    before = mlir.Block.create_at_start(loop.before, [i1, i64, *types], locations)
    with mlir.InsertionPoint(before):
        scf.ConditionOp(before.arguments[0], list(before.arguments)[1:])

    after = op.regions[0].blocks[0]
    after.append_to(loop.after)
    old = list(after.arguments)
    with mlir.InsertionPoint.at_block_begin(after):
        for argument, type_ in zip(old, [i64, *types], strict=True):
            new = after.add_argument(type_, op.location)
            argument.replace_all_uses_with(_to_torch(new, argument.type))
    for _ in old:
        after.erase_argument(0)
    end = list(after.operations)[-1].operation
    with mlir.InsertionPoint(end), end.location:
        following = arith.addi(after.arguments[0], arith.constant(i64, 1))
        more = arith.cmpi(arith.CmpIPredicate.slt, following, trip)
        goes_on = arith.andi(_to_builtin(end.operands[0], op), more)
        scf.YieldOp([goes_on, following, *(_to_builtin(value, op) for value in list(end.operands)[1:])])
    end.erase()
    for result, new in zip(op.results, list(loop.results)[1:], strict=True):
        result.replace_all_uses_with(_to_torch(new, result.type))
    op.erase()


def _to_builtin(value: mlir.Value, op: mlir.Operation) -> mlir.Value:
    type_ = _builtin_type(value.type, op)
    if str(value.type) in _SCALARS:
        return _create(f"torch_c.to_{type_}", type_, value)
    return _create("torch_c.to_builtin_tensor", type_, value)


def _builtin_type(type_: mlir.Type, op: mlir.Operation) -> mlir.Type:
    if str(type_) in _SCALARS:
        return mlir.Type.parse(_SCALARS[str(type_)])
    found = builtin_type(type_)
    if found is None:
        what = "loop carries" if op.name == "torch.prim.Loop" else "branch gives"
        where = describe_location(op.location)
        raise UnsupportedOpError(f"control flow at {where} is not supported: a {what} a value of type {type_}")
    return found


def _to_torch(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    if str(type_) in _SCALARS:
        return _create(f"torch_c.from_{_SCALARS[str(type_)]}", type_, value)
    return _create("torch_c.from_builtin_tensor", type_, value)


def _create(name: str, type_: mlir.Type, value: mlir.Value) -> mlir.Value:
    return mlir.Operation.create(name, results=[type_], operands=[value]).results[0]
