"""From a dispatch function to a Kernel: where tensors live, which ops share a nest, which loops nests share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.kernel import (
    Access,
    Guard,
    Kernel,
    LinearExpr,
    Nest,
    Statement,
    Storage,
    Unsupported,
    constant_int,
    generic_iterators,
    generic_maps,
    linear_expr,
)
from eyas.codegen.common.sizes import ONE, ZERO, Size, row_major_strides

DIM_ARGS = "dim_args"


@dataclass(frozen=True)
class _Window:
    """A tensor value as a window on a storage."""

    storage: Storage
    shape: tuple[Size, ...]
    offset: tuple[Size, ...]
    strides: tuple[Size, ...]


@dataclass(frozen=True)
class _Guarded:
    """`inner` placed at `low` inside a larger tensor; `otherwise` elsewhere."""

    shape: tuple[Size, ...]
    inner: _Window
    low: tuple[int, ...]
    otherwise: mlir.Value | _Window | _Guarded


@dataclass(frozen=True)
class _Filled:
    """A tensor whose elements are all one scalar; None while they are undefined."""

    shape: tuple[Size, ...]
    scalar: mlir.Value | None


_Place = _Window | _Guarded | _Filled


def analyze(function: mlir.OpView) -> Kernel:
    """Builds the kernel of a dispatch function, or raises Unsupported with the reason."""
    return _Analysis(function).run()


class _Analysis:
    def __init__(self, function: mlir.OpView):
        self.block = function.regions[0].blocks[0]
        self.storages: list[Storage] = []
        self.places: dict[mlir.Value, _Place] = {}
        self.constants: dict[mlir.Value, Size] = {}  # index values known as sizes
        self.nests: list[Nest] = []
        self.made_by: dict[mlir.Value, tuple[int, int, int]] = {}  # tensor -> (nest, statement, output)
        self.extracted: dict[mlir.Value, Storage] = {}
        self.return_op = list(self.block.operations)[-1]
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
                self.places[argument] = _whole(storage)
            else:
                self.constants[argument] = Size(1, (ordinal,))
                ordinal += 1
        self.results: dict[mlir.Value, Storage] = {}
        for index, value in enumerate(self.return_op.operands):
            if value in self.results or isinstance(value.owner, mlir.Block):
                raise Unsupported("a result is an argument or another result")
            shape = shape_of(value.type)
            storage = Storage(f"out{index}", value.type.element_type, shape, len(self.storages), is_output=True)
            self.storages.append(storage)
            self.results[value] = storage

    def run(self) -> Kernel:
        for op in self.block.operations:
            self._visit(op)
        for value, storage in self.results.items():
            if value not in self.made_by:
                self._copy_out(value, storage)
        shared = self._share_loops()
        scalars = [argument for argument in self.block.arguments if argument in self.constants]
        return Kernel(self.storages, self.nests, shared, scalars, self.extracted)

    def _visit(self, op: mlir.OpView) -> None:
        name = op.operation.name
        if name == "arith.constant":
            self._visit_constant(op)
            return
        if name == "func.return":
            return
        if name == "tensor.empty":
            self.places[op.result] = _Filled(self._shape_from(op.result.type, list(op.operands)), None)
        elif name == "tensor.dim":
            index = constant_int(op.operands[1])
            place = self.places.get(op.operands[0])
            if index is None or place is None:
                raise Unsupported("tensor.dim of an unknown tensor")
            self.constants[op.result] = place.shape[index]
        elif name == "tensor.extract_slice":
            self._visit_extract_slice(op)
        elif name == "tensor.insert_slice":
            self._visit_insert_slice(op)
        elif name == "tensor.pad":
            self._visit_pad(op)
        elif name == "linalg.generic":
            self._visit_generic(op)
        elif name == "arith.muli" and isinstance(op.result.type, mlir.IndexType):
            left, right = (self._size(operand) for operand in op.operands)
            self.constants[op.result] = left * right
        elif name.startswith(("arith.", "math.")) and not isinstance(op.result.type, mlir.ShapedType):
            return  # host-like scalar arithmetic; strategies clone it on demand
        else:
            raise Unsupported(f"{name} is not expressible as a loop nest")

    def _visit_constant(self, op: mlir.OpView) -> None:
        """A splat tensor is a fill of its one scalar."""
        type_ = op.result.type
        if not isinstance(type_, mlir.RankedTensorType):
            return
        attribute = op.attributes["value"]
        if not isinstance(attribute, mlir.DenseElementsAttr) or not attribute.is_splat:
            raise Unsupported("a constant table inside the dispatch")
        with mlir.InsertionPoint(op), op.operation.location:
            scalar = arith.ConstantOp(type_.element_type, attribute.get_splat_value()).result
        self.places[op.result] = _Filled(tuple(Size(dim) for dim in type_.shape), scalar)

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
        if not isinstance(place, _Window):
            raise Unsupported("slice of a computed tensor")
        offsets, sizes, strides = self._slice_parameters(op, first_dynamic=1)
        kept = _kept_dims(op.operands[0].type, op.result.type, sizes)
        offset = list(place.offset) + [place.strides[i] * offsets[i] for i in range(len(offsets))]
        self.places[op.result] = _Window(
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
        if not isinstance(source, _Window) or destination is None:
            raise Unsupported("insertion of a computed tensor")
        offsets, sizes, strides = self._slice_parameters(op, first_dynamic=2)
        if any(stride != ONE for stride in strides) or any(not offset.is_static for offset in offsets):
            raise Unsupported("insertion with strides or dynamic offsets")
        kept = _kept_dims(op.operands[1].type, op.operands[0].type, sizes)
        inner_shape = [ONE] * len(sizes)
        inner_strides = [ZERO] * len(sizes)
        for position, dim in enumerate(kept):
            inner_shape[dim], inner_strides[dim] = source.shape[position], source.strides[position]
        inner = _Window(source.storage, tuple(inner_shape), source.offset, tuple(inner_strides))
        otherwise = destination.scalar if isinstance(destination, _Filled) else destination
        if otherwise is None:
            otherwise = inner  # the rest is undefined: any readable value will do
        low = tuple(offset.factor for offset in offsets)
        self.places[op.result] = _Guarded(destination.shape, inner, low, otherwise)

    def _visit_pad(self, op: mlir.OpView) -> None:
        source = self.places.get(op.operands[0])
        low, high = (list(mlir.DenseI64ArrayAttr(op.attributes[name])) for name in ("static_low", "static_high"))
        dynamic = mlir.ShapedType.get_dynamic_size()
        if not isinstance(source, _Window) or dynamic in low or dynamic in high:
            raise Unsupported("padding of a computed tensor, or by dynamic amounts")
        if any(amount < 0 for amount in low + high):
            raise Unsupported("negative padding")
        yielded = list(op.regions[0].blocks[0].operations)[-1].operands[0]
        if isinstance(yielded.owner, mlir.Block) or yielded.owner.parent == op.operation:
            raise Unsupported("padding with a computed value")
        shape = []
        for size, below, above in zip(source.shape, low, high, strict=True):
            padded = size.plus(Size(below + above))
            if padded is None:
                raise Unsupported("padding of a dynamic dimension")
            shape.append(padded)
        self.places[op.result] = _Guarded(tuple(shape), source, tuple(low), yielded)

    def _visit_generic(self, op: mlir.OpView) -> None:
        maps, iterators = generic_maps(op), generic_iterators(op)
        inputs, inits = _split_operands(op)
        body = op.regions[0].blocks[0]
        tensors = [value for value in [*inputs, *inits] if isinstance(value.type, mlir.ShapedType)]
        if any(value not in self.places for value in tensors):
            raise Unsupported("an operand is made by an op that is not a loop nest")
        for inner in body.operations:
            if len(inner.operation.regions):
                raise Unsupported(f"{inner.operation.name} inside a linalg body")
            if inner.operation.name == "tensor.extract":
                self._note_extracted(inner.operands[0])
        if len(inits) == 1 and _is_fill(body, inputs, iterators):
            self.places[op.results[0]] = _Filled(self._place_shape(inits[0]), inputs[0])
            return

        exprs = [[linear_expr(expr) for expr in map_.results] for map_ in maps]
        extents = self._extents(exprs, [*inputs, *inits], len(iterators))
        order = _loop_order(exprs[len(inputs)], iterators)
        position = {loop: index for index, loop in enumerate(order)}
        loops = [extents[loop] for loop in order]
        reductions = tuple(position[loop] for loop, kind in enumerate(iterators) if kind == "reduction")

        if not reductions and self._fuse_into_registers(op, inputs, exprs, order, loops):
            return
        self._materialize([*inputs, *inits])
        accesses = [
            self._access(value, expr, order) if list(argument.uses) else None
            for value, expr, argument in zip(inputs, exprs, body.arguments, strict=False)
        ]
        outputs, init_accesses = [], []
        for index, init in enumerate(inits):
            storage = self._result_storage(op.results[index])
            outputs.append(self._access_window(_whole(storage), exprs[len(inputs) + index], order))
            init_accesses.append(self._init(init, exprs[len(inputs) + index], order, body, len(inputs) + index))
        statement = Statement(
            body, accesses, outputs, init_accesses, reductions, _index_loops(order), op.operation.location
        )
        self.nests.append(Nest(loops, [statement]))
        for index, result in enumerate(op.results):
            self.made_by[result] = (len(self.nests) - 1, 0, index)
            self.places[result] = _whole(outputs[index].storage)

    def _note_extracted(self, tensor: mlir.Value) -> None:
        place = self.places.get(tensor)
        is_whole = isinstance(place, _Window) and not place.offset and place.strides == row_major_strides(place.shape)
        if not is_whole or place.storage.binding is None or place.storage.is_output:
            raise Unsupported("a body reads a computed tensor")
        self.extracted[tensor] = place.storage

    def _place_shape(self, value: mlir.Value) -> tuple[Size, ...]:
        return self.places[value].shape

    def _extents(self, exprs: list[list[LinearExpr]], operands: list[mlir.Value], count: int) -> list[Size]:
        extents: list[Size | None] = [None] * count
        for operand, results in zip(operands, exprs, strict=True):
            if not isinstance(operand.type, mlir.ShapedType):
                continue
            shape = self._place_shape(operand)
            for size, expr in zip(shape, results, strict=True):
                if expr.constant == 0 and list(expr.coefficients.values()) == [1]:
                    (loop,) = expr.coefficients
                    if extents[loop] is None or size.is_static:
                        extents[loop] = size
        if any(extent is None for extent in extents):
            raise Unsupported("a loop has no operand that gives its extent")
        return [extent for extent in extents if extent is not None]

    def _result_storage(self, value: mlir.Value) -> Storage:
        if value in self.results:
            return self.results[value]
        return Storage(f"local{len(self.made_by)}", value.type.element_type, self._init_shape(value))

    def _init_shape(self, value: mlir.Value) -> tuple[Size, ...]:
        op = value.owner
        inputs, inits = _split_operands(op)
        return self._place_shape(inits[list(op.results).index(value)])

    def _init(
        self, init: mlir.Value, expr: list[LinearExpr], order: list[int], body: mlir.Block, argument: int
    ) -> mlir.Value | Access | None:
        if not list(body.arguments[argument].uses):
            return None
        place = self.places[init]
        if isinstance(place, _Filled):
            return place.scalar
        return self._access(init, expr, order)

    def _materialize(self, values: list[mlir.Value]) -> None:
        """Values that lived only in registers get a storage, because another nest reads them."""
        for value in values:
            if value not in self.made_by:
                continue
            nest, statement, output = self.made_by[value]
            target = self.nests[nest].statements[statement]
            if target.outputs[output] is None:
                raise Unsupported("a fused value is read by another nest")

    def _fuse_into_registers(
        self, op: mlir.OpView, inputs: list[mlir.Value], exprs: list, order: list[int], loops: list[Size]
    ) -> bool:
        """Appends an elementwise op to the nest that makes one of its operands, when their loops correspond."""
        if not self.nests:
            return False
        last = len(self.nests) - 1
        nest = self.nests[last]
        made_here = [value for value in inputs if value in self.made_by and self.made_by[value][0] == last]
        if not made_here:
            return False
        parallel = nest.parallel
        translation: list[int] | None = None
        for value, expr in zip(inputs, exprs, strict=False):
            if value not in made_here:
                continue
            _, index, output = self.made_by[value]
            mapping = self._correspondence(nest, index, output, expr, order)
            if mapping is None or (translation is not None and mapping != translation):
                return False
            translation = mapping
        if translation is None or sorted(translation) != parallel:
            return False
        if [nest.loops[loop] for loop in translation] != loops:
            return False

        def widen(access: Access | mlir.Value | None) -> Access | mlir.Value | None:
            return _translate(access, translation, len(nest.loops)) if isinstance(access, Access) else access

        accesses: list = []
        for value, expr in zip(inputs, exprs, strict=False):
            if value in made_here:
                _, index, output = self.made_by[value]
                accesses.append((index, output))
            else:
                accesses.append(widen(self._access(value, expr, order)))
        body = op.regions[0].blocks[0]
        _, inits = _split_operands(op)
        outputs, init_accesses = [], []
        for position, init in enumerate(inits):
            argument = len(inputs) + position
            storage = self._result_storage(op.results[position])
            outputs.append(widen(self._access_window(_whole(storage), exprs[argument], order)))
            init_accesses.append(widen(self._init(init, exprs[argument], order, body, argument)))
        loop_of_index = {loop: translation[order.index(loop)] for loop in range(len(order))}
        nest.statements.append(
            Statement(body, accesses, outputs, init_accesses, (), loop_of_index, op.operation.location)
        )
        for position, result in enumerate(op.results):
            self.made_by[result] = (last, len(nest.statements) - 1, position)
            self.places[result] = _whole(outputs[position].storage)
        self._drop_dead_outputs(made_here)
        return True

    def _correspondence(
        self, nest: Nest, statement: int, output: int, expr: list[LinearExpr], order: list[int]
    ) -> list[int] | None:
        """Loop of the nest for each loop of the consumer, if it reads the value exactly where the nest makes it."""
        written = nest.statements[statement].outputs[output]
        if written is None or written.offset:
            return None
        strides = written.storage.strides
        shape = written.storage.shape
        loop_of_dim: list[int | None] = []
        for stride, size in zip(strides, shape, strict=True):
            found = [loop for loop in nest.parallel if written.strides[loop] == stride and nest.loops[loop] == size]
            if size == ONE:
                found = [loop for loop in found if loop not in loop_of_dim]
            if not found:
                return None
            loop_of_dim.append(next((loop for loop in found if loop not in loop_of_dim), None))
        translation: dict[int, int] = {}
        for dim, one in enumerate(expr):
            if one.constant or list(one.coefficients.values()) != [1]:
                return None
            (loop,) = one.coefficients
            target = loop_of_dim[dim]
            if target is None or translation.get(loop, target) != target:
                return None
            translation[loop] = target
        if set(translation) != set(order):
            return None
        return [translation[loop] for loop in order]

    def _drop_dead_outputs(self, values: list[mlir.Value]) -> None:
        """A value that only register consumers read needs no storage."""
        for value in values:
            if value in self.results:
                continue
            nest, statement, output = self.made_by[value]
            users = [use.owner for use in value.uses]
            fused = {id_ for id_, (n, _, _) in ((v, m) for v, m in self.made_by.items()) if n == nest}
            if all(any(result in fused for result in user.results) for user in users):
                self.nests[nest].statements[statement].outputs[output] = None

    def _access(self, value: mlir.Value, expr: list[LinearExpr], order: list[int]) -> Access | mlir.Value:
        if not isinstance(value.type, mlir.ShapedType):
            return value
        place = self.places[value]
        if isinstance(place, _Filled):
            if place.scalar is None:
                raise Unsupported("an undefined tensor is read")
            return place.scalar
        return self._access_place(place, expr, order)

    def _access_place(self, place: _Window | _Guarded, expr: list[LinearExpr], order: list[int]) -> Access:
        if isinstance(place, _Window):
            return self._access_window(place, expr, order)
        shifted = [LinearExpr(e.coefficients, e.constant - low) for e, low in zip(expr, place.low, strict=True)]
        inside = self._access_window(place.inner, shifted, order)
        guards = tuple(
            Guard(tuple(e.coefficients.get(loop, 0) for loop in order), e.constant, size)
            for e, size, outer in zip(shifted, place.inner.shape, place.shape, strict=True)
            if size != outer
        )
        otherwise = place.otherwise
        if isinstance(otherwise, _Window | _Guarded):
            otherwise = self._access_place(otherwise, expr, order)
        return replace(inside, guards=guards, otherwise=otherwise)

    def _access_window(self, window: _Window, expr: list[LinearExpr], order: list[int]) -> Access:
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

    def _copy_out(self, value: mlir.Value, storage: Storage) -> None:
        """A result that no generic makes (a slice, a pad, a fill) is copied or filled."""
        place = self.places.get(value)
        if place is None:
            raise Unsupported("a result has no defining loop nest")
        rank = len(storage.shape)
        order = list(range(rank))
        expr = [LinearExpr({dim: 1}, 0) for dim in order]
        source = self._access(value, expr, order)
        output = self._access_window(_whole(storage), expr, order)
        statement = Statement(None, [source], [output], [None], (), _index_loops(order))
        self.nests.append(Nest(list(storage.shape), [statement]))

    def _share_loops(self) -> int:
        """How many leading loops all nests can run together, so that locals need hold only one iteration."""
        if len(self.nests) <= 1:
            return 0
        limit = min(len(nest.parallel) for nest in self.nests)
        shared = 0
        between = self._storages_between_nests()
        while shared < limit and self._can_share(shared, between):
            shared += 1
        return shared

    def _storages_between_nests(self) -> set[int]:
        writers = {}
        for index, nest in enumerate(self.nests):
            for statement in nest.statements:
                writers.update({id(output.storage): index for output in statement.outputs if output is not None})
        return set(writers)

    def _can_share(self, loop: int, between: set[int]) -> bool:
        first = self.nests[0].loops[loop]
        for nest in self.nests:
            if nest.loops[loop] != first or loop in nest.reductions or nest.parallel[loop] != loop:
                return False
            for access in nest.accesses:
                if id(access.storage) not in between:
                    continue
                strides = row_major_strides(access.storage.shape)
                if len(strides) <= loop or access.strides[loop] != strides[loop] or access.guards:
                    return False
                if access.storage.shape[loop] != first:
                    return False
        return True


def _whole(storage: Storage) -> _Window:
    return _Window(storage, storage.shape, (), storage.strides)


def _split_operands(op: mlir.OpView) -> tuple[list[mlir.Value], list[mlir.Value]]:
    inits = len(op.results)
    operands = list(op.operands)
    return operands[: len(operands) - inits], operands[len(operands) - inits :]


def _is_fill(body: mlir.Block, inputs: list[mlir.Value], iterators: list[str]) -> bool:
    """A generic that only broadcasts a scalar operand."""
    operations = list(body.operations)
    return (
        len(operations) == 1
        and len(inputs) == 1
        and not isinstance(inputs[0].type, mlir.ShapedType)
        and operations[0].operands[0] == body.arguments[0]
        and "reduction" not in iterators
    )


def _loop_order(output: list[LinearExpr], iterators: list[str]) -> list[int]:
    """Parallel loops in the order of the output's dimensions, then the rest, then reductions in their own order."""
    order: list[int] = []
    for expr in output:
        order += [loop for loop in expr.coefficients if iterators[loop] == "parallel" and loop not in order]
    order += [loop for loop, kind in enumerate(iterators) if kind == "parallel" and loop not in order]
    return order + [loop for loop, kind in enumerate(iterators) if kind == "reduction"]


def _index_loops(order: list[int]) -> dict[int, int | None]:
    return {loop: position for position, loop in enumerate(order)}


def _translate(access: Access, translation: list[int], count: int) -> Access:
    """The same access from the loops of another nest."""
    strides = [ZERO] * count
    for position, loop in enumerate(translation):
        strides[loop] = access.strides[position]
    guards = []
    for guard in access.guards:
        coefficients = [0] * count
        for position, loop in enumerate(translation):
            coefficients[loop] = guard.coefficients[position]
        guards.append(replace(guard, coefficients=tuple(coefficients)))
    otherwise = access.otherwise
    if isinstance(otherwise, Access):
        otherwise = _translate(otherwise, translation, count)
    return replace(access, strides=tuple(strides), guards=tuple(guards), otherwise=otherwise)


def _kept_dims(full: mlir.Type, reduced: mlir.Type, sizes: list[Size]) -> list[int]:
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
