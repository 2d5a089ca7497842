"""Exit codes and messages: 1 for the user's input, 2 for usage, 70 with a reproducer for our bugs, 130 interrupted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from eyas.cli.app import main
from eyas.pipelines.compilation import Compilation
from eyas.pipelines.request import Phase


def test_missing_file_is_the_users_input(eyas, tmp_path):
    for command in ("compile", "run", "bench", "inspect", "opt"):
        done = eyas(command, tmp_path / "nothing.mlir")
        assert (done.code, done.out) == (1, "") and "no such file" in done.err and "nothing.mlir" in done.err


def test_damaged_modules_are_the_users_input(eyas, module):
    data = module.read_bytes()
    module.write_bytes(data[: len(data) // 2])
    for command in ("run", "inspect", "bench"):
        done = eyas(command, module)
        assert done.code == 1 and done.err.startswith("error: ") and "Traceback" not in done.err


def test_text_that_is_not_mlir(eyas, tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @main( {")
    done = eyas("compile", path)
    assert done.code == 1 and "line 1" in done.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--target", "llvm-cpu:x86_64:znver9"], (1, "znver")),
        (["--from", "nowhere"], (2, "input, optimize, dispatch, schedule, hal, codegen, vm")),
        (["--from", "vm", "--to", "input"], (2, "--from vm is after --to input")),
        (["--from", "hal"], (1, "not a dump of a phase")),
        (["--external-weights", "/elsewhere/w.safetensors"], (2, "beside the module")),
        (["--input", "4x8xf99"], (2, "4x8xf99")),
        (["-o", "model.mlir"], (2, "would overwrite the model")),
        (["--bogus"], (2, "--bogus")),
    ],
)
def test_compile_options(eyas, model, monkeypatch, arguments, expected):
    monkeypatch.chdir(model.parent)
    done = eyas("compile", model, *arguments)
    assert (done.code, done.out) == (expected[0], "") and expected[1] in done.err


@pytest.mark.parametrize(
    ("inputs", "code", "message"),
    [
        (["4x8xf32=1"], 2, "no --input for arg1"),
        (["4x8xf32=1", "8x3xf32=1", "1xf32=1"], 2, "one more input"),
        (["who=4x8xf32=1"], 2, "'who' is unknown"),
        (["4x8xf32=much"], 2, "'much'"),
        (["4x8xf32=1,2"], 2, "as many numbers"),
        (["@nothing.npy"], 2, "nothing.npy"),
        (["4x9xf32=1", "8x3xf32=1"], 1, "expected f32[4,8], got f32[4,9]"),
        (["4x8xf64=1", "8x3xf32=1"], 1, "f64"),
    ],
)
def test_run_inputs(eyas, module, inputs, code, message):
    done = eyas("run", module, *[part for one in inputs for part in ("--input", one)])
    assert (done.code, done.out) == (code, "") and message in done.err


def test_unknown_device_function_and_outputs(eyas, module):
    assert eyas("run", module, "--device", "toaster").code == 2
    assert "the module has main" in eyas("run", module, "--entry", "other").err
    assert "2 results" in eyas("run", module, "--output", "@one.npy").err
    assert eyas("bench", module, "--threads", 0).code == 2


def test_a_bug_saves_a_reproducer_that_compiles(eyas, model, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def fail(self, module):
        raise AssertionError("a wheel came off")

    with monkeypatch.context() as patched:
        patched.setattr("eyas.passes.codegen.note_work.NoteWork.run", fail)  # runs first in phase codegen
        done = eyas("compile", model, "-o", tmp_path / "m.eyas", "--target", "llvm-cpu")
    assert done.code == 70 and "AssertionError: a wheel came off" in done.err and "Traceback" not in done.err
    folder = Path(re.search(r"saved in (\S+?);", done.err)[1])
    report = (folder / "report.txt").read_text()
    assert "in fail" in report and f"$ eyas compile {model}" in report
    command = shlex.split(re.search(r"^\$ eyas --debug (compile \d.+)$", report, re.MULTILINE)[1])
    assert command[-2:] == ["--from", Phase.HAL.value]
    monkeypatch.chdir(folder)
    assert eyas(*command).code == 0 and (folder / "5.hal.eyas").exists()


def test_debug_shows_the_traceback(model, monkeypatch):
    with pytest.raises(Exception, match="no such file"):
        main(["compile", "nothing.mlir", "--debug"])


def test_interrupt(eyas, model, monkeypatch):
    def interrupt(self, *arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Compilation, "run", interrupt)
    assert eyas("compile", model).code == 130
