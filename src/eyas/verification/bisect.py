"""Which pass or strategy is to blame: the program is compiled with each one switched off.

When several switches make the program right, the last in pipeline order is blamed: what came before it ran as it did in
the wrong program, and was evidently right, or a different choice after it could not have made the result right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

# Plain loops, which take over from a strategy that is switched off, do not work in place: what these passes do must not
# be credited to it.
_IN_PLACE = ("write-state-in-place", "reuse-in-place")


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
    switches: Sequence[str]
    known: dict[tuple[str, ...], bool] = field(default_factory=dict)

    def __call__(self, off: Sequence[str]) -> bool:
        key = tuple(name for name in self.switches if name in off)
        if key not in self.known:
            self.known[key] = self.is_right(key)
        return self.known[key]

    def blame(self, culprits: Sequence[str], cures: Sequence[str] = (), reason: str = "") -> Blame:
        return Blame(tuple(culprits), tuple(cures), tuple(self.known.items()), reason)


def bisect(
    is_right: Callable[[tuple[str, ...]], bool], switches: Sequence[str], strategies: Sequence[str] = ()
) -> Blame:
    """Finds what to blame for a program that is wrong; `is_right(off)` compiles it without the passes in `off`.

    `switches` is all that can be off, in pipeline order, and `strategies` those of them that lower dispatches.
    """
    right = _Trials(is_right, switches)
    if right(()):
        return right.blame((), reason="it is right when it is compiled and run again, as with a race; try more runs")
    if not right(switches):
        return right.blame((), reason="it is still wrong with everything optional switched off")
    cures = [name for name in switches if name not in strategies and right((name,))]
    if not set(_IN_PLACE) & set(cures):
        cures += [name for name in strategies if right((name,))]
    cures.sort(key=list(switches).index)
    if cures:
        return right.blame(cures[-1:], cures)
    return right.blame(_smallest_cure(right, switches), reason="each of them alone leaves it wrong")


def _smallest_cure(right: Callable[[Sequence[str]], bool], switches: Sequence[str]) -> list[str]:
    """A set without which the program is right, and of which nothing can be switched on again."""
    off: list[str] = list(switches)
    for name in switches:
        fewer = [one for one in off if one != name]
        if right(fewer):
            off = fewer
    return off
