"""Runs the `RUN:` lines of every folder below in-process: parse, passes, verify, filecheck."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from eyas.frontends.contract import prepare_context
from eyas.ir import make_context, parse_module
from eyas.passes import PASSES, lookup, parse_pipeline

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.mlir"))

# Passes whose input is more than IR, and where their tests are.
ELSEWHERE = {
    "evaluate-constants": "unit/passes/test_evaluate_constants.py",  # takes weights
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_file(path: Path) -> None:
    text = path.read_text()
    found = re.match(r"// RUN: eyas opt %s --passes ('[^']+'|\S+) \| filecheck %s\n", text)
    assert found, "the first line says how the file is run"
    passes = found.group(1).strip("'")
    pipeline = parse_pipeline(passes)
    assert str(pipeline) == passes
    names = [step.name for step in pipeline.steps if hasattr(step, "name")]
    assert any(path.stem.replace("_", "-").startswith(name) for name in names), "the file is named after its pass"
    # Files of the input phase hold the frontends' dialects.
    context = prepare_context() if path.parent.name == "input" else make_context()
    module = parse_module(text, context, path.name)
    pipeline.run(module)
    assert module.operation.verify()
    result = subprocess.run(
        [Path(sys.executable).parent / "filecheck", path],
        input=str(module),
        text=True,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout}{result.stderr}\n{module}"


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_a_test_at_the_mirrored_path(name: str) -> None:
    assert lookup(name).name == name
    if name in ELSEWHERE:
        text = (HERE.parent / ELSEWHERE[name]).read_text()
        assert lookup(name).__name__ in text or name in text
    else:
        assert (HERE / f"{PASSES[name].replace('.', '/')}.mlir").is_file()
