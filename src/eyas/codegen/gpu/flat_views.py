"""Rules for ops that look at the same elements in another way: nothing is moved, a view is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.sizes import ONE, Size
from eyas.codegen.gpu.flat_memory import Bound, View, times
from eyas.codegen.gpu.flatten import Flattener, unknown
from eyas.ir.walk import constant_int


def same(flat: Flattener, op: mlir.Operation) -> None:
    """Casts, which know more or less of sizes that are what they are."""
    flat.views[op.results[0]] = flat.views[op.operands[0]]


def dim(flat: Flattener, op: mlir.Operation) -> None:
    axis = constant_int(op.operands[1])
    if axis is None:
        raise unknown(op)
    flat.values[op.results[0]] = flat.views[op.operands[0]].sizes[axis]


def subview(flat: Flattener, op: mlir.Operation) -> None:
    view = flat.views[op.operands[0]]
    groups = _mixed(flat, op, ("static_offsets", "static_sizes", "static_strides"))
    offsets, sizes, steps = groups
    axes = _kept_axes(op)
    strides = [arith.muli(stride, step) for stride, step in zip(view.strides, steps, strict=True)]
    bounds = _bounds_of_sizes(flat, op, view)
    flat.views[op.results[0]] = replace(
        view,
        offset=view.address(offsets),
        sizes=tuple(sizes[axis] for axis in axes),
        strides=tuple(strides[axis] for axis in axes),
        bounds=tuple(bounds[axis] for axis in axes),
    )


def reinterpret_cast(flat: Flattener, op: mlir.Operation) -> None:
    """Offset, sizes and strides anew, from where the memory begins."""
    view = flat.views[op.operands[0]]
    (offset,), sizes, strides = _mixed(flat, op, ("static_offsets", "static_sizes", "static_strides"))
    bounds = _bounds_of_sizes(flat, op, None)
    flat.views[op.results[0]] = replace(
        view, offset=arith.addi(view.origin, offset), sizes=tuple(sizes), strides=tuple(strides), bounds=tuple(bounds)
    )


def collapse_shape(flat: Flattener, op: mlir.Operation) -> None:
    view = flat.views[op.operands[0]]
    source = mlir.MemRefType(op.operands[0].type)
    sizes: list[mlir.Value] = []
    strides: list[mlir.Value] = []
    bounds: list[Bound] = []
    for group in _groups(op):
        size, bound = flat.at.index(1), (ONE,)
        for axis in group:
            size, bound = arith.muli(size, view.sizes[axis]), times(bound, view.bounds[axis])
        # An axis of one element may have any stride: the last of the others is how far apart neighbours are.
        inner = [axis for axis in group if source.shape[axis] != 1] or group[-1:]
        sizes.append(size)
        strides.append(view.strides[inner[-1]])
        bounds.append(bound)
    made = replace(view, sizes=tuple(sizes), strides=tuple(strides), bounds=tuple(bounds))
    flat.views[op.results[0]] = made


def expand_shape(flat: Flattener, op: mlir.Operation) -> None:
    view = flat.views[op.operands[0]]
    dynamic = iter(list(op.operands)[1:])
    shape = mlir.DenseI64ArrayAttr(op.attributes["static_output_shape"])
    given = [next(dynamic) if size == mlir.ShapedType.get_dynamic_size() else None for size in shape]
    sizes = [flat.at.index(size) if one is None else flat.value(one) for size, one in zip(shape, given, strict=True)]
    strides: list[mlir.Value] = list(sizes)
    bounds: list[Bound] = [(ONE,)] * len(shape)
    for axis, group in enumerate(_groups(op)):
        stride = view.strides[axis]
        for inner in reversed(group):
            strides[inner] = stride
            stride = arith.muli(stride, sizes[inner])
            # What is not known of a part, is not more than the whole.
            bounds[inner] = (Size(shape[inner]),) if given[inner] is None else view.bounds[axis]
    flat.views[op.results[0]] = replace(view, sizes=tuple(sizes), strides=tuple(strides), bounds=tuple(bounds))


def transpose(flat: Flattener, op: mlir.Operation) -> None:
    view = flat.views[op.operands[0]]
    order = mlir.AffineMapAttr(op.attributes["permutation"]).value
    axes = [mlir.AffineDimExpr(one).position for one in order.results]
    flat.views[op.results[0]] = replace(
        view,
        sizes=tuple(view.sizes[axis] for axis in axes),
        strides=tuple(view.strides[axis] for axis in axes),
        bounds=tuple(view.bounds[axis] for axis in axes),
    )


# --- attributes -------------------------------------------------------------------------------------------------------


def _mixed(flat: Flattener, op: mlir.Operation, names: Sequence[str]) -> list[list[mlir.Value]]:
    """Numbers of which some are attributes and some are operands, behind the first."""
    dynamic = iter(list(op.operands)[1:])
    marker = mlir.ShapedType.get_dynamic_stride_or_offset()
    return [
        [
            flat.value(next(dynamic)) if one == marker else flat.at.index(one)
            for one in mlir.DenseI64ArrayAttr(op.attributes[name])
        ]
        for name in names
    ]


def _bounds_of_sizes(flat: Flattener, op: mlir.Operation, whole: View | None) -> list[Bound]:
    """Of the sizes of a part; what depends on data is not more than the whole."""
    marker = mlir.ShapedType.get_dynamic_size()
    offsets, sizes = (list(mlir.DenseI64ArrayAttr(op.attributes[name])) for name in ("static_offsets", "static_sizes"))
    dynamic = iter(list(op.operands)[1 + offsets.count(marker) :])
    bounds: list[Bound] = []
    for axis, size in enumerate(sizes):
        bound = (Size(size),) if size != marker else flat.bounds.of(next(dynamic))
        if bound is None and whole is None:
            raise unknown(op)
        bounds.append(bound if bound is not None else whole.bounds[axis])  # type: ignore[union-attr]
    return bounds


def _kept_axes(op: mlir.Operation) -> list[int]:
    """The axes of the source that a subview has too; some of one element may be left out."""
    sizes = list(mlir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    type_ = mlir.MemRefType(op.results[0].type)
    kept = list(type_.shape) if type_.rank else []
    axes: list[int] = []
    for axis, size in enumerate(sizes):
        left = len(sizes) - axis
        if len(axes) < len(kept) and (size != 1 or kept[len(axes)] == 1 or left == len(kept) - len(axes)):
            axes.append(axis)
    assert len(axes) == len(kept), op
    return axes


def _groups(op: mlir.Operation) -> list[list[int]]:
    reassociation = mlir.ArrayAttr(op.attributes["reassociation"])
    return [[mlir.IntegerAttr(axis).value for axis in mlir.ArrayAttr(group)] for group in reassociation]
