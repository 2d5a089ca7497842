"""The table at the end of a run, and a list's section of docs/conformance.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.outcome import KINDS, Outcome


def print_table(title: str, outcomes: Sequence[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("group", *_kinds(outcomes), "seconds", title=title)
    for group, cells in _rows(outcomes):
        table.add_row(group, *cells)
    Console().print(table)


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Lines of Markdown: counts by group, and what did not pass with the reasons."""
    lines = [
        "| group | " + " | ".join(_kinds(outcomes)) + " | seconds |",
        "|---|" + "---:|" * (len(_kinds(outcomes)) + 1),
        *(f"| {group} | " + " | ".join(cells) + " |" for group, cells in _rows(outcomes)),
    ]
    if left := [outcome for outcome in outcomes if outcome.kind != "passed"]:
        lines += ["", "| not passed | kind | reason |", "|---|---|---|"]
        lines += [f"| {one.name} | {one.kind} | {one.reason.replace('|', '/')} |" for one in left]
    return lines


def write_section(path: Path, heading: str, lines: Sequence[str]) -> None:
    """Replaces the section of that heading (without the '## ') in the file, or adds it at the end."""
    text = path.read_text() if path.exists() else "# Conformance\n"
    before, found, rest = text.partition(f"## {heading}\n")
    after = rest[rest.index("\n## ") + 1 :] if found and "\n## " in rest else ""
    parts = [before.rstrip("\n"), "\n".join([f"## {heading}", "", *lines])] + ([after] if after else [])
    path.write_text("\n\n".join(part.rstrip("\n") for part in parts) + "\n")


def _kinds(outcomes: Sequence[Outcome]) -> list[str]:
    """The columns; few lists skip anything."""
    return [kind for kind in KINDS if kind != "skipped" or any(outcome.kind == kind for outcome in outcomes)]


def _rows(outcomes: Sequence[Outcome]) -> list[tuple[str, list[str]]]:
    groups = list(dict.fromkeys(outcome.name.partition("/")[0] for outcome in outcomes))
    rows = []
    for group in [*groups, "all"]:
        members = [outcome for outcome in outcomes if group in ("all", outcome.name.partition("/")[0])]
        counts = Counter(outcome.kind for outcome in members)
        seconds = f"{sum(outcome.seconds for outcome in members):.0f}"
        rows.append((group, [*(str(counts[kind]) for kind in _kinds(outcomes)), seconds]))
    return rows
