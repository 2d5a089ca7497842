"""Whole modules by what they were compiled from. Imports nothing of MLIR or LLVM until a target must be resolved."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from eyas.cache.compiler import Compiler, this_compiler
from eyas.cache.digest import key_of
from eyas.cache.store import MODULES, Store
from eyas.targets import Target


@dataclass(frozen=True)
class ModuleCache:
    """Finds and keeps the `.eyas` files of compilations with the same options."""

    store: Store
    compiler: Compiler
    options: tuple[Any, ...]
    """Targets, and what else a compilation was asked for."""

    @staticmethod
    def of(store: Store | None, targets: Sequence[Target], options: tuple[Any, ...]) -> ModuleCache | None:
        compiler = this_compiler() if store is not None else None
        if store is None or compiler is None:
            return None
        return ModuleCache(store, compiler, (tuple(map(str, targets)), *options))

    def find(self, fingerprint: str) -> IO[bytes] | None:
        """The module that a model with this digest was compiled to."""
        return self.store.open(MODULES, self._key(fingerprint))

    def keep(self, fingerprint: str, write: Callable[[IO[bytes]], object]) -> IO[bytes] | None:
        """Has a module written into the cache and returns its file; None when there is no place for it."""
        if not self.compiler.is_current:
            return None
        try:
            file = self.store.create(MODULES, self._key(fingerprint), write)
        except OSError:
            return None
        self.store.trim()
        return file

    def _key(self, fingerprint: str) -> str:
        return key_of("module", self.compiler.digest, list(self.options), fingerprint)


def copy_to(path: Path, file: IO[bytes]) -> None:
    """Writes a module that is in a file to a path; a file that is there is replaced only by the whole of it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        file.seek(0)
        with open(part, "wb") as out:
            shutil.copyfileobj(file, out, 1 << 22)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
