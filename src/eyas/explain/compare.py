"""Two reports of one model side by side: which of its nodes became faster, and which slower.

Dispatches of two compilations differ, and so does what is fused; the model's nodes stay. Nodes that share a dispatch in
either report are taken together, so that each group has a time in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyas.errors import UsageError


@dataclass(frozen=True)
class Change:
    """The time of some of the model's nodes, before and after."""

    nodes: tuple[str, ...]
    before_us: float
    after_us: float

    @property
    def difference_us(self) -> float:
        return self.after_us - self.before_us


def read_report(path: Path) -> dict[str, Any]:
    """What `--json` wrote; the parts that `compare` needs are checked."""
    try:
        data = json.loads(path.read_text())
        if data["format"] != 1:
            raise ValueError(f"it has format {data['format']}, this version reads 1")
        float(data["totals"]["call_us"])
        for one in data["dispatches"]:
            float(one["us"])
            [str(name) for name in one["sources"]]
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise UsageError(f"'{path}' is not a report that `eyas explain --json` wrote: {detail}") from error
    return data


def compare(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[Change]:
    """The dispatches of two reports by groups of nodes, the greatest difference first."""
    group = _groups(one["sources"] for one in (*before, *after))
    nodes: dict[str, list[str]] = {}
    for node, root in group.items():
        nodes.setdefault(root, []).append(node)
    times = {root: [0.0, 0.0] for root in (*nodes, "")}
    for position, dispatches in enumerate((before, after)):
        for one in dispatches:
            times[group[one["sources"][0]] if one["sources"] else ""][position] += one["us"]
    changes = [Change(tuple(nodes.get(root, ())), *both) for root, both in times.items() if any(both)]
    return sorted(changes, key=lambda change: -abs(change.difference_us))


def _groups(sources: Iterable[Sequence[str]]) -> dict[str, str]:
    """Each node with the one that stands for its group: sets that grow together."""
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for names in sources:
        for name in names:
            parent[root(name)] = root(names[0])
    return {node: root(node) for node in list(parent)}
