"""Targets that a tuning spec is for: a target's text, of which only what it says must hold.

llvm-cpu                            any CPU that machine code is made for
llvm-cpu:x86_64:znver4              this model, whatever its cores and caches
llvm-cpu:x86_64:+avx2,-avx512f      any x86-64 CPU with one feature and without another
vulkan:lavapipe:subgroup=8          a profile, and a number of it
"""

from __future__ import annotations

from eyas.errors import TargetError
from eyas.targets.cpu import CpuTarget
from eyas.targets.gpu import GpuTarget
from eyas.targets.registry import backend_row
from eyas.targets.target import Target
from eyas.targets.text import looks_like_options, parse_option, print_options

_OF_SCHEDULES = ("subgroup", "threads", "shared")
"""Numbers of a GPU that decide which schedules there are; others only change how fast they run."""
_MOST = 1 << 31


def check_pattern(pattern: str) -> None:
    """Raises TargetError for text that is no target's."""
    backend, names, items = _split(pattern)
    backend_row(backend, pattern)
    if backend == "llvm-cpu" or names:
        Target.parse(pattern)
    elif backend == "vmvx":
        Target.parse(":".join([backend, *items]))


def matches(pattern: str, target: Target) -> bool:
    """Whether all that a pattern says holds for a target."""
    backend, names, items = _split(pattern)
    mine = _names(target)
    return (
        backend == target.backend
        and names == mine[: len(names)]
        and all(_holds(item, target, pattern) for item in items)
    )


def pattern_of(target: Target) -> str:
    """What a spec that was made for a target says by itself: the machine, without its cores and the sizes of its
    caches, and its features only where they change what schedules there are."""
    parts = [target.backend, *_names(target)]
    if isinstance(target, CpuTarget):
        plain = CpuTarget(target.arch, target.cpu)
        same = all(getattr(plain, name) == getattr(target, name) for name in _OF_CODE)
        details = [] if same else list(target.changes)
        if target.vlen != plain.vlen:
            details.append(f"vlen={target.vlen}")
    elif isinstance(target, GpuTarget):
        options = [(name, value) for name, value in target.options if name in _OF_SCHEDULES]
        details = [*(one for one in target.changes if "matrix:" in one), *print_options(options)]
    else:
        details = []
    return ":".join([*parts, *([",".join(details)] if details else [])])


_OF_CODE = ("vector_bits", "vector_registers", "has_fma", "has_f16_arith", "has_bf16_dot", "integer_dot")


def _split(pattern: str) -> tuple[str, list[str], list[str]]:
    """The backend, the names after it and what is said of features and numbers."""
    backend, _, rest = pattern.strip().partition(":")
    names = []
    while rest and not looks_like_options(rest.partition(":")[0]):
        name, _, rest = rest.partition(":")
        names.append(name)
    return backend, names, rest.split(",") if rest else []


def _names(target: Target) -> list[str]:
    if isinstance(target, CpuTarget):
        return [target.arch, target.cpu]
    return [target.profile] if isinstance(target, GpuTarget) else []


def _holds(item: str, target: Target, pattern: str) -> bool:
    if item[:1] in ("+", "-"):
        features = target.feature_set if isinstance(target, CpuTarget) else target.facts.features
        return (item[1:] in features) == (item[0] == "+")
    numbers = _numbers(target)
    if item.startswith("spirv="):
        return isinstance(target, GpuTarget) and item == f"spirv={target.spirv_version}"
    name, value = parse_option(pattern, item, numbers, _MOST)
    return numbers[name] == value


def _numbers(target: Target) -> dict[str, int]:
    """What `name=value` may ask for."""
    caches = target.caches
    common = {"cores": target.cores, "l1d": caches.l1d_bytes, "l2": caches.l2_bytes, "l3": caches.l3_bytes}
    if isinstance(target, CpuTarget):
        return {**common, "vlen": target.vlen}
    if isinstance(target, GpuTarget):
        facts = target.facts
        names = ("subgroup", "threads", "shared", "push", "bindings", "alignment", "range", "grid", "iterations")
        return {**common, **{name: getattr(facts, name) for name in names}}
    return {"cores": target.cores}


__all__ = ["TargetError", "check_pattern", "matches", "pattern_of"]
