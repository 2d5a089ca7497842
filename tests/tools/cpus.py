"""CPUs that kernels are tested for: one for each width of vectors, as far as this machine can execute them."""

from __future__ import annotations

import pytest

from eyas.targets import Target

_LEVELS = {"sse2": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}


def _targets() -> dict[str, str]:
    host = Target.host()
    if host.arch != "x86_64":
        return {"host": "llvm-cpu"}
    return {name: f"llvm-cpu:x86_64:{level}" for name, level in _LEVELS.items()}


def runs_here(target: str) -> bool:
    """Whether this machine has all that code for the target may use."""
    parsed, host = Target.parse(target), Target.host()
    return parsed.arch == host.arch and set(parsed.required_features) <= host.feature_set


TARGETS = {name: target for name, target in _targets().items() if runs_here(target)}
"""By the name of the vectors: targets whose code runs here, the narrowest first."""


def every_cpu() -> list:
    """Parameters of a test: a target for each width; those that this machine lacks are skipped."""
    return [
        pytest.param(
            target, id=name, marks=pytest.mark.skipif(name not in TARGETS, reason=f"this machine has no {name}")
        )
        for name, target in _targets().items()
    ]
