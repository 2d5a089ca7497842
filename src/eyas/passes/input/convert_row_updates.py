"""`convert-row-updates`: rows written at computed positions, as into a cache, are inserted one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, cf, scf, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import defining_op, find_ops
from eyas.passes.input.torch_values import builtin_type, replace_by_tensor, to_tensor


@dataclass(frozen=True)
class ConvertRowUpdates(Pass):
    """Turns `index_put` with one list of positions into a loop of `tensor.insert_slice`.

    The importer's own lowering computes an index for each element and dimension, and scatters element by element into
    a copy. Rows inserted into a tensor can be written in place, which is what updates a cache without touching the rest
    of it. A position out of range fails the call and writes nothing.

        %1 = torch.aten.index_put.hacked_twin %cache, [all, all, %positions, all], %rows, %false
      becomes
        %1 = scf.for %i = 0 to n iter_args(%c = %cache) {
          %p = tensor.extract %positions[%i]
          scf.if (in range) { tensor.insert_slice %rows[0, 0, %i, 0] into %c[0, 0, %p, 0] } else { cf.assert false } }
    """

    name: ClassVar[str] = "convert-row-updates"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "torch.aten.index_put.hacked_twin"):
            with mlir.InsertionPoint(op), op.operation.location:
                _convert(op.operation)


def _convert(op: mlir.Operation) -> None:
    target, rows = (builtin_type(op.operands[position].type) for position in (0, 2))
    indices, accumulate = defining_op(op.operands[1]), defining_op(op.operands[3])
    if target is None or rows is None or not (target.has_static_shape and rows.has_static_shape):
        return
    if indices is None or accumulate is None or accumulate.name != "torch.constant.bool":
        return
    if accumulate.attributes["value"].value or len(indices.operands) != target.rank:
        return
    computed = [dim for dim, one in enumerate(indices.operands) if not _is_whole(one, target.shape[dim])]
    if len(computed) != 1:
        return
    dim = computed[0]
    positions, depth = _strip(indices.operands[dim])
    type_ = builtin_type(positions.type)
    if type_ is None or type_.rank != 1 or not type_.has_static_shape or depth != target.rank - 1 - dim:
        return
    if list(rows.shape) != [*target.shape[:dim], type_.shape[0], *target.shape[dim + 1 :]]:
        return
    cache, at, new = (to_tensor(value) for value in (op.operands[0], positions, op.operands[2]))
    replace_by_tensor(op, _loop(cache, at, new, dim))


def _strip(value: mlir.Value) -> tuple[mlir.Value, int]:
    """An index without the unit dimensions behind it that line it up with the others, and their number."""
    depth = 0
    while (owner := defining_op(value)) is not None and owner.name == "torch.aten.unsqueeze":
        if _constant(owner.operands[1]) != -1:
            break
        value, depth = owner.operands[0], depth + 1
    return value, depth


def _is_whole(index: mlir.Value, size: int) -> bool:
    """Whether an index is 0, 1, ... size - 1: the importer's form of `:`."""
    owner = defining_op(_strip(index)[0])
    if owner is None or owner.name != "torch.aten.arange.start_step":
        return False
    return [_constant(owner.operands[position]) for position in range(3)] == [0, size, 1]


def _constant(value: mlir.Value) -> int | None:
    owner = defining_op(value)
    return owner.attributes["value"].value if owner is not None and owner.name == "torch.constant.int" else None


def _loop(target: mlir.Value, positions: mlir.Value, rows: mlir.Value, dim: int) -> mlir.Value:
    count = mlir.RankedTensorType(positions.type).shape[0]
    loop = scf.ForOp(index_constant(0), index_constant(count), index_constant(1), [target])
    with mlir.InsertionPoint(loop.body):
        scf.YieldOp([_insert_row(loop.inner_iter_args[0], positions, rows, dim, loop.induction_variable)])
    return loop.results[0]


def _insert_row(
    target: mlir.Value, positions: mlir.Value, rows: mlir.Value, dim: int, ordinal: mlir.Value
) -> mlir.Value:
    type_ = mlir.RankedTensorType(target.type)
    index = mlir.IndexType.get()
    size = index_constant(type_.shape[dim])
    given = arith.IndexCastOp(index, tensor.ExtractOp(positions, [ordinal]).result).result
    is_negative = arith.CmpIOp(arith.CmpIPredicate.slt, given, index_constant(0)).result
    position = arith.SelectOp(is_negative, arith.AddIOp(given, size).result, given).result
    # Unsigned, so that what is still negative is too large.
    in_range = arith.CmpIOp(arith.CmpIPredicate.ult, position, size).result
    branch = scf.IfOp(in_range, [type_], has_else=True)
    shape = [1 if one == dim else extent for one, extent in enumerate(type_.shape)]
    row_type = mlir.RankedTensorType.get(shape, type_.element_type)
    with mlir.InsertionPoint(branch.then_block):
        row = _slice("tensor.extract_slice", row_type, [rows], dim, ordinal)
        scf.YieldOp([_slice("tensor.insert_slice", type_, [row, target], dim, position)])
    with mlir.InsertionPoint(branch.else_block):
        failed = arith.ConstantOp(mlir.IntegerType.get_signless(1), mlir.BoolAttr.get(False)).result
        check = cf.AssertOp(failed, f"index out of range of dimension {dim}, which has {type_.shape[dim]} elements")
        check.attributes["flow.keep"] = mlir.UnitAttr.get()
        scf.YieldOp([target])
    return branch.results[0]


def _slice(name: str, type_: mlir.Type, tensors: list[mlir.Value], dim: int, offset: mlir.Value) -> mlir.Value:
    """One row along `dim` at `offset`."""
    whole = mlir.RankedTensorType(tensors[-1].type)
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    places = [dynamic if one == dim else 0 for one in range(whole.rank)]
    sizes = [1 if one == dim else extent for one, extent in enumerate(whole.shape)]
    return _create(
        name,
        [type_],
        [*tensors, offset],
        static_offsets=mlir.DenseI64ArrayAttr.get(places),
        static_sizes=mlir.DenseI64ArrayAttr.get(sizes),
        static_strides=mlir.DenseI64ArrayAttr.get([1] * whole.rank),
        operandSegmentSizes=mlir.DenseI32ArrayAttr.get([1] * len(tensors) + [1, 0, 0]),
    )


def _create(name: str, types: list[mlir.Type], operands: list[mlir.Value], **attributes: mlir.Attribute) -> mlir.Value:
    return mlir.Operation.create(name, results=types, operands=operands, attributes=attributes).results[0]
