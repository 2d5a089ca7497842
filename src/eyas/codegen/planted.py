"""Deaths for tests: what the containment of code generation must survive."""

from __future__ import annotations

import os
import signal
import sys

from eyas import knobs
from eyas.codegen.jobs import Job


def die_if_planted(job: Job) -> None:
    """Ends the process as EYAS_PLANTED_DEATH says, if it means this job at this caution."""
    for plant in filter(None, knobs.planted_death().split(";")):
        how, name, levels = plant.split(":")
        if name in job.name and str(int(job.caution)) in levels.split(","):
            print(f"planted: {how}", file=sys.stderr, flush=True)
            _DEATHS[how]()


def _loop() -> None:
    while True:
        pass


def _hang() -> None:
    while True:
        signal.pause()


def _eat() -> None:
    kept = []
    while True:
        kept.append(bytearray(64 << 20))


_DEATHS = {
    "abort": os.abort,
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "loop": _loop,
    "hang": _hang,
    "memory": _eat,
}
