"""Facts about GPUs, as data: what a kind of GPU, a driver, or an interface promises. The only place that knows them.

Names of features are those that modules record and devices are asked for (docs/vulkan.md). Vulkan can be asked for
everything here but caches, so a device of this machine is told apart from the nearest profile by `gpu_device.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from eyas.targets.text import KIB, MIB

FEATURES: Mapping[str, str] = {
    "f16": "half precision in arithmetic",
    "bf16": "bfloat16 in matrices",
    "f64": "double precision",
    "i8": "bytes in arithmetic",
    "i16": "16-bit integers in arithmetic",
    "i64": "64-bit integers",
    "storage8": "buffers of bytes",
    "storage16": "buffers of 16-bit elements",
    "subgroup-basic": "threads know their subgroup",
    "subgroup-vote": "votes of a subgroup",
    "subgroup-arithmetic": "sums and extremes of a subgroup",
    "subgroup-ballot": "ballots and broadcasts of a subgroup",
    "subgroup-shuffle": "values from other threads of a subgroup",
    "dot8": "dot products of bytes",
    "memory-model": "Vulkan's memory model",
    "atomic-f32-add": "atomic sums of f32 in buffers",
    "float-controls": "signed zeros, infinities and NaNs are kept",
}
"""What a device has or has not, and what that is; shapes of matrices come on top (`MatrixShape`)."""

_MATRIX = re.compile(r"matrix:(f16|bf16|tf32|i8):(f16|f32|i32):(\d+)x(\d+)x(\d+)")


class MatrixShape(NamedTuple):
    """One matrix instruction of a subgroup: rows x depth times depth x columns, added to rows x columns."""

    operand: str
    """Element type of both factors."""
    sum: str
    """Element type of what is added to."""
    rows: int
    columns: int
    depth: int

    def __str__(self) -> str:
        return f"matrix:{self.operand}:{self.sum}:{self.rows}x{self.columns}x{self.depth}"

    @staticmethod
    def parse(text: str) -> MatrixShape | None:
        """The shape that a feature names, or None where it names something else."""
        found = _MATRIX.fullmatch(text)
        return MatrixShape(found[1], found[2], int(found[3]), int(found[4]), int(found[5])) if found else None


def is_feature(name: str) -> bool:
    """Whether a device may have it: a name of `FEATURES`, or a shape of matrices."""
    return name in FEATURES or MatrixShape.parse(name) is not None


NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU, or what an interface guarantees of all of them. The defaults are those of Vulkan 1.1."""

    cores: int = 16
    """Processors that take workgroups: NVIDIA's SMs, AMD's compute units."""
    subgroup: int = 1
    """Threads that run in step: a warp, a wave. 1 where it is not known."""
    threads: int = 128
    """Most threads of one workgroup."""
    shared: int = 16 * KIB
    """Bytes that the threads of one workgroup share."""
    push: int = 128
    """Bytes of push constants."""
    bindings: int = 4
    """Buffers that one kernel sees, those that the driver adds among them."""
    alignment: int = 256
    """Bytes that a buffer's offset is a multiple of."""
    range: int = 128 * MIB
    """Bytes of a buffer that a kernel sees."""
    grid: int = 65_535
    """Workgroups along the first axis; along the others it is 65,535 everywhere."""
    spirv: int = 3
    """The minor version of SPIR-V 1."""
    l1: int = 16 * KIB
    l2: int = 1 * MIB
    features: frozenset[str] = frozenset({"subgroup-basic"})
    """Of `FEATURES`, and shapes of matrices."""
    vendor: int = 0
    """Vulkan's number of who made it; 0 where it is not of one vendor."""
    iterations: int = NO_LIMIT
    """How often one thread may go round, all its loops together: a driver on a CPU may stop what seems to hang."""

    @property
    def shared_is_near(self) -> bool:
        """Whether shared memory is faster than what caches have; where a CPU plays the device, it is the same."""
        return self.vendor not in _SOFTWARE


# Mesa's software devices and SwiftShader, by vendor.
_SOFTWARE = (0x10005, 0x1AE0)


def _features(*names: str) -> frozenset[str]:
    return frozenset(name for group in names for name in group.split())


_SUBGROUPS = "subgroup-basic subgroup-vote subgroup-arithmetic subgroup-ballot subgroup-shuffle"
_NARROW = "f16 i8 i16 storage8 storage16"

# --- Vulkan -----------------------------------------------------------------------------------------------------------
# "Typical": as vulkan.gpuinfo.org has it for most devices of that kind with drivers since 2023; where devices of a kind
# differ, what all of them have.

# As reported for an H200 by its driver 580.159 (Vulkan 1.4). These shapes are typical of NVIDIA's drivers.
_NVIDIA_MATRICES = _features(
    "matrix:f16:f16:16x16x16 matrix:f16:f32:16x16x16 matrix:bf16:f32:16x16x16 matrix:i8:i32:16x16x32"
)
_HOPPER_MATRICES = _NVIDIA_MATRICES | _features(
    "matrix:f16:f16:16x8x8 matrix:f16:f16:16x8x16 matrix:f16:f32:16x8x8 matrix:f16:f32:16x8x16 matrix:i8:i32:16x8x32"
)
_NVIDIA_FEATURES = _features(_SUBGROUPS, _NARROW, "f64 i64 dot8 memory-model atomic-f32-add float-controls")
_HOPPER = Gpu(
    132, 32, 1024, 48 * KIB, 256, 1 << 20, 16, 2**32 - 1, NO_LIMIT, 6, 256 * KIB, 50 * MIB,
    _NVIDIA_FEATURES | _HOPPER_MATRICES | {"bf16"}, 0x10DE,
)  # fmt: skip
# Typical: as Hopper, with fewer and smaller processors (GA102); bf16 as a type of shaders came with later drivers.
_AMPERE = Gpu(
    84, 32, 1024, 48 * KIB, 256, 1 << 20, 16, 2**32 - 1, NO_LIMIT, 6, 128 * KIB, 6 * MIB,
    _NVIDIA_FEATURES | _NVIDIA_MATRICES - {"matrix:bf16:f32:16x16x16"}, 0x10DE,
)  # fmt: skip

