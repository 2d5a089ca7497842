"""`convert-stablehlo-convolution`: convolutions with dynamic sizes or dilated kernels become a loop nest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch_mlir._mlir_libs import _stablehlo
from torch_mlir.dialects import arith, complex, linalg, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import generic, index_constant
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_padding import pad, window_count
from eyas.passes.input.stablehlo_scalars import Values, is_unsigned, restore, signless, signless_type, size_of


@dataclass(frozen=True)
class ConvertStablehloConvolution(Pass):
    """Turns `stablehlo.convolution` of a dynamic image, which upstream does not lower, into pad and generic.

    Any layout and any number of groups; the kernel is static. Dilated kernels come here too: upstream fills them with
    zeros, which are multiplied (an infinite pixel then gives NaN). Dilated images and reversed windows are left alone.

        %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]}
    becomes
        %p = tensor.pad %x low[0, 0, 1] high[0, 0, 1] { 0 }
        %r = linalg.generic ins(%p [n, c, s + k], %w [o, c, k]) outs(fill(0) [n, o, s]) { multiply, add }
    """

    name: ClassVar[str] = "convert-stablehlo-convolution"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "stablehlo.convolution"):
            op = view.operation
            if not _applies(op):
                continue
            with mlir.InsertionPoint(op), op.location:
                made = _convert(op)
                op.results[0].replace_all_uses_with(restore(made, op.results[0].type))
            op.erase()


def _applies(op: mlir.Operation) -> bool:
    image, kernel = (mlir.RankedTensorType(value.type) for value in op.operands)
    plain = all(size == 1 for size in _array(op, "lhs_dilation")) and not any(_array(op, "window_reversal", 0))
    batches = mlir.IntegerAttr(op.attributes["batch_group_count"]).value
    wanted = not image.has_static_shape or any(size != 1 for size in _array(op, "rhs_dilation"))
    return wanted and kernel.has_static_shape and plain and batches == 1 and bool((_padding(op) >= 0).all())


def _convert(op: mlir.Operation) -> mlir.Value:
    image, kernel = (signless(value) for value in op.operands)
    numbers = _stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    groups = mlir.IntegerAttr(op.attributes["feature_group_count"]).value
    kernel_shape = list(mlir.RankedTensorType(kernel.type).shape)
    strides, dilations, padding = _array(op, "window_strides"), _array(op, "rhs_dilation"), _padding(op)
    result = mlir.RankedTensorType(signless_type(op.results[0].type))
    zero, blank = (_zero(type_.element_type) for type_ in (result, image.type))

    none = index_constant(0)
    amounts = [[none, none] for _ in kernel_shape]
    for dim, (low, high) in zip(numbers.input_spatial_dimensions, padding, strict=True):
        amounts[dim] = [index_constant(int(low)), index_constant(int(high))]
    padded = pad(image, blank, amounts)

    # The kernel's output features apart by group: they are two dimensions of the result until the end.
    feature, per_group = numbers.kernel_output_feature_dimension, kernel_shape[numbers.kernel_output_feature_dimension]
    per_group //= groups
    kernel = _split(kernel, feature, groups, per_group)
    sizes: Values = [none] * result.rank
    sizes[numbers.output_batch_dimension] = size_of(image, numbers.input_batch_dimension)
    for number, dim in enumerate(numbers.output_spatial_dimensions):
        size = size_of(padded, numbers.input_spatial_dimensions[number])
        extent = index_constant(kernel_shape[numbers.kernel_spatial_dimensions[number]])
        sizes[dim] = window_count(size, extent, strides[number], dilations[number])
    made = numbers.output_feature_dimension
    sizes[made : made + 1] = [index_constant(groups), index_constant(per_group)]
    filled = linalg.fill(zero, outs=[tensor.empty(sizes, result.element_type)])

    maps, kinds = _maps(numbers, kernel_shape, strides, dilations)
    nest = generic([padded, kernel], [filled], maps, kinds)
    block = nest.regions[0].blocks[0]
    unsigned = [is_unsigned(value.type) for value in op.operands]
    with mlir.InsertionPoint(block):
        factors = [
            _widen(value, result.element_type, is_u)
            for value, is_u in zip(list(block.arguments)[:2], unsigned, strict=True)
        ]
        linalg.YieldOp([_add_product(block.arguments[2], *factors)])
    dims = [[dim] if dim < made else [dim + 1] for dim in range(result.rank)]
    dims[made] = [made, made + 1]
    shape = [mlir.ShapedType.get_dynamic_size()] * result.rank
    joined = tensor.CollapseShapeOp(mlir.RankedTensorType.get(shape, result.element_type), nest.results[0], dims).result
    return tensor.CastOp(result, joined).result if joined.type != result else joined


def _maps(numbers, kernel_shape: list[int], strides: list[int], dilations: list[int]) -> tuple[list, list[str]]:
    """Loops: batch, group, feature, space; input feature, kernel space."""
    spatial = len(strides)
    loops = [mlir.AffineExpr.get_dim(dim) for dim in range(4 + 2 * spatial)]
    batch, group, feature, inner = loops[0], loops[1], loops[2], loops[3 + spatial]
    out, taps = loops[3 : 3 + spatial], loops[4 + spatial :]
    rank = spatial + 2
    image, kernel, result = ([loops[0]] * rank for _ in range(3))
    image[numbers.input_batch_dimension] = batch
    image[numbers.input_feature_dimension] = group * kernel_shape[numbers.kernel_input_feature_dimension] + inner
    kernel[numbers.kernel_input_feature_dimension] = inner
    result[numbers.output_batch_dimension] = batch
    for number in range(spatial):
        image[numbers.input_spatial_dimensions[number]] = (
            out[number] * strides[number] + taps[number] * dilations[number]
        )
        kernel[numbers.kernel_spatial_dimensions[number]] = taps[number]
        result[numbers.output_spatial_dimensions[number]] = out[number]
    for exprs, dim in ((kernel, numbers.kernel_output_feature_dimension), (result, numbers.output_feature_dimension)):
        exprs[dim : dim + 1] = [group, feature]
    maps = [mlir.AffineMap.get(len(loops), 0, exprs) for exprs in (image, kernel, result)]
    return maps, ["parallel"] * (3 + spatial) + ["reduction"] * (1 + spatial)


def _split(kernel: mlir.Value, dim: int, groups: int, per_group: int) -> mlir.Value:
    type_ = mlir.RankedTensorType(kernel.type)
    shape = [*type_.shape[:dim], groups, per_group, *type_.shape[dim + 1 :]]
    dims = [[old] if old < dim else [old + 1] for old in range(type_.rank)]
    dims[dim] = [dim, dim + 1]
    result = mlir.RankedTensorType.get(shape, type_.element_type)
    return tensor.ExpandShapeOp(result, kernel, dims, [], shape).result


def _zero(type_: mlir.Type) -> mlir.Value:
    if isinstance(type_, mlir.ComplexType):
        parts = [mlir.FloatAttr.get(type_.element_type, 0.0)] * 2
        return complex.ConstantOp(type_, mlir.ArrayAttr.get(parts)).result
    return arith.constant(type_, 0.0 if _is_float(type_) else 0)


def _add_product(total: mlir.Value, left: mlir.Value, right: mlir.Value) -> mlir.Value:
    if isinstance(total.type, mlir.ComplexType):
        return complex.add(total, complex.mul(left, right))
    if _is_float(total.type):
        return arith.addf(total, arith.mulf(left, right))
    return arith.addi(total, arith.muli(left, right))


def _widen(value: mlir.Value, type_: mlir.Type, unsigned: bool) -> mlir.Value:
    if value.type == type_:
        return value
    if _is_float(type_):
        return arith.extf(type_, value)
    return arith.extui(type_, value) if unsigned else arith.extsi(type_, value)


def _is_float(type_: mlir.Type) -> bool:
    return isinstance(type_, mlir.FloatType)


def _array(op: mlir.Operation, name: str, default: int = 1) -> list[int]:
    rank = mlir.RankedTensorType(op.operands[0].type).rank - 2
    if name not in op.attributes:
        return [default] * rank
    kind = mlir.DenseBoolArrayAttr if name == "window_reversal" else mlir.DenseI64ArrayAttr
    return [int(value) for value in kind(op.attributes[name])]


def _padding(op: mlir.Operation) -> np.ndarray:
    rank = mlir.RankedTensorType(op.operands[0].type).rank - 2
    if "padding" not in op.attributes:
        return np.zeros((rank, 2), int)
    return np.asarray(mlir.DenseElementsAttr(op.attributes["padding"])).reshape(rank, 2)
