"""`eyas cache`, and `eyas compile` with and without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyas.cache import compiler
from eyas.cli.app import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler.Compiler, "is_current", True)
    monkeypatch.setattr(compiler, "_process_start", lambda: float("inf"))
    compiler.this_compiler.cache_clear()
    yield tmp_path / "cache"
    compiler.this_compiler.cache_clear()


def run(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    assert not exit_.value.code
    return capsys.readouterr().out


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx = pytest.importorskip("onnx")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, 4]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]), path)
    return path


def test_compile_twice(folder: Path, model: Path, tmp_path: Path, capsys):
    seen = [
        json.loads(run(capsys, "compile", str(model), "-o", str(tmp_path / name), "--json", *more))["cached"]
        for name, more in (("a", []), ("b", []), ("c", ["--no-cache"]), ("d", ["--disable", "rows"]))
    ]
    assert seen == [False, True, False, False]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert "from the cache" in run(capsys, "compile", str(model), "-o", str(tmp_path / "e"))


def test_show_and_clear(folder: Path, model: Path, tmp_path: Path, capsys):
    run(capsys, "compile", str(model), "-o", str(tmp_path / "a"))
    report = json.loads(run(capsys, "cache", "--json"))
    assert report["modules"]["count"] == 1 and report["objects"]["count"] == 1 and report["folder"] == str(folder)
    assert "modules: 1" in run(capsys, "cache") and "removed 0" in run(capsys, "cache", "--trim")
    assert "removed 2 entries" in run(capsys, "cache", "--clear")
    assert json.loads(run(capsys, "cache", "--json"))["modules"]["count"] == 0


def test_switched_off(monkeypatch, capsys):
    monkeypatch.setenv("EYAS_CACHE", "off")
    assert "switched off" in run(capsys, "cache")
