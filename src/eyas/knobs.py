"""Environment variables, all of them, as functions that read and check them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eyas.errors import UsageError

_OFF = ("0", "off", "no", "false", "none")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def cache_folder() -> Path | None:
    """Where compiled code is kept: EYAS_CACHE is a folder, or `off`; by default `eyas` in the user's cache folder."""
    given = os.environ.get("EYAS_CACHE", "").strip()
    if given.lower() in _OFF:
        return None
    if given:
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is to be ignored.
    if os.path.isabs(base):
        return Path(base) / "eyas"
    home = os.path.expanduser("~")
    return Path(home) / ".cache" / "eyas" if os.path.isabs(home) else None


def tune_database() -> Path | None:
    """The tuner's trials: EYAS_TUNE_DATABASE is a file; by default `tuning.db` in the cache folder, which does not
    count as cache: nothing evicts it. None where that is off."""
    given = os.environ.get("EYAS_TUNE_DATABASE", "").strip()
    if given:
        return Path(given).expanduser().absolute()
    folder = cache_folder()
    return folder / "tuning.db" if folder else None


def cache_limit_bytes(default: int) -> int:
    """How large the cache may grow: EYAS_CACHE_LIMIT is a number of bytes, or one with K, M, G or T."""
    return _bytes("EYAS_CACHE_LIMIT", default)


HOST_LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


def host() -> str | None:
    """What this machine is taken for: EYAS_HOST is a level of x86-64 that it has, so that tests can be run as on a
    machine with less. The runtime reads it, too (`runtime/src/base/cpu_features.c`)."""
    given = os.environ.get("EYAS_HOST", "").strip()
    if given and given not in HOST_LEVELS:
        raise UsageError(
            f"EYAS_HOST is '{given}'; it can be {', '.join(HOST_LEVELS)}, or empty for what the machine is"
        )
    return given or None


def compile_seconds() -> float:
    """Processor time that code generation may take for a small dispatch before it is stopped and done in a safer way:
    EYAS_COMPILE_SECONDS, 120 by default. Larger dispatches have more, in proportion."""
    given = os.environ.get("EYAS_COMPILE_SECONDS", "").strip() or "120"
    if not re.fullmatch(r"\d+(\.\d+)?", given) or not float(given):
        raise UsageError(f"EYAS_COMPILE_SECONDS is '{given}'; give a number of seconds above 0")
    return float(given)


def compile_memory_bytes() -> int:
    """Memory that code generation of one dispatch may take: EYAS_COMPILE_MEMORY, as EYAS_CACHE_LIMIT is written; by
    default half of the machine's, and at least 4G."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _bytes("EYAS_COMPILE_MEMORY", max(machine // 2, 4 << 30))


def specs_folder() -> Path | None:
    """Where tuning specs are that apply by default: EYAS_SPECS is a folder to have instead of the package's own."""
    given = os.environ.get("EYAS_SPECS", "").strip()
    return Path(given).expanduser().absolute() if given else None


def compiles_in_process() -> bool:
    """EYAS_COMPILE_IN_PROCESS=1: LLVM runs in this process, for debuggers; nothing then contains its death."""
    return os.environ.get("EYAS_COMPILE_IN_PROCESS", "").strip().lower() not in ("", *_OFF)


@contextmanager
def compiling_in_process() -> Iterator[None]:
    """The same for a while, in a process that is itself the one that may die of it."""
    before = os.environ.get("EYAS_COMPILE_IN_PROCESS")
    os.environ["EYAS_COMPILE_IN_PROCESS"] = "1"
    try:
        yield
    finally:
        del os.environ["EYAS_COMPILE_IN_PROCESS"]
        if before is not None:
            os.environ["EYAS_COMPILE_IN_PROCESS"] = before


def planted_death() -> str:
    """EYAS_PLANTED_DEATH, for tests: what a child that generates code does instead, such as `abort:conv:0,1` for
    dispatches with `conv` in their names at the first two steps of caution (`codegen/planted.py`)."""
    return os.environ.get("EYAS_PLANTED_DEATH", "")


def vmvx_kernels() -> str | None:
    """Microkernels that devices run bytecode with: EYAS_VMVX_KERNELS is the name of a set, such as `portable`."""
    return os.environ.get("EYAS_VMVX_KERNELS", "").strip() or None


def vmvx_width() -> int | None:
    """Unit tiles that an instruction of bytecode issues: EYAS_VMVX_WIDTH is 1, 2, 4 or 8."""
    given = os.environ.get("EYAS_VMVX_WIDTH", "").strip()
    if given and given not in ("1", "2", "4", "8"):
        raise UsageError(f"EYAS_VMVX_WIDTH is '{given}'; allowed are 1, 2, 4 and 8")
    return int(given) if given else None


def pipeline_cache() -> str | None:
    """Where GPU devices keep compiled pipelines: `pipelines` in the cache folder."""
    folder = cache_folder()
    return str(folder / "pipelines") if folder else None


def vulkan_validation() -> int | None:
    """EYAS_VULKAN_VALIDATION=1: Khronos' validation layer checks what Vulkan devices are told, and prints what it
    finds; for tests."""
    return 1 if os.environ.get("EYAS_VULKAN_VALIDATION", "").strip().lower() not in ("", *_OFF) else None


def _bytes(name: str, default: int) -> int:
    given = os.environ.get(name, "").strip()
    if not given:
        return default
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", given, re.IGNORECASE)
    if match is None:
        raise UsageError(f"{name} is '{given}'; give a number of bytes, or one with a unit such as 512M or 4G")
    return int(float(match[1]) * _UNITS[match[2].upper()])
