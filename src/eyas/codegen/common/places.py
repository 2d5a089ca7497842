"""Where each tensor of a dispatch function is: a window on a storage, something read in place, or a fill.

Slices, padding, insertion and concatenation move no data here: they change how later loops address it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.kernel import Access, Guard, LinearExpr, Storage, Unsupported
from eyas.codegen.common.sizes import ONE, ZERO, Size, product, row_major_strides
from eyas.ir.transforms import is_matrix_of_transforms
from eyas.ir.walk import constant_int

DIM_ARGS = "dim_args"
"""On a dispatch function: which index argument gives each dynamic dimension, arguments' first, then results'."""


@dataclass(frozen=True)
class Window:
    """A tensor value as a window on a storage."""

    storage: Storage
    shape: tuple[Size, ...]
    offset: tuple[Size, ...]
    strides: tuple[Size, ...]


@dataclass(frozen=True)
class Guarded:
    """`inner` placed at `low` inside a larger tensor; `otherwise` elsewhere."""

    shape: tuple[Size, ...]
    inner: Window
    low: tuple[int, ...]
    otherwise: mlir.Value | Window | Guarded


@dataclass(frozen=True)
class Filled:
    """A tensor whose elements are all one scalar; None while they are undefined."""

    shape: tuple[Size, ...]
    scalar: mlir.Value | None


Place = Window | Guarded | Filled


class TensorPlaces:
    """The places of a function's tensors, filled by visiting its ops in order."""

    def __init__(self, function: mlir.OpView):
        self.block = function.regions[0].blocks[0]
        self.storages: list[Storage] = []
        self.places: dict[mlir.Value, Place] = {}
        self.constants: dict[mlir.Value, Size] = {}  # index values known as sizes
        self.results: dict[mlir.Value, Storage] = {}
        self.unknowns = 0
        self._bind(function)

    def _bind(self, function: mlir.OpView) -> None:
        """Bindings are the tensor arguments in order, then the results."""
        dims = list(mlir.DenseI64ArrayAttr(function.attributes[DIM_ARGS])) if DIM_ARGS in function.attributes else []
        dims = iter(dims)

        def shape_of(type_: mlir.Type) -> tuple[Size, ...]:
            shaped = mlir.ShapedType(type_)
            return tuple(
                Size(1, (next(dims),)) if shaped.is_dynamic_dim(i) else Size(shaped.get_dim_size(i))
                for i in range(shaped.rank)
            )

        ordinal = 0
        for argument in self.block.arguments:
            if isinstance(argument.type, mlir.RankedTensorType):
                shape = shape_of(argument.type)
                storage = Storage(f"in{len(self.storages)}", argument.type.element_type, shape, len(self.storages))
                self.storages.append(storage)
                self.places[argument] = whole(storage)
            else:
                self.constants[argument] = Size(1, (ordinal,))
                ordinal += 1
        for index, value in enumerate(list(self.block.operations)[-1].operands):
            if value in self.results or isinstance(value.owner, mlir.Block):
                raise Unsupported("a result is an argument or another result")
            shape = shape_of(value.type)
            storage = Storage(f"out{index}", value.type.element_type, shape, len(self.storages), is_output=True)
            self.storages.append(storage)
            self.results[value] = storage

    def visit(self, op: mlir.OpView) -> bool:
        """Places the results of an op that moves no data; False when it is another kind of op."""
        name = op.operation.name
        if name == "arith.constant":
            self._visit_constant(op)
        elif name == "tensor.empty":
            self.places[op.result] = Filled(self._shape_from(op.result.type, list(op.operands)), None)
        elif name == "tensor.dim":
            index = constant_int(op.operands[1])
            place = self.places.get(op.operands[0])
            if index is None or place is None or not place.shape[index].is_known:
                raise Unsupported("tensor.dim of an unknown tensor")
            self.constants[op.result] = place.shape[index]
        elif name == "tensor.extract_slice":
            self._visit_extract_slice(op)
        elif name == "tensor.insert_slice":
            self._visit_insert_slice(op)
        elif name == "tensor.pad":
            self._visit_pad(op)
        elif name == "tensor.concat":
            self._visit_concat(op)
        elif name == "arith.muli" and isinstance(op.result.type, mlir.IndexType):
            left, right = (self._size(operand) for operand in op.operands)
            self.constants[op.result] = left * right
        elif name == "func.return" or _is_scalar_arithmetic(op):
            pass  # strategies clone scalars on demand
        else:
            return False
        return True

    def _visit_constant(self, op: mlir.OpView) -> None:
        """A splat tensor is a fill of its one scalar; the matrices of transforms are kept as values."""
        type_ = op.result.type
        if not isinstance(type_, mlir.RankedTensorType):
            return
        attribute = op.attributes["value"]
        if is_matrix_of_transforms(op.operation):
            shape = tuple(Size(dim) for dim in type_.shape)
            values = np.array(mlir.DenseFPElementsAttr(attribute)).reshape(type_.shape)
            self.places[op.result] = whole(Storage("table", type_.element_type, shape, values=values))
            return
        if not isinstance(attribute, mlir.DenseElementsAttr) or not attribute.is_splat:
            raise Unsupported("a constant table inside the dispatch")
        with mlir.InsertionPoint(op), op.operation.location:
            scalar = arith.ConstantOp(type_.element_type, attribute.get_splat_value()).result
        self.places[op.result] = Filled(tuple(Size(dim) for dim in type_.shape), scalar)

    def _size(self, value: mlir.Value) -> Size:
        constant = constant_int(value)
        if constant is not None:
            return Size(constant)
        if value not in self.constants:
            raise Unsupported("a size is computed inside the dispatch")
        return self.constants[value]

    def _shape_from(self, type_: mlir.Type, dynamic: list[mlir.Value]) -> tuple[Size, ...]:
        shaped = mlir.ShapedType(type_)
        sizes = iter(dynamic)
        return tuple(
            self._size(next(sizes)) if shaped.is_dynamic_dim(i) else Size(shaped.get_dim_size(i))
            for i in range(shaped.rank)
        )

    def _visit_extract_slice(self, op: mlir.OpView) -> None:
        place = self.places.get(op.operands[0])
        if not isinstance(place, Window):
            raise Unsupported("slice of a computed tensor")
        offsets, sizes, strides = self._slice_parameters(op, first_dynamic=1)
        kept = kept_dims(op.operands[0].type, op.result.type, sizes)
        offset = list(place.offset) + [place.strides[i] * offsets[i] for i in range(len(offsets))]
        self.places[op.result] = Window(
            place.storage,
            tuple(sizes[i] for i in kept),
            tuple(offset),
            tuple(place.strides[i] * strides[i] for i in kept),
        )

    def _slice_parameters(self, op: mlir.OpView, first_dynamic: int) -> tuple[list[Size], list[Size], list[Size]]:
        dynamic = iter(list(op.operands)[first_dynamic:])
        lists = []
        for name in ("static_offsets", "static_sizes", "static_strides"):
            values = []
            for static in mlir.DenseI64ArrayAttr(op.attributes[name]):
                is_dynamic = static == mlir.ShapedType.get_dynamic_size()
                values.append(self._size(next(dynamic)) if is_dynamic else Size(static))
            lists.append(values)
        return lists[0], lists[1], lists[2]

    def _visit_insert_slice(self, op: mlir.OpView) -> None:
        source, destination = self.places.get(op.operands[0]), self.places.get(op.operands[1])
        if not isinstance(source, Window) or destination is None:
            raise Unsupported("insertion of a computed tensor")
        offsets, sizes, strides = self._slice_parameters(op, first_dynamic=2)
        if any(stride != ONE for stride in strides) or any(not offset.is_static for offset in offsets):
            raise Unsupported("insertion with strides or dynamic offsets")
        kept = kept_dims(op.operands[1].type, op.operands[0].type, sizes)
        inner_shape = [ONE] * len(sizes)
        inner_strides = [ZERO] * len(sizes)
        for position, dim in enumerate(kept):
            inner_shape[dim], inner_strides[dim] = source.shape[position], source.strides[position]
        inner = Window(source.storage, tuple(inner_shape), source.offset, tuple(inner_strides))
        otherwise = destination.scalar if isinstance(destination, Filled) else destination
        if otherwise is None:
            otherwise = _zero(op)  # the rest is undefined: any value will do
        low = tuple(offset.factor for offset in offsets)
        self.places[op.result] = Guarded(destination.shape, inner, low, otherwise)

    def _visit_pad(self, op: mlir.OpView) -> None:
        source = self.places.get(op.operands[0])
        low, high = (list(mlir.DenseI64ArrayAttr(op.attributes[name])) for name in ("static_low", "static_high"))
        dynamic = mlir.ShapedType.get_dynamic_size()
        if not isinstance(source, Window) or dynamic in low or dynamic in high:
            raise Unsupported("padding of a computed tensor, or by dynamic amounts")
        if any(amount < 0 for amount in low + high):
            raise Unsupported("negative padding")
        yielded = list(op.regions[0].blocks[0].operations)[-1].operands[0]
        if isinstance(yielded.owner, mlir.Block) or yielded.owner.parent == op.operation:
            raise Unsupported("padding with a computed value")
        amounts = [Size(below + above) for below, above in zip(low, high, strict=True)]
        shape = [size.plus(amount) for size, amount in zip(source.shape, amounts, strict=True)]
        self.places[op.result] = Guarded(self._known_shape(op.result, shape), source, tuple(low), yielded)

    def _known_shape(self, value: mlir.Value, shape: list[Size | None]) -> tuple[Size, ...]:
        """A shape whose sizes may be sums, which are None: of a result they are given, and of other tensors unknown."""
        given = self.results[value].shape if value in self.results else [self._unknown() for _ in shape]
        return tuple(other if size is None else size for size, other in zip(shape, given, strict=True))

    def _unknown(self) -> Size:
        """A size that equals no other."""
        self.unknowns += 1
        return Size(1, (-self.unknowns,))

    def _visit_concat(self, op: mlir.OpView) -> None:
        """Each part guarded by its range, and the next part otherwise."""
        dim = op.attributes["dim"].value
        filled = [value for value in op.operands if mlir.ShapedType(value.type).get_dim_size(dim) != 0]
        parts = [part for value in filled if isinstance(part := self.places.get(value), Window)]
        rank = mlir.ShapedType(op.result.type).rank
        sizes = [part.shape[dim] for part in parts]
        if not parts or len(parts) < len(filled) or not all(size.is_static for size in sizes):
            raise Unsupported("concatenation of computed tensors, or along a dynamic dimension")
        starts = [sum(size.factor for size in sizes[:index]) for index in range(len(sizes))]
        whole = Size(sum(size.factor for size in sizes))
        shape = tuple(whole if d == dim else size for d, size in enumerate(parts[0].shape))
        result: Guarded | mlir.Value = _zero(op)
        for part, start in reversed(list(zip(parts, starts, strict=True))):
            low = tuple(start if d == dim else 0 for d in range(rank))
            result = Guarded(shape, part, low, result)
        self.places[op.result] = result

    def readable_storage(self, tensor: mlir.Value) -> Storage:
        """The storage of a tensor that a body may read at any position: a whole argument."""
        place = self.places.get(tensor)
        if isinstance(place, Window) and not place.offset and place.strides == row_major_strides(place.shape):
            if place.storage.binding is not None and not place.storage.is_output:
                return place.storage
        raise Unsupported("a body reads a computed tensor")

    def shape_of_place(self, value: mlir.Value) -> tuple[Size, ...]:
        return self.places[value].shape

    def access(self, value: mlir.Value, expr: list[LinearExpr], order: list[int]) -> Access | mlir.Value:
        if not isinstance(value.type, mlir.ShapedType):
            return value
        place = self.places[value]
        if isinstance(place, Filled):
            if place.scalar is None:
                raise Unsupported("an undefined tensor is read")
            return place.scalar
        return self._access_place(place, expr, order)

    def _access_place(self, place: Window | Guarded, expr: list[LinearExpr], order: list[int]) -> Access:
        if isinstance(place, Window):
            return self.access_window(place, expr, order)
        shifted = [LinearExpr(e.coefficients, e.constant - low) for e, low in zip(expr, place.low, strict=True)]
        inside = self.access_window(place.inner, shifted, order)
        guards = tuple(
            Guard(tuple(e.coefficients.get(loop, 0) for loop in order), e.constant, size)
            for e, size, outer in zip(shifted, place.inner.shape, place.shape, strict=True)
            if size != outer
        )
        otherwise = place.otherwise
        if isinstance(otherwise, Window | Guarded):
            otherwise = self._access_place(otherwise, expr, order)
        return replace(inside, guards=guards, otherwise=otherwise)

    def access_window(self, window: Window, expr: list[LinearExpr], order: list[int]) -> Access:
        offset = [size for size in window.offset if size != ZERO]
        strides = [ZERO] * len(order)
        for stride, one in zip(window.strides, expr, strict=True):
            if one.constant and stride != ZERO:
                offset.append(stride * one.constant)
            for loop, coefficient in one.coefficients.items():
                position = order.index(loop)
                total = strides[position].plus(stride * coefficient)
                if total is None:
                    raise Unsupported("a loop moves through two dynamic dimensions at once")
                strides[position] = total
        return Access(window.storage, tuple(offset), tuple(strides))


