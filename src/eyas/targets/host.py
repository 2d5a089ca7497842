"""What this machine is: CPU name and features through LLVM, cache sizes through sysfs, cores of this process."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path

from eyas import knobs
from eyas.errors import TargetError
from eyas.targets import facts
from eyas.targets.cpu import CpuTarget
from eyas.targets.target import DEFAULT_CORES
from eyas.targets.text import KIB

_ARCH_NAMES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64", "riscv64": "riscv64"}
_SYSFS_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@lru_cache(maxsize=1)
def detect() -> CpuTarget:
    """The host as a target. Features that the CPU model has but that are hidden from programs print as `-feature`."""
    from eyas.targets.llvm_library import llvm

    arch_name = _ARCH_NAMES.get(platform.machine().lower())
    if arch_name is None:
        raise TargetError(
            f"this machine is '{platform.machine()}', which Eyas cannot compile for; "
            f"name a target of {', '.join(facts.ARCHES)}"
        )
    # LLVM reads CPUID together with XGETBV (or HWCAP), so what the kernel or hypervisor masks is reported as absent.
    features = dict(llvm.get_host_cpu_features())
    found = target_for(arch_name, llvm.get_host_cpu_name(), features, read_caches(), count_cores())
    return found if knobs.host() is None else _taken_for(knobs.host() or "", found)


def _taken_for(level: str, found: CpuTarget) -> CpuTarget:
    """The target of that name, with this machine's caches and cores."""
    if level not in facts.ARCHES[found.arch].cpus:
        raise TargetError(f"EYAS_HOST is '{level}', which is no CPU of {found.arch}")
    taken = target_for(found.arch, level, {}, read_caches(), count_cores())
    missing = sorted(taken.feature_set - found.feature_set)
    if missing:
        raise TargetError(f"EYAS_HOST is '{level}', and this machine has not all of it: {', '.join(missing)}")
    return taken


def count_cores() -> int:
    """The CPUs that this process may use, which is how many workers a device gets by default."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or DEFAULT_CORES


def target_for(
    arch_name: str, cpu: str, reported: dict[str, bool], caches: dict[str, int], cores: int = DEFAULT_CORES
) -> CpuTarget:
    """Expresses detected facts as the nearest known CPU plus what differs from it."""
    arch = facts.ARCHES[arch_name]
    if cpu not in arch.cpus:
        cpu = arch.default_cpu
    model = arch.cpus[cpu]
    changes = []
    for name in arch.implies:
        has, expected = reported.get(name), name in model.features
        # A feature that LLVM does not report on this system (None) is left as the CPU model has it.
        if has is not None and has != expected and name not in arch.baseline:
            changes.append(f"{'+' if has else '-'}{name}")
    options = [(name, size) for name, size in caches.items() if size != getattr(model, name)]
    options += [("cores", cores)] if cores != DEFAULT_CORES else []
    return CpuTarget(arch_name, cpu, tuple(changes), tuple(options))


def read_caches(root: Path = _SYSFS_CACHES) -> dict[str, int]:
    """`{"l1d": bytes, "l2": bytes, "l3": bytes}` for what the kernel tells; empty where it tells nothing."""
    found: dict[str, int] = {}
    for index in sorted(root.glob("index*")):
        try:
            level, kind = (index / "level").read_text().strip(), (index / "type").read_text().strip()
            size = (index / "size").read_text().strip()
        except OSError:
            continue
        name = {("1", "Data"): "l1d", ("2", "Unified"): "l2", ("3", "Unified"): "l3"}.get((level, kind))
        if name and size.endswith("K") and size[:-1].isdigit():
            found[name] = int(size[:-1]) * KIB
    return {name: found[name] for name in ("l1d", "l2", "l3") if name in found}
