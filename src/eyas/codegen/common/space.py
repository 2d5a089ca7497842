"""What can be chosen for a dispatch: knobs with their domains, and constraints that choices must keep.

A strategy says this once. Its checks evaluate the constraints on a schedule that a person or a spec wrote, a solver
draws points from them, and `eyas tune --show-space` prints them. Domains are what is worth trying; a schedule written
by hand may go beyond them, as long as it keeps the constraints that are laws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eyas.codegen.common.expressions import Bool, Int, Number, lift

_FIELD = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Knob:
    """A whole number that can be chosen; `name` is the field of the schedule that it sets."""

    name: str
    domain: tuple[int, ...]
    meaning: str


@dataclass(frozen=True)
class Constraint:
    """What must hold, and the sentence for what breaks it: it begins with the field, says what that is, and then what
    it may be. `{name}` in it is the value of a knob, or of one of `shown`.

    A law is what the code needs to be right, or the compiler to take it; the others are advice: what breaks it runs,
    and is not worth to be tried.
    """

    condition: Bool
    message: str
    shown: tuple[tuple[str, Int], ...] = ()
    is_law: bool = True

    def problem(self, point: Mapping[str, int]) -> str | None:
        return None if self.condition.evaluate(point) else self.words(point)

    def words(self, point: Mapping[str, int]) -> str:
        shown = dict(self.shown)

        def value(match: re.Match[str]) -> str:
            name = match[1]
            return str(shown[name].evaluate(point) if name in shown else point[name])

        return _FIELD.sub(value, self.message)


@dataclass(frozen=True)
class Space:
    """The points that a strategy has for a dispatch on a target."""

    strategy: str
    knobs: tuple[Knob, ...]
    constraints: tuple[Constraint, ...]

    def problem(self, point: Mapping[str, int], laws_only: bool = False) -> str | None:
        """Why a point is not in the space, in words, or None; with `laws_only`, why its code cannot be."""
        if (problem := wrong_names([knob.name for knob in self.knobs], point)) is not None:
            return problem
        for knob in () if laws_only else self.knobs:
            if point[knob.name] not in knob.domain:
                return f"{knob.name} is {point[knob.name]}; its domain is {listed(knob.domain)}"
        return first_problem(self.constraints, point, laws_only)

    def size(self) -> int:
        """Points of the box: what the domains allow without any constraint."""
        return math.prod(len(knob.domain) for knob in self.knobs)

    def knob(self, name: str) -> Knob:
        return next(knob for knob in self.knobs if knob.name == name)


def wrong_names(names: Sequence[str], point: Mapping[str, int]) -> str | None:
    """Why a point has not the values of just these knobs, or None."""
    missing = [name for name in names if name not in point]
    unknown = [name for name in point if name not in names]
    if not missing and not unknown:
        return None
    return f"{f'{missing[0]} is missing' if missing else f'{unknown[0]} is no knob'}; knobs are {', '.join(names)}"


def first_problem(constraints: Iterable[Constraint], point: Mapping[str, int], laws_only: bool = False) -> str | None:
    """The first constraint that a point breaks, in words. Later ones may take for granted what earlier ones say."""
    for constraint in constraints:
        if (constraint.is_law or not laws_only) and (problem := constraint.problem(point)) is not None:
            return problem
    return None


def knob(meaning: str) -> Any:
    """A field of a strategy's knobs, where these are a dataclass, and what it is."""
    return field(metadata={"meaning": meaning})


def suited(constraints: Iterable[Constraint], default: Mapping[str, int]) -> tuple[Constraint, ...]:
    """Constraints without the advice that the default choice does not take: that does not suit the dispatch."""
    return tuple(one for one in constraints if one.is_law or one.problem(default) is None)


def law(condition: Bool, message: str, **shown: Number) -> Constraint:
    return Constraint(condition, message, tuple((name, lift(value)) for name, value in shown.items()))


def advice(condition: Bool, message: str, **shown: Number) -> Constraint:
    return Constraint(condition, message, tuple((name, lift(value)) for name, value in shown.items()), is_law=False)


def domain(values: Iterable[int], *also: int) -> tuple[int, ...]:
    """Values in order, each once."""
    return tuple(sorted({*values, *also}))


def powers_of_two(low: int, high: int) -> tuple[int, ...]:
    """All powers of two from `low` to `high`."""
    return tuple(1 << bits for bits in range(max(high, 0).bit_length()) if low <= 1 << bits <= high)


def listed(values: tuple[int, ...]) -> str:
    """A domain in few words."""
    step = values[1] - values[0] if len(values) > 1 else 1
    if len(values) > 6 and all(b - a == step for a, b in zip(values, values[1:], strict=False)):
        return f"{values[0]}, {values[1]}, ... {values[-1]}"
    return ", ".join(map(str, values))
