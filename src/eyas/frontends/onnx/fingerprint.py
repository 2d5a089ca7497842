"""A digest of an ONNX file, without reading it as ONNX."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from eyas.cache.digest import Uncacheable, digest_of_file, key_of


def fingerprint(path: str, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> str:
    """Covers the file's name and bytes and the shapes of the example inputs; raises Uncacheable for one whose weights
    may be in other files."""
    shapes = [_shape(value) for value in args]
    named = {name: _shape(value) for name, value in kwargs.items()}
    return key_of(version("onnx"), os.path.basename(path), _digest(path), shapes, named, _plain(dynamic_shapes))


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            # The key of the entry that names a tensor's file.
            if data.find(b"location") >= 0:
                raise Uncacheable("weights may be in other files")
            return digest_of_file(file)
    except (OSError, ValueError):
        raise Uncacheable("it cannot be read") from None


def _shape(value: Any) -> Any:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise Uncacheable(f"an example input is a {type(value).__qualname__}")
    return (
        f"{type(value).__module__}.{type(value).__qualname__}",
        [int(size) for size in value.shape],
        str(value.dtype),
    )


def _plain(value: Any) -> Any:
    """Dimensions by name, as `key_of` takes them; named tuples and the like are refused there."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (tuple, list)) else value
