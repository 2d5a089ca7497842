"""Arithmetic and conditions over named whole numbers, as data.

What may be chosen for a strategy, and what it costs in registers or shared memory, is said once in this form: it is
evaluated for a schedule that somebody wrote, handed to a solver that looks for others, and printed. Operators work as
on numbers, so that a function such as `shared_bytes` serves both: given numbers it counts, given variables it says how
to count.

    width, vectors = Var("width"), Var("vectors")
    (width * vectors <= 64) & power_of_two(width)

Divisors must be positive; then division rounds down, in Python as in solvers. A divisor of 0 is for another constraint
to exclude, whatever the quotient then is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Union

Point = Mapping[str, int]
Number = Union["Int", int]

_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else a,
    "min": min,
    "max": max,
}
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class _Node:
    """Neither true nor false by itself: an `if` over a condition that is not evaluated is a mistake."""

    def __bool__(self) -> bool:
        raise TypeError(f"{self} has no value yet; write select(), & and | instead of if, and, or")


class Int(_Node):
    """A whole number that depends on variables."""

    def evaluate(self, point: Point) -> int:
        raise NotImplementedError

    def __add__(self, other: Number) -> Int:
        return _arithmetic("+", self, other)

    def __radd__(self, other: int) -> Int:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Number) -> Int:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: int) -> Int:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Number) -> Int:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: int) -> Int:
        return _arithmetic("*", other, self)

    def __floordiv__(self, other: Number) -> Int:
        return _arithmetic("//", self, other)

    def __rfloordiv__(self, other: int) -> Int:
        return _arithmetic("//", other, self)

    def __mod__(self, other: Number) -> Int:
        return _arithmetic("%", self, other)

    def __rmod__(self, other: int) -> Int:
        return _arithmetic("%", other, self)

    def __neg__(self) -> Int:
        return _arithmetic("-", 0, self)

    def __lt__(self, other: Number) -> Bool:
        return Compare("<", self, lift(other))

    def __le__(self, other: Number) -> Bool:
        return Compare("<=", self, lift(other))

    def __gt__(self, other: Number) -> Bool:
        return Compare(">", self, lift(other))

    def __ge__(self, other: Number) -> Bool:
        return Compare(">=", self, lift(other))


class Bool(_Node):
    """A condition on variables."""

    def evaluate(self, point: Point) -> bool:
        raise NotImplementedError

    def __and__(self, other: Bool) -> Bool:
        return All((self, other))

    def __or__(self, other: Bool) -> Bool:
        return Any((self, other))

    def __invert__(self) -> Bool:
        return Not(self)


@dataclass(frozen=True)
class Const(Int):
    value: int

    def evaluate(self, point: Point) -> int:
        return self.value

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Var(Int):
    name: str

    def evaluate(self, point: Point) -> int:
        return point[self.name]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Arithmetic(Int):
    """`op` is one of + - * // % min max."""

    op: str
    left: Int
    right: Int

    def evaluate(self, point: Point) -> int:
        return _ARITHMETIC[self.op](self.left.evaluate(point), self.right.evaluate(point))

    def __str__(self) -> str:
        if self.op in ("min", "max"):
            return f"{self.op}({self.left}, {self.right})"
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True)
class Select(Int):
    """One number or another; the one that is not meant is not evaluated."""

    condition: Bool
    then: Int
    otherwise: Int

    def evaluate(self, point: Point) -> int:
        return (self.then if self.condition.evaluate(point) else self.otherwise).evaluate(point)

    def __str__(self) -> str:
        return f"({self.then} if {self.condition} else {self.otherwise})"


@dataclass(frozen=True)
class Compare(Bool):
    """`op` is one of == != < <= > >=."""

    op: str
    left: Int
    right: Int

    def evaluate(self, point: Point) -> bool:
        return _COMPARISONS[self.op](self.left.evaluate(point), self.right.evaluate(point))

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class OneOf(Bool):
    item: Int
    values: tuple[int, ...]

    def evaluate(self, point: Point) -> bool:
        return self.item.evaluate(point) in self.values

    def __str__(self) -> str:
        return f"{self.item} in {{{', '.join(map(str, self.values))}}}"


@dataclass(frozen=True)
class All(Bool):
    """True where all parts are; those after one that is not are not evaluated."""

    parts: tuple[Bool, ...]

    def evaluate(self, point: Point) -> bool:
        return all(part.evaluate(point) for part in self.parts)

    def __str__(self) -> str:
        return f"({' and '.join(map(str, self.parts))})" if self.parts else "true"


