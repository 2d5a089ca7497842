"""Runs command lines in this process, so that the compiler is imported once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from eyas.cli.app import main
from eyas.explain import machine

MODEL = """
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>) -> (tensor<4x3xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x3xf32>) -> tensor<4x3xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x3xf32>)
    outs(%init : tensor<4x3xf32>) -> tensor<4x3xf32>
  %double = arith.addf %x, %x : tensor<4x8xf32>
  return %product, %double : tensor<4x3xf32>, tensor<4x8xf32>
}
"""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def quick_limits(tmp_path, monkeypatch):
    """The machine's limits are measured in no time, and those of a busy machine are not kept."""
    monkeypatch.setattr(machine, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(machine, "_MILLISECONDS", 2)
    monkeypatch.setattr(machine, "_ROUNDS", 1)
    monkeypatch.setattr(machine, "_MEMORY_BYTES", 8 << 20)


@pytest.fixture
def eyas(capsys):
    """Runs `eyas ARGUMENTS`; the exit code and what was printed."""

    def run(*arguments: object) -> Done:
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        code = exit_.value.code
        return Done(code if isinstance(code, int) else int(code is not None), printed.out, printed.err)

    return run


@pytest.fixture
def model(tmp_path):
    """A small program in a file."""
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="session")
def module_bytes(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("cli") / "model.mlir"
    path.write_text(MODEL)
    with pytest.raises(SystemExit) as exit_:
        main(["compile", str(path), "-q"])
    assert not exit_.value.code
    return path.with_suffix(".eyas").read_bytes()


@pytest.fixture
def module(tmp_path, module_bytes):
    """That program, compiled."""
    path = tmp_path / "model.eyas"
    path.write_bytes(module_bytes)
    return path
