"""From a dispatch function to a Kernel: where tensors live, which ops share a nest, which loops nests share."""

from __future__ import annotations

from dataclasses import replace

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import (
    Access,
    Guard,
    Kernel,
    LinearExpr,
    Nest,
    Statement,
    Storage,
    Unsupported,
    generic_iterators,
    generic_maps,
    linear_expr,
)
from eyas.codegen.common.places import Filled, TensorPlaces, Window, joined_parts, whole
from eyas.codegen.common.sharing import shared_loops
from eyas.codegen.common.sizes import ONE, ZERO, Size

Sum = tuple[tuple[int, int], ...]
"""An index as (loop, coefficient) pairs, to be added up."""


def analyze(function: mlir.OpView) -> Kernel:
    """Builds the kernel of a dispatch function, or raises Unsupported with the reason."""
    if any(op.operation.name == "scf.for" for op in function.regions[0].blocks[0].operations):
        from eyas.codegen.common.analyze_steps import StepAnalysis

        return StepAnalysis(function).run()
    return NestAnalysis(function).run()


class NestAnalysis(TensorPlaces):
    """Reads the ops of a block in order, and makes nests of them."""

    def __init__(self, function: mlir.OpView):
        super().__init__(function)
        self.nests: list[Nest] = []
        self.made_by: dict[mlir.Value, tuple[int, int, int]] = {}  # tensor -> (nest, statement, output)
        self.written: dict[tuple[int, int, int], list[Sum]] = {}  # the same -> what each dimension's index is
        self.extracted: dict[mlir.Value, Storage] = {}

    def run(self) -> Kernel:
        for op in self.block.operations:
            self._read(op)
        for value, storage in self.results.items():
            if value not in self.made_by:
                self._copy_out(value, storage)
        self._drop_unread_outputs()
        scalars = tuple(argument for argument in self.block.arguments if argument in self.constants)
        nests = tuple(self.nests)
        return Kernel(tuple(self.storages), nests, shared_loops(nests), scalars, self.extracted)

    def _read(self, op: mlir.OpView) -> None:
        """Places what an op makes, or makes a nest of it."""
        if op.operation.name == "linalg.generic":
            self._visit_generic(op)
        elif not self._crop(op) and not self.visit(op):
            raise Unsupported(f"{op.operation.name} is not expressible as a loop nest")

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
                tensor = inner.operands[0]
                self.extracted[tensor] = self.readable_storage(tensor)
        if len(inits) == 1 and _repeats_its_input(body, inputs, iterators):
            filled = self.places.get(inputs[0])
            if not isinstance(inputs[0].type, mlir.ShapedType) or isinstance(filled, Filled):
                scalar = filled.scalar if isinstance(filled, Filled) else inputs[0]
                self.places[op.results[0]] = Filled(self.shape_of_place(inits[0]), scalar)
                return

        exprs = [[linear_expr(expr) for expr in map_.results] for map_ in maps]
        if self._view_of_broadcast(op, body, inputs, exprs):
            return
        extents = self._extents(exprs, [*inputs, *inits], len(iterators))
        order = _loop_order(exprs[len(inputs)], iterators)
        position = {loop: index for index, loop in enumerate(order)}
        loops = tuple(extents[loop] for loop in order)
        reductions = tuple(position[loop] for loop, kind in enumerate(iterators) if kind == "reduction")

        if not reductions and self._fuse_into_registers(op, inputs, exprs, order, loops):
            return
        self._materialize([*inputs, *inits])
        accesses = tuple(
            self.access(value, expr, order) if list(argument.uses) else None
            for value, expr, argument in zip(inputs, exprs, body.arguments, strict=False)
        )
        outputs, init_accesses = [], []
        for index, init in enumerate(inits):
            storage = self._result_storage(op.results[index])
            outputs.append(self.access_window(whole(storage), exprs[len(inputs) + index], order))
            init_accesses.append(self._init(init, exprs[len(inputs) + index], order, body, len(inputs) + index))
        statement = Statement(
            body,
            accesses,
            tuple(outputs),
            tuple(init_accesses),
            reductions,
            _index_loops(order),
            op.operation.location,
        )
        self.nests.append(Nest(loops, (statement,)))
        for index, result in enumerate(op.results):
            self.made_by[result] = made = (len(self.nests) - 1, 0, index)
            self.written[made] = [
                tuple((position[loop], coefficient) for loop, coefficient in expr.coefficients.items())
                for expr in exprs[len(inputs) + index]
            ]
            self.places[result] = whole(outputs[index].storage)

    def _view_of_broadcast(
        self, op: mlir.OpView, body: mlir.Block, inputs: list[mlir.Value], exprs: list[list[LinearExpr]]
    ) -> bool:
        """A copy that repeats its input is a window with strides of zero; no loop is needed."""
        place = self.places.get(inputs[0]) if len(inputs) == 1 else None
        yielded = list(body.operations)[0]
        if not isinstance(place, Window) or place.storage.binding is None or op.results[0] in self.results:
            return False
        if yielded.operation.name != "linalg.yield" or yielded.operands[0] != body.arguments[0]:
            return False
        if [list(expr.coefficients) for expr in exprs[1]] != [[dim] for dim in range(len(exprs[1]))]:
            return False
        strides = [ZERO] * len(exprs[1])
        for stride, expr in zip(place.strides, exprs[0], strict=True):
            if expr.constant or (expr.coefficients and list(expr.coefficients.values()) != [1]):
                return False
            for dim in expr.coefficients:
                total = strides[dim].plus(stride)  # a diagonal steps along two dimensions at once
                if total is None:
                    return False
                strides[dim] = total
        shape = self.shape_of_place(list(op.operands)[1])
        self.places[op.results[0]] = Window(place.storage, shape, place.offset, tuple(strides))
        return True

    def _extents(self, exprs: list[list[LinearExpr]], operands: list[mlir.Value], count: int) -> list[Size]:
        extents: list[Size | None] = [None] * count
        for operand, results in zip(operands, exprs, strict=True):
            if not isinstance(operand.type, mlir.ShapedType):
                continue
            shape = self.shape_of_place(operand)
            for size, expr in zip(shape, results, strict=True):
                if expr.constant == 0 and list(expr.coefficients.values()) == [1]:
                    (loop,) = expr.coefficients
                    if size.is_known and (extents[loop] is None or size.is_static):
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
        return self.shape_of_place(inits[list(op.results).index(value)])

    def _init(
        self, init: mlir.Value, expr: list[LinearExpr], order: list[int], body: mlir.Block, argument: int
    ) -> mlir.Value | Access | None:
        if not list(body.arguments[argument].uses):
            return None
        place = self.places[init]
        if isinstance(place, Filled):
            return place.scalar
        return self.access(init, expr, order)

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
        self, op: mlir.OpView, inputs: list[mlir.Value], exprs: list, order: list[int], loops: tuple[Size, ...]
    ) -> bool:
        """Appends an elementwise op to the nest that makes one of its operands, when their loops correspond; or to one
        of elementwise ops that has the same loops."""
        if not self.nests:
            return False
        last = len(self.nests) - 1
        nest = self.nests[last]
        made_here = [value for value in inputs if value in self.made_by and self.made_by[value][0] == last]
        parallel = nest.parallel
        translation: list[Sum] | None = None
        if not made_here and parallel == list(range(len(loops))) and nest.loops == loops and not nest.guards:
            translation = [((loop, 1),) for loop in parallel]
        for value, expr in zip(inputs, exprs, strict=False):
            if value not in made_here:
                continue
            _, index, output = self.made_by[value]
            mapping = self._correspondence((last, index, output), expr, order)
            if mapping is None or (translation is not None and mapping != translation):
                return False
            translation = mapping
        if translation is None or sorted(loop for parts in translation for loop, _ in parts) != parallel:
            return False
        if not all(_covers(nest, parts, extent) for parts, extent in zip(translation, loops, strict=True)):
            return False
        body = op.regions[0].blocks[0]
        loop_of_index = {loop: _single(translation[order.index(loop)]) for loop in range(len(order))}
        if any(loop_of_index[dim] is None for dim in _indices_read(body)):
            return False

        def widen(access: Access | mlir.Value | None) -> Access | mlir.Value | None:
            return _translate(access, translation, len(nest.loops)) if isinstance(access, Access) else access

        accesses: list = []
        for value, expr in zip(inputs, exprs, strict=False):
            if value in made_here:
                _, index, output = self.made_by[value]
                accesses.append((index, output))
            else:
                accesses.append(widen(self.access(value, expr, order)))
        _, inits = _split_operands(op)
        outputs, init_accesses = [], []
        for position, init in enumerate(inits):
            argument = len(inputs) + position
            storage = self._result_storage(op.results[position])
            outputs.append(widen(self.access_window(whole(storage), exprs[argument], order)))
            init_accesses.append(widen(self._init(init, exprs[argument], order, body, argument)))
        fused = Statement(
            body, tuple(accesses), tuple(outputs), tuple(init_accesses), (), loop_of_index, op.operation.location
        )
        self.nests[last] = replace(nest, statements=(*nest.statements, fused))
        for position, result in enumerate(op.results):
            self.made_by[result] = made = (last, len(nest.statements), position)
            self.written[made] = [
                translation[order.index(next(iter(expr.coefficients)))] if len(expr.coefficients) == 1 else ()
                for expr in exprs[len(inputs) + position]
            ]
            self.places[result] = whole(outputs[position].storage)
        self._drop_dead_outputs(made_here)
        return True

    def _correspondence(self, made: tuple[int, int, int], expr: list[LinearExpr], order: list[int]) -> list[Sum] | None:
        """What each loop of the consumer is in the nest, if it reads the value exactly where the nest makes it."""
        nest, statement, output = made
        written = self.nests[nest].statements[statement].outputs[output]
        if written is None or written.offset:
            return None
        translation: dict[int, Sum] = {}
        for parts, one in zip(self.written[made], expr, strict=True):
            if not parts and not one.constant and not one.coefficients:
                continue  # a dimension of one element, on both sides
            if one.constant or list(one.coefficients.values()) != [1]:
                return None
            (loop,) = one.coefficients
            if translation.setdefault(loop, parts) != parts:
                return None
        if set(translation) != set(order):
            return None
        return [translation[loop] for loop in order]

    def _crop(self, op: mlir.OpView) -> bool:
        """The corner of a tensor that a nest makes: the nest skips the rest instead of storing it."""
        if op.operation.name != "tensor.extract_slice" or op.operands[0] not in self.made_by:
            return False
        source, made = op.operands[0], self.made_by[op.operands[0]]
        nest = self.nests[made[0]]
        offsets, sizes, strides = self._slice_parameters(op, first_dynamic=1)
        is_corner = set(offsets) <= {ZERO} and set(strides) <= {ONE} and source.type.rank == op.result.type.rank
        is_last = made[:2] == (len(self.nests) - 1, len(nest.statements) - 1)
        if not is_corner or not is_last or source in self.results or len(list(source.uses)) != 1:
            return False
        storage = self.results.get(op.result)
        if storage is None:
            storage = Storage(f"local{len(self.made_by)}", op.result.type.element_type, tuple(sizes))
        steps = [ZERO] * len(nest.loops)
        for parts, stride in zip(self.written[made], storage.strides, strict=True):
            for loop, coefficient in parts:
                steps[loop] = stride * coefficient
        guards = nest.guards
        for parts, whole_size, size in zip(self.written[made], self.shape_of_place(source), sizes, strict=True):
            if size != whole_size:
                coefficients = [dict(parts).get(loop, 0) for loop in range(len(nest.loops))]
                guards += (Guard(tuple(coefficients), 0, size),)
        self.nests[made[0]] = replace(nest, guards=guards)
        self._set_output(made, Access(storage, (), tuple(steps)))
        self.made_by[op.result] = made
        self.places[op.result] = whole(storage)
        return True

    def _drop_dead_outputs(self, values: list[mlir.Value]) -> None:
        """A value that only register consumers read needs no storage."""
        for value in values:
            if value in self.results:
                continue
            nest, statement, output = self.made_by[value]
            users = [use.owner for use in value.uses]
            fused = {id_ for id_, (n, _, _) in ((v, m) for v, m in self.made_by.items()) if n == nest}
            if all(any(result in fused for result in user.results) for user in users):
                self._set_output((nest, statement, output), None)

    def _drop_unread_outputs(self) -> None:
        """What an op makes beside what is used of it, such as the maxima of arg-maxima, needs no storage."""
        made = [(nest, at) for nest, one in enumerate(self.nests) for at in range(len(one.statements))]
        read = {id(access.storage) for nest in self.nests for access in _reads(nest)}
        for nest, at in made:
            for output, access in enumerate(self.nests[nest].statements[at].outputs):
                if access is not None and access.storage.binding is None and id(access.storage) not in read:
                    self._set_output((nest, at, output), None)

    def _set_output(self, made: tuple[int, int, int], access: Access | None) -> None:
        """Stores what a statement makes elsewhere, or not at all."""
        nest, position, output = self.nests[made[0]], made[1], made[2]
        old = nest.statements[position]
        new = replace(old, outputs=(*old.outputs[:output], access, *old.outputs[output + 1 :]))
        self.nests[made[0]] = replace(
            nest, statements=(*nest.statements[:position], new, *nest.statements[position + 1 :])
        )

    def _copy_out(self, value: mlir.Value, storage: Storage) -> None:
        """A result that no generic makes (a slice, a pad, a fill) is copied or filled."""
        place = self.places.get(value)
        if place is None:
            raise Unsupported("a result has no defining loop nest")
        rank = len(storage.shape)
        order = list(range(rank))
        expr = [LinearExpr({dim: 1}, 0) for dim in order]
        if not self.nests and len(self.results) == 1 and (parts := joined_parts(place)):
            for part, low in parts:
                target = [LinearExpr({dim: 1}, low[dim]) for dim in order]
                written = self.access_window(whole(storage), target, order)
                read = self.access_window(part, expr, order)
                statement = Statement(None, (read,), (written,), (None,), (), _index_loops(order))
                self.nests.append(Nest(part.shape, (statement,)))
            return
        source = self.access(value, expr, order)
        output = self.access_window(whole(storage), expr, order)
        statement = Statement(None, (source,), (output,), (None,), (), _index_loops(order))
        self.nests.append(Nest(storage.shape, (statement,)))


