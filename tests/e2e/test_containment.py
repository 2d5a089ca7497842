"""LLVM may abort, loop, eat memory or be killed: the compilation succeeds, says so, and the numbers are right."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import programs as p  # noqa: E402

import eyas  # noqa: E402
from eyas.codegen import children  # noqa: E402
from eyas.codegen.children import Pool  # noqa: E402
from eyas.errors import InternalError  # noqa: E402

TARGETS = ["llvm-cpu", "vmvx"]
DEATHS = {
    "abort": "SIGABRT",
    "segfault": "SIGSEGV",
    "kill": "SIGKILL",
    "exit": "exit code 3",
    "loop": "s of processor time",
    "memory": "GiB of memory",
}


@pytest.fixture
def plant(monkeypatch, tmp_path):
    """Sets what children do, starts with none, and gives up with those that heard of it."""
    pool = Pool()
    monkeypatch.setattr(children, "pool", pool)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def plant(what: str, **limits: str) -> None:
        pool.close()
        monkeypatch.setenv("EYAS_PLANTED_DEATH", what)
        for name, value in limits.items():
            monkeypatch.setenv(name, value)

    yield plant
    pool.close()


def perceptron(rng):
    """Products with weights that are packed, and between them a softmax that is added to its operand."""
    shapes = {"w": (96, 200), "b": (200,), "v": (200, 20)}
    values = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    h, row = p.tensor_type([64, 200]), p.tensor_type([64])
    whole, rows, columns = p.affine(2, [0, 1]), p.affine(2, [0]), p.affine(2, [1])
    lines = "".join(
        f'%{name} = arith.constant dense<"0x{array.tobytes().hex().upper()}"> : {p.tensor_type(array.shape)}\n'
        for name, array in values.items()
    )
    lines += p.filled("p0", [64, 200], "f32", "0.0") + p.filled("y0", [64, 20], "f32", "0.0")
    lines += (
        f"%t = tensor.empty() : {h}\n"
        + p.filled("low", [64], "f32", "0xFF800000")
        + p.filled("none", [64], "f32", "0.0")
    )
    lines += (
        f"%p = linalg.matmul ins(%x, %w : tensor<64x96xf32>, tensor<96x200xf32>) outs(%p0 : {h}) -> {h}\n"
        + p.generic(
            "h", [("p", h, whole), ("b", "tensor<200xf32>", columns)], ("t", h, whole), "pp", _binary("add"), "f32"
        )
        + p.generic("m", [("h", h, whole)], ("low", row, rows), "pr", "%r = arith.maximumf %i0, %o : f32", "f32")
        + p.generic(
            "e",
            [("h", h, whole), ("m", row, rows)],
            ("t", h, whole),
            "pp",
            "%d = arith.subf %i0, %i1 : f32\n%r = math.exp %d : f32",
            "f32",
        )
        + p.generic("s", [("e", h, whole)], ("none", row, rows), "pr", "%r = arith.addf %i0, %o : f32", "f32")
        + p.generic(
            "z",
            [("e", h, whole), ("s", row, rows), ("h", h, whole)],
            ("t", h, whole),
            "pp",
            "%d = arith.divf %i0, %i1 : f32\n%r = arith.addf %d, %i2 : f32",
            "f32",
        )
        + f"%y = linalg.matmul ins(%z, %v : {h}, tensor<200x20xf32>) outs(%y0 : tensor<64x20xf32>) -> tensor<64x20xf32>"
    )
    text = p.main([("x", "tensor<64x96xf32>")], lines, [("y", "tensor<64x20xf32>")])

    def reference(x):
        h = x.astype(np.float64) @ values["w"] + values["b"]
        e = np.exp(h - h.max(1, keepdims=True))
        return ((e / e.sum(1, keepdims=True) + h) @ values["v"]).astype(np.float32)

    return text, rng.standard_normal((64, 96)).astype(np.float32), reference


def _binary(op: str) -> str:
    return f"%r = arith.{op}f %i0, %i1 : f32"


def compiled(text: str, target: str) -> tuple[eyas.Module, list[str]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        module = eyas.compile(text, target=target)
    return module, [str(one.message) for one in seen if one.category is eyas.CompileWarning]


def saved_in(message: str) -> Path:
    found = re.search(r"was saved in (\S+);", message)
    assert found is not None, message
    return Path(found[1])


@pytest.mark.parametrize("target", TARGETS)
def test_the_program_has_packed_weights(target, tmp_path):
    eyas.compile(perceptron(np.random.default_rng(0))[0], target=target, dump_phases=tmp_path)
    assert "packed = [{binding = 1 : i64, lanes = " in (tmp_path / "5.hal.mlir").read_text()


@pytest.mark.parametrize(
    ("levels", "target"),
    # Each death costs a process, which takes longer to start than to compile the program. The targets differ in what is
    # left at the end.
    [
        *((levels, "llvm-cpu") for levels in ("0", "0,1", "0,1,2")),
        *(pytest.param(levels, "vmvx", marks=pytest.mark.long) for levels in ("0", "0,1")),
        ("0,1,2", "vmvx"),
    ],
)
def test_every_step_of_caution_is_right(plant, target, levels):
    """Every dispatch of the program dies until the step; weights were packed and buffers shared before."""
    text, x, reference = perceptron(np.random.default_rng(0))
    normal = eyas.compile(text, target=target)
    np.testing.assert_allclose(normal(x), reference(x), rtol=1e-4, atol=1e-4)
    plant(f"abort:dispatch:{levels}")
    module, said = compiled(text, target)
    np.testing.assert_allclose(module(x), reference(x), rtol=1e-4, atol=1e-4)
    before, after = normal.manifest["kernels"], module.manifest["kernels"]
    named = [one for one in said if any(f"'{kernel['name']}'" in one for kernel in after)]
    assert len(named) == len(after) and all("given_up" in kernel for kernel in after)
    if levels == "0" and target == "llvm-cpu":
        assert [one["strategy"] for one in before] == [one["strategy"] for one in after]
        assert all("with fewer optimisations of LLVM" in one for one in said)
    elif levels == "0,1,2":
        assert {one["strategy"] for one in after} == {"loops"} and {one["strategy"] for one in before} != {"loops"}
        assert all("plain loops" in one for one in said)
    else:
        assert all(one["strategy"] != other["strategy"] for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("death", DEATHS)
def test_every_death_is_contained(plant, death):
    limits = (
        {"EYAS_COMPILE_SECONDS": "3"}
        if death == "loop"
        else {"EYAS_COMPILE_MEMORY": "1500M"}
        if death == "memory"
        else {}
    )
    plant(f"{death}:dispatch:0", **limits)
    text, x, reference = perceptron(np.random.default_rng(1))
    module, said = compiled(text, "llvm-cpu")
    np.testing.assert_allclose(module(x), reference(x), rtol=1e-4, atol=1e-4)
    assert said and all(DEATHS[death] in one for one in said)


def test_the_reproducer_repeats_it(plant):
    plant("abort:dispatch_0:0")
    module, said = compiled(perceptron(np.random.default_rng(2))[0], "llvm-cpu")
    (message,) = [one for one in said if "main" in one]
    folder = saved_in(message)
    assert "planted: abort" in (folder / "stderr.txt").read_text()
    assert "define" in (folder / "dispatch.ll").read_text()
    report = json.loads((folder / "report.json").read_text())
    assert report["deaths"][0]["cause"] == "its process was ended by SIGABRT"
    command = (folder / "command.txt").read_text().split()
    assert subprocess.run(command, capture_output=True).returncode < 0
    environment = {name: value for name, value in os.environ.items() if name != "EYAS_PLANTED_DEATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "compiled: " in done.stdout and report["name"] in done.stdout
    assert subprocess.run([*command, "--caution", "1"], capture_output=True).returncode == 0
    assert [one["given_up"] for one in module.manifest["kernels"] if "given_up" in one]


def test_nothing_helps(plant):
    plant("abort:dispatch:0,1,2,3")
    with pytest.raises(InternalError, match="cannot be compiled in any way.*as plain loops"):
        compiled(perceptron(np.random.default_rng(3))[0], "llvm-cpu")


def test_a_fallback_is_not_kept(plant, monkeypatch, tmp_path):
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path / "cache"))
    text, x, reference = perceptron(np.random.default_rng(4))
    plant("abort:dispatch:0")
    assert compiled(text, "llvm-cpu")[1]
    plant("")
    module, said = compiled(text, "llvm-cpu")
    assert not said and not any("given_up" in kernel for kernel in module.manifest["kernels"])
    np.testing.assert_allclose(module(x), reference(x), rtol=1e-4, atol=1e-4)


def test_the_command_line_says_it(tmp_path):
    (tmp_path / "model.mlir").write_text(perceptron(np.random.default_rng(5))[0])
    environment = {**os.environ, "EYAS_PLANTED_DEATH": "exit:dispatch:0", "TMPDIR": str(tmp_path)}
    run = {"capture_output": True, "text": True, "env": environment, "cwd": tmp_path, "check": True}
    done = subprocess.run([*_command(), "compile", "model.mlir", "-o", "m.eyas"], **run)
    assert "warning: dispatch 'main_dispatch_" in done.stderr and "Traceback" not in done.stderr
    shown = subprocess.run([*_command(), "inspect", "m.eyas", "--kernels"], **run)
    assert "not as it should be: as chosen: its process ended with exit code 3" in shown.stdout


def _command() -> list[str]:
    return [str(Path(sys.executable).with_name("eyas"))]


@pytest.mark.parametrize("channels", [16, 64])
def test_a_padded_copy_for_zen_3(channels):
    """Ended LLVM with "Getting value from an unknown LocationSize!" (see `_LLVM_OPTIONS` of llvm_cpu/llvm.py)."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Conv2d(channels, channels, 3, padding=1).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error", eyas.CompileWarning)
        for cpu in ("znver3", "haswell", "x86-64-v3", "znver4"):
            eyas.compile(model, (torch.randn(1, channels, 16, 16),), target=f"llvm-cpu:x86_64:{cpu}")
