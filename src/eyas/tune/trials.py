"""What the tuner tries, and what became of it: the words that its parts share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Status(Enum):
    """How a trial ended."""

    TIMED = "timed"
    """It is right, and was timed until its interval was narrow."""
    BEATEN = "beaten"
    """It is right; timing ended early because it cannot be faster than the best."""
    SAME_CODE = "same code"
    """Its code is that of a trial before it, whose time it has."""
    REFUSED = "refused"
    """The compiler refused the schedule; `reason` says which field."""
    WRONG = "wrong"
    """Its numbers are not those of plain loops; a reproducer was kept."""
    CRASHED = "crashed"
    """Compiling or running it ended a process; a reproducer was kept."""
    TIMEOUT = "timeout"
    """It did not compile, or not run, in its time."""

    @property
    def has_time(self) -> bool:
        return self in (Status.TIMED, Status.BEATEN, Status.SAME_CODE)


@dataclass(frozen=True)
class Candidate:
    """One schedule for one dispatch: a point of a strategy's space. `schedule` is the `#codegen.strategy<...>` text."""

    dispatch: str
    """Digest of the dispatch without its schedule, the same in every model that has it."""
    target: str
    strategy: str
    point: MappingProxyType[str, int] | dict[str, int]
    schedule: str


@dataclass(frozen=True)
class Trial:
    """What became of a candidate on a device. Times are of one call, cold or warm as the session says; `ratio` is the
    baseline's time over the candidate's, so that above 1 is faster, with the bounds of its 95 % interval."""

    candidate: Candidate
    device: str
    status: Status
    us: float | None = None
    baseline_us: float | None = None
    ratio: tuple[float, float, float] | None = None
    """Lower bound, estimate, upper bound."""
    compile_s: float = 0.0
    code: str = ""
    """Digest of the code."""
    reason: str = ""
    reproducer: str = ""
    """A folder that shows what went wrong."""
    order: str = ""
    """What proposed it: `baseline`, `random`, `heuristic`, `learned` or `spec`."""
