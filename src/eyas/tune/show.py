"""Spaces in words: what can be chosen for a dispatch, how much of it is valid, and what excludes the rest.

How many points are valid is counted where that is quick. Knobs that no constraint connects, such as those of two loop
nests, are counted apart from each other; where there are too many points still, a sample is looked at.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.codegen.common.expressions import variables
from eyas.codegen.common.space import Constraint, Knob, Space, listed
from eyas.targets import Target
from eyas.tune.smt import smt_text

# Points of a part that are counted one by one, and points that are looked at in a larger one.
_COUNTED, _SAMPLE = 10_000, 2_000
_SEED = 1


@dataclass(frozen=True)
class Count:
    """How many points of a space are valid; `is_exact` unless a sample was looked at."""

    points: float
    is_exact: bool

    def __str__(self) -> str:
        if self.is_exact:
            return f"{int(self.points):,}"
        return f"about {self.points:.2g}" if self.points else "too few for a sample to have one"


def show_space(
    function: mlir.OpView, target: Target, disabled: frozenset[str] = frozenset(), found: Analysis | None = None
) -> str:
    """What can be chosen for a dispatch on a target, for people."""
    backend = backend_of(target)
    found = analysis_of(function, {}, target.near_bytes) if found is None else found
    spaces, rejected = backend.spaces(function, target, disabled, found)
    name = mlir.StringAttr(function.attributes["sym_name"]).value
    lines = [f"{name} on {target}: {len(spaces)} strategies; by default the first that is chosen"]
    for strategy in backend.strategies:
        if strategy.name in spaces:
            default = strategy.choose(found, target)
            chosen = default if isinstance(default, str) else default.point
            lines += ["", *_describe(spaces[strategy.name], chosen)]
    return "\n".join([*lines, "", "do not apply:", *(f"  {one}" for one in rejected), ""])


def dump_constraints(
    function: mlir.OpView, target: Target, disabled: frozenset[str] = frozenset(), found: Analysis | None = None
) -> str:
    """The space of each strategy as text of MLIR's smt dialect."""
    spaces, _ = backend_of(target).spaces(function, target, disabled, found)
    return "\n".join(smt_text(space) for space in spaces.values())


def count_points(space: Space) -> Count:
    """How many points keep all constraints."""
    total, is_exact = 1.0, True
    for knobs, constraints in _parts(space):
        size = math.prod(len(knob.domain) for knob in knobs)
        if not constraints:
            total *= size
            continue
        if size <= _COUNTED:
            points = (dict(zip((knob.name for knob in knobs), values, strict=True))
                      for values in itertools.product(*(knob.domain for knob in knobs)))  # fmt: skip
            total *= sum(_holds(constraints, point) for point in points)
        else:
            kept = sum(_holds(constraints, point) for point in _sample(knobs))
            total, is_exact = total * size * kept / _SAMPLE, False
    return Count(total, is_exact)


def excluded(space: Space) -> list[tuple[Constraint, float, float]]:
    """For each constraint the part of the box that it excludes, and that it alone excludes."""
    broken = [
        [number for number, one in enumerate(space.constraints) if not one.condition.evaluate(point)]
        for point in _sample(space.knobs)
    ]
    return [
        (
            one,
            sum(number in those for those in broken) / _SAMPLE,
            sum(those == [number] for those in broken) / _SAMPLE,
        )
        for number, one in enumerate(space.constraints)
    ]


def _describe(space: Space, chosen: dict[str, int] | str) -> list[str]:
    count, size = count_points(space), space.size()
    share = f" ({100 * count.points / size:.3g} %)" if size else ""
    head = f"{space.strategy}: {len(space.knobs)} knobs, {size:,} points, {count} of them valid{share}"
    lines = [head, *([f"  by default not chosen: {chosen}"] if isinstance(chosen, str) else [])]
    default = {} if isinstance(chosen, str) else chosen
    rows = [("knob", "default", "domain", "meaning")]
    rows += [(one.name, str(default.get(one.name, "")), listed(one.domain), one.meaning) for one in space.knobs]
    lines += _table(rows) if space.knobs else []
    rows = [("excludes", "alone", "", "what must hold")]
    for one, all_, alone in sorted(excluded(space), key=lambda row: -row[1]):
        if all_:
            rows.append((f"{100 * all_:.1f} %", f"{100 * alone:.1f} %", "" if one.is_law else "advice", _rule(one)))
    return [*lines, *(_table(rows) if len(rows) > 1 else [])]


def _rule(constraint: Constraint) -> str:
    """A constraint's message without values: the field, and what is said of it."""
    field, _, rest = re.sub(r"\{([^{}]+)\}", r"\1", constraint.message).partition(";")
    return f"{field.split(' is ')[0]}: {rest.strip()}" if rest else field


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]]).rstrip()
        for row in rows
    ]


def _parts(space: Space) -> list[tuple[list[Knob], list[Constraint]]]:
    """Knobs that constraints connect, with these constraints."""
    group = {knob.name: {knob.name} for knob in space.knobs}
    for constraint in space.constraints:
        names = variables(constraint.condition)
        for other in names[1:]:
            joined, added = group[names[0]], group[other]
            if added is not joined:
                joined |= added
                group |= {name: joined for name in added}
    found = []
    for names in {id(one): one for one in group.values()}.values():
        held = [one for one in space.constraints if set(variables(one.condition)) & names]
        found.append(([knob for knob in space.knobs if knob.name in names], held))
    lone = [one for one in space.constraints if not variables(one.condition)]
    return [*found, *([([], lone)] if lone else [])]


def _sample(knobs: Sequence[Knob]) -> list[dict[str, int]]:
    drawn = random.Random(_SEED)
    return [{knob.name: drawn.choice(knob.domain) for knob in knobs} for _ in range(_SAMPLE)]


def _holds(constraints: Sequence[Constraint], point: dict[str, int]) -> bool:
    return all(one.condition.evaluate(point) for one in constraints)
