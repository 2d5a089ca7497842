"""Scalars that are known in terms of dimensions: integers as polynomials, everything else as trees of operations.

Integers are polynomials with integer coefficients over atoms, so that equal sizes are equal objects however a graph
computes them. An atom is a dimension or an operation that is not polynomial (a quotient, a minimum, a float that was
rounded). Atoms are taken to be at least zero where a comparison is decided: dimensions are.

Floats keep the operations that the graph has, each rounded to the type that it has there. Only what is exact is an
integer again: `floor(n / 2.0)` is the quotient of `n` and 2, because one division of sizes below 2^24 rounds to nothing
else; `n * (m / n)` stays as it is, because it may round to just below `m`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

# Numerators and denominators up to this make a product with a size exact in f32, as far as sizes go.
_LARGEST_TERM = 1024
# Products of sums that would have more terms stay products.
_MOST_TERMS = 256


@dataclass(frozen=True)
class Dim:
    """A dimension of a value: what an input leaves open, or what only the data decides."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Apply:
    """An operation on scalars. `type` is that of its result: "i64", "bool", or the float type it is rounded to."""

    op: str
    args: tuple[Scalar, ...]
    type: str

    @cached_property
    def _text(self) -> str:
        return f"{self.op}({', '.join(map(str, self.args))})"

    @cached_property
    def _hash(self) -> int:
        return hash((self.op, self.args, self.type))

    @cached_property
    def _weight(self) -> int:
        return 1 + sum(map(weight, self.args))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Poly:
    """A sum of products: ((atoms, coefficient), ...), sorted by text, without zeros, and with at least one atom."""

    terms: tuple[tuple[tuple[Dim | Apply, ...], int], ...]

    @cached_property
    def _text(self) -> str:
        parts = ["*".join([*([str(k)] if k != 1 or not atoms else []), *map(str, atoms)]) for atoms, k in self.terms]
        return " + ".join(parts)

    @cached_property
    def _weight(self) -> int:
        return sum(1 + sum(atom._weight if isinstance(atom, Apply) else 1 for atom in atoms) for atoms, _ in self.terms)

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Ratio:
    """A float that is a quotient of integers, divided at most once."""

    over: int | Poly
    under: int | Poly
    type: str

    def __str__(self) -> str:
        return f"({self.over}) / ({self.under})"


Integer: TypeAlias = int | Poly
Scalar: TypeAlias = bool | int | float | Poly | Apply | Ratio


def dim(name: str) -> Poly:
    """The size of a dimension that is known by name only."""
    return Poly((((Dim(name),), 1),))


def element(name: str, is_index: bool = False) -> Poly:
    """A number in a tensor that only a call knows: it can be calculated with. An index is not negative."""
    return _atom("index" if is_index else "element", dim(name))


def has_elements(value: Scalar) -> bool:
    """Whether a scalar depends on numbers that only a call knows."""
    if isinstance(value, Poly):
        return any(isinstance(atom, Apply) and has_elements(atom) for atoms, _ in value.terms for atom in atoms)
    if isinstance(value, Ratio):
        return has_elements(value.over) or has_elements(value.under)
    return isinstance(value, Apply) and (value.op in ("index", "element") or any(map(has_elements, value.args)))


def is_known(value: Any) -> bool:
    """Whether a scalar is a number."""
    return not isinstance(value, (Poly, Apply, Ratio))


def weight(value: Scalar) -> int:
    """How long a scalar is when it is written out: what is used in several places counts as often."""
    if isinstance(value, Ratio):
        return weight(value.over) + weight(value.under)
    return value._weight if isinstance(value, (Poly, Apply)) else 1


def is_dimension(value: Scalar) -> bool:
    """Whether an integer is a dimension and nothing else."""
    return isinstance(value, Poly) and len(value.terms) == 1 and value.terms[0][1] == 1 and _is_dim(value.terms[0][0])


def _is_dim(atoms: tuple[Dim | Apply, ...]) -> bool:
    return len(atoms) == 1 and isinstance(atoms[0], Dim)


def _terms(value: Integer) -> Mapping[tuple[Dim | Apply, ...], int]:
    return dict(value.terms) if isinstance(value, Poly) else ({(): int(value)} if value else {})


