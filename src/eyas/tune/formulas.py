"""Spaces as formulas of Z3: knobs are integers of their domains, constraints are asserted."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from eyas.codegen.common import expressions as ex
from eyas.codegen.common.space import Space
from eyas.errors import UsageError


def import_z3() -> Any:
    """The solver, which comes with the tuner's dependencies only."""
    try:
        import z3
    except ImportError:
        raise UsageError(
            "the tuner draws its candidates with Z3, which is not installed: pip install 'eyas[tune]'"
        ) from None
    return z3


class Formulas:
    """The formulas of a space, in a context of their own: several solvers may run beside each other."""

    def __init__(self, space: Space):
        self.z3 = import_z3()
        self.space = space
        self.context = self.z3.Context()
        self.variables = {knob.name: self.z3.Int(knob.name, self.context) for knob in space.knobs}
        self._known: dict[int, tuple[Any, Any]] = {}

    @cached_property
    def domains(self) -> list[Any]:
        return [self._one_of(self.variables[knob.name], knob.domain) for knob in self.space.knobs]

    @cached_property
    def constraints(self) -> list[Any]:
        return [self.of(one.condition) for one in self.space.constraints]

    def is_at(self, name: str, value: int) -> Any:
        return self.variables[name] == value

    def of(self, node: ex.Int | ex.Bool) -> Any:
        """An expression; those that several others have are made once."""
        if id(node) not in self._known:
            self._known[id(node)] = node, self._make(node)
        return self._known[id(node)][1]

    def _make(self, node: ex.Int | ex.Bool) -> Any:
        z3 = self.z3
        match node:
            case ex.Const(value):
                return z3.IntVal(value, self.context)
            case ex.Var(name):
                return self.variables[name]
            case ex.Arithmetic(op, left, right):
                return self._arithmetic(op, self.of(left), self.of(right))
            case ex.Select(condition, then, otherwise):
                return z3.If(self.of(condition), self.of(then), self.of(otherwise))
            case ex.Compare(op, left, right):
                return _compare(op, self.of(left), self.of(right))
            case ex.OneOf(item, values):
                return self._one_of(self.of(item), values)
            case ex.All(parts):
                return z3.And([z3.BoolVal(True, self.context), *map(self.of, parts)])
            case ex.Any(parts):
                return z3.Or([z3.BoolVal(False, self.context), *map(self.of, parts)])
            case ex.Not(part):
                return z3.Not(self.of(part))
            case ex.Implies(premise, conclusion):
                return z3.Implies(self.of(premise), self.of(conclusion))
        raise AssertionError(f"no formula for {node!r}")

    def _arithmetic(self, op: str, left: Any, right: Any) -> Any:
        # Division of Z3 rounds down where the divisor is positive, which all of ours are.
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "//":
                return left / right
            case "%":
                return left % right
            case "min":
                return self.z3.If(left <= right, left, right)
        return self.z3.If(left >= right, left, right)

    def _one_of(self, item: Any, values: tuple[int, ...]) -> Any:
        return self.z3.Or([self.z3.BoolVal(False, self.context), *(item == value for value in values)])


def _compare(op: str, left: Any, right: Any) -> Any:
    match op:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
    return left >= right
