"""`convert-dynamic-views`: views of tensors with several dynamic dimensions keep the sizes that were asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir
from eyas.ir.walk import defining_op, find_ops
from eyas.passes.input.torch_values import builtin_type, replace_by_tensor, to_tensor

_VIEWS = ("torch.aten.view", "torch.aten.reshape", "torch.aten._unsafe_view", "torch.aten._reshape_alias")


@dataclass(frozen=True)
class ConvertDynamicViews(Pass):
    """Turns such a view into `tensor.reshape` before the importer's own lowering sees it.

    That lowering guesses how dimensions correspond, and when several are dynamic takes one of them to be 1: a view of
    [batch, seq, 48] as [batch*seq, 48] then computes with a batch of one. It also divides by sizes, so views of tensors
    without elements are taken from it too.

        %1 = torch.aten.view %0, [%n, 48] : !torch.vtensor<[?,?,48],f32> -> !torch.vtensor<[?,48],f32>
      becomes
        %b = torch_c.to_builtin_tensor %0
        %s = tensor.from_elements %n, %c48 : tensor<2xi64>
        %r = tensor.reshape %b(%s) : tensor<?x?x48xf32> -> tensor<?x48xf32>
        %1 = torch_c.from_builtin_tensor %r
    """

    name: ClassVar[str] = "convert-dynamic-views"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_VIEWS):
            with mlir.InsertionPoint(op), op.operation.location:
                _convert(op.operation)


def _convert(op: mlir.Operation) -> None:
    source, result = builtin_type(op.operands[0].type), builtin_type(op.results[0].type)
    sizes = defining_op(op.operands[1])
    if source is None or result is None or sizes is None or sizes.name != "torch.prim.ListConstruct":
        return
    dynamic = mlir.ShapedType.get_dynamic_size()
    several = max(list(source.shape).count(dynamic), list(result.shape).count(dynamic)) > 1
    if not several and 0 not in (*source.shape, *result.shape):
        return
    tensor = to_tensor(op.operands[0])
    values = _sizes(tensor, source, list(sizes.operands), result)
    shape_type = mlir.RankedTensorType.get([len(values)], mlir.IntegerType.get_signless(64))
    shape = _create("tensor.from_elements", [shape_type], values)
    replace_by_tensor(op, _create("tensor.reshape", [result], [tensor, shape]))


def _sizes(tensor: mlir.Value, source: mlir.Type, sizes: list[mlir.Value], result: mlir.Type) -> list[mlir.Value]:
    """The new sizes as i64: constants where the type knows them; a -1 is what the others leave."""
    i64 = mlir.IntegerType.get_signless(64)
    dynamic = mlir.ShapedType.get_dynamic_size()
    values: list[mlir.Value | None] = []
    for position, size in enumerate(sizes):
        owner = defining_op(size)
        if result.shape[position] != dynamic:
            values.append(_constant(result.shape[position]))
        elif owner is not None and owner.name == "torch.constant.int" and owner.attributes["value"].value == -1:
            values.append(None)
        else:
            values.append(_create("torch_c.to_i64", [i64], [size]))
    missing = [position for position, value in enumerate(values) if value is None]
    if missing:
        total = _constant(1)
        for dim in range(source.rank):
            index = _create(
                "arith.constant", [mlir.IndexType.get()], [], value=mlir.IntegerAttr.get(mlir.IndexType.get(), dim)
            )
            extent = _create("tensor.dim", [mlir.IndexType.get()], [tensor, index])
            total = _create("arith.muli", [i64], [total, _create("arith.index_cast", [i64], [extent])])
        for value in values:
            if value is not None:
                total = _create("arith.divsi", [i64], [total, value])
        values[missing[0]] = total
    return [value for value in values if value is not None]


def _constant(value: int) -> mlir.Value:
    i64 = mlir.IntegerType.get_signless(64)
    return _create("arith.constant", [i64], [], value=mlir.IntegerAttr.get(i64, value))


def _create(name: str, types: list[mlir.Type], operands: list[mlir.Value], **attributes: mlir.Attribute) -> mlir.Value:
    return mlir.Operation.create(name, results=types, operands=operands, attributes=attributes).results[0]
