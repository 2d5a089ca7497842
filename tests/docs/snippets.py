"""Fenced blocks of Markdown pages, and how they are run.

A page's Python blocks share one namespace, in order; its shell blocks run in the same folder. A block that cannot run
says why in a comment right before it: `<!-- not run: REASON -->`. What a reader can imagine and a machine cannot goes
into a comment too, and is run as Python: `<!-- setup`, lines, `-->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LANGUAGES = ("python", "sh")
_BLOCK = re.compile(
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$|^<!-- setup\n(?P<setup>.*?)^-->$", re.MULTILINE | re.DOTALL
)
_REASON = re.compile(r"<!-- not run: (?P<reason>\S[^>]*\S) -->\s*\Z")


@dataclass(frozen=True)
class Snippet:
    """One block: where it is, what language, and why it is not run if it is not."""

    page: Path
    line: int
    language: str
    code: str
    reason: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page that is written by hand or from a table."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def snippets(page: Path) -> Iterator[Snippet]:
    """The Python and shell blocks of a page, and what is set up for them."""
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        if match["setup"] is not None:
            yield Snippet(page, line, "python", match["setup"])
        elif match["language"] in LANGUAGES:
            reason = _REASON.search(text[: match.start()])
            yield Snippet(page, line, match["language"], match["code"], reason["reason"] if reason else "")
