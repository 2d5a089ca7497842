"""The Vulkan devices of this machine as targets: the nearest profile, and what the driver reports beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from eyas.errors import TargetError
from eyas.targets.gpu import OPTIONS, GpuTarget, changed
from eyas.targets.gpu_facts import VULKAN, is_feature
from eyas.targets.text import SIZES

_NAMES = {"shared": "shared_bytes", "push": "push_bytes", "alignment": "offset_alignment", "range": "binding_bytes"}
"""What the runtime calls numbers that a target's text has a short name for."""


def target_here(text: str) -> GpuTarget:
    """The first Vulkan device; raises TargetError that says how to get one, or to do without."""
    found = targets_here("vulkan")
    if not found:
        raise TargetError(
            f"target '{text}' asks the Vulkan device of this machine, and there is none: install a driver and the "
            "loader (Debian: mesa-vulkan-drivers libvulkan1), or name a profile, which needs no device: "
            f"{', '.join(f'vulkan:{name}' for name in VULKAN)}"
        )
    return found[0]


@lru_cache(maxsize=1)
def targets_here(interface: str) -> tuple[GpuTarget, ...]:
    """The devices of an interface, the preferred first; none where no driver is."""
    from eyas.runtime.device import devices_of

    return tuple(target_for(device.properties) for device in devices_of(interface))


def target_for(properties: Mapping[str, Any]) -> GpuTarget:
    """Expresses what a device reports as the profile of its vendor that is nearest, plus what differs from it."""
    features = {name for name in properties["features"] if is_feature(name)}
    numbers = {name: properties[_NAMES.get(name, name)] for name in OPTIONS if name != "spirv"}
    items = [f"{name}={value if name in SIZES else min(value, 2**31 - 1)}" for name, value in numbers.items() if value]
    items.append(f"spirv={properties['spirv']}")
    vendors = [name for name, gpu in VULKAN.items() if gpu.vendor == properties["vendor"]] or ["baseline"]
    candidates = [_expressed(profile, features, items) for profile in vendors]
    return min(candidates, key=lambda one: len(one.changes) + len(one.options))


def _expressed(profile: str, features: set[str], items: list[str]) -> GpuTarget:
    had = VULKAN[profile].features
    signed = [f"-{name}" for name in had - features] + [f"+{name}" for name in features - had]
    return changed(GpuTarget("vulkan", profile), [*signed, *items], "vulkan")