# Parts are copied one after the other where this many rows can be shared among cores; else each element looks for its
# part.
_MIN_ROWS_OF_PARTS = 8


def joined_parts(place: Place) -> list[tuple[Window, tuple[int, ...]]]:
    """The parts of a concatenation and where each begins, or nothing when that is not what a place is."""
    parts: list[tuple[Window, tuple[int, ...]]] = []
    current: Place | mlir.Value = place
    while isinstance(current, Guarded):
        parts.append((current.inner, current.low))
        current = current.otherwise
    if len(parts) < 2 or isinstance(current, Window | Filled):
        return []
    shape = place.shape
    apart = {dim for part, _ in parts for dim, size in enumerate(part.shape) if size != shape[dim]}
    if len(apart) != 1 or not all(size.is_static for size in shape):
        return []
    (dim,) = apart
    rows = product(shape[:dim]).static
    reached = 0
    for part, low in sorted(parts, key=lambda one: one[1][dim]):
        if low[dim] != reached or any(low[other] for other in range(len(shape)) if other != dim):
            return []
        reached += part.shape[dim].factor
    return parts if reached == shape[dim].factor and rows is not None and rows >= _MIN_ROWS_OF_PARTS else []


def whole(storage: Storage) -> Window:
    return Window(storage, storage.shape, (), storage.strides)


