"""Rows that the steps of a loop read and write, for all steps at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir.structured import generic, index_constant, transpose
from eyas.passes.optimize.batching import DYNAMIC, Batch, Refused
from eyas.passes.optimize.loop_steps import Place, resolved_size, size_tree, tree_of


@dataclass(frozen=True)
class Slice:
    """A slice with strides of 1, as numbers or values."""

    offsets: list[int | mlir.Value]
    sizes: list[int | mlir.Value]

    @staticmethod
    def of(op: mlir.Operation) -> Slice:
        tensors = 1 if op.name == "tensor.extract_slice" else 2
        fixed = [list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{n}"])) for n in ("offsets", "sizes", "strides")]
        if set(fixed[2]) - {1}:
            raise Refused(f"{op.name} with steps")
        given = iter(list(op.operands)[tensors:])
        offsets, sizes = ([next(given) if n == DYNAMIC else n for n in numbers] for numbers in fixed[:2])
        return Slice(offsets, sizes)


def read_rows(batch: Batch, op: mlir.Operation, source: mlir.Value) -> mlir.Value:
    """A slice at places that change, with the leading dimension."""
    part, type_ = Slice.of(op), mlir.RankedTensorType(op.results[0].type)
    moving = [dim for dim, at in enumerate(part.offsets) if isinstance(at, mlir.Value) and batch.is_changing(at)]
    sizes = [size if isinstance(size, int) else batch.once(size) for size in part.sizes]
    if source not in batch.tensors and len(moving) == 1 and sizes[moving[0]] == 1:
        place = batch.steps.place(part.offsets[moving[0]])
        if place is not None and place.counts == 0 and _is_inside(batch, source, moving[0], place):
            return _linear_rows(batch, batch.once(source), part, moving[0], place, sizes, type_)
    return _gathered(batch, source, part, sizes, type_)


def _is_inside(batch: Batch, source: mlir.Value, dim: int, place: Place) -> bool:
    """Whether all steps read inside of what is read. Of an open number of steps it must be known that there are as many
    rows; other reads are clamped."""
    count, size = batch.steps.count, mlir.RankedTensorType(source.type).shape[dim]
    if count is not None:
        last = place.start + place.step * (count - 1)
        return size != DYNAMIC and min(place.start, last) >= 0 and max(place.start, last) < size
    has_as_many = resolved_size(batch.steps.bound) == size_tree(batch.once(source), dim)
    return (place.step, place.start) == (1, 0) and has_as_many


def _linear_rows(
    batch: Batch,
    source: mlir.Value,
    part: Slice,
    dim: int,
    place: Place,
    sizes: Sequence[int | mlir.Value],
    type_: mlir.RankedTensorType,
) -> mlir.Value:
    """Rows that are read one after the other: a slice of the whole, or in another order."""
    offsets = [
        0 if one == dim else at if isinstance(at, int) else batch.once(at) for one, at in enumerate(part.offsets)
    ]
    if place.step == 1:
        offsets[dim] = place.start
        rows = _extract(source, offsets, [batch.count if one == dim else size for one, size in enumerate(sizes)])
    else:
        whole = mlir.RankedTensorType(source.type).shape[dim]
        rows = _extract(source, offsets, [whole if one == dim else size for one, size in enumerate(sizes)])
    rank = len(sizes)
    if place.step != 1:
        rows = _in_order(rows, dim, place, batch.count)
    if dim:
        rows = transpose(rows, [dim, *(one for one in range(rank) if one != dim)])
    return _reshaped(batch, rows, type_)


def _offsets(batch: Batch, part: Slice, dim: int, first: int) -> list[int | mlir.Value]:
    """Where a slice for all steps begins."""
    offsets = [at if isinstance(at, int) or one == dim else batch.once(at) for one, at in enumerate(part.offsets)]
    return [first if one == dim else at for one, at in enumerate(offsets)]


def _in_order(rows: mlir.Value, dim: int, place: Place, count: int | mlir.Value) -> mlir.Value:
    """Row `start + step * i` at place i."""
    type_ = mlir.RankedTensorType(rows.type)
    exprs = [mlir.AffineExpr.get_dim(one) for one in range(type_.rank)]
    sizes = [
        count
        if one == dim
        else tensor.dim(rows, index_constant(one))
        if type_.is_dynamic_dim(one)
        else type_.shape[one]
        for one in range(type_.rank)
    ]
    step, start = mlir.AffineExpr.get_constant(place.step), mlir.AffineExpr.get_constant(place.start)
    read = [expr * step + start if one == dim else expr for one, expr in enumerate(exprs)]
    op = generic(
        [rows],
        [tensor.empty(sizes, type_.element_type)],
        [mlir.AffineMap.get(type_.rank, 0, read), mlir.AffineMap.get_identity(type_.rank)],
        ["parallel"] * type_.rank,
    )
    with mlir.InsertionPoint(op.regions[0].blocks[0]):
        linalg.YieldOp([op.regions[0].blocks[0].arguments[0]])
    return op.results[0]


def _reshaped(batch: Batch, rows: mlir.Value, type_: mlir.RankedTensorType) -> mlir.Value:
    """Rows with the dimensions that a slice of one has: it may keep or drop those of one element."""
    wanted, have = batch.type(type_), mlir.RankedTensorType(rows.type)
    if list(wanted.shape) == list(have.shape):
        return rows
    return reshape_units(rows, wanted)


def reshape_units(value: mlir.Value, wanted: mlir.RankedTensorType) -> mlir.Value:
    """A tensor of another shape that differs in dimensions of one element; the first one stays."""
    have = mlir.RankedTensorType(value.type)
    kept = [dim for dim in range(have.rank) if dim == 0 or have.shape[dim] != 1]
    groups: list[list[int]] = []
    for dim in range(have.rank):
        if dim in kept:
            groups.append([dim])
        else:
            groups[-1].append(dim)
    bare = mlir.RankedTensorType.get([have.shape[dim] for dim in kept], have.element_type)
    if bare.rank != have.rank:
        value = tensor.CollapseShapeOp(bare, value, groups).result
    if list(bare.shape) == list(wanted.shape):
        return value
    groups, sizes = [], []
    for dim, size in enumerate(wanted.shape):
        if dim == 0 or size != 1:
            if size == DYNAMIC:
                sizes.append(tensor.dim(value, index_constant(len(groups))))
            groups.append([dim])
        else:
            groups[-1].append(dim)
    if len(groups) != bare.rank:
        raise Refused("a slice whose dimensions are not those of its row")
    return tensor.ExpandShapeOp(wanted, value, groups, sizes, list(wanted.shape)).result


def _gathered(
    batch: Batch,
    source: mlir.Value,
    part: Slice,
    sizes: Sequence[int | mlir.Value],
    type_: mlir.RankedTensorType,
) -> mlir.Value:
    """Rows at any places, element by element."""
    units = [dim for dim, size in enumerate(sizes) if size == 1]
    dropped = len(sizes) - type_.rank
    if dropped not in (0, len(units)) and not all(size == 1 for size in type_.shape):
        raise Refused("a slice that drops some dimensions of one element")
    kept = [dim for dim in range(len(sizes)) if not dropped or dim not in units]
    kept = kept if len(kept) == type_.rank else [dim for dim in range(type_.rank)]

    def element(step: mlir.Value, at: Sequence[mlir.Value]) -> mlir.Value:
        inside = dict(zip(kept, at, strict=True))
        indices = []
        for dim, offset in enumerate(part.offsets):
            first = index_constant(offset) if isinstance(offset, int) else batch.scalar(offset, step)
            is_unit = dim not in inside or dim in units
            indices.append(first if is_unit else arith.addi(first, inside[dim]))
        return batch.extract(source, indices, step)

    dynamic = [size for dim, size in enumerate(sizes) if isinstance(size, mlir.Value) and dim in kept]
    return batch.gather(type_, dynamic, element)


def written_rows(batch: Batch, insert: mlir.Operation, start: mlir.Value) -> mlir.Value:
    """What a carried tensor is after all steps, each of which inserts a row."""
    part = Slice.of(insert)
    moving = [dim for dim, at in enumerate(part.offsets) if isinstance(at, mlir.Value) and batch.is_changing(at)]
    if len(moving) != 1 or part.sizes[moving[0]] != 1:
        raise Refused("rows that are not written one by one")
    dim, type_ = moving[0], mlir.RankedTensorType(start.type)
    place = batch.steps.place(part.offsets[dim])
    count = batch.steps.count
    if place is None or place.counts or abs(place.step) != 1 or (place.step < 0 and count is None):
        raise Refused("rows that are not written one after the other")
    first = place.start if place.step > 0 or count is None else place.start - count + 1
    if first < 0 or (count is not None and (type_.is_dynamic_dim(dim) or first + count > type_.shape[dim])):
        raise Refused("rows that are written outside")
    rows = batch.tensor(insert.operands[0])
    sizes = [size if isinstance(size, int) else batch.once(size) for size in part.sizes]
    offsets = _offsets(batch, part, dim, first)
    # The step is the first dimension, and the row's own dimension of one element may be there as well.
    others = [size for one, size in enumerate(sizes) if one != dim]
    shape = [size if isinstance(size, int) else DYNAMIC for size in others]
    bare = mlir.RankedTensorType.get([mlir.RankedTensorType(rows.type).shape[0], *shape], type_.element_type)
    if list(bare.shape) != list(mlir.RankedTensorType(rows.type).shape):
        rows = reshape_units(rows, bare)
    if place.step < 0:
        assert count is not None
        rows = _in_order(rows, 0, Place(-1, count - 1), count)
    if dim:
        rows = transpose(rows, [*range(1, dim + 1), 0, *range(dim + 1, len(sizes))])
    if first == 0 and _is_whole(batch, sizes, dim, start):
        return rows if rows.type == type_ else tensor.CastOp(type_, rows).result
    sizes[dim] = batch.count
    return _insert(rows, start, offsets, sizes)


def _is_whole(batch: Batch, sizes: Sequence[int | mlir.Value], dim: int, start: mlir.Value) -> bool:
    """Whether all rows together are as large as the tensor that they are written to."""
    trees = [_tree_of_size(batch.count if one == dim else size) for one, size in enumerate(sizes)]
    return all(tree == size_tree(start, one) for one, tree in enumerate(trees))


def _tree_of_size(size: int | mlir.Value) -> tuple:
    return ("number", size) if isinstance(size, int) else resolved_size(tree_of(size))


def _extract(source: mlir.Value, offsets: Sequence[int | mlir.Value], sizes: Sequence[int | mlir.Value]) -> mlir.Value:
    type_ = mlir.RankedTensorType(source.type)
    if not any(offsets) and all(_tree_of_size(size) == size_tree(source, dim) for dim, size in enumerate(sizes)):
        return source
    shape = [size if isinstance(size, int) else DYNAMIC for size in sizes]
    return _create(
        "tensor.extract_slice", mlir.RankedTensorType.get(shape, type_.element_type), [source], offsets, sizes
    )


def _insert(
    rows: mlir.Value, whole: mlir.Value, offsets: Sequence[int | mlir.Value], sizes: Sequence[int | mlir.Value]
) -> mlir.Value:
    return _create("tensor.insert_slice", whole.type, [rows, whole], offsets, sizes)


def _create(
    name: str,
    type_: mlir.Type,
    tensors: Sequence[mlir.Value],
    offsets: Sequence[int | mlir.Value],
    sizes: Sequence[int | mlir.Value],
) -> mlir.Value:
    given = [[one for one in numbers if isinstance(one, mlir.Value)] for numbers in (offsets, sizes)]
    fixed = [[one if isinstance(one, int) else DYNAMIC for one in numbers] for numbers in (offsets, sizes)]
    segments = [*([1] * len(tensors)), len(given[0]), len(given[1]), 0]
    return mlir.Operation.create(
        name,
        results=[type_],
        operands=[*tensors, *given[0], *given[1]],
        attributes={
            "static_offsets": mlir.DenseI64ArrayAttr.get(fixed[0]),
            "static_sizes": mlir.DenseI64ArrayAttr.get(fixed[1]),
            "static_strides": mlir.DenseI64ArrayAttr.get([1] * len(sizes)),
            "operandSegmentSizes": mlir.DenseI32ArrayAttr.get(segments),
        },
    ).results[0]