def _reads(nest: Nest) -> list[Access]:
    """Accesses of a nest that read, also where a guard does not hold."""
    found = []
    for statement in nest.statements:
        for source in (*statement.inputs, *statement.inits):
            while isinstance(source, Access):
                found.append(source)
                source = source.otherwise
    return found


def _split_operands(op: mlir.OpView) -> tuple[list[mlir.Value], list[mlir.Value]]:
    inits = len(op.results)
    operands = list(op.operands)
    return operands[: len(operands) - inits], operands[len(operands) - inits :]


def _repeats_its_input(body: mlir.Block, inputs: list[mlir.Value], iterators: list[str]) -> bool:
    """A generic that only copies its one operand, a scalar or a tensor, to every place."""
    operations = list(body.operations)
    return (
        len(operations) == 1
        and len(inputs) == 1
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


def _single(parts: Sum) -> int | None:
    """The loop, when it is one that counts by ones."""
    return parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else None


def _indices_read(body: mlir.Block) -> set[int]:
    return {op.attributes["dim"].value for op in body.operations if op.operation.name == "linalg.index"}


def _covers(nest: Nest, parts: Sum, extent: Size) -> bool:
    """Whether the parts count through an extent without gaps, and beyond it only where the nest's guards forbid."""
    loop = _single(parts)
    if loop is not None:
        return nest.loops[loop] == extent
    reached: int | None = 1
    for part, coefficient in sorted(parts, key=lambda part: part[1]):
        if reached is None or coefficient != reached:
            return False
        size = nest.loops[part].static
        reached = None if size is None else reached * size
    is_guarded = any(
        all(guard.coefficients[loop] == coefficient for loop, coefficient in parts) and guard.extent == extent
        for guard in nest.guards
    )
    return is_guarded or (reached is not None and extent.static == reached)


def _translate(access: Access, translation: list[Sum], count: int) -> Access:
    """The same access from the loops of another nest."""
    strides = [ZERO] * count
    for position, parts in enumerate(translation):
        for loop, coefficient in parts:
            strides[loop] = access.strides[position] * coefficient
    guards = []
    for guard in access.guards:
        coefficients = [0] * count
        for position, parts in enumerate(translation):
            for loop, coefficient in parts:
                coefficients[loop] = guard.coefficients[position] * coefficient
        guards.append(replace(guard, coefficients=tuple(coefficients)))
    otherwise = access.otherwise
    if isinstance(otherwise, Access):
        otherwise = _translate(otherwise, translation, count)
    return replace(access, strides=tuple(strides), guards=tuple(guards), otherwise=otherwise)