def _poly(terms: Mapping[tuple[Dim | Apply, ...], int]) -> Integer:
    kept = {atoms: count for atoms, count in terms.items() if count}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Poly(tuple(sorted(kept.items(), key=lambda item: (not item[0], [str(atom) for atom in item[0]]))))


def add(a: Integer, b: Integer) -> Integer:
    if is_known(a) and is_known(b):
        return int(a) + int(b)  # type: ignore[arg-type]
    terms = dict(_terms(a))
    for atoms, count in _terms(b).items():
        terms[atoms] = terms.get(atoms, 0) + count
    return _poly(terms)


def mul(a: Integer, b: Integer) -> Integer:
    if is_known(a) and is_known(b):
        return int(a) * int(b)  # type: ignore[operator]
    if len(_terms(a)) * len(_terms(b)) > _MOST_TERMS:
        return _atom("mul", *sorted((a, b), key=str))
    terms: dict[tuple[Dim | Apply, ...], int] = {}
    for left, count in _terms(a).items():
        for right, other in _terms(b).items():
            atoms = tuple(sorted((*left, *right), key=str))
            terms[atoms] = terms.get(atoms, 0) + count * other
    return _poly(terms)


def neg(a: Integer) -> Integer:
    return mul(a, -1)


def sub(a: Integer, b: Integer) -> Integer:
    return add(a, neg(b))


def product(values: Any) -> Integer:
    total: Integer = 1
    for value in values:
        total = mul(total, value)
    return total


def summands(a: Integer) -> list[tuple[Integer, int]]:
    """The products that an integer is the sum of, each with its factor."""
    return [(_poly({atoms: 1}), count) for atoms, count in _terms(a).items()]


def choices(a: Integer) -> list[Integer]:
    """The integers of which a condition chooses this one: itself, where none does."""
    atom = _sole_atom(a) if isinstance(a, Poly) else None
    if atom is None or atom.op != "select":
        return [a]
    return [one for arg in atom.args[1:] if isinstance(arg, (int, Poly)) for one in choices(arg)]


def with_numbers_as_sizes(a: Scalar, name: Callable[[str], str]) -> Integer | None:
    """The same integer with dimensions in place of numbers that a call brings; None where that is not all it has."""
    if not _is_integer(a):
        return None
    products = [[count, *(_as_size(atom, name) for atom in atoms)] for atoms, count in _terms(a).items()]  # type: ignore[arg-type]
    return None if any(None in factors for factors in products) else _sum(map(product, products))


def _as_size(atom: Dim | Apply, name: Callable[[str], str]) -> Integer | None:
    if isinstance(atom, Dim) or not has_elements(atom):
        return _poly({(atom,): 1})
    if atom.op == "element":
        return dim(name(str(atom.args[0])))
    args = [with_numbers_as_sizes(arg, name) for arg in atom.args]
    return None if atom.op == "index" or None in args else _atom(atom.op, *(arg for arg in args if arg is not None))


def with_sizes(value: Integer, sizes: Mapping[str, Integer]) -> Integer:
    """The same integer with other sizes in place of dimensions, made simpler where those say more."""
    return _sum(mul(product(_with_sizes(atom, sizes) for atom in atoms), k) for atoms, k in _terms(value).items())


def _with_sizes(atom: Dim | Apply, sizes: Mapping[str, Integer]) -> Integer:
    if isinstance(atom, Dim):
        return sizes.get(atom.name, dim(atom.name))
    if not all(isinstance(arg, (int, Poly)) for arg in atom.args) or not dims_in(atom) & set(sizes):
        return _poly({(atom,): 1})
    left, right = [with_sizes(arg, sizes) for arg in atom.args] if len(atom.args) == 2 else (0, 0)  # type: ignore[arg-type]
    if atom.op in ("max", "min"):
        return extreme(atom.op, left, right)
    if atom.op in ("div", "floordiv", "ceildiv") and (made := divide(left, right, atom.op)) is not None:
        return made
    return _poly({(atom,): 1})


def _sum(values: Iterable[Integer]) -> Integer:
    total: Integer = 0
    for value in values:
        total = add(total, value)
    return total


def exact_quotient(a: Integer, b: Integer) -> Integer | None:
    """a / b where b divides each term of a."""
    divisor = list(_terms(b).items())
    if len(divisor) != 1:
        return 1 if a == b and divisor else None
    (atoms, count) = divisor[0]
    quotient: dict[tuple[Dim | Apply, ...], int] = {}
    for left, other in _terms(a).items():
        rest = list(left)
        for atom in atoms:
            if atom not in rest:
                return None
            rest.remove(atom)
        if other % count:
            return None
        quotient[tuple(rest)] = other // count
    return _poly(quotient)