VULKAN: Mapping[str, Gpu] = {
    # Vulkan 1.1 specification, "Required Limits"; subgroups may have a single thread, and need only be known.
    "baseline": Gpu(),
    # Mesa 22.3.6, as it reports itself. A CPU: its caches are a core's, its cores are counted where it is found. Loops
    # of a thread end after 65,535 rounds in all, without a word.
    "lavapipe": Gpu(
        16, 8, 1024, 32 * KIB, 128, 32, 16, 128 * MIB, 65_535, 6, 32 * KIB, 512 * KIB,
        _features(_SUBGROUPS, _NARROW, "f64 i64 dot8 memory-model atomic-f32-add float-controls"), 0x10005,
        iterations=65_535,
    ),
    # SwiftShader of Chromium 156, as it reports itself.
    "swiftshader": Gpu(
        16, 4, 256, 32 * KIB, 128, 30, 256, 1 << 30, 65_535, 6, 32 * KIB, 512 * KIB,
        _features(_SUBGROUPS, "dot8 memory-model float-controls"), 0x1AE0,
    ),
    # Typical of Adreno 6xx and 7xx with Qualcomm's driver.
    "adreno": Gpu(
        6, 64, 1024, 32 * KIB, 128, 24, 64, 128 * MIB, 65_535, 5, 32 * KIB, 1 * MIB,
        _features(_SUBGROUPS, "f16 i16 storage16 dot8 float-controls"), 0x5143,
    ),
    # Typical of Valhall (Mali-G77 to G715) with Arm's driver.
    "mali": Gpu(
        10, 16, 512, 32 * KIB, 128, 35, 256, 128 * MIB, 65_535, 5, 16 * KIB, 1 * MIB,
        _features(_SUBGROUPS, _NARROW, "dot8 float-controls"), 0x13B5,
    ),
    # Typical of Navi 31 with RADV; waves of 64 unless 32 are asked for, and WMMA of 16 x 16 x 16.
    "rdna3": Gpu(
        96, 64, 1024, 64 * KIB, 128, 1 << 20, 4, 2**32 - 1, NO_LIMIT, 6, 32 * KIB, 6 * MIB,
        _features(
            _SUBGROUPS, _NARROW, "f64 i64 dot8 memory-model atomic-f32-add float-controls",
            "matrix:f16:f16:16x16x16 matrix:f16:f32:16x16x16 matrix:i8:i32:16x16x16",
        ), 0x1002,
    ),
    # Typical of Alchemist (A770) with ANV. Its matrices want subgroups of 8 and are left to what a device reports.
    "intel-arc": Gpu(
        32, 32, 1024, 64 * KIB, 128, 1 << 20, 4, 2**30, 65_535, 6, 128 * KIB, 16 * MIB,
        _features(_SUBGROUPS, _NARROW, "i64 dot8 memory-model atomic-f32-add float-controls"), 0x8086,
    ),
    # Typical of Apple M1 and later with MoltenVK 1.2; Metal has no double precision.
    "apple-moltenvk": Gpu(
        8, 32, 1024, 32 * KIB, 4096, 31, 16, 2**30, NO_LIMIT, 5, 8 * KIB, 8 * MIB,
        _features(_SUBGROUPS, _NARROW, "i64"), 0x106B,
    ),
    "ampere": _AMPERE,
    "hopper": _HOPPER,
}  # fmt: skip
"""Profiles by name. A device that none of them fits is described by the nearest with what differs."""

# --- CUDA -------------------------------------------------------------------------------------------------------------

# CUDA C++ Programming Guide, "Compute Capabilities". Parameters of a kernel take 4 KB; pointers are among them.
_MMA_80 = _features("matrix:f16:f32:16x8x16 matrix:bf16:f32:16x8x16 matrix:tf32:f32:16x8x8 matrix:i8:i32:16x8x32")


def _sm(cores: int, shared: int, l1: int, l2: int, matrices: frozenset[str]) -> Gpu:
    features = _NVIDIA_FEATURES | matrices
    return Gpu(cores, 32, 1024, shared * KIB, 2048, 256, 256, 2**40, NO_LIMIT, 6, l1 * KIB, l2 * MIB, features, 0x10DE)


CUDA: Mapping[str, Gpu] = {
    "sm_70": _sm(80, 96, 128, 6, _features("matrix:f16:f32:8x8x4")),
    "sm_75": _sm(40, 64, 96, 4, _features("matrix:f16:f32:16x8x8 matrix:i8:i32:8x8x16")),
    "sm_80": _sm(108, 163, 192, 40, _MMA_80),
    "sm_86": _sm(84, 99, 128, 6, _MMA_80),
    "sm_89": _sm(142, 99, 128, 72, _MMA_80),
    "sm_90": _sm(132, 227, 256, 50, _MMA_80),
    "sm_90a": _sm(132, 227, 256, 50, _MMA_80),
}
"""By compute capability; the last is what `cuda` alone means."""

GPUS: Mapping[str, Mapping[str, Gpu]] = {"vulkan": VULKAN, "cuda": CUDA}
"""By backend, then by name."""
