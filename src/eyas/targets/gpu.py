"""`GpuTarget`: a GPU as data. The names are read and printed; nothing compiles for them yet."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eyas.errors import TargetError
from eyas.targets.target import Caches, Limits, Target
from eyas.targets.text import KIB, MIB, looks_like_options, parse_option, print_options


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU, or what an interface guarantees of all of them."""

    cores: int
    """Processors that take workgroups: NVIDIA's SMs, AMD's compute units."""
    subgroup: int
    """Threads that run in step: a warp, a wave."""
    max_threads: int
    """Of one workgroup."""
    shared_bytes: int
    """Memory that the threads of one workgroup share."""
    l1_bytes: int
    l2_bytes: int
    limits: Limits
    matrix_shapes: tuple[tuple[str, int, int, int], ...] = ()
    """(element type, rows, columns, depth) of one matrix instruction of a subgroup."""


# CUDA C++ Programming Guide, "Compute Capabilities". Parameters of a kernel take 4 KB; pointers are among them.
_CUDA = Limits(max_bindings=256, push_constant_bytes=2048, max_grid=(2**31 - 1, 65_535, 65_535), offset_alignment=256)
_MMA_80 = (("f16", 16, 8, 16), ("bf16", 16, 8, 16), ("tf32", 16, 8, 8), ("i8", 16, 8, 32))
# What Vulkan 1.1 promises of every device ("Required Limits").
_VULKAN = Limits(max_bindings=4, push_constant_bytes=128, max_grid=(65_535, 65_535, 65_535), offset_alignment=256)
_SPIRV = Gpu(16, 32, 128, 16 * KIB, 16 * KIB, 1 * MIB, _VULKAN)

GPUS = {
    "cuda": {
        "sm_70": Gpu(80, 32, 1024, 96 * KIB, 128 * KIB, 6 * MIB, _CUDA, (("f16", 8, 8, 4),)),
        "sm_75": Gpu(40, 32, 1024, 64 * KIB, 96 * KIB, 4 * MIB, _CUDA, (("f16", 16, 8, 8), ("i8", 8, 8, 16))),
        "sm_80": Gpu(108, 32, 1024, 163 * KIB, 192 * KIB, 40 * MIB, _CUDA, _MMA_80),
        "sm_86": Gpu(84, 32, 1024, 99 * KIB, 128 * KIB, 6 * MIB, _CUDA, _MMA_80),
        "sm_89": Gpu(142, 32, 1024, 99 * KIB, 128 * KIB, 72 * MIB, _CUDA, _MMA_80),
        "sm_90": Gpu(132, 32, 1024, 227 * KIB, 256 * KIB, 50 * MIB, _CUDA, _MMA_80),
        "sm_90a": Gpu(132, 32, 1024, 227 * KIB, 256 * KIB, 50 * MIB, _CUDA, _MMA_80),
    },
    "vulkan": {"spirv1.3": _SPIRV, "spirv1.4": _SPIRV, "spirv1.5": _SPIRV, "spirv1.6": _SPIRV},
}
"""By backend, then by name; the last is what the backend alone means."""


@dataclass(frozen=True)
class GpuTarget(Target):
    """`cuda[:sm_90a]` or `vulkan[:spirv1.6]`, with `cores=N` behind a colon."""

    interface: str
    chip: str
    core_count: int = 0
    """0: as many as the kind usually has."""

    def __str__(self) -> str:
        return ":".join(
            [self.interface, self.chip, *print_options({"cores": self.core_count} if self.core_count else {})]
        )

    @property
    def backend(self) -> str:
        return self.interface

    @property
    def facts(self) -> Gpu:
        return GPUS[self.interface][self.chip]

    @property
    def cores(self) -> int:
        return self.core_count or self.facts.cores

    @property
    def caches(self) -> Caches:
        return Caches(self.facts.l1_bytes, self.facts.l2_bytes, 0)

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        return self.facts.limits

    @property
    def workgroup_bytes(self) -> int:
        return self.facts.shared_bytes

    @property
    def runs_here(self) -> bool:
        return False  # until there is a driver to ask


def parse(text: str, rest: str) -> GpuTarget:
    """Reads `cuda:...` and `vulkan:...`."""
    backend = text.partition(":")[0]
    parts = [part for part in rest.split(":") if part]
    chip = parts.pop(0) if parts and not looks_like_options(parts[0]) else list(GPUS[backend])[-1]
    if chip not in GPUS[backend]:
        raise TargetError(f"target '{text}': '{chip}' is not known; {backend} has: {', '.join(GPUS[backend])}")
    if len(parts) > 1 or (parts and not re.fullmatch(r"cores=.*", parts[0])):
        raise TargetError(f"target '{text}': the form is {backend}[:{chip}][:cores=N]")
    return GpuTarget(backend, chip, parse_option(text, parts[0], ["cores"])[1] if parts else 0)