def sign(a: Integer) -> int | None:
    """1, 0 or -1 for what is above, at or below zero whatever the dimensions are; None when that depends."""
    terms = _terms(a)
    base = terms.get((), 0)
    counts = [count for atoms, count in terms.items() if atoms]
    if not counts:
        return (base > 0) - (base < 0)
    if base > 0 and min(counts) > 0 and all(map(_not_negative, terms)):
        return 1
    if base < 0 and max(counts) < 0 and all(map(_not_negative, terms)):
        return -1
    return None


def is_not_negative(a: Integer) -> bool:
    return all(count >= 0 and _not_negative(atoms) for atoms, count in _terms(a).items())


def _not_negative(atoms: tuple[Dim | Apply, ...]) -> bool:
    return all(isinstance(atom, Dim) or _apply_not_negative(atom) for atom in atoms)


def _apply_not_negative(atom: Apply) -> bool:
    if atom.op in ("floordiv", "ceildiv", "div", "mod", "min"):
        return all(_operand_not_negative(arg) for arg in atom.args)
    if atom.op == "index":
        return True
    if atom.op == "max":
        return any(_operand_not_negative(arg) for arg in atom.args)
    if atom.op == "select":
        return all(_operand_not_negative(arg) for arg in atom.args[1:])
    return False


def _operand_not_negative(value: Scalar) -> bool:
    return isinstance(value, (int, Poly)) and is_not_negative(value)


def _atom(op: str, *args: Scalar) -> Poly:
    return Poly((((Apply(op, args, "i64"),), 1),))


