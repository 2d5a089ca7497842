"""The section 'JAX' of docs/conformance.md."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Sequence
from importlib.metadata import version

from tests.conformance.outcome import Outcome
from tests.conformance.report import table

HEADING = "JAX"


def section(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        f"`make conformance-jax`, {datetime.date.today().isoformat()}, jax {version('jax')}, eyas {version('eyas')}, "
        f"Python {platform.python_version()} on {platform.machine()}. Functions of `tests/conformance/jax`, compared "
        "with JAX on the CPU; each case states its tolerance. Training cases follow all results for 50 steps.",
        "",
        *table(outcomes),
    ]
