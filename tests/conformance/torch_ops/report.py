"""Ops by pass and kind, what did not pass, and the section of docs/conformance.md."""

from __future__ import annotations

import datetime
import functools
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from tests.conformance.torch_ops.ops import DTYPES, INELIGIBLE

HEADING = "PyTorch's operator database"
# An op is as its worst sample; one whose samples are all skipped is left out.
KINDS = ("crashed", "wrong", "bug", "unsupported", "export", "passed")

# Samples with a size that torch.export alone cannot leave open: counted by themselves, and not held against an op.
CLOSED = "closed"

# By pass and op: [sample, kind, reason] of each that was tried.
Results = Mapping[tuple[str, str], Iterable[list[Any]]]
# By pass and op: how many samples there are.
Counts = Mapping[tuple[str, str], int]

COMMIT = "EYAS_TEST_COMMIT"
"""The variable that says which commit is tested where there is no repository."""


@functools.cache
def origin() -> str:
    """What results are made with: the commit and the version of torch."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    commit = os.environ.get(COMMIT) or subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return f"{commit or 'unknown'}, torch {version('torch')}"


def kind_of_op(parts: Iterable[list[Any]]) -> str:
    seen = {kind for _, kind, _ in parts}
    return next((kind for kind in (*KINDS, CLOSED) if kind in seen), "skipped")


def tables(results: Results, counts: Counts) -> list[str]:
    """Markdown: ops and samples by pass, then every op that did not pass, by its first reason. Samples that were not
    tried, or that have nothing to compare with, are in the column of samples alone."""
    passes = [name for name in DTYPES if any(pass_ == name for pass_, _ in results)]
    lines = ["| pass | ops | passed | | " + " | ".join(KINDS[:-1]) + " | samples | tried | passed | closed |"]
    lines += ["|---|---:|---:|---:|" + "---:|" * (len(KINDS) + 3)]
    for pass_ in passes:
        mine = {op: parts for (one, op), parts in results.items() if one == pass_}
        ops = Counter(kind_of_op(parts) for parts in mine.values())
        samples = Counter(kind for parts in mine.values() for _, kind, _ in parts)
        count, tried = sum(ops[kind] for kind in KINDS), sum(samples[kind] for kind in KINDS)
        share = f"{100 * ops['passed'] / count:.1f}%" if count else ""
        there = sum(counts[pass_, op] for op in mine)
        cells = [count, ops["passed"], share, *(ops[kind] for kind in KINDS[:-1])]
        cells += [there, tried, samples["passed"], samples[CLOSED]]
        lines.append(f"| {pass_} | " + " | ".join(map(str, cells)) + " |")
    rows = []
    for (pass_, op), parts in results.items():
        kinds = [kind for kind in (kind_of_op(parts), CLOSED) if any(one == kind for _, one, _ in parts)]
        for kind in dict.fromkeys(kinds):
            if kind == "passed":
                continue
            index, reason = next((index, reason) for index, one, reason in parts if one == kind)
            some = sum(one == kind for _, one, _ in parts)
            tried = sum(one in (*KINDS, CLOSED) for _, one, _ in parts)
            text = reason.replace("|", "/").replace("`", "'")
            rows.append(f"| {op} | {pass_} | {kind} | {some} of {tried} | {index} | {text} |")
    if rows:
        lines += ["", "| op | pass | kind | samples | the first | its reason |", "|---|---|---|---:|---:|---|", *rows]
    return lines


def section(results: Results, counts: Counts, origins: Mapping[str, list[str]]) -> list[str]:
    left_out = Counter(why for _, why in INELIGIBLE)
    made = "; ".join(f"{pass_}: {' and '.join(each)}" for pass_, each in origins.items())
    return [
        f"`make conformance-torch-ops`, {datetime.date.today().isoformat()}, eyas"
        f" {version('eyas')}, Python {platform.python_version()} on {platform.machine()}. The samples of"
        " `torch.testing._internal.common_methods_invocations.op_db`, compared with eager torch: type, shape, numbers"
        " (f32 1e-4 and 1e-5, f16 5e-3 and 1e-3, bf16 2e-2 and 1e-2, or from f64 at most"
        " twice as far as eager), and the arguments after the"
        " call. An op passes if all its samples do. *unsupported* is refused with a reason, *export* cannot be traced"
        " by torch itself, *bug* is any other exception. `f32` has i64 for ops of integers alone; `dynamic` calls one"
        " module with two first sizes, declared as a range that begins with the sample's; a sample is *closed* where"
        " torch.export without Eyas cannot leave any of its first sizes open either, and an op of such samples alone is"
        " not counted;"
        " `gradients` runs forward and backward through `torch.compile`. Left out: ops"
        f" that are {', '.join(left_out)}; complex samples.",
        "",
        *tables(results, counts),
        "",
        f"Commits (+: with changes) and versions: {made}.",
    ]