@dataclass(frozen=True)
class Any(Bool):
    """True where one part is; those after it are not evaluated."""

    parts: tuple[Bool, ...]

    def evaluate(self, point: Point) -> bool:
        return any(part.evaluate(point) for part in self.parts)

    def __str__(self) -> str:
        return f"({' or '.join(map(str, self.parts))})" if self.parts else "false"


@dataclass(frozen=True)
class Not(Bool):
    part: Bool

    def evaluate(self, point: Point) -> bool:
        return not self.part.evaluate(point)

    def __str__(self) -> str:
        return f"not {self.part}"


@dataclass(frozen=True)
class Implies(Bool):
    """The conclusion is evaluated only where the premise holds."""

    premise: Bool
    conclusion: Bool

    def evaluate(self, point: Point) -> bool:
        return not self.premise.evaluate(point) or self.conclusion.evaluate(point)

    def __str__(self) -> str:
        return f"({self.premise} => {self.conclusion})"


TRUE, FALSE = All(()), Any(())


def lift(value: Number) -> Int:
    """A number as an expression."""
    return value if isinstance(value, Int) else Const(int(value))


def equal(left: Number, right: Number) -> Bool:
    """`==` of dataclasses says whether two expressions are the same, so this one has a name."""
    return Compare("==", lift(left), lift(right))


def differ(left: Number, right: Number) -> Bool:
    return Compare("!=", lift(left), lift(right))


def one_of(item: Number, values: Iterable[int]) -> Bool:
    return OneOf(lift(item), tuple(values))


def between(low: Number, item: Number, high: Number) -> Bool:
    return All((lift(low) <= item, lift(item) <= high))


def all_of(parts: Sequence[Bool]) -> Bool:
    return All(tuple(parts))


def any_of(parts: Sequence[Bool]) -> Bool:
    return Any(tuple(parts))


def power_of_two(item: Number, most: int = 2**30) -> Bool:
    return OneOf(lift(item), tuple(1 << bits for bits in range(most.bit_length())))


def divides(divisor: Number, item: Number) -> Bool:
    return equal(lift(item) % divisor, 0)


def ceil_div(item: Number, divisor: Number) -> Number:
    return -(-item // divisor)


def odd(item: Number) -> Number:
    """The number itself where it is odd, else the next one."""
    return item + 1 - item % 2


def least(left: Number, right: Number) -> Number:
    return _arithmetic("min", left, right) if _is_open(left, right) else min(left, right)  # type: ignore[type-var]


def most(left: Number, right: Number) -> Number:
    return _arithmetic("max", left, right) if _is_open(left, right) else max(left, right)  # type: ignore[type-var]


def select(condition: Bool | bool, then: Number, otherwise: Number) -> Number:
    """`then if condition else otherwise`, of numbers and of what is not known yet."""
    if isinstance(condition, Bool):
        return Select(condition, lift(then), lift(otherwise))
    return then if condition else otherwise


def product_of(items: Iterable[Number]) -> Number:
    total: Number = 1
    for item in items:
        total = total * item
    return total


def variables(expression: Int | Bool) -> tuple[str, ...]:
    """Names in an expression, each once, in the order in which they stand there."""
    found: dict[str, None] = {}

    def visit(node: Int | Bool) -> None:
        if isinstance(node, Var):
            found[node.name] = None
        for child in children(node):
            visit(child)

    visit(expression)
    return tuple(found)


def children(node: Int | Bool) -> tuple[Int | Bool, ...]:
    """What an expression is made of."""
    if isinstance(node, Arithmetic | Compare):
        return node.left, node.right
    if isinstance(node, Select):
        return node.condition, node.then, node.otherwise
    if isinstance(node, OneOf):
        return (node.item,)
    if isinstance(node, All | Any):
        return node.parts
    if isinstance(node, Not):
        return (node.part,)
    return (node.premise, node.conclusion) if isinstance(node, Implies) else ()


def _is_open(*items: Number) -> bool:
    return any(isinstance(item, Int) for item in items)


def _arithmetic(op: str, left: Number, right: Number) -> Int:
    left, right = lift(left), lift(right)
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(_ARITHMETIC[op](left.value, right.value))
    if isinstance(right, Const) and (op, right.value) in (("+", 0), ("-", 0), ("*", 1), ("//", 1)):
        return left
    return (
        right if isinstance(left, Const) and (op, left.value) in (("+", 0), ("*", 1)) else Arithmetic(op, left, right)
    )
