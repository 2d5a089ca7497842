"""Devices: what modules run on. `eyas.Device` opens one, `eyas.devices()` says which there are."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from eyas import knobs
from eyas.errors import UsageError
from eyas.runtime import _core

DEFAULT = "local-task"
_FORMATS = ("elf-x86_64", "elf-aarch64", "elf-riscv64", "vmvx", "spirv")  # what compilation makes
_DRIVER_OF = {"spirv": "vulkan"}  # who runs the formats that are not for a CPU


class Device(_core.Device):
    """An open device: its threads, its memory, what runs on it.

        device = eyas.Device("local-task", threads=4)
        module = eyas.load("model.eyas", device=device)

    `name` is one of `eyas.devices()`; where there are several of a kind, `vulkan:1` or `vulkan:radeon` tells which.
    Options differ between them: `threads`, and what `Device.options_of(name)` lists.
    Modules on one device share its threads and can hand tensors on without a copy; calls on several of them overlap.
    A device is equal to itself alone, and is closed when neither it nor anything on it is referenced any more.
    """

    def __init__(self, name: str = DEFAULT, *, index: int = 0, threads: int | None = None, **options: Any) -> None:
        name, index = (name, index) if ":" not in name else place_of(name)
        given = _checked(name, {"threads": threads, **options})
        super().__init__(name, index, given)
        self.name, self.index, self.options = name, index, given
        info = self.info()
        self.description: str = info["name"]  # the processor
        self.threads: int = info["workers"]  # that work at the same time, the caller of a module among them
        self.host_visible: bool = info["host_visible"]  # arrays and results need no copies
        self.asynchronous: bool = info["asynchronous"]  # it works while the host goes on

    @property
    def formats(self) -> tuple[str, ...]:
        """Kinds of executables that it runs."""
        return tuple(one for one in _FORMATS if self.runs_format(one))

    @property
    def vmvx(self) -> tuple[str, int]:
        """The microkernels that bytecode (the target vmvx) runs with, and how many unit tiles an instruction issues."""
        return _core.vmvx(str(self.options.get("vmvx_kernels", "")), int(self.options.get("vmvx_width", 0)))

    @staticmethod
    def options_of(name: str) -> dict[str, str]:
        """What `Device(name, ...)` takes, and what it means."""
        _check_name(name)
        return {option: description for option, description, *_ in _core.driver_options(name)}

    def __repr__(self) -> str:
        threads = f"{self.threads} thread{'s' if self.threads != 1 else ''}"
        return f"<eyas.Device {self.name}{f':{self.index}' if self.index else ''}, {threads}, {self.description}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UsageError(f"{self!r} belongs to this process; open one there: eyas.Device({self.name!r}, ...)")


@dataclass(frozen=True)
class DeviceInfo:
    """A device that can be opened here, as it is with default options."""

    name: str  # what `Device` and `load(device=...)` take
    index: int
    description: str  # the processor
    threads: int
    host_visible: bool  # the host sees its memory: no copies
    asynchronous: bool
    formats: tuple[str, ...]  # kinds of executables that it runs
    kernels: str  # microkernels that bytecode (the target vmvx) runs with; empty where it runs none
    width: int  # unit tiles that one of its instructions issues
    properties: Mapping[str, str]  # limits and features of a GPU; a CPU has none


def devices() -> list[DeviceInfo]:
    """Every device that can be opened here, the preferred first."""
    found = []
    for name, count in _core.drivers():
        for index in range(count):
            one = shared_device(name, index=index)
            about = (one.description, one.threads, one.host_visible, one.asynchronous, one.formats)
            vmvx = one.vmvx if "vmvx" in one.formats else ("", 0)
            found.append(DeviceInfo(name, index, *about, *vmvx, one.properties))
    return found


def devices_of(driver: str) -> list[Device]:
    """The devices that a driver sees here, open; none where what it needs is not installed."""
    return [shared_device(driver, index) for index in range(dict(_core.drivers()).get(driver, 0))]


def as_device(device: Device | str | None, threads: int | None = None) -> Device:
    """The device that an argument means: one that is open, or by its name the one that all share who ask for it; None
    is the CPU."""
    device = DEFAULT if device is None else device
    if isinstance(device, Device):
        if threads is not None:
            raise UsageError(f"threads={threads}: {device!r} has its threads already; give them to eyas.Device")
        return device
    if not isinstance(device, str):
        raise UsageError(f"device={device!r}: give an eyas.Device, or a name: {', '.join(_names())}")
    return shared_device(*place_of(device), threads=threads)


def device_for(formats: Collection[str]) -> Device:
    """What code of these formats runs on when no device is named: the CPU if some of it is for one, else a GPU."""
    drivers = [_DRIVER_OF.get(one, DEFAULT) for one in formats]
    return shared_device(DEFAULT if not drivers or DEFAULT in drivers else drivers[0])


def place_of(text: str) -> tuple[str, int]:
    """The driver and index of the device that `vulkan`, `vulkan:1` or, by a part of its description, `vulkan:radeon`
    means."""
    name, _, which = text.partition(":")
    _check_name(name)
    if which.isdecimal() or not which:
        return name, int(which or 0)
    known = devices_of(name)
    found = [one for one in known if which.lower() in one.description.lower()]
    if len(found) != 1:
        there = ", ".join(f"{name}:{one.index} ({one.description})" for one in known) or "none"
        raise UsageError(f"device={text!r}: {'more than one' if found else 'none'} is called so; there are: {there}")
    return name, found[0].index


_shared: dict[Any, Device] = {}
_shared_lock = threading.Lock()


def shared_device(name: str, index: int = 0, threads: int | None = None) -> Device:
    """One device for each setting, so that modules which are loaded by name share threads."""
    key = (name, index, *_checked(name, {"threads": threads}).items())
    with _shared_lock:
        if key not in _shared:
            _shared[key] = Device(name, index=index, threads=threads)
        return _shared[key]


def _names() -> list[str]:
    return _core.driver_names()


def _check_name(name: str) -> None:
    if name not in _names():
        raise UsageError(f"no device {name!r}; this runtime has: {', '.join(_names())}")


def _checked(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None, with environment variables as defaults of those that have one."""
    _check_name(name)
    known = {option: (is_text, low, high) for option, _, is_text, _, low, high in _core.driver_options(name)}
    variables = {
        "vmvx_kernels": knobs.vmvx_kernels(),
        "vmvx_width": knobs.vmvx_width(),
        "pipeline_cache": knobs.pipeline_cache(),
        "validation": knobs.vulkan_validation(),
    }
    given = {key: value for key, value in variables.items() if value is not None and key in known}
    given |= {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        if key not in known:
            raise UsageError(f"a {name!r} device has no option {key!r}; it has: {', '.join(known) or 'none'}")
        is_text, low, high = known[key]
        low = max(low, 1) if key == "threads" else low
        if is_text and not isinstance(value, str):
            raise UsageError(f"{key}={value!r}: give a text")
        if not is_text and (type(value) is not int or not low <= value <= high):
            hint = ", or None for all CPUs of this process" if key == "threads" else ""
            raise UsageError(f"{key}={value!r}: give a whole number from {low} to {high}{hint}")
    return given
