"""`convert-torch-loops`: loops of the torch dialect end by their count and by their condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, scf

from eyas.errors import UnsupportedOpError
from eyas.frontends.locations import describe_source
from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops
from eyas.passes.input.convert_dynamic_views import builtin_type

# What a loop carries beside tensors: torch's type, the builtin one, and how to get from one to the other.
_SCALARS = {"!torch.int": ("i64", "i64"), "!torch.float": ("f64", "f64"), "!torch.bool": ("i1", "i1")}


@dataclass(frozen=True)
class ConvertTorchLoops(Pass):
    """Turns `torch.prim.Loop` into `scf.while` before the importer's own lowering sees it.

    That lowering forgets the count of a loop with a condition, and the condition of a loop whose first one is known.
    What a loop carries keeps its type, so that it is marked as keeping shapes.

        %r = torch.prim.Loop %n, %c, init(%a) { ^bb0(%i, %x): ... torch.prim.Loop.condition %d, iter(%y) }
      becomes
        %r:2 = scf.while (%go = %c and 0 < %n, %k = 0, %x = %a) { scf.condition(%go) %k, %x } do {
          ... scf.yield %d and %k + 1 < %n, %k + 1, %y
        } attributes {flow.keeps_shape}
    """

    name: ClassVar[str] = "convert-torch-loops"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "torch.prim.Loop"):
            with mlir.InsertionPoint(op), op.operation.location:
                _convert(op.operation)


def _convert(op: mlir.Operation) -> None:
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


def _to_builtin(value: mlir.Value, loop: mlir.Operation) -> mlir.Value:
    if str(value.type) in _SCALARS:
        name, type_ = _SCALARS[str(value.type)]
        return _create(f"torch_c.to_{name}", mlir.Type.parse(type_), value)
    tensor = builtin_type(value.type)
    if tensor is None:
        where = describe_source(loop.location)
        raise UnsupportedOpError(f"the loop at {where} is not supported: it carries a value of type {value.type}")
    return _create("torch_c.to_builtin_tensor", tensor, value)


def _to_torch(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    if str(type_) in _SCALARS:
        return _create(f"torch_c.from_{_SCALARS[str(type_)][0]}", type_, value)
    return _create("torch_c.from_builtin_tensor", type_, value)


def _create(name: str, type_: mlir.Type, value: mlir.Value) -> mlir.Value:
    return mlir.Operation.create(name, results=[type_], operands=[value]).results[0]
