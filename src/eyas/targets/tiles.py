"""`TileMachine`: the machine of the target `vmvx`, whose instructions work on tiles and are the same on every CPU."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.errors import TargetError
from eyas.targets.target import DEFAULT_CORES, Caches, Target
from eyas.targets.text import KIB, MIB, parse_option, print_options

# A small core of today: what runs well in these caches runs well in larger ones.
_CACHES = Caches(32 * KIB, 512 * KIB, 8 * MIB)


@dataclass(frozen=True)
class TileMachine(Target):
    """`vmvx[:cores=N]`: bytecode whose unit tiles have 8 x 16 elements; the runtime issues several at a time."""

    core_count: int = DEFAULT_CORES

    def __str__(self) -> str:
        options = print_options({"cores": self.core_count} if self.core_count != DEFAULT_CORES else {})
        return ":".join(["vmvx", *options])

    @property
    def backend(self) -> str:
        return "vmvx"

    @property
    def cores(self) -> int:
        return self.core_count

    @property
    def caches(self) -> Caches:
        return _CACHES

    @property
    def runs_here(self) -> bool:
        return True


def parse(text: str, rest: str) -> TileMachine:
    """Reads what follows `vmvx`."""
    if not text.partition(":")[1]:
        return TileMachine()
    if "=" not in rest or "," in rest:
        raise TargetError(
            f"target '{text}': vmvx is the same for every machine and takes nothing after its name but cores=N"
        )
    return TileMachine(parse_option(text, rest, ["cores"])[1])
