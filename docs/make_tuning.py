"""Runs the example of docs/tuning.md and puts what it prints into the page: `python docs/make_tuning.py [--budget 4m]`.

The numbers are this machine's, so the page changes with every run; run it on one that does nothing else.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parent / "tuning.md"
TARGET = "llvm-cpu:x86_64:x86-64-v3:cores=2"


def make_model(path: Path) -> None:
    """The ToyModel as MLIR's torch dialect."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from benchmarks.models import toy_model
    from torch_mlir import fx

    case = toy_model()
    path.write_text(str(fx.export_and_import(case.model, *case.args, output_type="torch")))


def fill(page: str, name: str, text: str) -> str:
    """The page with other text in the block after `<!-- made: NAME ... -->`."""
    pattern = rf"(<!-- made: {name}[^>]*-->\n```\w*\n)(?:.*?\n)??(```)"
    filled, count = re.subn(pattern, lambda one: one[1] + text.strip("\n") + "\n" + one[2], page, flags=re.DOTALL)
    assert count == 1, f"the page has no block {name}"
    return filled


def run(folder: Path, *command: str) -> str:
    done = subprocess.run([sys.executable, "-m", "eyas", *command], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"eyas {' '.join(command)}:\n{done.stderr}")
    return "\n".join(line.rstrip() for line in (done.stderr + done.stdout).splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--budget", default="4m")
    parser.add_argument("--folder", type=Path, help="where the files go, and stay")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        make_model(folder / "toy.mlir")
        tune = ["tune", "toy.mlir", "--target", TARGET, "--budget", options.budget, "--database", "toy.db"]
        page = fill(PAGE.read_text(), "model", (folder / "toy.mlir").read_text())
        page = fill(page, "tune", run(folder, *tune, "-o", "toy.spec.mlir"))
        page = fill(page, "spec", (folder / "toy.spec.mlir").read_text())
        run(folder, "tune", "--report", "report.html", "--database", "toy.db")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
