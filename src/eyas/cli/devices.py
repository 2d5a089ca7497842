"""`eyas devices`: what modules can run on here."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from eyas.cli.common import print_json, print_table, show_bytes

if TYPE_CHECKING:
    from eyas.runtime import DeviceInfo

NAME = "devices"
GPU_DRIVERS = ("vulkan",)


def command(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the devices of this machine."""
    from eyas.runtime import devices

    found = devices()
    if json:
        print_json([asdict(device) for device in found])
        return
    rows: list[tuple[object, ...]] = [("device", "threads", "memory", "runs", "vmvx", "processor")]
    for one in found:
        memory = "the host's" if one.host_visible else "its own"
        vmvx = f"{one.kernels} x {one.width}" if one.kernels else ""
        rows.append((spelled(one), one.threads, memory, ", ".join(one.formats), vmvx, one.description))
    print_table(rows, numbers=(1,))
    for one in found:
        if one.properties:
            print(f"\n{spelled(one)}: {one.description}")
            print_table([(f"  {name}", text) for name, text in describe_gpu(one.properties).items()])
    for driver in GPU_DRIVERS:
        if driver not in {one.name for one in found}:
            print(f"\n{driver}: {_why_none(driver)}")


def spelled(device: DeviceInfo) -> str:
    """What --device takes: the index too, where a machine may have several."""
    return f"{device.name}:{device.index}" if device.properties or device.index else device.name


def describe_gpu(properties: Mapping[str, str]) -> dict[str, str]:
    """What a GPU is as a target, what one dispatch may ask of it, and what would make it do more."""
    from eyas.targets.gpu_device import target_for
    from eyas.targets.gpu_facts import FEATURES

    target = target_for(properties)
    limits, shared = target.limits, show_bytes(target.shared_bytes)
    matrices = [str(shape).removeprefix("matrix:") for shape in target.matrix_shapes]
    missing = [f"{name} ({what})" for name, what in FEATURES.items() if not target.has(name)]
    missing += [] if matrices else ["matrices (matrix instructions)"]
    return {
        "target": str(target),
        "driver": f"{properties['driver']}, Vulkan {properties['api']}, SPIR-V {target.spirv_version}",
        "memory": show_bytes(int(properties["memory-bytes"])),
        "workgroup": f"{target.max_threads} threads in subgroups of {target.subgroup}, {shared} shared",
        "dispatch": f"{limits.max_bindings} buffers of {show_bytes(limits.max_binding_bytes)} at multiples of"
        f" {limits.offset_alignment}, {limits.push_constant_bytes} bytes of constants",
        "features": _wrapped([name for name in FEATURES if target.has(name)]),
        **({"matrices": _wrapped(matrices)} if matrices else {}),
        **({"not there": _wrapped(missing)} if missing else {}),
    }


def _wrapped(names: list[str]) -> str:
    """Names in lines that go on below the first."""
    return textwrap.fill(", ".join(names), 100).replace("\n", "\n" + " " * 14)


def _why_none(driver: str) -> str:
    """Why there is no device of a driver, in the driver's own words."""
    from eyas.errors import UsageError
    from eyas.runtime import Device

    try:
        return f"{Device(driver)} appeared just now"
    except UsageError as error:
        return str(error)
