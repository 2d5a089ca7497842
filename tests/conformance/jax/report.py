"""The table at the end of a run, and the section 'JAX' of docs/conformance.md."""

from __future__ import annotations

import datetime
import platform
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from tests.conformance.jax.check import Outcome

KINDS = ("passed", "unsupported", "wrong", "crashed")
HEADING = "## JAX"


def print_table(outcomes: Sequence[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("group", *KINDS, "seconds", title="JAX")
    for group, cells in _rows(outcomes):
        table.add_row(group, *cells)
    Console().print(table)


def write_section(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Replaces the section in the file, or adds it at the end."""
    text = path.read_text() if path.exists() else "# Conformance\n"
    before, found, rest = text.partition(HEADING + "\n")
    after = rest[rest.index("\n## ") + 1 :] if found and "\n## " in rest else ""
    parts = [before.rstrip("\n"), section(outcomes)] + ([after] if after else [])
    path.write_text("\n\n".join(part.rstrip("\n") for part in parts) + "\n")


def section(outcomes: Sequence[Outcome]) -> str:
    lines = [
        HEADING,
        "",
        f"`make conformance-jax`, {datetime.date.today().isoformat()}, jax {version('jax')}, eyas {version('eyas')}, "
        f"Python {platform.python_version()} on {platform.machine()}. Functions of `tests/conformance/jax`, compared "
        "with JAX on the CPU; each case states its tolerance. Training cases follow all results for 50 steps.",
        "",
        "| group | " + " | ".join(KINDS) + " | seconds |",
        "|---|" + "---:|" * (len(KINDS) + 1),
        *(f"| {group} | " + " | ".join(cells) + " |" for group, cells in _rows(outcomes)),
    ]
    if left := [outcome for outcome in outcomes if outcome.kind != "passed"]:
        lines += ["", "| not passed | kind | reason |", "|---|---|---|"]
        lines += [f"| {one.name} | {one.kind} | {one.reason.replace('|', '/')} |" for one in left]
    return "\n".join(lines)


def _rows(outcomes: Sequence[Outcome]) -> list[tuple[str, list[str]]]:
    groups = list(dict.fromkeys(outcome.name.partition("/")[0] for outcome in outcomes))
    rows = []
    for group in [*groups, "all"]:
        members = [outcome for outcome in outcomes if group in ("all", outcome.name.partition("/")[0])]
        counts = Counter(outcome.kind for outcome in members)
        seconds = f"{sum(outcome.seconds for outcome in members):.0f}"
        rows.append((group, [*(str(counts[kind]) for kind in KINDS), seconds]))
    return rows
