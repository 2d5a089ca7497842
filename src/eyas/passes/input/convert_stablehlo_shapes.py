"""`convert-stablehlo-shapes`: sizes that depend on dynamic dimensions become scalar arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch_mlir.dialects import arith, tensor

from eyas.ir import Pass, mlir

Scalars = list[mlir.Value]

# Longer vectors are data, not shapes.
_MOST_ELEMENTS = 16

_BINARY: dict[str, Callable[[mlir.Value, mlir.Value], mlir.Value]] = {
    "stablehlo.add": arith.addi,
    "stablehlo.subtract": arith.subi,
    "stablehlo.multiply": arith.muli,
    "stablehlo.divide": arith.divsi,
    "stablehlo.remainder": arith.remsi,
    "stablehlo.maximum": arith.maxsi,
    "stablehlo.minimum": arith.minsi,
    "stablehlo.and": arith.andi,
    "stablehlo.or": arith.ori,
    "stablehlo.xor": arith.xori,
}
_PREDICATES = {
    "EQ": arith.CmpIPredicate.eq,
    "NE": arith.CmpIPredicate.ne,
    "LT": arith.CmpIPredicate.slt,
    "LE": arith.CmpIPredicate.sle,
    "GT": arith.CmpIPredicate.sgt,
    "GE": arith.CmpIPredicate.sge,
}


@dataclass(frozen=True)
class ConvertStablehloShapes(Pass):
    """Turns StableHLO's tensors of sizes into index scalars, and lets dynamic broadcasts and reshapes lower.

    JAX computes with sizes as 0-d tensors, floor divisions by comparing signs. Upstream would make a loop nest of each;
    here every small integer tensor that comes from `get_dimension_size` is a list of scalars. Broadcasts are told which
    dimensions expand (those of size 1): JAX never expands a dynamic dimension. Shape assertions go, because the
    signature is checked on entry.

        %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
        %1 = stablehlo.multiply %0, %c2 : tensor<i32>
    becomes
        %d = tensor.dim %x, %c0 : tensor<?x8xf32>
        %0 = arith.index_cast %d : index to i32
        %1 = arith.muli %0, %c2 : i32
    """

    name: ClassVar[str] = "convert-stablehlo-shapes"

    def run(self, module: mlir.Module) -> None:
        ops: list[mlir.Operation] = []

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            if op.name.startswith("stablehlo."):
                ops.append(op)
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit, mlir.WalkOrder.PRE_ORDER)
        scalars: dict[mlir.Value, Scalars] = {}
        for op in ops:
            with mlir.InsertionPoint(op), op.location:
                _convert(op, scalars)


def _convert(op: mlir.Operation, scalars: dict[mlir.Value, Scalars]) -> None:
    name = op.name
    if name == "stablehlo.custom_call" and "shape_assertion" in str(op.attributes["call_target_name"]):
        op.erase()
    elif name == "stablehlo.dynamic_broadcast_in_dim":
        _mark_expanding(op)
    elif name == "stablehlo.dynamic_reshape":
        reshaped = tensor.ReshapeOp(op.results[0].type, op.operands[0], _as_index(op.operands[1], scalars))
        op.results[0].replace_all_uses_with(reshaped.result)
        op.erase()
    elif len(op.results) == 1 and (values := _scalars_of(op, scalars)) is not None:
        result = tensor.from_elements(op.results[0].type, values)
        scalars[result] = values
        op.results[0].replace_all_uses_with(result)
        op.erase()


def _as_index(shape: mlir.Value, scalars: dict[mlir.Value, Scalars]) -> mlir.Value:
    index = mlir.IndexType.get()
    type_ = mlir.RankedTensorType.get(mlir.RankedTensorType(shape.type).shape, index)
    values = scalars.get(shape)
    if values is None:
        return arith.index_cast(type_, shape)
    return tensor.from_elements(type_, [arith.index_cast(index, value) for value in values])


def _scalars_of(op: mlir.Operation, known: dict[mlir.Value, Scalars]) -> Scalars | None:
    """The elements of an op's result, when it is a small tensor of sizes."""
    type_ = op.results[0].type
    if not _is_small_integer(type_):
        return None
    element = mlir.RankedTensorType(type_).element_type
    if op.name == "stablehlo.get_dimension_size":
        index = arith.constant(mlir.IndexType.get(), mlir.IntegerAttr(op.attributes["dimension"]).value)
        return [arith.index_cast(element, tensor.dim(op.operands[0], index))]
    of_constants = op.name in ("stablehlo.reshape", "stablehlo.concatenate", "stablehlo.sign")
    if not of_constants and not any(operand in known for operand in op.operands):
        return None
    operands: list[Scalars] = []
    for operand in op.operands:
        values = known.get(operand) or _constant_scalars(operand)
        if values is None:
            return None
        operands.append(values)
    if op.name == "stablehlo.reshape":
        return operands[0]
    if op.name == "stablehlo.concatenate" and mlir.IntegerAttr(op.attributes["dimension"]).value == 0:
        return [value for values in operands for value in values]
    if op.name == "stablehlo.convert" and not _is_boolean(type_):
        return [_resize(value, element) for value in operands[0]]
    if op.name == "stablehlo.sign":
        return [_sign(value) for value in operands[0]]
    if op.name == "stablehlo.compare" and not _is_boolean(op.operands[0].type):
        predicate = _PREDICATES[str(op.attributes["comparison_direction"]).rstrip(">").split()[-1]]
        return [arith.cmpi(predicate, one, other) for one, other in zip(*operands, strict=True)]
    if op.name == "stablehlo.select" and len(operands[0]) == len(operands[1]):
        return [arith.select(*chosen) for chosen in zip(*operands, strict=True)]
    if op.name in _BINARY:
        return [_BINARY[op.name](one, other) for one, other in zip(*operands, strict=True)]
    return None


