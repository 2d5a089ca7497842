"""A space as text of the smt dialect parses, and says what the space says."""

from __future__ import annotations

import random

import pytest
from test_solver import LARGE, SMALL
from torch_mlir.dialects import smt

from eyas.codegen.common.space import Space
from eyas.ir import make_context, parse_module
from eyas.tune.formulas import Formulas
from eyas.tune.smt import smt_text, symbol

z3 = pytest.importorskip("z3")


def test_text_of_a_space():
    text = smt_text(SMALL)
    assert text.startswith("smt.solver() : () -> () {\n  // the space of 'small': 4 knobs, 5 constraints")
    assert '= smt.declare_fun "tiles0.a" : !smt.int' in text and symbol("tiles[0].a") == "tiles0.a"
    assert "// law: b is {b}" in text and "// advice: b is {b}" in text
    assert text.count("smt.assert") == len(SMALL.knobs) + len(SMALL.constraints)
    lines = [line.split(" = ")[1] for line in text.splitlines() if " = smt." in line]
    assert len(lines) == len(set(lines)), "each expression is written once"


@pytest.mark.parametrize("space", [SMALL, LARGE, Space("empty", (), ())], ids=lambda space: space.strategy)
def test_the_text_parses_and_agrees_with_the_space(space):
    """MLIR's own export to SMT-LIB, read by Z3, decides as the space does, and as our formulas do."""
    module = parse_module(smt_text(space), make_context())
    library = smt.export_smtlib(module.operation).replace("(check-sat)", "").replace("(reset)", "")
    exported, ours = z3.Solver(), Formulas(space)
    exported.from_string(library)
    direct = z3.Solver(ctx=ours.context)
    direct.add(*ours.domains, *ours.constraints)
    draws = random.Random(0)
    for number in range(30):
        point = {knob.name: draws.choice(knob.domain if number % 3 else (1, 3)) for knob in space.knobs}
        expected = z3.sat if space.problem(point) is None else z3.unsat
        assert exported.check(*(z3.Int(symbol(name)) == value for name, value in point.items())) == expected
        assert direct.check(*(ours.is_at(name, value) for name, value in point.items())) == expected
