"""Tuning specs as files: those that users give, and `BACKEND[-more].mlir` beside this, which come with the package.

In: a path, or the name of a backend. Out: texts with names and digests. Nothing of MLIR is needed to look at them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eyas.errors import UsageError
from eyas.knobs import specs_folder


@dataclass(frozen=True)
class SpecSource:
    """The text of a spec, and what people call it. One that was `shipped` gives way where it no longer fits; one that
    a user gave is an error then."""

    name: str
    text: str
    shipped: bool = False

    @cached_property
    def digest(self) -> str:
        """Of the text, and of how serious it is: what a compiled module depends on."""
        return hashlib.sha256(f"{self.shipped}\n{self.text}".encode()).hexdigest()[:16]

    @staticmethod
    def read(path: str | Path) -> SpecSource:
        try:
            return SpecSource(str(path), Path(path).read_text())
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise UsageError(f"cannot read the tuning spec '{path}': {reason}") from None


def as_sources(given: object) -> tuple[SpecSource, ...]:
    """Specs as people give them: the path of a file, text of several lines, something with `text()`, or a list of such,
    the first of which decides where several match."""
    if given is None:
        return ()
    if isinstance(given, SpecSource):
        return (given,)
    if isinstance(given, str) and "\n" in given:
        return (SpecSource("<text>", given),)
    if isinstance(given, str | Path):
        return (SpecSource.read(given),)
    if callable(text := getattr(given, "text", None)):
        return (SpecSource("<spec>", str(text())),)
    if isinstance(given, Iterable):
        return tuple(source for one in given for source in as_sources(one))
    raise UsageError(f"a tuning spec is a path, text or a list of these, not a {type(given).__name__}")


def shipped(backend: str) -> tuple[SpecSource, ...]:
    """The specs that are used for a backend's targets unless somebody says otherwise, in the order of their names."""
    folder = specs_folder() or Path(__file__).parent
    paths = sorted(folder.glob(f"{backend}*.mlir"))
    return tuple(SpecSource(path.name, path.read_text(), shipped=True) for path in paths if _is_of(path, backend))


def _is_of(path: Path, backend: str) -> bool:
    return path.stem == backend or path.stem.startswith(f"{backend}-")
