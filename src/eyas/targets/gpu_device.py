"""The Vulkan devices of this machine as targets: the nearest profile, and what the driver reports beyond it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from eyas.errors import TargetError
from eyas.targets.gpu import GpuTarget, changed
from eyas.targets.gpu_facts import NO_LIMIT, VULKAN, is_feature
from eyas.targets.host import count_cores

_MESA_WITHOUT_LIMIT = 25
"""The version whose lavapipe was seen to run loops of any length; 22.3 was seen to end them."""

# What a device calls the numbers of a target's text (`eyas.Device.properties`).
_COUNTS = {"subgroup": "subgroup", "threads": "threads", "bindings": "bindings", "grid": "grid", "cores": "cores"}
_SIZES = {"shared": "shared-bytes", "push": "push-bytes", "alignment": "offset-alignment", "range": "storage-bytes"}


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


def target_for(properties: Mapping[str, str]) -> GpuTarget:
    """Expresses what a device reports as the profile of its vendor that is nearest, plus what differs from it."""
    features = {name for name in properties if is_feature(name)}
    # Of a grid "65535x65535x65535" the first axis counts; a number that is not reported is the profile's.
    counts = {name: int(properties.get(key, "0").split("x")[0]) for name, key in _COUNTS.items()}
    if properties["type"] == "cpu":
        counts["cores"] = count_cores()
    if (mesa := re.search(r"Mesa (\d+)", properties["driver"])) and int(mesa[1]) >= _MESA_WITHOUT_LIMIT:
        counts["iterations"] = NO_LIMIT
    numbers = [f"{name}={min(count, NO_LIMIT)}" for name, count in counts.items() if count]
    numbers += [f"{name}={properties[key]}" for name, key in _SIZES.items()]
    numbers.append(f"spirv={properties['spirv']}")
    vendor = int(properties["vendor"], 16)
    profiles = [name for name, gpu in VULKAN.items() if gpu.vendor == vendor] or ["baseline"]
    return min((_expressed(one, features, numbers) for one in profiles), key=_differences)


def _expressed(profile: str, features: set[str], numbers: list[str]) -> GpuTarget:
    had = VULKAN[profile].features
    signed = [f"-{name}" for name in had - features] + [f"+{name}" for name in features - had]
    return changed(GpuTarget("vulkan", profile), [*signed, *numbers], "vulkan")


def _differences(target: GpuTarget) -> int:
    return len(target.changes) + len(target.options)
