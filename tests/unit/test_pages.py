"""The Python of pages that promise to run, block after block as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["devices.md"])
def test_the_python_of_a_page_runs(page: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text()
    blocks = [
        (match[1], text[: match.start(1)].count("\n")) for match in re.finditer(r"```python\n(.*?)```", text, re.S)
    ]
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    for block, line in blocks:
        exec(compile("\n" * line + block, str(DOCS / page), "exec"), names)
