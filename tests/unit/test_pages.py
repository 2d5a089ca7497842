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
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.S))
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        lines_above = text[: block.start(1)].count("\n")  # so that errors name the page's own lines
        exec(compile("\n" * lines_above + block[1], str(DOCS / page), "exec"), names)