def _zero(op: mlir.OpView) -> mlir.Value:
    """A scalar zero of an op's element type, before it."""
    type_ = mlir.RankedTensorType(op.result.type).element_type
    if not isinstance(type_, mlir.FloatType | mlir.IntegerType):
        raise Unsupported(f"elements of type {type_}")
    value = mlir.FloatAttr.get(type_, 0.0) if isinstance(type_, mlir.FloatType) else mlir.IntegerAttr.get(type_, 0)
    with mlir.InsertionPoint(op), op.operation.location:
        return arith.ConstantOp(type_, value).result


def _is_scalar_arithmetic(op: mlir.OpView) -> bool:
    is_arithmetic = op.operation.name.startswith(("arith.", "math."))
    return is_arithmetic and not isinstance(op.result.type, mlir.ShapedType)


def kept_dims(full: mlir.Type, reduced: mlir.Type, sizes: list[Size]) -> list[int]:
    """Dimensions of a slice that survive rank reduction: unit dims are dropped first to last until the ranks agree."""
    rank, kept = mlir.ShapedType(reduced).rank, list(range(mlir.ShapedType(full).rank))
    target = [mlir.ShapedType(reduced).get_dim_size(i) for i in range(rank)]
    if len(kept) == rank:
        return kept
    result: list[int] = []
    for dim in kept:
        size = sizes[dim]
        wanted = target[len(result)] if len(result) < rank else None
        remaining = len(kept) - dim
        must_keep = rank - len(result) == remaining
        if must_keep or (wanted is not None and not (size == ONE and wanted != 1)):
            if wanted is not None:
                result.append(dim)
    if len(result) != rank:
        raise Unsupported("a rank-reducing slice whose dropped dimensions are ambiguous")
    return result
