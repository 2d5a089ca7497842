"""Files named by what they are for and by what is in them: `objects/3f/KEY.DIGEST`.

A file appears complete, by renaming, so processes share a folder without locks. Its name holds the digest of its bytes,
and nothing is used whose bytes do not have it. Reading an entry makes it young; the oldest go when the folder is full.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from eyas import knobs
from eyas.cache.digest import digest_of_file, digests_of

OBJECTS, MODULES = "objects", "modules"
KINDS = (OBJECTS, MODULES)
DEFAULT_LIMIT_BYTES = 4 << 30
# A module that takes more than this part of the folder would drive out most of the others.
_LARGEST_SHARE = 4
_PART, _STALE_SECONDS = ".part", 3600.0
_KEY_LENGTH = 64


@dataclass(frozen=True)
class Entry:
    """A file of the store. `used` is when it was last read or written."""

    path: Path
    size: int
    used: float


@dataclass(frozen=True)
class Store:
    """A folder of entries. All methods do without it when the file system refuses: a cache must not fail a compile."""

    folder: Path
    limit_bytes: int = DEFAULT_LIMIT_BYTES

    def read(self, kind: str, key: str) -> bytes | None:
        """The bytes that were written under a key."""
        for path in self._candidates(kind, key):
            with contextlib.suppress(OSError):
                data = path.read_bytes()
                if self._is_good(path, digests_of([data])[0]):
                    return data
        return None

    def open(self, kind: str, key: str) -> IO[bytes] | None:
        """The same as an open file, which stays whole even if the entry is evicted."""
        for path in self._candidates(kind, key):
            with contextlib.suppress(OSError, ValueError):
                file = path.open("rb")
                if self._is_good(path, digest_of_file(file)):
                    return file
                file.close()
        return None

    def write(self, kind: str, key: str, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.create(kind, key, lambda file: file.write(data)).close()

    def create(self, kind: str, key: str, fill: Callable[[IO[bytes]], object]) -> IO[bytes]:
        """Has `fill` write an entry, and returns the file, open. Raises OSError when there is no room for it."""
        folder = self._folder(kind, key)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(_PART, dir=folder)
        file = cast(BinaryIO, os.fdopen(descriptor, "w+b"))
        try:
            fill(file)
            file.flush()
            os.replace(name, folder / f"{key}.{digest_of_file(file)}")
        except BaseException:
            file.close()
            Path(name).unlink(missing_ok=True)
            raise
        return file

    @property
    def largest_bytes(self) -> int:
        """The largest module that is worth keeping."""
        return self.limit_bytes // _LARGEST_SHARE

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """All entries with their kinds; leftovers of writers that died are removed on the way."""
        for kind in KINDS:
            for folder in _scan(self.folder / kind):
                for one in _scan(Path(folder.path)) if folder.is_dir(follow_symlinks=False) else ():
                    with contextlib.suppress(OSError):
                        status = one.stat(follow_symlinks=False)
                        if not one.name.endswith(_PART):
                            yield kind, Entry(Path(one.path), status.st_size, status.st_mtime)
                        elif time.time() - status.st_mtime > _STALE_SECONDS:
                            os.unlink(one.path)

    def trim(self, limit_bytes: int | None = None) -> tuple[int, int]:
        """Removes what was not used for the longest time until the rest fits: the number of entries, and bytes."""
        limit = self.limit_bytes if limit_bytes is None else limit_bytes
        found = sorted((entry for _, entry in self.entries()), key=lambda entry: entry.used)
        left, removed, freed = sum(entry.size for entry in found), 0, 0
        for entry in found:
            if left <= limit:
                break
            left -= entry.size
            with contextlib.suppress(OSError):
                entry.path.unlink()
                removed, freed = removed + 1, freed + entry.size
        return removed, freed

    def _folder(self, kind: str, key: str) -> Path:
        assert kind in KINDS and len(key) == _KEY_LENGTH, (kind, key)
        return self.folder / kind / key[:2]

    def _candidates(self, kind: str, key: str) -> list[Path]:
        """Two processes may have compiled the same thing to different bytes; either will do."""
        names = (entry for entry in _scan(self._folder(kind, key)) if entry.name.startswith(f"{key}."))
        return sorted(Path(entry.path) for entry in names if not entry.name.endswith(_PART))

    def _is_good(self, path: Path, digest: str) -> bool:
        """Whether the bytes are those that were written; an entry that was damaged is removed."""
        if path.name.partition(".")[2] != digest:
            path.unlink(missing_ok=True)
            return False
        os.utime(path)
        return True


def open_store() -> Store | None:
    """The store that the environment asks for, or None when it is off or cannot be used."""
    folder = knobs.cache_folder()
    if folder is None or why_not(folder) is not None:
        return None
    return Store(folder, knobs.cache_limit_bytes(DEFAULT_LIMIT_BYTES))


def why_not(folder: Path) -> str | None:
    """Why a folder cannot be the store. Machine code from a folder that others write to would be theirs."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        return f"it cannot be made: {error.strerror}"
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & 0o002:
        return "everybody may write to it"
    return None if os.access(folder, os.R_OK | os.W_OK | os.X_OK) else "it is read-only"


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
