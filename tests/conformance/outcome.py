"""How one case went: what the runners of all lists hand around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("passed", "unsupported", "wrong", "crashed", "skipped")


@dataclass(frozen=True)
class Outcome:
    """`kind` is one of KINDS; skipped is what cannot be had here. The name's part before the slash is its group in the
    tables. `reason` says why a case did not pass, and may say more of one that did; `parts` is what a list that runs
    several things in one case says of each."""

    name: str
    kind: str
    reason: str = ""
    seconds: float = 0.0
    parts: Sequence[Any] = ()


def one_line(error: BaseException | str, limit: int = 200) -> str:
    """The message on one line, without folders of the machine that ran it."""
    return " ".join(str(error).split()).replace(f"{Path.cwd()}/", "")[:limit]
