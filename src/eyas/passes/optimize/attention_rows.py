"""The row-wise ops between two products, read in the loops of the first and built again in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.codegen.common.softmax import Kind, NotSoftmax, constant_kind, folded_kind, made_kind
from eyas.dialects import flow
from eyas.ir.structured import (
    constant_scalar,
    copy_body,
    element_type,
    fill_value,
    generic,
    is_elementwise,
    split_operands,
)
from eyas.ir.views import Digit, Dim, Index, digits_of, linear_map, regroup, trace
from eyas.ir.walk import defining_op, is_tensor
from eyas.passes.dispatch.grouping import indexing_maps


@dataclass
class RowOps:
    """Ops that depend on the scores: elementwise, or reductions of whole rows.

    `index` says for each value that depends on the scores where its elements are: in the loops of heads and rows, and
    of columns unless it is one number for each row.
    """

    heads: tuple[Digit, ...]
    row: Digit
    column: Digit
    index: dict[mlir.Value, Index] = field(default_factory=dict)
    ops: list[mlir.Operation] = field(default_factory=list)
    dims: dict[mlir.Operation, list[Dim]] = field(default_factory=dict)

    def follow(self, first: mlir.Operation) -> mlir.Operation | None:
        """The product that takes what becomes of the scores as its left operand; None if it is not that simple."""
        self.index[first.results[0]] = (Dim(self.heads), Dim((self.row,)), Dim((self.column,)))
        block = first.block
        after = [view.operation for view in block.operations]
        for op in after[after.index(first) + 1 :]:
            read = [value for value in op.operands if value in self.index]
            if not read:
                continue
            if op.name == "linalg.batch_matmul":
                return op if op.operands[0] in self.index and self._stays_inside(op) else None
            if not self._take(op):
                return None
        return None

    def _take(self, op: mlir.Operation) -> bool:
        """Notes where the result of an op is, or refuses the op."""
        if op.name in ("tensor.expand_shape", "tensor.collapse_shape", "flow.reshape"):
            type_ = mlir.RankedTensorType(op.results[0].type)
            found = regroup(self.index[op.operands[0]], type_.shape) if type_.has_static_shape else None
            if found is None:
                return False
            self.index[op.results[0]] = found
            return True
        if op.name != "linalg.generic" or len(op.results) != 1:
            return False
        maps, body = indexing_maps(op), op.regions[0].blocks[0]
        assert maps is not None
        inputs, inits = split_operands(op)
        if any(view.operation.name in ("linalg.index", "tensor.extract", "cf.assert") for view in body.operations):
            return False
        dims = self._dims_of_loops(maps, inputs)
        if dims is None or inits[0] in self.index:
            return False
        kinds = [str(kind) for kind in op.attributes["iterator_types"]]
        summed = [digit for dim, kind in zip(dims, kinds, strict=True) if "reduction" in kind for digit in dim.digits]
        written: list[Dim] = []
        for expr in maps[-1].results:
            if not isinstance(expr, mlir.AffineDimExpr | mlir.AffineConstantExpr):
                return False
            written.append(dims[expr.position] if isinstance(expr, mlir.AffineDimExpr) else Dim())
        digits = digits_of(tuple(written))
        if summed:
            allowed = summed == [self.column] and digits == self._rows and fill_value(inits[0]) is not None
        else:
            allowed = digits in (self._rows, self._whole) and not list(body.arguments[len(inputs)].uses)
        if not allowed:
            return False
        self.index[op.results[0]] = tuple(written)
        self.ops.append(op)
        self.dims[op] = dims
        return True

    def is_softmax(self, scores: mlir.Value, end: mlir.Value) -> bool:
        """Whether the ops are elementwise ones of the scores, and then those of a softmax."""
        kinds = {scores: Kind.SCORE}

        def get(value: mlir.Value) -> Kind:
            if value not in self.index:
                return constant_kind(value)
            while value not in kinds:
                op = defining_op(value)
                assert op is not None, "a reshape of something made"
                value = op.operands[0]
            return kinds[value]

        try:
            for op in self.ops:
                inputs, inits = split_operands(op)
                body = op.regions[0].blocks[0]
                if not is_elementwise_like(op):
                    kinds[op.results[0]] = folded_kind(body, get(inputs[0]), fill_value(inits[0]))
                elif Kind.MAXIMUM in kinds.values():
                    kinds[op.results[0]] = made_kind(body, [get(value) for value in inputs])
                else:
                    kinds[op.results[0]] = Kind.SCORE
            return get(end) in (Kind.WEIGHT, Kind.SHARE) and Kind.SUM in kinds.values()
        except NotSoftmax:
            return False

    @property
    def folds_rows(self) -> bool:
        """Whether an op needs whole rows. Without one, two products are better off with packed weights of their own."""
        return any(not is_elementwise_like(op) for op in self.ops)

    @property
    def _rows(self) -> list[Digit]:
        return [*self.heads, self.row]

    @property
    def _whole(self) -> list[Digit]:
        return [*self.heads, self.row, self.column]

    def _dims_of_loops(self, maps: list[mlir.AffineMap], inputs: list[mlir.Value]) -> list[Dim] | None:
        """What each loop of an op is in the loops of the scores."""
        dims: dict[int, Dim] = {}
        for value, map_ in zip(inputs, maps, strict=False):
            if value not in self.index:
                continue
            for expr, dim in zip(map_.results, self.index[value], strict=True):
                if isinstance(expr, mlir.AffineDimExpr):
                    # A unit dimension says nothing about a loop that another operand walks through.
                    if dim.digits and dims.setdefault(expr.position, dim).digits and dims[expr.position] != dim:
                        return None
                    if dim.digits or expr.position not in dims:
                        dims[expr.position] = dim
                elif not isinstance(expr, mlir.AffineConstantExpr) or expr.value or dim.digits:
                    return None
        return [dims.get(loop, Dim()) for loop in range(maps[-1].n_dims)]

    def _stays_inside(self, last: mlir.Operation) -> bool:
        """Whether nobody else reads the scores or what is made of them."""
        if digits_of(self.index[last.operands[0]]) != self._whole:
            return False
        for value in self.index:
            for use in value.uses:
                user = use.owner.operation
                if user != last and not any(result in self.index for result in user.results):
                    return False
        return True

    def rebuild(
        self, scores: mlir.Value, end: mlir.Value, group: mlir.Attribute
    ) -> tuple[mlir.Value, mlir.Value | None]:
        """Makes the ops again on `scores`; returns what takes the place of `end`, and what that is to be divided by.

        A division of whole rows comes last and is left to the caller: there are fewer results than scores."""
        first = next(iter(self.index))
        made: dict[mlir.Value, mlir.Value] = {first: scores}

        def get(value: mlir.Value) -> mlir.Value:
            while value not in made:
                op = defining_op(value)
                assert op is not None, "a reshape of something made"
                value = op.operands[0]
            return made[value]

        last = end
        while (op := defining_op(last)) is not None and op not in self.ops and last != first:
            last = op.operands[0]
        for op in self.ops:
            if op.results[0] == last and (parts := self._division(op)) is not None:
                return get(parts[0]), get(parts[1])
            made[op.results[0]] = self._rebuild(op, get, group)
        return get(last), None

    def _division(self, op: mlir.Operation) -> tuple[mlir.Value, mlir.Value] | None:
        """Numerator and denominator of an op that divides the scores by one number for each row."""
        inputs, _ = split_operands(op)
        body = op.regions[0].blocks[0]
        ops = [view.operation for view in body.operations]
        if len(ops) != 2 or ops[0].name != "arith.divf" or len(inputs) != 2:
            return None
        if list(ops[0].operands) != list(body.arguments)[:2] or any(value not in self.index for value in inputs):
            return None
        kinds = [digits_of(self.index[value]) for value in inputs]
        return (inputs[0], inputs[1]) if kinds == [self._whole, self._rows] else None

    def _rebuild(self, op: mlir.Operation, get, group: mlir.Attribute) -> mlir.Value:
        inputs, inits = split_operands(op)
        maps, dims = indexing_maps(op), self.dims[op]
        assert maps is not None
        is_sum = not is_elementwise_like(op)
        whole = is_sum or digits_of(self.index[op.results[0]]) == self._whole
        loops = self._whole if whole else self._rows
        new_inputs, new_maps = [], []
        for value, map_ in zip(inputs, maps, strict=False):
            if value in self.index:
                new_inputs.append(get(value))
                rank = mlir.RankedTensorType(new_inputs[-1].type).rank
                exprs = [mlir.AffineDimExpr.get(loop) for loop in range(rank)]
                new_maps.append(mlir.AffineMap.get(len(loops), 0, exprs))
            elif is_tensor(value):
                # A constant position is that of a dimension of size one, or a choice that stays.
                index = tuple(
                    dims[expr.position] if isinstance(expr, mlir.AffineDimExpr) else Dim((), _constant(expr))
                    for expr in map_.results
                )
                shape = mlir.RankedTensorType(value.type).shape
                index = tuple(Dim() if size == 1 else dim for dim, size in zip(index, shape, strict=True))
                root, index = trace(value, index)
                new_inputs.append(root)
                new_maps.append(linear_map(index, len(loops)))
            else:
                new_inputs.append(value)
                new_maps.append(mlir.AffineMap.get(len(loops), 0, []))
        shape = [digit.size for digit in (self._rows if is_sum else loops)]
        output = tensor.EmptyOp(shape, element_type(op.results[0])).result
        if is_sum:
            start = fill_value(inits[0])
            assert start is not None
            output = linalg.fill(start, outs=[output])
        exprs = [mlir.AffineDimExpr.get(loop) for loop in range(len(shape))]
        new_maps.append(mlir.AffineMap.get(len(loops), 0, exprs))
        kinds = ["parallel"] * len(shape) + ["reduction"] * (len(loops) - len(shape))
        new = generic(new_inputs, [output], new_maps, kinds)
        new.operation.attributes[flow.GROUP] = group
        copy_body(op, new)
        _multiply_instead(new.regions[0].blocks[0])
        return new.results[0]


def _multiply_instead(body: mlir.Block) -> None:
    """Divisions by a constant, of which there is one for each score, become multiplications by its inverse."""
    for op in [view.operation for view in body.operations if view.operation.name == "arith.divf"]:
        divisor, type_ = constant_scalar(op.operands[1]), op.results[0].type
        if divisor is None or not 2.0**-100 < abs(divisor) < 2.0**100 or not isinstance(type_, mlir.F32Type):
            continue
        with mlir.InsertionPoint(op), op.location:
            inverse = arith.ConstantOp(type_, mlir.FloatAttr.get(type_, 1 / divisor)).result
            product = arith.MulFOp(op.operands[0], inverse).result
        op.results[0].replace_all_uses_with(product)
        op.erase()


def is_elementwise_like(op: mlir.Operation) -> bool:
    return all("parallel" in str(kind) for kind in op.attributes["iterator_types"])


def _constant(expr: mlir.AffineExpr) -> int:
    return expr.value if isinstance(expr, mlir.AffineConstantExpr) else 0


def constant_factor(op: mlir.Operation) -> float | None:
    """The constant that an elementwise op multiplies its one tensor by, else None."""
    if not is_elementwise(op):
        return None
    inputs, _ = split_operands(op)
    maps, body = indexing_maps(op), op.regions[0].blocks[0]
    assert maps is not None
    ops = [view.operation for view in body.operations]
    if len(ops) != 2 or ops[0].name != "arith.mulf" or maps[0] != maps[-1]:
        return None
    tensors = [value for value in inputs[1:] if is_tensor(value) and mlir.RankedTensorType(value.type).rank]
    left, right = ops[0].operands
    if tensors or left != body.arguments[0]:
        return None
    if len(inputs) == 2 and right == body.arguments[1]:
        return _splat(inputs[1])
    return constant_scalar(right) if len(inputs) == 1 else None


def _splat(value: mlir.Value) -> float | None:
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.FloatAttr):
        return attribute.value
    if isinstance(attribute, mlir.DenseElementsAttr) and attribute.is_splat:
        return mlir.FloatAttr(attribute.get_splat_value()).value
    return None
