"""What a run found, for people and for docs/conformance.md."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import re

from tests.fuzz.campaign import Failure, Tally

HEADING = "## Random graphs"


def groups(tally: Tally) -> dict[str, list[Failure]]:
    """Failures by symptom, the most frequent first."""
    found: dict[str, list[Failure]] = {}
    for failure in tally.failures:
        found.setdefault(failure.group, []).append(failure)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def failures(tally: Tally) -> str:
    """One line of each group; the graphs were shown when they failed."""
    parts = []
    for name, members in groups(tally).items():
        smallest = min(members, key=lambda failure: len(failure.graph.nodes))
        seeds = ", ".join(str(failure.seed) for failure in members[:8])
        parts.append(f"{len(members)} x {name}\n  seeds {seeds}\n  {smallest.outcome.detail}")
    return "\n".join(parts)


def counts(tally: Tally) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in tally.outcomes.most_common())
    rate = tally.tried / max(tally.seconds, 1e-9)
    share = 100 * tally.compared / max(tally.elements, 1)
    return (
        f"{tally.tried} graphs tried: {kinds}; {tally.seconds:.0f} s, {rate:.2f} graphs/s;"
        f" {share:.1f} % of {tally.elements} elements compared"
    )


def section(tally: Tally, seed: int, jobs: int) -> str:
    """The section of docs/conformance.md."""
    from tests.fuzz.ops import TABLE

    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("torch", "jax", "onnx", "hypothesis")
    )
    total = max(tally.tried, 1)
    kinds = ("passed", "wrong", "refused", "failed", "crashed", "hung")
    lines = [
        HEADING,
        "",
        f"`make fuzz ARGS='--graphs {tally.tried} --seed {seed} --jobs {jobs}'`, {datetime.date.today()}, {versions},"
        f" Python {platform.python_version()} on {platform.machine()}. Random typed graphs of up to seven of"
        f" {len(TABLE)} ops, through each frontend, with random compile options; each is called two or three times with"
        " other data, and with other sizes where it is dynamic. The reference is NumPy in f64 with an error bound for"
        " each element, by running error analysis; elements that rounding alone decides are not compared.",
        "",
        "| graphs tried | " + " | ".join(kinds) + " |",
        "|---:|" + "---:|" * len(kinds),
        f"| {tally.tried} | " + " | ".join(str(tally.outcomes[kind]) for kind in kinds) + " |",
        "",
        "By frontend: " + ", ".join(f"{name} {count}" for name, count in tally.frontends.most_common()) + "."
        f" {100 * tally.dynamic / total:.0f} % have dynamic sizes, {tally.nodes / total:.1f} ops are in a graph,"
        f" {100 * tally.compared / max(tally.elements, 1):.1f} % of {tally.elements} elements were compared."
        f" {tally.seconds / 60:.0f} minutes with {jobs} processes.",
    ]
    return "\n".join(lines) + "\n"


def replace_section(text: str, new: str) -> str:
    """The page with this section replaced, or added at the end."""
    pattern = re.compile(rf"^{re.escape(HEADING)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if pattern.search(text):
        return pattern.sub(lambda _: new + "\n", text).rstrip() + "\n"
    return f"{text.rstrip()}\n\n{new}" if text.strip() else f"# Conformance\n\n{new}"
