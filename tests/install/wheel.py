"""Installs a wheel into clean environments and uses it there.

python -m tests.install.wheel dist/eyas-….whl                           with NumPy alone: saved modules run
python -m tests.install.wheel dist/eyas-….whl --extras compiler,torch    and a model compiles with them
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CHECKS = Path(__file__).with_name("in_venv.py")


def save_modules(folder: Path) -> None:
    """Modules of this installation with inputs and results: machine code, bytecode, a call that nests."""
    import torch

    import eyas

    class Nested(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(6, 5))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"sum": torch.softmax(x @ self.weight, -1)}

    model, x = Nested().eval(), torch.randn(4, 6)
    batch = {0: torch.export.Dim("batch", min=1, max=64)}
    for name, options in {
        "plain": {},
        "bytecode": {"target": "vmvx"},
        "dynamic": {"dynamic_shapes": (batch,)},
    }.items():
        module = eyas.compile(model, (x,), **options)
        module.save(folder / f"{name}.eyas")
        np.savez(folder / f"{name}.npz", input0=x.numpy(), output=module(x.numpy())["sum"])


def environment(folder: Path, requirement: str, python: str) -> str:
    """The interpreter of a new environment with one requirement in it."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    interpreter = str(folder / "bin" / "python")
    pip = [interpreter, "-m", "pip", "--disable-pip-version-check", "install", "-q", requirement]
    subprocess.run(pip, check=True)
    return interpreter


def check(interpreter: str, what: str, folder: Path) -> None:
    """Runs the checks of an environment where nothing of this checkout can be imported."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    subprocess.run([interpreter, "-I", str(CHECKS), what, str(folder)], cwd=folder, env=clean, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--extras", default="", help="install these as well, `compiler` among them, and compile")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that the wheel is for")
    options = parser.parse_args()
    wheel = options.wheel.resolve(strict=True)
    with tempfile.TemporaryDirectory(prefix="eyas-wheel-") as temporary:
        folder = Path(temporary)
        save_modules(folder)
        print(f"{wheel.name} with NumPy alone:")
        check(environment(folder / "run", str(wheel), options.python), "run", folder)
        if options.extras:
            wanted = f"{wheel}[{options.extras}]"
            print(f"{Path(wanted).name}:")
            check(environment(folder / "compile", wanted, options.python), "compile", folder)
    print("the wheel works")


if __name__ == "__main__":
    main()
