"""`convert-recurrences`: recurrent layers become loops whose steps are one product and one elementwise op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, cf, linalg, scf, tensor

from eyas.ir import Pass, describe_location, mlir
from eyas.ir.structured import empty_like, generic, index_constant
from eyas.ir.walk import defining_op
from eyas.passes.input.recurrent_cells import Cell, Scalars, gru, lstm
from eyas.passes.input.torch_values import find_operators, replace_by_tensors, to_tensor

_Make = Callable[..., list[mlir.Value]]
_Input = mlir.Value | tuple[mlir.Value, int]

FROM_ONNX = "eyas.recurrence"
FROM_TORCH = ("torch.eyas.recurrence", "torch.eyas.recurrence_of_two")


@dataclass(frozen=True)
class ConvertRecurrences(Pass):
    """Replaces `eyas.recurrence`, which frontends write for one direction of one layer of an LSTM, GRU or RNN.

    What depends on the inputs alone is an operand, [steps, batch, gates * hidden]: one product over all steps. A step
    multiplies the state by the weights, [hidden, gates * hidden], and then one op makes the new state of each unit from
    its gates. What a row sees depends on no other row. Sums and gates of half floats are computed in f32.

        %y, %h = torch.operator "eyas.recurrence"(%x, %r, %h0) {cell = "{kind: rnn, ...}"}
      becomes
        %r:2 = scf.for %t ... iter_args(%h = %h0, %ys = tensor.empty) {
          %row = tensor.extract_slice %x[%t, 0, 0, 0]
          %p = linalg.generic [batch, gate, unit, hidden (reduction)] ins(%h, %r) { %out + %h * %r }
          %new = linalg.generic ins(%p, %row) { tanh(%p + %row) }
          scf.yield %new, tensor.insert_slice %new into %ys[%t, 0, 0] }
    """

    name: ClassVar[str] = "convert-recurrences"

    def run(self, module: mlir.Module) -> None:
        for op in find_operators(module, FROM_ONNX, *FROM_TORCH):
            with mlir.InsertionPoint(op), op.location:
                replace_by_tensors(op, _Recurrence(op).build())


class _Recurrence:
    """Operands: inputs' share, weights, states, then those that the cell names."""

    def __init__(self, op: mlir.Operation):
        operands = list(op.operands)
        if "torch.onnx.cell" in op.attributes:
            text = mlir.StringAttr(op.attributes["torch.onnx.cell"]).value
        else:
            owner = defining_op(operands.pop())
            assert owner is not None and owner.name == "torch.constant.str", op
            text = mlir.StringAttr(owner.attributes["value"]).value
        self.cell = Cell.from_text(text)
        self.given, self.weights, *rest = (to_tensor(value) for value in _flat(operands))
        self.states = rest[: self.cell.states]
        self.extra = dict(zip(self.cell.operands, rest[self.cell.states :], strict=True))
        self.element = mlir.RankedTensorType(self.given.type).element_type
        wide = self.element if str(self.element) in ("f32", "f64") else mlir.F32Type.get()
        self.scalars = Scalars(self.cell, wide)
        self.batch = mlir.RankedTensorType(self.given.type).shape[1]
        self.hidden = mlir.RankedTensorType(self.given.type).shape[2] // len(self.cell.gates)
        self.at: mlir.Value | None = None
        self.location = op.location

    def build(self) -> list[mlir.Value]:
        """Rows of all steps, and the last states."""
        type_ = mlir.RankedTensorType(self.given.type)
        steps = tensor.dim(self.given, index_constant(0)) if type_.is_dynamic_dim(0) else index_constant(type_.shape[0])
        width = mlir.RankedTensorType(self.states[0].type).shape[-1]
        rows = empty_like(self.given, [type_.shape[0], self.batch, width], [0, 1, 2])
        last = arith.subi(steps, index_constant(1))
        states = [self._with_batch(state) for state in self.states]
        self.given, self.weights = _in_gates(self.given, self.hidden), _in_gates(self.weights, self.hidden)
        loop = scf.ForOp(index_constant(0), steps, index_constant(1), [*states, rows])
        loop.operation.attributes["flow.keeps_shape"] = mlir.UnitAttr.get()
        with mlir.InsertionPoint(loop.body):
            *old, rows = loop.inner_iter_args
            at = loop.induction_variable
            at = arith.subi(last, at) if self.cell.reverse else at
            now = self._row(at)
            self.at = at if "lengths" in self.extra else None
            row, *new = getattr(self, f"_{self.cell.kind}")(now, old)
            scf.YieldOp([*new, self._put(row, rows, at)])
        *ends, rows = loop.results
        return [rows, *ends]

    def _with_batch(self, state: mlir.Value) -> mlir.Value:
        """A state of the type that the rows of the inputs have."""
        shape = [self.batch, *mlir.RankedTensorType(state.type).shape[1:]]
        if self.batch == mlir.ShapedType.get_dynamic_size():
            # Ops inside of a loop are not looked at by `check-shapes`, and all of them rely on this.
            sizes = tensor.dim(state, index_constant(0)), tensor.dim(self.given, index_constant(1))
            same = arith.CmpIOp(arith.CmpIPredicate.eq, *sizes).result
            where = describe_location(self.location)
            check = cf.AssertOp(same, f"the first state at {where} must have as many rows as the inputs have")
            check.operation.attributes["flow.keep"] = mlir.UnitAttr.get()
        type_ = mlir.RankedTensorType.get(shape, self.element)
        return state if state.type == type_ else tensor.cast(type_, state)

    def _sizes(self) -> list[mlir.Value | int]:
        if self.batch != mlir.ShapedType.get_dynamic_size():
            return [self.batch]
        return [tensor.dim(self.given, index_constant(1))]

    def _row(self, at: mlir.Value) -> mlir.Value:
        type_ = mlir.RankedTensorType(self.given.type)
        made = mlir.RankedTensorType.get(type_.shape[1:], self.element)
        return _slice(self.given, made, [at, 0, 0, 0], [1, *self._sizes(), *type_.shape[2:]])

    def _put(self, row: mlir.Value, rows: mlir.Value, at: mlir.Value) -> mlir.Value:
        width = mlir.RankedTensorType(rows.type).shape[2]
        return _slice(rows, rows.type, [at, 0, 0], [1, *self._sizes(), width], row)

    def _product(self, left: mlir.Value, right: mlir.Value) -> mlir.Value:
        """Rows times a matrix whose columns may be of several gates, in the wide type."""
        columns = mlir.RankedTensorType(right.type).shape[1:]
        count = len(columns)
        empty = tensor.empty([*self._sizes(), *columns], self.scalars.type)
        start = linalg.fill(self.scalars.number(0.0), outs=[empty])
        row, *made, summed = (mlir.AffineExpr.get_dim(dim) for dim in range(count + 2))
        maps = [mlir.AffineMap.get(count + 2, 0, exprs) for exprs in ([row, summed], [summed, *made], [row, *made])]
        op = generic([left, right], [start], maps, ["parallel"] * (count + 1) + ["reduction"])
        body = op.regions[0].blocks[0]
        with mlir.InsertionPoint(body):
            factors = [self._widen(value) for value in list(body.arguments)[:2]]
            linalg.YieldOp([arith.addf(body.arguments[2], arith.mulf(*factors))])
        return op.results[0]

    def _widen(self, value: mlir.Value) -> mlir.Value:
        is_narrow = isinstance(value.type, mlir.FloatType) and value.type != self.scalars.type
        return arith.extf(self.scalars.type, value) if is_narrow else value

    def _narrow(self, value: mlir.Value) -> mlir.Value:
        return value if value.type == self.element else arith.truncf(self.element, value)

    def _units(self, inputs: Sequence[_Input], types: Sequence[mlir.Type], make: _Make) -> list[mlir.Value]:
        """One op on all units, [batch, units]. Vectors of units and of rows are repeated; of a tensor with gates, a
        pair says which one is read."""
        b, n = mlir.AffineExpr.get_dim(0), mlir.AffineExpr.get_dim(1)
        both = mlir.AffineMap.get(2, 0, [b, n])
        maps, tensors = [], []
        for given in inputs:
            value, gate = given if isinstance(given, tuple) else (given, None)
            type_ = mlir.RankedTensorType(value.type)
            leading = [] if gate is None else [mlir.AffineExpr.get_constant(gate)]
            is_row = type_.rank == 1 and isinstance(type_.element_type, mlir.IntegerType)
            if type_.rank - len(leading) == 1:
                exprs = [b] if is_row else [*leading, n]
            else:
                exprs = [b, *leading, n]
            maps.append(mlir.AffineMap.get(2, 0, exprs))
            tensors.append(value)
        width = mlir.RankedTensorType(tensors[0].type).shape[-1]
        outs = [tensor.empty([*self._sizes(), width], type_) for type_ in types]
        op = generic(tensors, outs, [*maps, *[both] * len(outs)], ["parallel"] * 2)
        body = op.regions[0].blocks[0]
        with mlir.InsertionPoint(body):
            values = [self._widen(value) for value in list(body.arguments)[: len(inputs)]]
            linalg.YieldOp([self._narrow(value) for value in make(*values)])
        return list(op.results)

    def _keep(
        self, new: Sequence[mlir.Value], old: Sequence[mlir.Value], rest: Sequence[mlir.Value]
    ) -> list[mlir.Value]:
        """What a unit gives: its new state, after what is its row where rows have lengths: once a row has ended, its
        state stays and it gives zeros."""
        if self.at is None:
            return list(new)
        goes_on = arith.cmpi(arith.CmpIPredicate.slt, arith.index_cast(rest[-1].type, self.at), rest[-1])
        row = arith.select(goes_on, new[0], self.scalars.number(0.0))
        return [row, *(arith.select(goes_on, now, before) for now, before in zip(new, old, strict=True))]

    def _state(self, inputs: Sequence[_Input], old: Sequence[mlir.Value], make: _Make) -> list[mlir.Value]:
        """The row and the new states of all units: `make` has the new states from `inputs`, then the old states."""
        lengths = [self.extra["lengths"]] if self.at is not None else []
        count = len(inputs)

        def body(*values: mlir.Value) -> list[mlir.Value]:
            before = values[count : count + len(old)]
            return self._keep(make(*values[:count], *before), before, values[count + len(old) :])

        types = [self.element] * (len(old) + len(lengths))
        made = self._units([*inputs, *old, *lengths], types, body)
        return made if lengths else [made[0], *made]

    def _rnn(self, now: mlir.Value, old: Sequence[mlir.Value]) -> list[mlir.Value]:
        product = self._product(old[0], self.weights)
        return self._state([(now, 0), (product, 0)], old, lambda x, p, h: [self.scalars.activate(0, arith.addf(x, p))])

    def _gru(self, now: mlir.Value, old: Sequence[mlir.Value]) -> list[mlir.Value]:
        h, s = old[0], self.scalars
        gates = self.cell.gates
        xz, xr, xh = ((now, gates.index(letter)) for letter in "zrh")
        product = self._product(h, self.weights)
        if self.cell.linear_before_reset:
            bias = [self.extra["bias"]] if "bias" in self.extra else []

            def make(*values: mlir.Value) -> list[mlir.Value]:
                xz, pz, xr, pr, xh, ph, *given, h = values
                share = arith.addf(ph, given[0]) if given else ph
                reset = s.activate(0, arith.addf(xr, pr))
                return [gru(s, arith.addf(xz, pz), arith.addf(xh, arith.mulf(reset, share)), h)]

            pz, pr, ph = ((product, gates.index(letter)) for letter in "zrh")
            return self._state([xz, pz, xr, pr, xh, ph, *bias], old, make)
        # Weights of the candidate are a matrix of their own: it is multiplied by what the reset gate leaves.
        pz, pr = ((product, gates.replace("h", "").index(letter)) for letter in "zr")

        def first(xr: mlir.Value, pr: mlir.Value, h: mlir.Value) -> list[mlir.Value]:
            return [arith.mulf(s.activate(0, arith.addf(xr, pr)), h)]

        (reset,) = self._units([xr, pr, h], [self.element], first)
        ph = self._product(reset, self.extra["candidate"])

        def second(xz: mlir.Value, pz: mlir.Value, xh: mlir.Value, ph: mlir.Value, h: mlir.Value) -> list[mlir.Value]:
            return [gru(s, arith.addf(xz, pz), arith.addf(xh, ph), h)]

        return self._state([xz, pz, xh, ph], old, second)

    def _lstm(self, now: mlir.Value, old: Sequence[mlir.Value]) -> list[mlir.Value]:
        product = self._product(old[0], self.weights)
        letters = self.cell.gates
        parts = [(value, gate) for value in (now, product) for gate in range(len(letters))]
        peepholes: list[_Input] = []
        if "peepholes" in self.extra:
            values = _in_gates(self.extra["peepholes"], self.hidden)
            peepholes += [(values, gate) for gate in range(3)]

        def make(*values: mlir.Value) -> list[mlir.Value]:
            xs, ps, peeps, c = values[:4], values[4:8], values[8 : 8 + len(peepholes)], values[8 + len(peepholes)]
            gates = {letter: arith.addf(x, p) for letter, x, p in zip(letters, xs, ps, strict=True)}
            return list(lstm(self.scalars, gates, c, dict(zip("iof", peeps, strict=False))))

        if "projection" not in self.extra:
            return self._state([*parts, *peepholes], old, lambda *values: make(*values[:-2], values[-1]))
        full, cell = self._units([*parts, *peepholes, old[1]], [self.element] * 2, make)
        h = self._product(full, self.extra["projection"])
        (h,) = self._units([h], [self.element], lambda value: [value])
        return [h, h, cell]


