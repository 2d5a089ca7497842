"""`eyas verify` on the command line: exit codes, the table, JSON, inputs, and a reproducer that `eyas run` takes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from eyas.codegen.common.passes import approximations, expand_math

EXP = """
func.func @main(%x: tensor<5x?xTYPE>) -> tensor<5x?xTYPE> {
  %0 = math.exp %x : tensor<5x?xTYPE>
  %1 = arith.addf %0, %0 : tensor<5x?xTYPE>
  return %1 : tensor<5x?xTYPE>
}
"""


@pytest.fixture
def exp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "exp.mlir"
    path.write_text(EXP.replace("TYPE", "f32"))
    return path


@pytest.fixture
def wrong_exp(monkeypatch):
    monkeypatch.setenv("EYAS_COMPILE_IN_PROCESS", "1")  # what is planted here is not known to child processes
    monkeypatch.setitem(expand_math._FUNCTIONS, "math.exp", lambda x: approximations.exp(x * 1.5))


def test_a_right_model(eyas, model):
    done = eyas("verify", model, "--seed", 3)
    assert done.code == 0 and "all within tolerance" in done.out and "linalg.matmul_0" in done.out
    assert "from seed 3" in done.err


def test_long_names_stay_on_one_line(eyas, exp):
    text = exp.read_text()
    name = "a.module.with.a.very.long.path." * 8
    for op in ("math.exp", "arith.addf"):
        line = next(line for line in text.splitlines() if op in line)
        text = text.replace(line, f'{line} loc("{name}{op}")')
    exp.write_text(text)
    done = eyas("verify", exp, "--input", "5x7xf32=random", "--no-reproducer")
    assert done.code == 0, done
    rows = [line for line in done.out.splitlines() if "float32[5,7]" in line]
    assert len(rows) == 2 and all(name in row and row.rstrip().endswith("ok") for row in rows), done.out


def test_a_wrong_model(eyas, exp, wrong_exp, tmp_path):
    done = eyas("verify", exp, "--input", "5x7xf32=random", "--bisect", "--workers", 1)
    assert done.code == 1, done
    assert "WRONG, first" in done.out and "to blame: expand-math" in done.out
    command = next(line.strip() for line in done.out.splitlines() if line.strip().startswith("eyas run"))
    assert command in (tmp_path / "exp-repro" / "README.md").read_text()
    run = eyas(*command.split()[1:], "--output", tmp_path / "out")
    assert run.code == 0, run.err
    expected, actual = np.load(tmp_path / "exp-repro" / "expected_0.npy"), np.load(tmp_path / "out" / "output.npy")
    assert np.abs(actual - expected).max() > 0.01 * np.abs(expected).max()
    again = eyas(*command.replace("eyas run", "verify").split(), "--no-reproducer", "--workers", 1)
    assert again.code == 1 and "WRONG" in again.out


def test_json_and_options(eyas, exp, wrong_exp, tmp_path):
    flags = ["--input", "5x7xf32=random", "--workers", 1, "--json"]
    report = eyas("verify", exp, *flags, "--no-reproducer").json
    assert report["ok"] is False and report["first"]["op"] == "math.exp" and report["first"]["shape"] == [5, 7]
    assert report["blame"] is None and report["reproducer"] is None and not (tmp_path / "exp-repro").exists()
    report = eyas("verify", exp, *flags, "--reproducer", tmp_path / "here").json
    assert report["reproducer"] == str(tmp_path / "here") and report["reproducer_dispatches"] == 1
    assert eyas("verify", exp, *flags, "--rtol", 100).code == 0
    assert eyas("verify", exp, *flags, "--disable", "expand-math").code == 0


def test_worst_layers_only(eyas, model):
    done = eyas("verify", model, "--worst", 1)
    assert done.out.count("linalg.matmul_0") + done.out.count("arith.addf_1") == 1


def test_bf16_reproducers_are_read_back(eyas, exp, wrong_exp, tmp_path):
    exp.write_text(EXP.replace("TYPE", "bf16"))
    assert eyas("verify", exp, "--input", "5x7xbf16=random", "--workers", 1).code == 1
    stored = np.load(tmp_path / "exp-repro" / "input_0.npy")
    assert stored.dtype.kind == "V" and stored.view(ml_dtypes.bfloat16).shape == (5, 7)
    folder = tmp_path / "exp-repro"
    assert eyas("run", folder / "repro.mlir", "--input", f"@{folder / 'input_0.npy'}").code == 0


def test_inputs_from_npz(eyas, model, tmp_path):
    x, w = np.ones((4, 8), np.float32), np.full((8, 3), 2, np.float32)
    np.savez(tmp_path / "all.npz", arg1=w, arg0=x)
    assert eyas("verify", model, "--input", f"@{tmp_path / 'all.npz'}").code == 0
    done = eyas("run", model, "--input", f"@{tmp_path / 'all.npz'}", "--json")
    assert done.json[0]["values"] == [[16.0] * 3] * 4
    np.savez(tmp_path / "other.npz", nothing=x)
    assert "nothing" in eyas("run", model, "--input", f"@{tmp_path / 'other.npz'}").err
    (tmp_path / "bad.npz").write_bytes(b"no")
    assert eyas("run", model, "--input", f"@{tmp_path / 'bad.npz'}").code == 2


def test_what_cannot_be_verified(eyas, module, exp, tmp_path):
    assert eyas("verify", tmp_path / "missing.onnx").code == 1
    done = eyas("verify", module)
    assert done.code == 2 and "needs the source" in done.err
    done = eyas("verify", exp)
    assert done.code == 2 and "has no fixed size" in done.err


def test_target_and_device(eyas, model, module):
    done = eyas("verify", model, "--target", "vmvx", "--device", "local-sync", "--json")
    assert done.code == 0 and done.json["ok"] and len(done.json["layers"]) == 2
    assert eyas("verify", model, "--target", "vmvz").code == 1
    assert eyas("verify", model, "--device", "toaster", "--no-reproducer").code == 2
    done = eyas("run", module, "--target", "vmvx")
    assert done.code == 2 and "is compiled already" in done.err
