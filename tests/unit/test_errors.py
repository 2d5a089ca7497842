"""What needs a package that is not installed says which extra has it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import eyas
from eyas import errors
from eyas.cli import main


def test_a_missing_compiler_says_which_extra_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors.importlib.util, "find_spec", lambda name: None)
    for name in ("compile", "export", "verify", "training_step"):
        with pytest.raises(errors.MissingPackageError, match=rf"eyas\.{name} needs .*torch_mlir.*eyas\[compiler\]"):
            getattr(eyas, name)
    assert eyas.load and eyas.Module


def test_the_command_without_typer_says_which_extra_has_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "eyas.cli.app", raising=False)
    with pytest.raises(SystemExit) as exit:
        main(["--help"])
    assert exit.value.code == 1 and "pip install 'eyas[cli]'" in capsys.readouterr().err


def test_a_package_that_a_command_lacks_is_no_bug_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"")
    for name in list(sys.modules):
        if name == "onnx" or name.startswith(("onnx.", "eyas.frontends.onnx")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SystemExit) as exit:
        main(["compile", "model.onnx"])
    assert exit.value.code == 1 and "pip install 'eyas[onnx]'" in capsys.readouterr().err