def _in_gates(value: mlir.Value, hidden: int) -> mlir.Value:
    """A tensor whose last dimension is gates and units, as two dimensions."""
    type_ = mlir.RankedTensorType(value.type)
    shape = [*list(type_.shape)[:-1], type_.shape[-1] // hidden, hidden]
    groups = [*([dim] for dim in range(type_.rank - 1)), [type_.rank - 1, type_.rank]]
    dims = [tensor.dim(value, index_constant(dim)) for dim in range(type_.rank) if type_.is_dynamic_dim(dim)]
    made = mlir.RankedTensorType.get(shape, type_.element_type)
    return tensor.expand_shape(made, value, groups, dims, shape)


def _slice(
    whole: mlir.Value,
    type_: mlir.Type,
    offsets: Sequence[mlir.Value | int],
    sizes: Sequence[mlir.Value | int],
    part: mlir.Value | None = None,
) -> mlir.Value:
    """A part of a tensor, or the tensor with another part in its place."""
    dynamic = mlir.ShapedType.get_dynamic_size()
    fixed_offsets, fixed_sizes = (
        [dynamic if isinstance(n, mlir.Value) else n for n in one] for one in (offsets, sizes)
    )
    given_offsets, given_sizes = ([n for n in one if isinstance(n, mlir.Value)] for one in (offsets, sizes))
    strides = [1] * len(offsets)
    if part is None:
        return tensor.extract_slice(type_, whole, given_offsets, given_sizes, [], fixed_offsets, fixed_sizes, strides)
    return tensor.insert_slice(part, whole, given_offsets, given_sizes, [], fixed_offsets, fixed_sizes, strides)


def _flat(operands: Sequence[mlir.Value]) -> list[mlir.Value]:
    """Operands, with lists of tensors written out."""
    found = []
    for value in operands:
        owner = defining_op(value)
        is_list = owner is not None and owner.name == "torch.prim.ListConstruct"
        found += list(owner.operands) if is_list and owner is not None else [value]
    return found
