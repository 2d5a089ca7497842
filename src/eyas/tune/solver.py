"""Points of a space, one after the other: diverse, never one twice, until there are no more.

A point is drawn at random from the domains; if it breaks a constraint, Z3 repairs it: all of its values are assumed,
and while these contradict the constraints, one of those that contradict each other is given up. What remains is as
random as the constraints allow, and nothing is enumerated before the first point is there.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from eyas.codegen.common.space import Space
from eyas.tune.formulas import Formulas, import_z3
from eyas.tune.space_text import space_to_json

Point = dict[str, int]

# Work of one question to the solver, in its own unit, so that the same seed gives the same points on every machine.
_EFFORT = 20_000_000
# Points drawn in a row that were there before, after which the solver is told of all of them.
_STALE = 8
# The part of a neighbour's values that differ.
_MOVED = 0.25


def points(space: Space, seed: int, *, near: Mapping[str, int] | None = None) -> Iterator[Point]:
    """Points of a space in an order that the seed decides; those `near` a point share most of its values."""
    drawn = _Drawn(space, seed)
    while (point := drawn.next(near)) is not None:
        yield point


class _Drawn:
    """What was drawn of a space so far."""

    def __init__(self, space: Space, seed: int):
        self.space, self.random = space, random.Random(seed)
        self.seen: set[tuple[int, ...]] = set()
        self._solver: Any = None
        self._told: set[tuple[int, ...]] = set()
        self.names = [knob.name for knob in space.knobs]

    def next(self, near: Mapping[str, int] | None = None) -> Point | None:
        """The next point, or None where there are no more."""
        for _ in range(_STALE):
            point = self._draw(near)
            if self.space.problem(point) is not None:
                repaired = self._repair(point)
                if repaired is None:
                    return None
                point = repaired
            if self._is_new(point):
                return point
        self._tell()
        point = self._repair(self._draw(near))
        if point is not None:
            self._is_new(point)
        return point

    def _is_new(self, point: Point) -> bool:
        key = tuple(point[name] for name in self.names)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _draw(self, near: Mapping[str, int] | None) -> Point:
        drawn = {knob.name: self.random.choice(knob.domain) for knob in self.space.knobs}
        if near is None:
            return drawn
        return {name: value if self.random.random() < _MOVED else near[name] for name, value in drawn.items()}

    def _repair(self, point: Point) -> Point | None:
        """A point of the space, and not one that the solver was told of, that shares as much as it can with this one;
        None where there is none."""
        solver, z3 = self._begun(), self._formulas.z3
        order = self.random.sample(self.names, len(self.names))
        assumed = {}
        for name in order:
            formula = self._formulas.is_at(name, point[name])
            assumed[formula.get_id()] = formula
        while (answer := solver.check(*assumed.values())) != z3.sat:
            if not assumed:
                return None  # there is nothing, or nothing that can be found with reasonable effort
            core = [one.get_id() for one in solver.unsat_core()] if answer == z3.unsat else []
            if answer == z3.unsat and not core:
                return None
            del assumed[self.random.choice(sorted(core or assumed))]
        model = solver.model()
        values = self._formulas.variables.items()
        return {name: model.eval(one, model_completion=True).as_long() for name, one in values}

    def _begun(self) -> Any:
        if self._solver is None:
            self._formulas = Formulas(self.space)
            z3 = import_z3()
            self._solver = z3.Solver(ctx=self._formulas.context)
            self._solver.set("random_seed", self.random.getrandbits(16))
            self._solver.set("rlimit", _EFFORT)
            self._solver.add(*self._formulas.domains, *self._formulas.constraints)
        return self._solver

    def _tell(self) -> None:
        """Tells the solver of all points that were drawn."""
        solver, z3 = self._begun(), self._formulas.z3
        true = z3.BoolVal(True, self._formulas.context)
        for key in sorted(self.seen - self._told):
            same = [self._formulas.is_at(name, value) for name, value in zip(self.names, key, strict=True)]
            solver.add(z3.Not(z3.And([true, *same])))
        self._told = set(self.seen)


class Processes:
    """Solvers of several spaces, each in a process of its own that draws ahead of what is asked for."""

    def __init__(self, spaces: Mapping[str, Space], seed: int):
        self._children = {name: _Child(space, f"{seed} {name}") for name, space in spaces.items()}

    def next(self, strategy: str, near: Mapping[str, int] | None = None) -> Point | None:
        """The next point of a strategy's space, near another where one is given; None where there are no more."""
        return self._children[strategy].next(near)

    def close(self) -> None:
        for child in self._children.values():
            child.close()


class _Child:
    def __init__(self, space: Space, seed: str):
        command = [sys.executable, "-m", "eyas.tune.solver"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._send({"space": space_to_json(space), "seed": seed})

    def next(self, near: Mapping[str, int] | None) -> Point | None:
        self._send({"near": None if near is None else dict(near)})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a solver's process ended with status {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.kill()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


@contextmanager
def in_processes(spaces: Mapping[str, Space], seed: int) -> Iterator[Processes]:
    """One solver for each strategy, in a process of its own: `.next(strategy)`."""
    processes = Processes(spaces, seed)
    try:
        yield processes
    finally:
        processes.close()


def _serve() -> None:
    """What a child does: reads a space, then answers each line with a point, and draws the next before it is asked."""
    from eyas.tune.space_text import space_from_json

    begin = json.loads(sys.stdin.readline())
    drawn = _Drawn(space_from_json(begin["space"]), random.Random(begin["seed"]).getrandbits(32))
    ahead: list[Point | None] = []
    for line in sys.stdin:
        near = json.loads(line)["near"]
        point = ahead.pop() if ahead and near is None else drawn.next(near)
        print(json.dumps(point), flush=True)
        if not ahead and point is not None:
            ahead.append(drawn.next())


if __name__ == "__main__":
    _serve()
