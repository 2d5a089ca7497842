"""Ops of a loop's body, each written once for all steps: what changes from step to step gets a leading dimension.

A tensor that is the same in all steps stays as it is. Scalars that change have no tensor of their own: they are
computed where they are used, from the number of the step, which inside of a linalg op is the index of its first loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.ir.structured import generic, index_constant, split_operands
from eyas.ir.walk import constant_int, defining_op, find_ops, is_tensor, nested_operands, remap_operands, values_inside
from eyas.passes.dispatch.grouping import indexing_maps
from eyas.passes.optimize.loop_steps import Steps

DYNAMIC = mlir.ShapedType.get_dynamic_size()


class Refused(Exception):
    """Some op cannot be written for all steps at once."""


class Batch:
    """The values of a body for all steps. Emits at the current insertion point, which is before the loop."""

    def __init__(self, steps: Steps):
        self.steps = steps
        self.count = steps.size()
        self.tensors: dict[mlir.Value, mlir.Value] = {}
        """Tensors that change, with a leading dimension for the step."""
        self.elements: dict[mlir.Value, mlir.Value] = {}
        """Tensors of one element that changes, and the scalar that it is."""
        self.same: dict[mlir.Value, mlir.Value] = {}
        """Values that are the same in all steps."""
        self.changing: dict[mlir.Value, mlir.Operation | None] = dict.fromkeys(steps.counters)
        """Scalars that change, and what computes them."""

    def visit(self, op: mlir.Operation) -> None:
        """Writes one op of the body."""
        inside = values_inside(op)
        needed = [value for value in nested_operands(op) if value not in inside]
        if not any(self.is_changing(value) for value in needed):
            if op.name == "cf.assert":
                raise Refused(op.name)  # it says nothing about a loop without steps
            copy = op.clone().operation
            remap_operands(copy, self.same)
            self.same.update(zip(op.results, copy.results, strict=True))
        elif op.name.startswith("linalg.") and indexing_maps(op) is not None:
            self._visit_linalg(op)
        elif op.name in _VISITS:
            _VISITS[op.name](self, op)
        elif op.results and not op.regions and not any(is_tensor(value) for value in op.results):
            self.changing.update(dict.fromkeys(op.results, op))
        else:
            raise Refused(op.name)

    def is_changing(self, value: mlir.Value) -> bool:
        return value in self.tensors or value in self.elements or value in self.changing

    def once(self, value: mlir.Value) -> mlir.Value:
        """A value that is the same in all steps."""
        if self.is_changing(value):
            raise Refused("what must be the same in all steps")
        return self.same.get(value, value)

    def tensor(self, value: mlir.Value) -> mlir.Value:
        """A tensor with the leading dimension; one that does not change is repeated."""
        if value in self.tensors:
            return self.tensors[value]
        if value in self.elements:
            number = self.elements[value]
            self.tensors[value] = self._fill_by(lambda at: self.scalar(number, at), value.type, [])
            return self.tensors[value]
        one = self.once(value)
        owner = defining_op(one)
        if owner is not None and owner.name == "linalg.fill":
            return linalg.fill(owner.operands[0], outs=[self.empty(one)])
        type_ = mlir.RankedTensorType(one.type)
        dims = [mlir.AffineExpr.get_dim(dim) for dim in range(type_.rank + 1)]
        op = generic(
            [one],
            [self.empty(one)],
            [mlir.AffineMap.get(type_.rank + 1, 0, dims[1:]), mlir.AffineMap.get_identity(type_.rank + 1)],
            ["parallel"] * (type_.rank + 1),
        )
        with mlir.InsertionPoint(op.regions[0].blocks[0]):
            linalg.YieldOp([op.regions[0].blocks[0].arguments[0]])
        return op.results[0]

    def empty(self, like: mlir.Value) -> mlir.Value:
        """An empty tensor for all steps of what has a shape that stays the same."""
        type_ = mlir.RankedTensorType(like.type)
        sizes = [
            tensor.dim(like, index_constant(dim)) if type_.is_dynamic_dim(dim) else type_.shape[dim]
            for dim in range(type_.rank)
        ]
        return tensor.empty([self.count, *sizes], type_.element_type)

    def type(self, type_: mlir.Type) -> mlir.RankedTensorType:
        """The type of a tensor for all steps."""
        shaped = mlir.RankedTensorType(type_)
        count = self.count if isinstance(self.count, int) else DYNAMIC
        return mlir.RankedTensorType.get([count, *shaped.shape], shaped.element_type)

    def scalar(self, value: mlir.Value, step: mlir.Value) -> mlir.Value:
        """A scalar of the body in a step; emits what computes it."""
        if value not in self.changing:
            return self.once(value)
        op = self.changing[value]
        if op is None:
            place = self.steps.counters[value]
            number = arith.muli(step, index_constant(place.step)) if place.step != 1 else step
            number = arith.addi(number, index_constant(place.start)) if place.start else number
            return number if value.type == mlir.IndexType.get() else arith.index_cast(value.type, number)
        if op.name == "tensor.extract":
            return self.extract(op.operands[0], [self.scalar(at, step) for at in list(op.operands)[1:]], step)
        operands = [self.scalar(operand, step) for operand in op.operands]
        copy = op.clone().operation
        for position, operand in enumerate(operands):
            copy.operands[position] = operand
        return copy.results[list(op.results).index(value)]

    def extract(self, source: mlir.Value, indices: Sequence[mlir.Value], step: mlir.Value) -> mlir.Value:
        """An element of a tensor of the body in a step."""
        if source in self.elements:
            return self.scalar(self.elements[source], step)
        if source in self.tensors:
            return tensor.extract(self.tensors[source], [step, *indices])
        return tensor.extract(self.once(source), list(indices))

    def gather(self, type_: mlir.Type, sizes: Sequence[mlir.Value], element: Callable[..., mlir.Value]) -> mlir.Value:
        """A tensor for all steps whose elements are built from the step and the place in the step's tensor."""
        return self._fill_by(lambda step, *at: element(step, list(at)), type_, sizes)

    def _fill_by(self, element: Callable[..., mlir.Value], type_: mlir.Type, sizes: Sequence[mlir.Value]) -> mlir.Value:
        shaped, dynamic = mlir.RankedTensorType(type_), iter(sizes)
        shape = [self.count, *(next(dynamic) if size == DYNAMIC else size for size in shaped.shape)]
        rank = len(shape)
        op = generic(
            [],
            [tensor.empty(shape, shaped.element_type)],
            [mlir.AffineMap.get_identity(rank)],
            ["parallel"] * rank,
        )
        with mlir.InsertionPoint(op.regions[0].blocks[0]):
            linalg.YieldOp([element(*(linalg.IndexOp(dim).result for dim in range(rank)))])
        return op.results[0]

    def _visit_linalg(self, op: mlir.Operation) -> None:
        maps = indexing_maps(op)
        assert maps is not None
        inputs, inits = split_operands(op)
        body = op.regions[0].blocks[0]
        loops = maps[-1].n_dims if maps else 0
        kept: list[tuple[mlir.Value, mlir.AffineMap]] = []
        arguments: list[mlir.Value] = []  # of the old body, for each operand that is kept
        numbers: dict[mlir.Value, mlir.Value] = {}  # arguments that are scalars of the step
        for value, map_, argument in zip(inputs, maps, body.arguments, strict=False):
            if value in self.tensors:
                kept.append((self.tensors[value], _shifted(map_, True)))
            elif value in self.elements or value in self.changing:
                numbers[argument] = self.elements.get(value, value)
                continue
            else:
                kept.append((self.once(value), _shifted(map_, False)))
            arguments.append(argument)
        outs: list[mlir.Value] = []
        for value, argument in zip(inits, list(body.arguments)[len(inputs) :], strict=True):
            is_read = any(True for _ in argument.uses)
            outs.append(self.tensor(value) if is_read or value in self.tensors else self.empty(self.once(value)))
            arguments.append(argument)
        reduced = set(range(loops)) - {dim for map_ in maps[len(inputs) :] for dim in _dims_of(map_)}
        kinds = ["parallel", *("reduction" if dim in reduced else "parallel" for dim in range(loops))]
        made = generic(
            [value for value, _ in kept],
            outs,
            [*(map_ for _, map_ in kept), *(_shifted(map_, True) for map_ in maps[len(inputs) :])],
            kinds,
        )
        target = made.regions[0].blocks[0]
        with mlir.InsertionPoint(target):
            self._copy_body(body, dict(zip(arguments, target.arguments, strict=True)), numbers)
        self.tensors.update(zip(op.results, made.results, strict=True))

    def _copy_body(
        self, body: mlir.Block, known: dict[mlir.Value, mlir.Value], numbers: dict[mlir.Value, mlir.Value]
    ) -> None:
        step = linalg.IndexOp(0).result
        for argument, value in numbers.items():
            known[argument] = self.scalar(value, step)
        for view in body.operations:
            op = view.operation
            inside = values_inside(op)
            for value in nested_operands(op):
                if value not in inside and value not in known and not is_tensor(value):
                    known[value] = self.scalar(value, step)
            if op.name == "linalg.yield":
                linalg.YieldOp([known[value] for value in op.operands])
                return
            copy = op.clone().operation
            remap_operands(copy, {**self.same, **known})
            known.update(zip(op.results, copy.results, strict=True))
            for index in find_ops(copy, "linalg.index"):
                dim = mlir.IntegerAttr(index.attributes["dim"])
                index.attributes["dim"] = mlir.IntegerAttr.get(dim.type, dim.value + 1)
            for read in find_ops(copy, "tensor.extract"):
                source = read.operands[0]
                if not self.is_changing(source):
                    continue
                with mlir.InsertionPoint(read):
                    new = self.extract(source, list(read.operands)[1:], step)
                read.operation.results[0].replace_all_uses_with(new)
                if read.operation == copy:
                    known[op.results[0]] = new
                read.operation.erase()

    def _from_elements(self, op: mlir.Operation) -> None:
        if len(op.operands) != 1:
            raise Refused("a tensor of several elements")
        self.elements[op.results[0]] = op.operands[0]

    def _dim(self, op: mlir.Operation) -> None:
        source, dim = op.operands[0], constant_int(op.operands[1])
        if source not in self.tensors or dim is None:
            raise Refused(op.name)
        self.same[op.results[0]] = tensor.dim(self.tensors[source], index_constant(dim + 1))

    def _extract(self, op: mlir.Operation) -> None:
        self.changing[op.results[0]] = op

    def _reshape(self, op: mlir.Operation) -> None:
        source, result = op.operands[0], op.results[0]
        if source in self.elements:
            self.elements[result] = self.elements[source]
            return
        groups = [[mlir.IntegerAttr(dim).value + 1 for dim in group] for group in op.attributes["reassociation"]]
        ranks = [mlir.RankedTensorType(value.type).rank for value in (source, result)]
        groups = [[0], *groups] if min(ranks) else [list(range(max(ranks) + 1))]
        type_ = self.type(result.type)
        if op.name == "tensor.collapse_shape":
            self.tensors[result] = tensor.CollapseShapeOp(type_, self.tensors[source], groups).result
            return
        sizes = [self.once(value) for value in list(op.operands)[1:]]
        sizes = sizes if isinstance(self.count, int) else [self.count, *sizes]
        self.tensors[result] = tensor.ExpandShapeOp(
            type_, self.tensors[source], groups, sizes, list(type_.shape)
        ).result

    def _cast(self, op: mlir.Operation) -> None:
        self.tensors[op.results[0]] = tensor.CastOp(self.type(op.results[0].type), self.tensor(op.operands[0])).result

    def _concat(self, op: mlir.Operation) -> None:
        dim = mlir.IntegerAttr(op.attributes["dim"]).value + 1
        parts = [self.tensor(value) for value in op.operands]
        self.tensors[op.results[0]] = tensor.ConcatOp(self.type(op.results[0].type), dim, parts).result

    def _slice(self, op: mlir.Operation) -> None:
        """Slices of what changes, and slices at places that change."""
        tensors = 1 if op.name == "tensor.extract_slice" else 2
        whole, given = op.operands[tensors - 1], list(op.operands)[tensors:]
        if tensors == 1 and (whole not in self.tensors or any(self.is_changing(value) for value in given)):
            self.tensors[op.results[0]] = self._rows(op, whole)
            return
        if any(self.is_changing(value) for value in given):
            raise Refused(op.name)
        segments = list(mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        offsets, sizes, strides = _split(given, segments[tensors:])
        is_open = not isinstance(self.count, int)
        fixed = {
            name: list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
            for name in ("offsets", "sizes", "strides")
        }
        dynamic = [
            *(self.once(value) for value in offsets),
            *([self.count] if is_open else []),
            *(self.once(value) for value in [*sizes, *strides]),
        ]
        segments[tensors + 1] += is_open
        made = mlir.Operation.create(
            op.name,
            results=[self.type(op.results[0].type)],
            operands=[*(self.tensor(value) for value in list(op.operands)[:tensors]), *dynamic],
            attributes={
                "static_offsets": mlir.DenseI64ArrayAttr.get([0, *fixed["offsets"]]),
                "static_sizes": mlir.DenseI64ArrayAttr.get([DYNAMIC if is_open else self.count, *fixed["sizes"]]),
                "static_strides": mlir.DenseI64ArrayAttr.get([1, *fixed["strides"]]),
                "operandSegmentSizes": mlir.DenseI32ArrayAttr.get(segments),
            },
        )
        self.tensors[op.results[0]] = made.results[0]

    def _rows(self, op: mlir.Operation, source: mlir.Value) -> mlir.Value:
        """A slice at a place that changes: as it lies in memory where the steps take rows one after the other."""
        from eyas.passes.optimize.batched_rows import read_rows

        return read_rows(self, op, source)

    def _along(self, op: mlir.Operation) -> None:
        """Ops with a dimension along which they work, and a body on elements."""
        dimension = mlir.IntegerAttr(op.attributes["dimension"])
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes["dimension"] = mlir.IntegerAttr.get(dimension.type, dimension.value + 1)
        made = mlir.Operation.create(
            op.name,
            results=[self.type(result.type) for result in op.results],
            operands=[self.tensor(value) for value in op.operands],
            attributes=attributes,
            regions=1,
        )
        copy = op.clone().operation
        copy.regions[0].blocks[0].append_to(made.regions[0])
        copy.erase()
        remap_operands(made, self.same)
        self.tensors.update(zip(op.results, made.results, strict=True))


_VISITS: dict[str, Callable[[Batch, mlir.Operation], None]] = {
    "tensor.from_elements": Batch._from_elements,
    "tensor.dim": Batch._dim,
    "tensor.extract": Batch._extract,
    "tensor.expand_shape": Batch._reshape,
    "tensor.collapse_shape": Batch._reshape,
    "tensor.cast": Batch._cast,
    "tensor.concat": Batch._concat,
    "tensor.extract_slice": Batch._slice,
    "tensor.insert_slice": Batch._slice,
    "tm_tensor.sort": Batch._along,
}


def _split(values: Sequence[mlir.Value], counts: Sequence[int]) -> list[list[mlir.Value]]:
    found, rest = [], list(values)
    for count in counts:
        found.append(rest[:count])
        rest = rest[count:]
    return found


def _shifted(map_: mlir.AffineMap, has_step: bool) -> mlir.AffineMap:
    """A map of a nest that has one more loop around it, for a tensor with or without the dimension of the steps."""
    dims = [mlir.AffineExpr.get_dim(dim + 1) for dim in range(map_.n_dims)]
    results = [expr.compose(mlir.AffineMap.get(map_.n_dims + 1, 0, dims)) for expr in map_.results]
    return mlir.AffineMap.get(map_.n_dims + 1, 0, [*([mlir.AffineExpr.get_dim(0)] if has_step else []), *results])


def _dims_of(map_: mlir.AffineMap) -> set[int]:
    return {dim for dim in range(map_.n_dims) for expr in map_.results if _uses(expr, dim)}


def _uses(expr: mlir.AffineExpr, dim: int) -> bool:
    if isinstance(expr, mlir.AffineDimExpr):
        return expr.position == dim
    if isinstance(expr, mlir.AffineBinaryExpr):
        return _uses(expr.lhs, dim) or _uses(expr.rhs, dim)
    return False
