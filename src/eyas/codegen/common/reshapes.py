"""Windows under another shape: dimensions that are one after the other in memory become one, or one becomes several."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.codegen.common.kernel import Unsupported
from eyas.codegen.common.places import Filled, Place, Window
from eyas.codegen.common.sizes import ONE, ZERO, Size, product, row_major_strides


def collapse(place: Place, groups: Sequence[Sequence[int]]) -> Place:
    """Each group of dimensions as one."""
    shape = tuple(product([place.shape[dim] for dim in group]) for group in groups)
    if isinstance(place, Filled):
        return Filled(shape, place.scalar)
    if not isinstance(place, Window):
        raise Unsupported("a computed tensor has another shape")
    return Window(place.storage, shape, place.offset, tuple(_stride(place, group) for group in groups))


def _stride(window: Window, group: Sequence[int]) -> Size:
    """The step of dimensions that are walked through as one."""
    dims = [dim for dim in group if window.shape[dim] != ONE]
    for outer, inner in zip(dims, dims[1:], strict=False):
        if window.strides[outer] != window.strides[inner] * window.shape[inner]:
            raise Unsupported("dimensions that are not one after the other become one")
    return window.strides[dims[-1]] if dims else ZERO


def expand(place: Place, groups: Sequence[Sequence[int]], shape: Sequence[Size]) -> Place:
    """Each dimension as a group of those of a shape."""
    if isinstance(place, Filled):
        return Filled(tuple(shape), place.scalar)
    if not isinstance(place, Window):
        raise Unsupported("a computed tensor has another shape")
    strides: list[Size] = []
    for group, stride in zip(groups, place.strides, strict=True):
        strides += [stride * inner for inner in row_major_strides([shape[dim] for dim in group])]
    return Window(place.storage, tuple(shape), place.offset, tuple(strides))
