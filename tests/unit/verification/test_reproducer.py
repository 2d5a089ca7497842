"""How far back a piece reaches: a made-up fault that needs some of the ops before it."""

from __future__ import annotations

import numpy as np
import pytest

from eyas.frontends import import_model
from eyas.verification import reproducer
from eyas.verification.build import Build
from eyas.verification.compare import Difference, Tolerance
from eyas.verification.layers import Tracer
from eyas.verification.mlir_source import MlirSource

LENGTH = 9
LINES = [f"%{i + 1} = math.sqrt %{i} : tensor<4xf32>" for i in range(LENGTH)]
TEXT = f"""
func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {{
  {chr(10).join(LINES).replace("%0 :", "%x :")}
  return %{LENGTH} : tensor<4xf32>
}}
""".replace("(%0:", "(%x:")
BUILD = Build(workers=1, threads=1)


@pytest.fixture(scope="module")
def tracer():
    inputs = [np.arange(4, dtype=np.float32)]
    source = MlirSource(import_model(TEXT), BUILD)
    return Tracer(source, BUILD, inputs, source.reference(inputs), Tolerance())


@pytest.mark.parametrize("needed", range(1, LENGTH + 1))
def test_no_more_ops_than_needed(tracer, monkeypatch, needed):
    def is_wrong(tracer, piece, expected, disable=()):
        return Difference(1.0, 1.0, 1.0, (0,), "planted") if piece.ops >= needed else None

    monkeypatch.setattr(reproducer, "is_wrong", is_wrong)
    last = tracer.source.layers[-1].name
    everything = tracer.source.program([layer.name for layer in tracer.source.layers[:-1]])
    for tapped in (None, everything):
        found = reproducer.find(tracer, last, tapped, refine=False)
        assert found is not None and found.piece.ops == needed
        assert len(found.piece.inputs) == 1 and found.layer == last


def test_a_fault_that_no_piece_shows(tracer, monkeypatch):
    monkeypatch.setattr(reproducer, "is_wrong", lambda *_: None)
    assert reproducer.find(tracer, tracer.source.layers[-1].name, None) is None


def test_a_folder_is_written_and_written_again(tracer, tmp_path):
    last = tracer.source.layers[-1].name
    (tmp_path / "input_7.npy").write_bytes(b"of an older reproducer")
    tapped = tracer.source.program()
    piece = reproducer.cut(tapped.program, [0], {}, tracer.inputs, False)
    expected = tracer.reference.results[0]
    made = reproducer.Reproducer(last, piece, expected, Difference(1.0, 1.0, 1.0, (0,), "planted"))
    command = made.write(tmp_path, Build(), "To blame: nobody.")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "README.md",
        "expected_0.npy",
        "input_0.npy",
        "repro.json",
        "repro.mlir",
    ]
    assert (
        command in (tmp_path / "README.md").read_text() and "To blame: nobody." in (tmp_path / "README.md").read_text()
    )
    (value,) = BUILD.call(made.program(), [np.load(tmp_path / "input_0.npy")])
    np.testing.assert_allclose(value, np.load(tmp_path / "expected_0.npy"), rtol=1e-5)
