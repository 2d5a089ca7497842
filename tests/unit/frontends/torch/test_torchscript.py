"""What is said of TorchScript: it is a program, unlike a file of weights, and there is a way to compile it."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402
from eyas.errors import UsageError  # noqa: E402


def test_a_program_is_told_from_weights(tmp_path):
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 2)).eval(), torch.ones(1, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.trace(model, x)
        script.save(str(tmp_path / "script.pt"))
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    for source in (tmp_path / "script.pt", script):
        with pytest.raises(UsageError, match="is a TorchScript program.*torch.onnx.export"):
            eyas.compile(source, (x,))
    with pytest.raises(UsageError, match="holds weights without a program"):
        eyas.compile(tmp_path / "weights.pt", (x,))
