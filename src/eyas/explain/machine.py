"""How fast this machine is at best: multiply-adds in registers, and reads from each cache and from memory.

Measured on the device that the module runs on, in a second or a few, and kept in the user's cache folder under the
processor's name and the number of workers, unless other programs were running. Of a GPU only its memory is known.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from eyas.errors import CallError, UsageError
from eyas.knobs import cache_folder
from eyas.runtime import Device
from eyas.targets.others import BUSY, OtherPrograms

_FORMAT = 1  # of the stored numbers; another one is measured anew
_MILLISECONDS, _ROUNDS = 60, 5
_MEMORY_BYTES = 256 << 20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Level:
    """One level of memory. `bytes` is what it holds: of one core for a private cache, else of all; 0 for memory."""

    name: str
    bytes: int
    shared: bool
    bytes_per_s: float


@dataclass(frozen=True)
class Machine:
    """Measured limits of all workers together; levels from the nearest cache to memory."""

    cpu: str
    workers: int
    flops_per_s: float
    levels: tuple[Level, ...]
    disturbed: bool = False
    """Whether other programs ran meanwhile: then the limits may be too low, and are not kept."""

    @property
    def memory(self) -> Level:
        return self.levels[-1]

    def to_json(self) -> dict:
        return {"format": _FORMAT, **asdict(self)}

    @staticmethod
    def from_json(data: dict) -> Machine:
        """Raises KeyError, TypeError or ValueError for what `to_json` did not make."""
        if data["format"] != _FORMAT or not data["levels"]:
            raise ValueError("another format")
        levels = tuple(Level(**level) for level in data["levels"])
        numbers = [float(data["flops_per_s"]), *(float(level.bytes_per_s) for level in levels)]
        if min(numbers) <= 0:
            raise ValueError("a speed that is not positive")
        return Machine(str(data["cpu"]), int(data["workers"]), numbers[0], levels)


def this_machine(device: Device, again: bool = False) -> Machine:
    """The limits of a device of this machine: stored ones unless there are none or `again` asks for new ones."""
    info = device.info()
    path = _stored_at(info["name"], info["workers"])
    if path is not None and not again:
        try:
            return Machine.from_json(json.loads(path.read_text()))
        except (OSError, ValueError, KeyError, TypeError):
            pass
    others = OtherPrograms()
    try:
        machine = _measure(device, info["name"], info["workers"])
    except CallError as error:
        raise UsageError(
            f"the limits of the device '{info['driver']}' cannot be measured: {error}; explain a module, or the time of"
            " its dispatches, on local-task or local-sync"
        ) from error
    if others.share() > BUSY:
        return replace(machine, disturbed=True)
    if path is not None:
        _store(path, machine)
    return machine


def _measure(device: Device, cpu: str, workers: int) -> Machine:
    """The best of several rounds: what else the machine does takes turns with us."""
    if device.properties:
        from eyas.explain.gpu_machine import measure_gpu  # compiles

        flops, speed = measure_gpu(device)
        return Machine(cpu, workers, flops, (Level("memory", 0, True, speed),))
    caches = _cache_sizes()
    flops, speeds = 0.0, [0.0] * (len(caches) + 1)
    for _ in range(_ROUNDS):
        flops = max(flops, device.measure_fma(_MILLISECONDS))
        for index, (_, size, shared) in enumerate(caches):
            # Half of it, so that other data has room. Of a shared cache each worker has a part.
            own = size // 2 // (workers if shared else 1)
            speeds[index] = max(speeds[index], device.measure_read(max(own, 4096), False, _MILLISECONDS))
        speeds[-1] = max(speeds[-1], device.measure_read(_MEMORY_BYTES, True, _MILLISECONDS))
    levels = [Level(name, size, shared, speed) for (name, size, shared), speed in zip(caches, speeds[:-1], strict=True)]
    return Machine(cpu, workers, flops, (*levels, Level("memory", 0, True, speeds[-1])))


def _cache_sizes() -> list[tuple[str, int, bool]]:
    """Name, bytes and whether several cores share it, of each level of data cache; what Linux says of CPU 0."""
    found: dict[int, tuple[str, int, bool]] = {}
    for folder in sorted(_CACHES.glob("index*")):
        try:
            kind = (folder / "type").read_text().strip()
            level = int((folder / "level").read_text())
            size = (folder / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
        if kind == "Instruction" or size[-1:] not in units or not size[:-1].isdigit():
            continue
        found[level] = (f"L{level}", int(size[:-1]) * units[size[-1]], level >= 3)
    # Without any the numbers of a usual core stand in: only which level is shown depends on them.
    return [found[level] for level in sorted(found)] or [("L1", 32 << 10, False), ("L2", 512 << 10, False)]


def _stored_at(cpu: str, workers: int) -> Path | None:
    folder = cache_folder()
    name = "".join(letter if letter.isalnum() else "-" for letter in cpu)
    return None if folder is None else folder / "machines" / f"{name}-{workers}.json"


def _store(path: Path, machine: Machine) -> None:
    """Where it cannot be kept it is measured again next time."""
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(machine.to_json(), indent=1))
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
