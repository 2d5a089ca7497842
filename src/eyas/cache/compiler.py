"""Which compiler this is: a digest of its own source and of the libraries that make code."""

from __future__ import annotations

import functools
import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import eyas
from eyas.cache.digest import digests_of, key_of

_ENDINGS = (".py", ".so")
_PACKAGES = ("torch-mlir", "llvmlite", "numpy", "ml_dtypes")


@dataclass(frozen=True)
class Compiler:
    """The source files as they were found, and a digest of their content and of the libraries' versions."""

    files: tuple[tuple[str, int, int], ...]
    digest: str

    @property
    def is_current(self) -> bool:
        """Whether the files are still the ones that this process runs: somebody may be editing them."""
        return _files() == self.files and _newest(self.files) < _process_start()


@functools.cache
def this_compiler() -> Compiler | None:
    """The compiler that this process runs, or None when its files changed after the process had begun."""
    files = _files()
    if not files or _newest(files) >= _process_start():
        return None
    root = _root()
    content = digests_of([(root / name).read_bytes() for name, _, _ in files])
    names = [name for name, _, _ in files]
    return Compiler(files, key_of(names, content, [_version(name) for name in _PACKAGES], platform.python_version()))


def _root() -> Path:
    return Path(eyas.__file__).parent


def _files() -> tuple[tuple[str, int, int], ...]:
    """Path, modification time in nanoseconds and size of every source file and library of the package."""
    root = str(_root())
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(_ENDINGS):
                path = os.path.join(folder, name)
                status = os.stat(path)
                found.append((os.path.relpath(path, root), status.st_mtime_ns, status.st_size))
    return tuple(sorted(found))


def _newest(files: tuple[tuple[str, int, int], ...]) -> float:
    return max(modified for _, modified, _ in files) / 1e9


@functools.cache
def _process_start() -> float:
    """When this process began, in seconds since 1970; 0 where that is not known."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
    return time.time() - age


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
