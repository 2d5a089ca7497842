"""Python's cyclic garbage collector, paused while frameworks trace."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Tracing makes many objects that live; looking through them, and through all of torch, again and again takes a
    fifth of its time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
