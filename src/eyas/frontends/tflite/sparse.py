"""Sparse weights, which the format stores as a tree of dimensions: dense ones, and compressed rows (CSR)."""

from __future__ import annotations

from typing import Any

import numpy as np

from eyas.errors import FrontendError


def densify(name: str, values: np.ndarray, shape: tuple[int, ...], sparsity: Any, schema: Any) -> np.ndarray:
    """The whole tensor. Levels come in the order of traversal; those past the rank are dimensions inside blocks."""
    order = [int(axis) for axis in sparsity.TraversalOrderAsNumpy()]
    blocks = [int(axis) for axis in sparsity.BlockMapAsNumpy()] if sparsity.BlockMapLength() else []
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocks))) or sparsity.DimMetadataLength() != len(order):
        raise _bad(name, f"its traversal order is {order}")
    if any(not 0 <= axis < rank for axis in blocks):
        raise _bad(name, f"its blocks are of dimensions {blocks}")
    places, coordinates = np.zeros(1, np.int64), dict[int, np.ndarray]()
    sizes = dict[int, int]()
    for level, axis in enumerate(order):
        one = sparsity.DimMetadata(level)
        if one.Format() == schema.DimensionType.DENSE:
            size = sizes[axis] = int(one.DenseSize())
            if size < 0 or places.size * size > int(np.prod(shape, dtype=object)):
                raise _bad(name, f"level {level} has {size} entries")
            parents = np.repeat(np.arange(places.size), size)
            chosen = np.tile(np.arange(size), places.size)
            places = places[parents] * size + chosen
        else:
            segments = _vector(one.ArraySegmentsType(), one.ArraySegments(), schema)
            indices = _vector(one.ArrayIndicesType(), one.ArrayIndices(), schema)
            if places.size and (places.max() + 1 >= segments.size or segments.max(initial=0) > indices.size):
                raise _bad(name, f"the segments of level {level} end after its indices do")
            counts = np.diff(segments)[places]
            if (counts < 0).any():
                raise _bad(name, f"the segments of level {level} are not in order")
            parents = np.repeat(np.arange(places.size), counts)
            first = np.repeat(segments[:-1][places] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            places = first + np.arange(parents.size)
            chosen = indices[places]
        coordinates = {known: found[parents] for known, found in coordinates.items()} | {axis: chosen}
    if places.size and places.max() >= values.size:
        raise _bad(name, f"it has {values.size} values for {places.max() + 1}")
    index = [coordinates[axis] for axis in range(rank)]
    for inner, axis in enumerate(blocks):
        index[axis] = index[axis] * sizes[rank + inner] + coordinates[rank + inner]
    if any(((found < 0) | (found >= size)).any() for found, size in zip(index, shape, strict=True)):
        raise _bad(name, "an index is outside its shape")
    dense = np.zeros(shape, values.dtype)
    dense[tuple(index)] = values[places]
    return dense


def _vector(kind: int, table: Any, schema: Any) -> np.ndarray:
    names = {value: key for key, value in vars(schema.SparseIndexVector).items() if isinstance(value, int)}
    vector = getattr(schema, names[kind])()
    vector.Init(table.Bytes, table.Pos)
    return np.asarray(vector.ValuesAsNumpy(), np.int64).reshape(-1) if vector.ValuesLength() else np.zeros(0, np.int64)


def _bad(name: str, what: str) -> FrontendError:
    return FrontendError(f"sparse tensor '{name}' is damaged: {what}")
