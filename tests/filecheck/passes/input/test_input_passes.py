"""Runs the `RUN:` lines of this folder in-process: parse, passes, filecheck."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from eyas.frontends.contract import prepare_context
from eyas.ir import PassPipeline, parse_module

FILES = sorted(Path(__file__).parent.glob("*.mlir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file(path: Path) -> None:
    text = path.read_text()
    passes = re.search(r"// RUN: eyas opt %s --passes (\S+) \| filecheck %s", text).group(1)
    pipeline = PassPipeline.parse(passes)
    assert str(pipeline) == passes
    module = parse_module(text, prepare_context(), path.name)
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
