"""Spaces as text of MLIR's smt dialect: what `eyas tune --dump-constraints` prints.

    smt.solver() : () -> () {
      // width of tiles[0]: lanes of a vector
      %v0 = smt.declare_fun "tiles0.width" : !smt.int
      ...
      smt.check sat {} unknown {} unsat {}
    }

It parses with the compiler's own context, and `mlir-translate --export-smtlib` makes SMT-LIB of it.
"""

from __future__ import annotations

import re

from eyas.codegen.common import expressions as ex
from eyas.codegen.common.space import Space

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "//": "div", "%": "mod"}
_ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def smt_text(space: Space) -> str:
    """The space as a solver's scope: a constant for each knob, and assertions of its domain and of the constraints."""
    writer = _Writer()
    writer.say(f"the space of '{space.strategy}': {len(space.knobs)} knobs, {len(space.constraints)} constraints")
    for knob in space.knobs:
        writer.say(f"{knob.name}: {knob.meaning}")
        writer.declare(knob.name)
    for knob in space.knobs:
        writer.check(ex.OneOf(ex.Var(knob.name), knob.domain))
    for one in space.constraints:
        writer.say(("law: " if one.is_law else "advice: ") + one.message)
        writer.check(one.condition)
    writer.line("smt.check sat {} unknown {} unsat {}")
    return "\n".join(["smt.solver() : () -> () {", *writer.lines, "}", ""])


def symbol(name: str) -> str:
    """A knob's name as SMT-LIB can write it: `tiles[0].width` is `tiles0.width`."""
    return re.sub(r"[^A-Za-z0-9_.]", "", name)


class _Writer:
    """Lines of a solver's scope. Each expression is written once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[ex.Int | ex.Bool, str] = {}

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def say(self, text: str) -> None:
        self.line("// " + text.replace("\n", " "))

    def declare(self, name: str) -> None:
        self._name(ex.Var(name), f'smt.declare_fun "{symbol(name)}" : !smt.int')

    def check(self, condition: ex.Bool) -> None:
        self.line(f"smt.assert {self.value(condition)}")

    def value(self, node: ex.Int | ex.Bool) -> str:
        known = self._names.get(node)
        return known if known is not None else self._name(node, self._op(node))

    def _name(self, node: ex.Int | ex.Bool, op: str) -> str:
        name = f"%v{len(self._names)}"
        self.line(f"{name} = {op}")
        self._names[node] = name
        return name

    def _op(self, node: ex.Int | ex.Bool) -> str:
        match node:
            case ex.Const(value):
                return f"smt.int.constant {value}"
            case ex.Arithmetic("min" | "max" as op, left, right):
                first = ex.Compare("<=" if op == "min" else ">=", left, right)
                return f"smt.ite {self._all(first, left, right)} : !smt.int"
            case ex.Arithmetic(op, left, right):
                return f"smt.int.{_ARITHMETIC[op]} {self._all(left, right)}"
            case ex.Select(condition, then, otherwise):
                return f"smt.ite {self._all(condition, then, otherwise)} : !smt.int"
            case ex.Compare("==" | "!=" as op, left, right):
                return f"smt.{'eq' if op == '==' else 'distinct'} {self._all(left, right)} : !smt.int"
            case ex.Compare(op, left, right):
                return f"smt.int.cmp {_ORDER[op]} {self._all(left, right)}"
            case ex.OneOf(item, values):
                return self._joined("or", tuple(ex.Compare("==", item, ex.Const(value)) for value in values))
            case ex.All(parts):
                return self._joined("and", parts)
            case ex.Any(parts):
                return self._joined("or", parts)
            case ex.Not(part):
                return f"smt.not {self.value(part)}"
            case ex.Implies(premise, conclusion):
                return f"smt.implies {self._all(premise, conclusion)}"
        raise AssertionError(f"no op for {node!r}")

    def _joined(self, op: str, parts: tuple[ex.Bool, ...]) -> str:
        """`and` and `or` of any number: those of the dialect have two operands or more."""
        if not parts:
            return f"smt.constant {'true' if op == 'and' else 'false'}"
        if len(parts) == 1:  # itself, and nothing more
            parts = (parts[0], parts[0])
        return f"smt.{op} {self._all(*parts)}"

    def _all(self, *nodes: ex.Int | ex.Bool) -> str:
        return ", ".join(map(self.value, nodes))
