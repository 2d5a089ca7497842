"""A small language of loops on tensors, for algorithms that are stated element by element.

Variables and arrays are assigned to as in any language; loops and branches carry those that their bodies change, which
is what scf needs. Numbers are floats or complex numbers of one type, indices and booleans.

    loops = Loops()
    total, x = loops.variable(loops.float(0.0, f32)), loops.array(operand)
    with loops.range(0, x.size(0)) as i:
        total.set(total.get() + x[i] * x[i])
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, complex, linalg, math, scf, tensor

from eyas.ir.structured import index_constant

Operand: TypeAlias = "Number | int | float"


class Number:
    """A float, a complex number, an index or a boolean with Python's operators. Plain Python numbers, and floats beside
    complex numbers, take the type of the other side."""

    __slots__ = ("value",)

    def __init__(self, value: mlir.Value):
        self.value = value

    @property
    def is_float(self) -> bool:
        return isinstance(self.value.type, mlir.FloatType)

    @property
    def is_complex(self) -> bool:
        return isinstance(self.value.type, mlir.ComplexType)

    def __add__(self, other: Operand) -> Number:
        return self._binary(other, arith.addf, arith.addi, complex.add)

    def __sub__(self, other: Operand) -> Number:
        return self._binary(other, arith.subf, arith.subi, complex.sub)

    def __mul__(self, other: Operand) -> Number:
        return self._binary(other, arith.mulf, arith.muli, complex.mul)

    def __truediv__(self, other: Operand) -> Number:
        return self._binary(other, arith.divf, arith.divsi, complex.div)

    def __radd__(self, other: Operand) -> Number:
        return self + other

    def __rmul__(self, other: Operand) -> Number:
        return self * other

    def __rsub__(self, other: Operand) -> Number:
        return Number(self._like(other)) - self

    def __rtruediv__(self, other: Operand) -> Number:
        return Number(self._like(other)) / self

    def __neg__(self) -> Number:
        return Number(complex.neg(self.value) if self.is_complex else arith.negf(self.value))

    def __abs__(self) -> Number:
        return Number(complex.abs(self.value) if self.is_complex else math.absf(self.value))

    def __lt__(self, other: Operand) -> Number:
        return self._compare(other, arith.CmpFPredicate.OLT, arith.CmpIPredicate.slt)

    def __le__(self, other: Operand) -> Number:
        return self._compare(other, arith.CmpFPredicate.OLE, arith.CmpIPredicate.sle)

    def __gt__(self, other: Operand) -> Number:
        return self._compare(other, arith.CmpFPredicate.OGT, arith.CmpIPredicate.sgt)

    def __ge__(self, other: Operand) -> Number:
        return self._compare(other, arith.CmpFPredicate.OGE, arith.CmpIPredicate.sge)

    def equals(self, other: Operand) -> Number:
        if self.is_complex:
            return Number(complex.eq(self.value, self._like(other)))
        return self._compare(other, arith.CmpFPredicate.OEQ, arith.CmpIPredicate.eq)

    def differs(self, other: Operand) -> Number:
        if self.is_complex:
            return Number(complex.neq(self.value, self._like(other)))
        return self._compare(other, arith.CmpFPredicate.UNE, arith.CmpIPredicate.ne)

    def __and__(self, other: Number) -> Number:
        return Number(arith.andi(self.value, other.value))

    def __or__(self, other: Number) -> Number:
        return Number(arith.ori(self.value, other.value))

    def __invert__(self) -> Number:
        return Number(arith.xori(self.value, arith.constant(self.value.type, 1)))

    def choose(self, then: Number, otherwise: Operand) -> Number:
        """One of two numbers, by this condition."""
        return Number(arith.select(self.value, then.value, then._like(otherwise)))

    def sqrt(self) -> Number:
        return Number(math.sqrt(self.value))

    def conjugate(self) -> Number:
        return Number(complex.conj(self.value)) if self.is_complex else self

    def real(self) -> Number:
        return Number(complex.re(self.value)) if self.is_complex else self

    def imaginary(self) -> Number:
        """Of a complex number."""
        return Number(complex.im(self.value))

    def square(self) -> Number:
        """The square of the magnitude, a float."""
        if not self.is_complex:
            return self * self
        real, imaginary = self.real(), self.imaginary()
        return real * real + imaginary * imaginary

    def with_sign_of(self, other: Number) -> Number:
        return Number(math.copysign(self.value, other.value))

    def _binary(self, other: Operand, of_floats: Callable, of_integers: Callable, of_complex: Callable) -> Number:
        if isinstance(other, Number) and other.is_complex and not self.is_complex:
            return Number(of_complex(other._like(self), other.value))
        chosen = of_complex if self.is_complex else of_floats if self.is_float else of_integers
        return Number(chosen(self.value, self._like(other)))

    def _compare(self, other: Operand, of_floats: arith.CmpFPredicate, of_integers: arith.CmpIPredicate) -> Number:
        right = self._like(other)
        if self.is_float:
            return Number(arith.cmpf(of_floats, self.value, right))
        return Number(arith.cmpi(of_integers, self.value, right))

    def _like(self, other: Operand) -> mlir.Value:
        if not isinstance(other, Number):
            return _constant(self.value.type, other)
        return _complex(other, self.value.type) if self.is_complex else other.value


class Variable:
    """A place that holds a number; what it holds at any point is known when the loops around are built."""

    def __init__(self, value: mlir.Value):
        self.value = value

    def get(self) -> Number:
        return Number(self.value)

    def set(self, number: Operand) -> None:
        self.value = self.get()._like(number)


class Array:
    """A tensor whose elements are read and written, or the part of one at fixed leading positions."""

    def __init__(self, place: Variable, leading: tuple[Number, ...] = ()):
        self.place, self.leading = place, leading

    @property
    def type(self) -> mlir.RankedTensorType:
        return mlir.RankedTensorType(self.place.value.type)

    @property
    def element(self) -> mlir.Type:
        return self.type.element_type

    def size(self, dim: int) -> Number:
        dim += len(self.leading)
        if self.type.is_dynamic_dim(dim):
            return Number(tensor.dim(self.place.value, index_constant(dim)))
        return Number(index_constant(self.type.shape[dim]))

    def at(self, *leading: Number) -> Array:
        """The part at these positions of the first dimensions."""
        return Array(self.place, (*self.leading, *leading))

    def __getitem__(self, at: Operand | tuple[Operand, ...]) -> Number:
        return Number(tensor.extract(self.place.value, self._indices(at)))

    def __setitem__(self, at: Operand | tuple[Operand, ...], number: Operand) -> None:
        if not isinstance(number, Number):
            value = _constant(self.element, number)
        elif isinstance(self.element, mlir.ComplexType):
            value = _complex(number, self.element)
        elif number.value.type != self.element:
            value = arith.index_cast(self.element, number.value)
        else:
            value = number.value
        self.place.value = tensor.insert(value, self.place.value, self._indices(at))

    def _indices(self, at: Operand | tuple[Operand, ...]) -> list[mlir.Value]:
        given = (*self.leading, *(at if isinstance(at, tuple) else (at,)))
        return [one.value if isinstance(one, Number) else index_constant(int(one)) for one in given]


class Loops:
    """Builds loops and branches at the current insertion point, which carry the variables and arrays made here."""

    def __init__(self) -> None:
        self._places: list[Variable] = []
        self._last: Number | None = None

    def variable(self, number: Number) -> Variable:
        """A variable that lives to the end of the loop or branch in which it is made."""
        self._places.append(Variable(number.value))
        return self._places[-1]

    def array(self, value: mlir.Value) -> Array:
        """An array that starts as a tensor of the program. What is written does not change that tensor."""
        return Array(self.variable(Number(value)))

    def new(self, shape: Sequence[Operand], element: mlir.Type) -> Array:
        """A new array of zeros. Two that were not filled could become one: `tensor.empty`s that are equal are merged,
        and bufferization lets loops write to both in one place, since nothing is known to be in them."""
        made = tensor.empty([_static(size) for size in shape], element)
        return self.array(linalg.fill(_constant(element, 0.0), outs=[made]))

    def index(self, value: int) -> Number:
        return Number(index_constant(value))

    def float(self, value: float, type_: mlir.Type) -> Number:
        """A number of this type, which may be complex."""
        return Number(_constant(type_, value))

    def as_index(self, number: Number) -> Number:
        """An element of an array of integers as an index."""
        return Number(arith.index_cast(mlir.IndexType.get(), number.value))

    @contextlib.contextmanager
    def range(self, lower: Operand, upper: Operand) -> Iterator[Number]:
        """From `lower` up to and without `upper`."""
        first, stop = (one.value if isinstance(one, Number) else index_constant(int(one)) for one in (lower, upper))
        step, outer = index_constant(1), self._save()
        trial = scf.ForOp(first, stop, step, list(outer.values()))
        self._restore(dict(zip(outer, trial.inner_iter_args, strict=True)))
        with mlir.InsertionPoint(trial.body):
            yield Number(trial.induction_variable)
        changed = self._changed(dict(zip(outer, trial.inner_iter_args, strict=True)))
        loop = scf.ForOp(first, stop, step, [outer[place] for place in changed])
        _mark_shapes_kept(loop.operation)
        with mlir.InsertionPoint(loop.body):
            end = scf.YieldOp([place.value for place in changed])
        kept = dict(zip(changed, loop.inner_iter_args, strict=True))
        _move(trial.body, end.operation)
        trial.induction_variable.replace_all_uses_with(loop.induction_variable)
        for place, argument in zip(outer, trial.inner_iter_args, strict=True):
            argument.replace_all_uses_with(kept.get(place, outer[place]))
        trial.operation.erase()
        self._restore({**outer, **dict(zip(changed, loop.results, strict=True))})

    @contextlib.contextmanager
    def down(self, upper: Operand, lower: Operand = 0) -> Iterator[Number]:
        """From `upper - 1` down to `lower`."""
        first = upper if isinstance(upper, Number) else self.index(int(upper))
        with self.range(0, first - lower) as step:
            yield first - 1 - step

    @contextlib.contextmanager
    def repeat(self, condition: Callable[[], Number]) -> Iterator[None]:
        """While the condition, which is looked at before each step, holds."""
        outer = self._save()
        types = [value.type for value in outer.values()]
        trial = scf.WhileOp(types, list(outer.values()))
        place_of = mlir.Block.create_at_start(trial.after, types, [trial.location] * len(types))
        arguments = dict(zip(outer, place_of.arguments, strict=True))
        self._restore(arguments)
        with mlir.InsertionPoint(place_of):
            yield
        changed = self._changed(arguments)
        results = [place.value for place in changed]
        types = [outer[place].type for place in changed]
        loop = scf.WhileOp(types, [outer[place] for place in changed])
        _mark_shapes_kept(loop.operation)
        locations = [loop.location] * len(types)
        before = mlir.Block.create_at_start(loop.before, types, locations)
        after = mlir.Block.create_at_start(loop.after, types, locations)
        with mlir.InsertionPoint(before):
            self._restore({**outer, **dict(zip(changed, before.arguments, strict=True))})
            scf.ConditionOp(condition().value, list(before.arguments))
        with mlir.InsertionPoint(after):
            end = scf.YieldOp(results)
        _move(place_of, end.operation)
        kept = dict(zip(changed, after.arguments, strict=True))
        for place, argument in arguments.items():
            argument.replace_all_uses_with(kept.get(place, outer[place]))
        trial.operation.erase()
        self._restore({**outer, **dict(zip(changed, loop.results, strict=True))})

    @contextlib.contextmanager
    def when(self, condition: Number) -> Iterator[None]:
        """Only if the condition holds."""
        outer = self._save()
        trial = scf.IfOp(condition.value)
        with mlir.InsertionPoint(trial.then_block):
            yield
        changed = self._changed(outer)
        branch = scf.IfOp(condition.value, [outer[place].type for place in changed], has_else=bool(changed))
        _mark_shapes_kept(branch.operation)
        with mlir.InsertionPoint(branch.then_block):
            end = scf.YieldOp([place.value for place in changed])
        if changed:
            with mlir.InsertionPoint(branch.else_block):
                scf.YieldOp([outer[place] for place in changed])
        _move(trial.then_block, end.operation)
        trial.operation.erase()
        self._restore({**outer, **dict(zip(changed, branch.results, strict=True))})
        self._last = condition

    def otherwise(self) -> contextlib.AbstractContextManager[None]:
        """Only if the condition of the `when` before did not hold."""
        assert self._last is not None
        return self.when(~self._last)

    def _save(self) -> dict[Variable, mlir.Value]:
        return {place: place.value for place in self._places}

    def _restore(self, values: dict[Variable, mlir.Value]) -> None:
        self._places = list(values)
        for place, value in values.items():
            place.value = value

    def _changed(self, before: dict[Variable, mlir.Value]) -> list[Variable]:
        return [place for place, value in before.items() if place.value != value]


def _complex(number: Number, type_: mlir.Type) -> mlir.Value:
    """A number as a complex one."""
    if number.is_complex:
        return number.value
    owner = number.value.owner
    if not isinstance(owner, mlir.Block) and owner.operation.name == "arith.constant":
        return _constant(type_, mlir.FloatAttr(owner.operation.attributes["value"]).value)
    return complex.create_(type_, number.value, _constant(number.value.type, 0.0))


def _constant(type_: mlir.Type, value: float) -> mlir.Value:
    if isinstance(type_, mlir.ComplexType):
        parts = [mlir.FloatAttr.get(type_.element_type, part) for part in (float(value), 0.0)]
        return complex.constant(type_, mlir.ArrayAttr.get(parts))
    return arith.constant(type_, float(value) if isinstance(type_, mlir.FloatType) else int(value))


def _static(size: Operand) -> mlir.Value | int:
    if not isinstance(size, Number):
        return int(size)
    owner = size.value.owner
    if isinstance(owner, mlir.Block) or owner.operation.name != "arith.constant":
        return size.value
    return mlir.IntegerAttr(owner.operation.attributes["value"]).value


def _move(block: mlir.Block, before: mlir.Operation) -> None:
    for view in list(block.operations):
        view.operation.move_before(before)


def _mark_shapes_kept(op: mlir.Operation) -> None:
    """Tells `tie-shapes` that dynamic sizes of the results are those of what comes in."""
    types = [mlir.RankedTensorType(r.type) for r in op.results if isinstance(r.type, mlir.RankedTensorType)]
    if not all(type_.has_static_shape for type_ in types):
        op.attributes["flow.keeps_shape"] = mlir.UnitAttr.get()
