"""`quantize-contractions`: products of dequantised tensors multiply the stored integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg

from eyas.ir import Pass
from eyas.ir.structured import (
    element_type,
    elementwise,
    empty_like,
    fill_value,
    generic,
    permutation_of,
    split_operands,
    transpose,
)
from eyas.ir.walk import defining_op, entry_block, functions
from eyas.passes.dispatch.grouping import Role, indexing_maps, role_of
from eyas.passes.optimize.narrow_contractions import rebuild_pad, rebuild_view
from eyas.program.literals import array_of

# Sums of more products of bytes may not fit an i32.
_LONGEST = (1 << 31) // (1 << 14) - 1


@dataclass(frozen=True)
class QuantizeContractions(Pass):
    """A named f32 contraction whose operands are `(integer - zero) * scale` becomes one of i8 with sums in i32, which
    are exact; scales, and what the zero point of the first operand adds, are applied to the sums.

        %a = linalg.generic %x ((extsi %in - 3) * 0.05)          %0 = linalg.matmul ins(%x, %y : i8, i8) outs(i32)
        %b = linalg.generic %y, %s (extsi %in * %s)        =>    %1 = linalg.generic (sum of %y's columns)
        %1 = linalg.matmul ins(%a, %b : f32) outs(%c)            %2 = linalg.generic ((%0 - 3 * %1) * 0.05 * %s + %c)

    Scales may vary along a dimension of the result; the second operand's zero point must be zero, as weights have it.
    """

    name: ClassVar[str] = "quantize-contractions"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            for view in list(entry_block(function).operations):
                op = view.operation
                if _is_float_product(op):
                    with mlir.InsertionPoint(op), op.location:
                        _quantize(op)


@dataclass(frozen=True)
class _Dequantized:
    """A tensor of i8 that, less `zero`, times `scale`, is the operand. `scale` is a number, or a tensor of them along
    dimension `axis`."""

    value: mlir.Value
    zero: int
    scale: mlir.Value
    axis: int | None


def _is_float_product(op: mlir.Operation) -> bool:
    if op.name == "linalg.generic" or "pooling" in op.name or "quantized" in op.name:
        return False
    if role_of(op) is not Role.CONTRACTION or len(op.operands) != 3:
        return False
    return all(isinstance(element_type(value), mlir.F32Type) for value in op.operands)


def _quantize(op: mlir.Operation) -> None:
    maps = indexing_maps(op)
    (left, right), (init,) = split_operands(op)
    first, second = _dequantized(left), _dequantized(right)
    if maps is None or first is None or second is None or second.zero != 0:
        return
    places = [_place(found, map_, maps[2]) for found, map_ in ((first, maps[0]), (second, maps[1]))]
    sum_dims = _sum_dims(maps[1], maps[2], second.value)
    if None in places or sum_dims is None:
        return
    i32 = mlir.IntegerType.get_signless(32)
    shape = list(mlir.RankedTensorType(init.type).shape)
    zeros = linalg.fill(arith.constant(i32, 0), outs=[empty_like(init, shape, range(len(shape)), i32)])
    attributes = {name: op.attributes[name] for name in op.attributes}
    product = mlir.Operation.create(
        op.name, results=[zeros.type], operands=[first.value, second.value, zeros], attributes=attributes, regions=1
    )
    linalg.fill_builtin_region(product)
    result = _apply_scales(product.results[0], init, first, second, places, sum_dims, maps)
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _apply_scales(
    total: mlir.Value,
    init: mlir.Value,
    first: _Dequantized,
    second: _Dequantized,
    places: list[int | None],
    sum_dims: list[int],
    maps: list[mlir.AffineMap],
) -> mlir.Value:
    rank = mlir.RankedTensorType(init.type).rank
    identity = mlir.AffineMap.get_identity(rank)
    inputs, reads = [total], [identity]
    starts_at_zero = _is_zero(fill_value(init))
    if not starts_at_zero:
        inputs.append(init)
        reads.append(identity)
    if first.zero:
        sums, dims = _sums(second.value, maps[1], maps[2], sum_dims)
        inputs.append(sums)
        reads.append(mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(dim) for dim in dims]))
    for found, place in ((first, places[0]), (second, places[1])):
        if found.axis is not None:
            inputs.append(found.scale)
            reads.append(mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(place)]))
    output = empty_like(init, list(mlir.RankedTensorType(init.type).shape), range(rank))
    new = generic(inputs, [output], [*reads, identity], ["parallel"] * rank)
    block = new.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        arguments = iter(block.arguments)
        value = next(arguments)
        start = None if starts_at_zero else next(arguments)
        if first.zero:
            shift = arith.constant(value.type, first.zero)
            value = arith.subi(value, arith.muli(next(arguments), shift))
        scales = [found.scale if found.axis is None else next(arguments) for found in (first, second)]
        value = arith.mulf(arith.sitofp(scales[0].type, value), arith.mulf(*scales))
        linalg.YieldOp([value if start is None else arith.addf(value, start)])
    return new.results[0]


def _sums(
    value: mlir.Value, map_: mlir.AffineMap, result: mlir.AffineMap, sum_dims: list[int]
) -> tuple[mlir.Value, list[int]]:
    """The sums of the second operand over the loops that the product adds up, and the result's dimensions it has."""
    i32 = mlir.IntegerType.get_signless(32)
    type_ = mlir.RankedTensorType(value.type)
    kept = [dim for dim in range(type_.rank) if dim not in sum_dims]
    shape = [type_.shape[dim] for dim in kept]
    zeros = linalg.fill(arith.constant(i32, 0), outs=[empty_like(value, shape, kept, i32)])
    reads = mlir.AffineMap.get_identity(type_.rank)
    writes = mlir.AffineMap.get(type_.rank, 0, [mlir.AffineDimExpr.get(dim) for dim in kept])
    kinds = ["reduction" if dim in sum_dims else "parallel" for dim in range(type_.rank)]
    new = generic([value], [zeros], [reads, writes], kinds)
    block = new.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([arith.addi(block.arguments[1], arith.extsi(i32, block.arguments[0]))])
    loops = [mlir.AffineDimExpr(map_.results[dim]).position for dim in kept]
    positions = _positions(result)
    return new.results[0], [positions[loop] for loop in loops]


def _sum_dims(map_: mlir.AffineMap, result: mlir.AffineMap, value: mlir.Value) -> list[int] | None:
    """Dimensions of the second operand that the product adds up; None when it is read in windows, or for too long."""
    positions = _positions(result)
    shape = mlir.RankedTensorType(value.type).shape
    dims, length = [], 1
    for dim, expr in enumerate(map_.results):
        if not isinstance(expr, mlir.AffineDimExpr):
            return None
        if expr.position not in positions:
            dims.append(dim)
            length *= max(shape[dim], 1)
    return dims if length <= _LONGEST else None


def _place(found: _Dequantized, map_: mlir.AffineMap, result: mlir.AffineMap) -> int | None:
    """The dimension of the result along which the scale varies; 0 when it does not, None when it is not one."""
    if found.axis is None:
        return 0
    expr = map_.results[found.axis]
    return _positions(result).get(expr.position) if isinstance(expr, mlir.AffineDimExpr) else None


def _positions(result: mlir.AffineMap) -> dict[int, int]:
    """Loop -> dimension of the result."""
    exprs = enumerate(result.results)
    return {expr.position: place for place, expr in exprs if isinstance(expr, mlir.AffineDimExpr)}


def _dequantized(value: mlir.Value) -> _Dequantized | None:
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "linalg.transpose":
        found = _dequantized(op.operands[0])
        if found is None:
            return None
        order = permutation_of(op)
        axis = None if found.axis is None else order.index(found.axis)
        with mlir.InsertionPoint(op), op.location:
            return replace(found, value=transpose(found.value, order), axis=axis)
    if op.name in ("tensor.collapse_shape", "tensor.expand_shape"):
        found = _dequantized(op.operands[0])
        axis = None if found is None else _moved_axis(op, found.axis)
        if found is None or (axis is None and found.axis is not None):
            return None
        with mlir.InsertionPoint(op), op.location:
            return replace(found, value=rebuild_view(op, found.value), axis=axis)
    if op.name == "tensor.pad":
        found = _dequantized(op.operands[0])
        padding = defining_op(list(op.regions[0].blocks[0].operations)[-1].operands[0])
        if found is None or padding is None or padding.name != "arith.constant":
            return None
        if mlir.FloatAttr(padding.attributes["value"]).value != 0.0:
            return None
        with mlir.InsertionPoint(op), op.location:
            padded = rebuild_pad(op, found.value, found.zero)
        return None if padded is None else replace(found, value=padded)
    return _read_generic(op) if op.name == "linalg.generic" else None


def _moved_axis(op: mlir.Operation, axis: int | None) -> int | None:
    """Where a dimension is after a reshape that joins it with nothing but ones, or splits ones from it."""
    if axis is None:
        return None
    groups = [[mlir.IntegerAttr(dim).value for dim in group] for group in op.attributes["reassociation"]]
    if op.name == "tensor.collapse_shape":
        place = next(place for place, group in enumerate(groups) if axis in group)
        shape = mlir.RankedTensorType(op.operands[0].type).shape
        return place if all(shape[dim] == 1 for dim in groups[place] if dim != axis) else None
    shape = mlir.RankedTensorType(op.results[0].type).shape
    large = [dim for dim in groups[axis] if shape[dim] != 1]
    return large[0] if len(large) == 1 else None


def _read_generic(op: mlir.Operation) -> _Dequantized | None:
    """`(ext(in) - zero) * scale`, element by element."""
    maps = indexing_maps(op)
    inputs, _ = split_operands(op)
    body = op.regions[0].blocks[0]
    if maps is None or any("parallel" not in str(kind) for kind in op.attributes["iterator_types"]):
        return None
    identity = mlir.AffineMap.get_identity(maps[-1].n_dims)
    product = defining_op(list(body.operations)[-1].operands[0])
    if product is None or product.name != "arith.mulf" or maps[0] != identity or maps[-1] != identity:
        return None
    converted = defining_op(product.operands[0])
    if converted is None or converted.name not in ("arith.sitofp", "arith.uitofp"):
        return None
    number, zero = converted.operands[0], 0
    shifted = defining_op(number)
    if shifted is not None and shifted.name == "arith.subi":
        known = _known_zero(shifted.operands[1], body, inputs)
        if known is None or converted.name == "arith.uitofp":
            return None
        number, zero = shifted.operands[0], known
    extended = defining_op(number)
    unsigned = converted.name == "arith.uitofp"
    if extended is not None and extended.name in ("arith.extsi", "arith.extui"):
        number, unsigned = extended.operands[0], extended.name == "arith.extui"
    source = inputs[0]
    if number != body.arguments[0] or str(number.type) != "i8":
        return None
    scale, axis = product.operands[1], None
    if scale in list(body.arguments):
        place = list(body.arguments).index(scale)
        if place >= len(inputs) or len(maps[place].results) != 1:
            return None
        axis, scale = mlir.AffineDimExpr(maps[place].results[0]).position, inputs[place]
    elif (made := defining_op(scale)) is not None and made.block == body:
        return None
    if unsigned:
        i8 = number.type
        with mlir.InsertionPoint(op), op.location:
            source = elementwise(source, i8, lambda bits: arith.xori(bits, arith.constant(i8, -128)))
        zero -= 128
    return _Dequantized(source, zero, scale, axis)


def _known_zero(value: mlir.Value, body: mlir.Block, inputs: list[mlir.Value]) -> int | None:
    """A zero point that is one number."""
    if value in list(body.arguments):
        place = list(body.arguments).index(value)
        value = inputs[place] if place < len(inputs) else value
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.IntegerAttr):
        return attribute.value
    if not isinstance(attribute, mlir.DenseElementsAttr):
        return None
    values = array_of(attribute)
    return int(values.flat[0]) if values.size and np.all(values == values.flat[0]) else None


def _is_zero(scalar: mlir.Value | None) -> bool:
    op = None if scalar is None else defining_op(scalar)
    return op is not None and op.name == "arith.constant" and mlir.FloatAttr(op.attributes["value"]).value == 0.0
