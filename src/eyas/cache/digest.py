"""Digests of structured values and of large buffers."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

import numpy as np

_CHUNK_BYTES = 1 << 22


class Uncacheable(Exception):
    """Something whose digest cannot be made with certainty; what depends on it is compiled each time."""


def attempt(make: Callable[[], str]) -> str | None:
    """A digest, or None where there is none."""
    try:
        return make()
    except Uncacheable:
        return None


def key_of(*parts: Any) -> str:
    """SHA-256 of plain values: equal for equal values of equal types, and for nothing else."""
    state = hashlib.sha256()
    _feed(state, parts)
    return state.hexdigest()


def _feed(state: Any, value: Any) -> None:
    """Writes a value so that no other value is written the same way: its type, its length, then its content."""
    if value is None or isinstance(value, (bool, int)):
        text = f"{type(value).__name__} {value};"
        state.update(text.encode())
    elif isinstance(value, float):
        state.update(f"float {value.hex()};".encode())
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        state.update(f"str {len(data)};".encode() + data)
    elif isinstance(value, bytes):
        state.update(f"bytes {len(value)};".encode() + value)
    elif isinstance(value, Mapping):
        state.update(f"map {len(value)};".encode())
        for pair in value.items():
            _feed(state, pair)
    elif isinstance(value, (tuple, list)):
        state.update(f"{'tuple' if isinstance(value, tuple) else 'list'} {len(value)};".encode())
        for item in value:
            _feed(state, item)
    else:
        raise Uncacheable(f"a {type(value).__module__}.{type(value).__qualname__}")


def digests_of(buffers: Sequence[Any]) -> list[str]:
    """A digest of the bytes of each buffer, by all CPUs: SHA-256 of the SHA-256s of its pieces.

    Hashing gives the GIL up, so threads do.
    """
    views = [memoryview(one).cast("B") if memoryview(one).nbytes else memoryview(b"") for one in buffers]
    pieces = [view[at : at + _CHUNK_BYTES] for view in views for at in range(0, view.nbytes, _CHUNK_BYTES)]
    workers = min(len(os.sched_getaffinity(0)), len(pieces), 16)
    if workers > 1 and sum(view.nbytes for view in views) > _CHUNK_BYTES:
        # Few, long tasks: threads that take turns for each small buffer would wait for one another.
        with ThreadPoolExecutor(workers) as pool:
            groups = [pieces[first::workers] for first in range(workers)]
            hashed = list(pool.map(lambda group: [hashlib.sha256(piece).digest() for piece in group], groups))
        made = iter([hashed[index % workers][index // workers] for index in range(len(pieces))])
    else:
        made = iter([hashlib.sha256(piece).digest() for piece in pieces])
    counts = [-(-view.nbytes // _CHUNK_BYTES) for view in views]
    return [
        hashlib.sha256(b"%d;" % view.nbytes + b"".join(next(made) for _ in range(count))).hexdigest()
        for view, count in zip(views, counts, strict=True)
    ]


def digests_of_arrays(arrays: Iterable[np.ndarray]) -> list[str]:
    """A digest of the elements of each array in row-major order; only one that lies otherwise is copied at a time."""
    found: list[str] = []
    ready: list[np.ndarray] = []
    for array in arrays:
        is_copy = not array.flags.c_contiguous
        array = np.ascontiguousarray(array).reshape(-1)
        ready.append(array.view(np.uint8) if array.nbytes else np.empty(0, np.uint8))
        if is_copy:
            found, ready = [*found, *digests_of(ready)], []
    return [*found, *digests_of(ready)]


def digest_of_file(file: IO[bytes]) -> str:
    """The digest of an open file's bytes, as `digests_of` makes it."""
    if os.fstat(file.fileno()).st_size == 0:
        return digests_of([b""])[0]
    with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ) as data:
        with memoryview(data) as view:
            return _digest_once(view)


def _digest_once(view: memoryview) -> str:
    # A function of its own, so that no slice of the view outlives it: a map with views cannot be closed.
    return digests_of([view])[0]
