"""The tables: counts by outcome, reasons by operator, and the ONNX section of docs/conformance.md."""

from __future__ import annotations

import collections
import datetime
import platform
from collections.abc import Sequence

import onnx
from tests.conformance.onnx.cases import Case
from tests.conformance.onnx.check import Outcome, Status

Pairs = Sequence[tuple[Case, Outcome]]
PASSED = (Status.PASSED, Status.SPECIALIZED)
BEGIN, END = "<!-- onnx: begin -->", "<!-- onnx: end -->"


def counts(pairs: Pairs) -> str:
    """One row per group of tests, one column per outcome."""
    groups = {
        "all": list(pairs),
        "numeric": [pair for pair in pairs if pair[0].numeric],
        "numeric, one node": [pair for pair in pairs if pair[0].numeric and not pair[0].expanded],
        "numeric, expanded functions": [pair for pair in pairs if pair[0].numeric and pair[0].expanded],
    }
    names = [status.value for status in Status]
    lines = [f"| tests | count | passed in all | {' | '.join(names)} |", "|---|" + "--:|" * (len(names) + 2)]
    for name, group in groups.items():
        if not group:
            continue
        passed = sum(outcome.status in PASSED for _, outcome in group)
        numbers = [str(sum(outcome.status is status for _, outcome in group)) for status in Status]
        share = f"{passed} ({100 * passed / len(group):.1f} %)"
        lines.append(f"| {name} | {len(group)} | {share} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def reasons(pairs: Pairs) -> str:
    """What did not pass, by operator, the most frequent first, with one reason for each outcome."""
    groups: dict[tuple[str, Status, bool], list[tuple[Case, Outcome]]] = collections.defaultdict(list)
    for case, outcome in pairs:
        if outcome.status not in PASSED:
            groups[case.op, outcome.status, case.numeric].append((case, outcome))
    lines = ["| operator | outcome | numeric | tests | first of them | its reason |", "|---|---|---|--:|---|---|"]
    order = sorted(groups.items(), key=lambda item: (not item[0][2], -len(item[1]), item[0][0]))
    for (op, status, numeric), group in order:
        case, outcome = group[0]
        reason = outcome.reason.replace("|", "\\|")[:160]
        said = "yes" if numeric else "no"
        lines.append(f"| {op} | {status.value} | {said} | {len(group)} | {case.name} | {reason} |")
    return "\n".join(lines)


def section(pairs: Pairs, seconds: float, jobs: int) -> str:
    """The section of docs/conformance.md."""
    today = datetime.date.today().isoformat()
    import eyas

    return "\n".join(
        [
            BEGIN,
            "## ONNX",
            "",
            f"Every node test of `onnx.backend.test`, onnx {onnx.__version__}, Eyas {eyas.__version__}, Python"
            f" {platform.python_version()}, {platform.machine()}; {today}; {seconds / 60:.1f} minutes with {jobs}"
            " workers. Command: `make conformance-onnx`.",
            "",
            "*Numeric* tests have only tensors of numbers as inputs and outputs, and no training"
            " operator. Some tests give as inputs what models give as constants (axes, shapes, pads); where Eyas"
            " needs them at compile time they are made constants, and the test is in a column of its own.",
            "",
            counts(pairs),
            "",
            reasons(pairs),
            END,
            "",
        ]
    )


def replace_section(document: str, text: str) -> str:
    """The document with its ONNX section replaced, or added at the end."""
    if BEGIN in document and END in document:
        before, rest = document.split(BEGIN, 1)
        return before + text.rstrip("\n") + rest.split(END, 1)[1]
    return f"{document.rstrip()}\n\n{text}" if document.strip() else text
