"""What is asked of code generation: one dispatch, and how much care is taken with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Caution(IntEnum):
    """How a dispatch is compiled: each step gives up more, so that what killed the one before is not met again."""

    NONE = 0
    FEWER_OPTIMISATIONS = 1
    ANOTHER_STRATEGY = 2
    PLAIN_LOOPS = 3

    @property
    def description(self) -> str:
        return _DESCRIPTIONS[self]

    @property
    def keeps_schedule(self) -> bool:
        """Whether the noted schedule is used, and with it what it implies elsewhere, such as packed weights."""
        return self < Caution.ANOTHER_STRATEGY


_DESCRIPTIONS = {
    Caution.NONE: "as chosen",
    Caution.FEWER_OPTIMISATIONS: "with fewer optimisations of LLVM",
    Caution.ANOTHER_STRATEGY: "with another strategy and fewer optimisations",
    Caution.PLAIN_LOOPS: "as plain loops, not optimised",
}


@dataclass(frozen=True)
class Job:
    """One dispatch: its module as MLIR bytecode, and how to compile it. `text` is the module without names and
    locations: jobs with equal texts make equal code."""

    name: str
    bytecode: bytes
    target: str
    disabled: tuple[str, ...] = ()
    text: str = ""
    caution: Caution = Caution.NONE


@dataclass(frozen=True)
class Listing:
    """Asks for the code of a job as text before the step that may have ended the process, for a reproducer."""

    job: Job
