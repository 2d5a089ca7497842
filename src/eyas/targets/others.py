"""What other programs take of the CPUs while something is measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

# Above this part of the CPUs measurements are of a busy machine.
BUSY = 0.05


class OtherPrograms:
    """Watches from its creation on; Linux only, elsewhere nothing is ever seen."""

    def __init__(self) -> None:
        self._busy, self._own, self._time = _all_busy_seconds(), _own_seconds(), time.monotonic()

    def share(self) -> float:
        """The part of the machine's CPUs that others had since then, from 0 to 1."""
        busy, own, elapsed = _all_busy_seconds(), _own_seconds(), time.monotonic() - self._time
        if self._busy is None or busy is None or elapsed <= 0:
            return 0.0
        others = (busy - self._busy) - (own - self._own)
        return min(max(others / (elapsed * (os.cpu_count() or 1)), 0.0), 1.0)


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _all_busy_seconds() -> float | None:
    """Time that all CPUs together were not idle since boot; proc(5), `cpu` of /proc/stat."""
    try:
        fields = [int(text) for text in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        # user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already
        user, nice, system, _, _, irq, softirq, steal = fields[:8]
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
