"""Which pass or strategy is to blame: the program is compiled with each one switched off.

When several switches make the program right, the last in pipeline order is blamed: what came before it ran as it did in
the wrong program, and was evidently right, or a different choice after it could not have made the result right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from eyas.pipelines.phases import NEEDED_IN_PLACE, OPTIONAL

# Without one of those these are left out too, so what they do must not be credited to it.
_IMPLIED = ("write-state-in-place", "reuse-in-place")


@dataclass(frozen=True)
class Blame:
    """`culprits` are to blame; more than one only together. Without any, `reason` says what is left."""

    culprits: tuple[str, ...]
    cures: tuple[str, ...] = ()
    """Each of these alone, switched off, makes the program right."""
    tried: tuple[tuple[tuple[str, ...], bool], ...] = ()
    """Every set that was switched off, and whether the program was right without it."""
    reason: str = ""

    @property
    def name(self) -> str:
        return " + ".join(self.culprits)


@dataclass
class _Trials:
    """Remembers what was tried."""

    is_right: Callable[[tuple[str, ...]], bool]
    known: dict[tuple[str, ...], bool] = field(default_factory=dict)

    def __call__(self, off: Sequence[str]) -> bool:
        key = tuple(name for name in OPTIONAL if name in off)
        if key not in self.known:
            self.known[key] = self.is_right(key)
        return self.known[key]

    def blame(self, culprits: Sequence[str], cures: Sequence[str] = (), reason: str = "") -> Blame:
        return Blame(tuple(culprits), tuple(cures), tuple(self.known.items()), reason)


def bisect(is_right: Callable[[tuple[str, ...]], bool]) -> Blame:
    """Finds what to blame for a program that is wrong; `is_right(off)` compiles it without the passes in `off`."""
    right = _Trials(is_right)
    if right(()):
        return right.blame((), reason="it is right when it is compiled and run again, as with a race; try more runs")
    if not right(OPTIONAL):
        return right.blame((), reason="it is still wrong with everything optional switched off")
    cures = [name for name in OPTIONAL if name not in NEEDED_IN_PLACE and right((name,))]
    if not set(_IMPLIED) & set(cures):
        cures += [name for name in NEEDED_IN_PLACE if right((name,))]
    cures.sort(key=OPTIONAL.index)
    if cures:
        return right.blame(cures[-1:], cures)
    return right.blame(_smallest_cure(right), reason="each of them alone leaves it wrong")


def _smallest_cure(right: Callable[[Sequence[str]], bool]) -> list[str]:
    """A set without which the program is right, and of which nothing can be switched on again."""
    off: list[str] = list(OPTIONAL)
    for name in OPTIONAL:
        fewer = [one for one in off if one != name]
        if right(fewer):
            off = fewer
    return off
