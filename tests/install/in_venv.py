"""Runs inside of an environment with the wheel: `run` needs NumPy alone, `compile` the extra compiler."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np

import eyas


def installed() -> set[str]:
    """Names of what is installed, without what makes installing possible."""
    return {d.metadata["Name"].lower() for d in metadata.distributions()} - {"pip", "setuptools"}


def check_run(folder: Path) -> None:
    """Modules that were saved elsewhere give the numbers that they gave there."""
    assert installed() == {"eyas", "numpy"}, f"NumPy is all that running needs; there is {sorted(installed())}"
    for path in sorted(folder.glob("*.eyas")):
        data = np.load(path.with_suffix(".npz"))
        module = eyas.load(path)
        result = module(*(data[f"input{i}"] for i in range(len(module.signature.args))))
        result = result["sum"] if isinstance(result, dict) else result
        np.testing.assert_array_equal(result, data["output"], err_msg=path.name)
        print(f"  {path.name}: {module.signature}")
    command = Path(sys.executable).parent / "eyas"
    done = subprocess.run([command, "--help"], capture_output=True, text=True)
    assert done.returncode == 1 and "pip install 'eyas[cli]'" in done.stderr, done
    try:
        eyas.compile(None)
    except eyas.EyasError as error:
        assert "pip install 'eyas[compiler]'" in str(error), error
    else:
        raise AssertionError("eyas.compile works without the extra")


def check_compile(folder: Path) -> None:
    """A model compiles, runs, is saved and verified, in Python and from the shell: MLIR, and PyTorch where it is."""
    text = "func.func @main(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {\n  %y = math.tanh %x : tensor<3x8xf32>\n"
    (folder / "model.mlir").write_text(text + "  return %y : tensor<3x8xf32>\n}\n")
    x = np.random.default_rng(0).standard_normal((3, 8), np.float32)
    np.testing.assert_allclose(eyas.compile(str(folder / "model.mlir"))(x), np.tanh(x), rtol=1e-6, atol=1e-6)
    lines = ["compile model.mlir -o model.eyas", "run model.eyas", "inspect model.eyas", "targets", "version"]
    if "torch" in installed():
        _compile_torch(folder)
        lines += ["compile mlp.pt2 -o mlp.eyas", "run mlp.eyas", "verify mlp.pt2"]
    for line in lines:
        done = subprocess.run([sys.executable, "-m", "eyas", *line.split()], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"eyas {line}\n{done.stdout}{done.stderr}"
        print(f"  eyas {line}")


def _compile_torch(folder: Path) -> None:
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)).eval()
    x = torch.randn(3, 24)
    torch.testing.assert_close(eyas.compile(model, (x,))(x), model(x), rtol=1e-5, atol=1e-5)
    torch.export.save(torch.export.export(model, (x,)), folder / "mlp.pt2")


if __name__ == "__main__":
    {"run": check_run, "compile": check_compile}[sys.argv[1]](Path(sys.argv[2]))
