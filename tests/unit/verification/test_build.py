"""Programs are compiled from copies, and called as often as asked."""

from __future__ import annotations

import numpy as np

from eyas.frontends import import_model
from eyas.verification.build import Build

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
X = np.arange(4, dtype=np.float32)


def test_a_program_can_be_compiled_again():
    program, build = import_model(TEXT), Build(workers=1, threads=1)
    before = str(program.module)
    for off in ((), ("rows",)):
        np.testing.assert_array_equal(build.call(program, [X], off)[0], 2 * X)
    assert str(program.module) == before
    assert build.compile(program, ("rows",)).manifest["provenance"]["disabled"] == ["rows"]


def test_what_the_user_switched_off_stays_off():
    build = Build(workers=1, disable=("contraction",))
    compiled = build.compile(import_model(TEXT), ("rows", "contraction"))
    assert compiled.manifest["provenance"]["disabled"] == ["contraction", "rows"]


def test_a_run_that_differs_is_the_one_that_counts(monkeypatch):
    answers = iter([[X], [X], [X + 1], [X]])
    monkeypatch.setattr(Build, "_run", lambda *_: next(answers))
    np.testing.assert_array_equal(Build(workers=1, runs=4).call(import_model(TEXT), [X])[0], X + 1)


def test_one_run_is_the_default(monkeypatch):
    calls = []
    monkeypatch.setattr(Build, "_run", lambda *_: calls.append(1) or [X])
    Build(workers=1).call(import_model(TEXT), [X])
    assert len(calls) == 1