def _constant_scalars(value: mlir.Value) -> Scalars | None:
    owner = value.owner
    if not isinstance(owner, mlir.Operation | mlir.OpView) or owner.operation.name != "stablehlo.constant":
        return None
    if not _is_small_integer(value.type) or _is_boolean(value.type):
        return None
    type_ = mlir.RankedTensorType(value.type)
    elements = np.broadcast_to(np.asarray(owner.attributes["value"]), type_.shape).reshape(-1)
    return [arith.constant(type_.element_type, int(element)) for element in elements]


def _resize(value: mlir.Value, element: mlir.Type) -> mlir.Value:
    before, after = mlir.IntegerType(value.type).width, mlir.IntegerType(element).width
    if before == after:
        return value
    if before == 1:
        return arith.extui(element, value)
    return arith.extsi(element, value) if before < after else arith.trunci(element, value)


def _sign(value: mlir.Value) -> mlir.Value:
    most, least = (arith.constant(value.type, bound) for bound in (1, -1))
    return arith.maxsi(arith.minsi(value, most), least)


def _is_boolean(type_: mlir.Type) -> bool:
    return mlir.IntegerType(mlir.RankedTensorType(type_).element_type).width == 1


def _is_small_integer(type_: mlir.Type) -> bool:
    if not isinstance(type_, mlir.RankedTensorType) or not type_.has_static_shape or type_.rank > 2:
        return False
    is_integer = isinstance(type_.element_type, mlir.IntegerType) and type_.element_type.width in (1, 32, 64)
    return is_integer and type_.element_type.is_signless and math.prod(type_.shape) <= _MOST_ELEMENTS


def _mark_expanding(op: mlir.Operation) -> None:
    source = mlir.RankedTensorType(op.operands[0].type)
    sizes = [None if source.is_dynamic_dim(index) else size for index, size in enumerate(source.shape)]
    result = mlir.RankedTensorType(op.results[0].type)
    targets = [int(dim) for dim in mlir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])]
    expanding = [index for index, size in enumerate(sizes) if size == 1 and not _is_one(result, targets[index])]
    staying = [index for index in range(len(sizes)) if index not in expanding]
    op.attributes["known_expanding_dimensions"] = mlir.DenseI64ArrayAttr.get(expanding)
    op.attributes["known_nonexpanding_dimensions"] = mlir.DenseI64ArrayAttr.get(staying)


def _is_one(type_: mlir.RankedTensorType, dimension: int) -> bool:
    return not type_.is_dynamic_dim(dimension) and type_.shape[dimension] == 1
