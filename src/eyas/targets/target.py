"""`Target`: what every machine to compile for has in common, whatever its kind."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

from eyas.errors import TargetError

DEFAULT_CORES = 16
"""What a target has that says nothing of cores: enough for a server's share and no burden on a laptop, whose workers
take more workgroups each. The machine that compiles counts its own."""


@dataclass(frozen=True)
class Caches:
    """Bytes of data cache: first and second level of one core, and the last level that cores share (0 when absent)."""

    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int


_VECTOR_BYTES = 16
"""The most that kernels read at once."""


@dataclass(frozen=True)
class Limits:
    """What one dispatch may ask for. The defaults are those of CPU devices (`runtime/include/eyas/hal.h`)."""

    max_bindings: int = 256
    push_constant_bytes: int = 256 * 8
    max_grid: tuple[int, int, int] = (2**31 - 1, 2**31 - 1, 2**31 - 1)
    """Workgroups per axis."""
    offset_alignment: int = 1
    """Bytes that a binding's offset in its buffer must be a multiple of; 1: it may begin anywhere."""
    max_binding_bytes: int = 2**63 - 1
    """How much of a buffer a dispatch sees through one binding."""

    @property
    def segment_bytes(self) -> int:
        """What a tensor that needs several bindings has in each but the last. Each begins where bindings may and at a
        whole vector, and has room for the bytes by which an unaligned tensor begins behind that."""
        unit = max(self.offset_alignment, _VECTOR_BYTES)
        return max(unit, (self.max_binding_bytes - self.offset_alignment) // unit * unit)

    def segments(self, tensor_bytes: int) -> int:
        """Bindings that show all of a tensor."""
        return max(1, -(-tensor_bytes // self.segment_bytes))


@dataclass(frozen=True)
class Target(ABC):
    """A machine to compile for: `BACKEND[:...]`, see `eyas targets`.

    Equal targets print equal text, and `Target.parse(str(t)) == t`. What only one kind of machine has is in its class:
    `CpuTarget`, `TileMachine`, `GpuTarget`.
    """

    limits: ClassVar[Limits] = Limits()

    @staticmethod
    def parse(text: str | Target) -> Target:
        """Reads a target; raises TargetError that names the part, what is allowed, and the nearest match."""
        return text if isinstance(text, Target) else _parse(text.strip())

    @staticmethod
    def host() -> Target:
        """This machine, with the features that its operating system and hypervisor let programs use."""
        from eyas.targets.host import detect

        return detect()

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    @abstractmethod
    def backend(self) -> str:
        """The part before the first colon: which row of `registry.py` it is of."""

    @property
    @abstractmethod
    def cores(self) -> int:
        """How many workgroups can run at the same moment."""

    @property
    @abstractmethod
    def caches(self) -> Caches: ...

    @property
    @abstractmethod
    def runs_here(self) -> bool:
        """Whether this machine can run what is compiled for the target."""

    @property
    def required_features(self) -> tuple[str, ...]:
        """Sorted features that the runtime must find on a device before it runs code made for this target."""
        return ()

    @property
    def preference(self) -> int:
        """Which of two targets that a device can run is the better one: the higher."""
        return 0

    @property
    def near_bytes(self) -> int:
        """What one core reads at full speed, and so the size of a block of intermediates that is used again at once.

        The power of two that the first-level cache holds: what else streams by has the rest.
        """
        return 1 << (self.caches.l1d_bytes.bit_length() - 1)

    @property
    def workgroup_bytes(self) -> int:
        """What one workgroup may keep to itself between its loop nests: rows of intermediates, keys of a head.

        Twice what is near: it is written and read in order, which the second-level cache keeps up with.
        """
        return 2 * self.near_bytes

    @property
    def wanted_threads(self) -> int:
        """Threads of one dispatch that keep all processors busy, where these are far more than cores; else 0."""
        return 0

    @property
    def reads_rows_again(self) -> bool:
        """Whether a workgroup goes through a row that it cannot keep as often as needed, and makes again what it makes
        of each element: then rows of any length are one dispatch."""
        return False

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits that change exactly when the target's text does; for cache keys."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:16]


def parse_targets(given: str | Target | Sequence[str | Target]) -> tuple[Target, ...]:
    """One target or several, as people give them."""
    return tuple(map(Target.parse, [given] if isinstance(given, str | Target) else given))


def best_first(targets: Sequence[Target]) -> tuple[Target, ...]:
    """The variants of a module in the order in which a device is offered them: code that uses more of a machine first,
    what runs everywhere last, equals as they were given."""
    repeated = [str(one) for one, count in Counter(targets).items() if count > 1]
    if repeated:
        raise TargetError(f"the target '{repeated[0]}' is given more than once; a module has one variant for each")
    return tuple(sorted(targets, key=lambda one: -one.preference))


@lru_cache(maxsize=256)
def _parse(text: str) -> Target:
    from eyas.targets.registry import backend_row

    name, _, rest = text.partition(":")
    return backend_row(name, text).parse(text, rest)