def divide(a: Integer, b: Integer, kind: str = "div") -> Integer | None:
    """Quotients: "div" towards zero, "floordiv" down, "ceildiv" up. None for a division by zero."""
    if b == 0:
        return None
    if is_known(a) and is_known(b):
        left, right = int(a), int(b)  # type: ignore[arg-type]
        if kind == "ceildiv":
            return -(-left // right)
        return left // right if kind == "floordiv" or (left < 0) == (right < 0) else -(-left // right)
    exact = exact_quotient(a, b)
    if exact is not None:
        return exact
    if kind == "div" and is_not_negative(a) and is_not_negative(b):
        kind = "floordiv"
    # floor((q * b + r) / b) = q + floor(r / b), where all that b divides is in q.
    if kind in ("floordiv", "ceildiv") and isinstance(b, int) and b > 0 and isinstance(a, Poly):
        whole = _poly({atoms: count // b for atoms, count in a.terms if count % b == 0 or not atoms})
        rest = sub(a, mul(whole, b))
        if whole != 0:
            inner = divide(rest, b, kind)
            return None if inner is None else add(whole, inner)
        nested = _sole_atom(a)
        if nested is not None and nested.op == kind == "floordiv" and isinstance(nested.args[1], int):
            return _atom("floordiv", nested.args[0], nested.args[1] * b)
    return _atom(kind, a, b)


def _sole_atom(a: Poly) -> Apply | None:
    (atoms, count), *rest = a.terms
    if rest or count != 1 or len(atoms) != 1 or not isinstance(atoms[0], Apply):
        return None
    return atoms[0]


def modulo(a: Integer, b: Integer) -> Integer | None:
    """The remainder with the sign of b, as ONNX's Mod of integers has it."""
    if b == 0:
        return None
    if is_known(a) and is_known(b):
        return int(a) % int(b)  # type: ignore[operator]
    if exact_quotient(a, b) is not None:
        return 0
    return _atom("mod", a, b)


def extreme(op: str, a: Integer, b: Integer) -> Integer:
    """ "min" or "max"."""
    order = sign(sub(a, b))
    if a == b:
        return a
    if order is None and is_not_negative(sub(a, b)):
        order = 1
    if order is None and is_not_negative(sub(b, a)):
        order = -1
    if order is not None:
        return a if (order > 0) == (op == "max") else b
    return _atom(op, *sorted((a, b), key=str))


_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
_HOLDS: dict[str, Callable[[int], bool]] = {
    "lt": lambda order: order < 0,
    "le": lambda order: order <= 0,
    "gt": lambda order: order > 0,
    "ge": lambda order: order >= 0,
    "eq": lambda order: order == 0,
    "ne": lambda order: order != 0,
}


def compare(op: str, a: Scalar, b: Scalar) -> Scalar:
    """A comparison of scalars of one kind: a truth value, or the operation."""
    if is_known(a) and is_known(b):
        return bool({"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b}[op])  # type: ignore[operator]
    if _is_integer(a) and _is_integer(b):
        difference = sub(a, b)  # type: ignore[arg-type]
        order = sign(difference)
        if order is not None:
            return _HOLDS[op](order)
        if op in ("ge", "lt") and is_not_negative(difference):
            return op == "ge"
        if op in ("le", "gt") and is_not_negative(neg(difference)):
            return op == "le"
    exact = _as_exact(a), _as_exact(b)
    if exact[0] is not None and exact[1] is not None and not (_is_integer(a) and _is_integer(b)):
        return compare(op, exact[0], exact[1])
    return Apply(op, (a, b), "bool")


def _is_integer(value: Scalar) -> bool:
    return isinstance(value, (int, np.integer, Poly))


def _as_exact(value: Scalar) -> Integer | None:
    """A float that is an integer for sure, as one."""
    if isinstance(value, Ratio):
        return value.over if value.under == 1 else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if _is_integer(value) else None  # type: ignore[return-value]


def negate(a: Scalar) -> Scalar:
    """The opposite of a truth value."""
    if isinstance(a, Apply) and a.op in _OPPOSITE and all(_is_integer(arg) for arg in a.args):
        return Apply(_OPPOSITE[a.op], a.args, "bool")
    return not a if is_known(a) else Apply("eq", (a, False), "bool")


def connect(op: str, a: Scalar, b: Scalar) -> Scalar:
    """ "and" or "or" of truth values."""
    for one, other in ((a, b), (b, a)):
        if is_known(one):
            decides = bool(one) == (op == "or")
            return bool(one) if decides else other
    return a if a == b else Apply(op, (a, b), "bool")


def select(condition: Scalar, a: Scalar, b: Scalar, type_: str) -> Scalar:
    if is_known(condition):
        return a if condition else b
    if a == b:
        return a
    if type_ == "i64" and _is_integer(a) and _is_integer(b):
        return _atom("select", condition, a, b)
    return Apply("select", (condition, a, b), type_)


def to_float(value: Scalar, type_: str) -> Scalar:
    """A cast to a float type: exact for integers as far as sizes go."""
    if is_known(value):
        return round_to(float(value), type_)  # type: ignore[arg-type]
    if isinstance(value, Poly):
        return Ratio(value, 1, type_)
    if isinstance(value, Ratio) and value.type in ("f32", "f64") and type_ in ("f32", "f64") and value.under == 1:
        return Ratio(value.over, 1, type_)
    return value if not isinstance(value, Poly) and value.type == type_ else Apply("float", (value,), type_)  # type: ignore[union-attr]


def round_to(value: float, type_: str) -> float:
    dtype = {"f32": np.float32, "f16": np.float16}.get(type_)
    return value if dtype is None else float(dtype(value))


def calculate(op: str, a: Scalar, b: Scalar, type_: str) -> Scalar:
    """ "add", "sub", "mul", "div", "min" or "max" of floats of one type."""
    if is_known(a) and is_known(b):
        with np.errstate(all="ignore"):
            dtype = {"f32": np.float32, "f16": np.float16}.get(type_, np.float64)
            function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
            return float({**function, "min": np.minimum, "max": np.maximum}[op](dtype(a), dtype(b)))
    left, right = _ratio(a, type_), _ratio(b, type_)
    if left is None or right is None or type_ not in ("f32", "f64"):
        return Apply(op, (a, b), type_)
    exact = _is_exact(left) and _is_exact(right)
    if op in ("add", "sub") and exact:
        terms = mul(left.over, right.under), mul(right.over, left.under)
        return _reduced((add if op == "add" else sub)(*terms), mul(left.under, right.under), type_)
    if op == "mul" and (exact or (left.under == 1 and is_known(b)) or (right.under == 1 and is_known(a))):
        return _reduced(mul(left.over, right.over), mul(left.under, right.under), type_)
    if op == "div" and exact and right.over != 0:
        return _reduced(mul(left.over, right.under), mul(left.under, right.over), type_)
    if op in ("min", "max") and left.under == right.under == 1:
        return Ratio(extreme(op, left.over, right.over), 1, type_)
    return Apply(op, (a, b), type_)


def _is_exact(value: Ratio) -> bool:
    """Whether a quotient of sizes is not rounded: halves, quarters and so on are not."""
    return isinstance(value.under, int) and value.under > 0 and value.under & (value.under - 1) == 0


def _reduced(over: Integer, under: Integer, type_: str) -> Ratio:
    whole = exact_quotient(over, under)
    return Ratio(over, under, type_) if whole is None else Ratio(whole, 1, type_)


def _ratio(value: Scalar, type_: str) -> Ratio | None:
    """A float as a quotient of integers; a constant must have small terms, so that a product with a size is exact."""
    if isinstance(value, Ratio):
        return value
    if not is_known(value) or not np.isfinite(value):  # type: ignore[arg-type]
        return None
    fraction = Fraction(float(value))  # type: ignore[arg-type]
    if max(abs(fraction.numerator), fraction.denominator) > _LARGEST_TERM:
        return None
    return Ratio(fraction.numerator, fraction.denominator, type_)


def function(op: str, a: Scalar, type_: str) -> Scalar:
    """ "floor", "ceil", "round", "sqrt", "neg", "abs" of a float."""
    if is_known(a):
        with np.errstate(all="ignore"):
            value = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "sqrt": np.sqrt}
            table = {**value, "neg": np.negative, "abs": np.abs}
            return round_to(float(table[op](np.float64(a))), type_)  # type: ignore[arg-type]
    if isinstance(a, Ratio):
        if a.under == 1 and op in ("floor", "ceil", "round"):
            return a
        if op in ("floor", "ceil"):
            quotient = divide(a.over, a.under, "floordiv" if op == "floor" else "ceildiv")
            return Apply(op, (a,), type_) if quotient is None else Ratio(quotient, 1, type_)
        if op == "neg":
            return Ratio(neg(a.over), a.under, type_)
    return Apply(op, (a,), type_)


def to_integer(a: Scalar) -> Integer:
    """A cast to an integer: towards zero."""
    if isinstance(a, Poly):
        return a
    if is_known(a):
        return int(a)  # type: ignore[arg-type]
    if isinstance(a, Ratio):
        quotient = divide(a.over, a.under, "div")
        if quotient is not None:
            return quotient
    if isinstance(a, Apply) and a.type == "bool":
        return _atom("select", a, 1, 0)
    return _atom("int", a)


def to_bool(a: Scalar) -> Scalar:
    if is_known(a):
        return bool(a)
    return a if isinstance(a, Apply) and a.type == "bool" else compare("ne", a, 0)


def dims_in(value: Scalar) -> set[str]:
    """The names of all dimensions that a scalar depends on."""
    if isinstance(value, Poly):
        return {name for atoms, _ in value.terms for atom in atoms for name in _dims_in_atom(atom)}
    if isinstance(value, Ratio):
        return dims_in(value.over) | dims_in(value.under)
    return _dims_in_atom(value) if isinstance(value, Apply) else set()


def _dims_in_atom(atom: Dim | Apply) -> set[str]:
    if isinstance(atom, Dim):
        return {atom.name}
    return {name for arg in atom.args for name in dims_in(arg)}


def as_program(value: Scalar, place: Callable[[str], Any]) -> Any:
    """A scalar as nested lists [operation, type, operands...]; `place` says what stands for a dimension."""
    if isinstance(value, Poly):
        total: Any = None
        for atoms, count in value.terms:
            term: Any = count if count != 1 or not atoms else None
            for atom in atoms:
                factor = place(atom.name) if isinstance(atom, Dim) else as_program(atom, place)
                term = factor if term is None else ["mul", "i64", term, factor]
            total = term if total is None else ["add", "i64", total, term]
        return total
    if isinstance(value, Ratio):
        over = ["float", value.type, as_program(value.over, place)]
        return (
            over
            if value.under == 1
            else ["div", value.type, over, ["float", value.type, as_program(value.under, place)]]
        )
    if isinstance(value, Apply):
        return [value.op, value.type, *(as_program(arg, place) for arg in value.args)]
    return value
