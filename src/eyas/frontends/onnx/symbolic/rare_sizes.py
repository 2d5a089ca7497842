"""Shapes that onnx's inference drops altogether, rank and all, as soon as a size is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.call import Call, Shape, Size


def _stft(call: Call) -> Sequence[Shape] | None:
    """[batch, frames, bins, 2]."""
    shape, window, steps = call.shape(), call.shape(2), call.elements(1)
    if shape is None:
        return None
    given = call.elements(3)
    length: Size = given[0] if given else window[0] if window and not call.has(3) else None
    bins = length
    if call.attribute("onesided", 1) and (len(shape) == 2 or shape[2] == 1):
        bins = length // 2 + 1 if isinstance(length, int) else None
    frames: Size = None
    if steps and isinstance(steps[0], int) and length is not None:
        # One more than the whole steps that are left; a recording that is too short has none.
        room = ex.add(ex.sub(shape[1], length), steps[0])
        frames = ex.divide(room if ex.is_not_negative(room) else ex.extreme("max", room, 0), steps[0], "floordiv")
    return [[shape[0], frames, bins, 2]]


def _crop_or_pad(call: Call) -> Sequence[Shape] | None:
    shape, wanted = call.shape(), call.elements(1)
    if shape is None:
        return None
    axes = call.attribute("axes") or list(range(len(shape)))
    result: list[Size] = list(shape)
    for index, axis in enumerate(axes):
        result[axis % len(shape)] = wanted[index] if wanted is not None else None
    return [result]


def _unpool(call: Call) -> Sequence[Shape] | None:
    """With the sizes as an operand; onnx computes them from the windows otherwise."""
    shape, wanted = call.shape(), call.elements(2)
    if shape is None or not call.has(2):
        return None
    return [list(wanted) if wanted is not None else [*shape[:2], *[None] * (len(shape) - 2)]]


def _same(call: Call) -> Sequence[Shape] | None:
    shape = call.shape()
    return None if shape is None else [shape]


def _window(call: Call) -> Sequence[Shape] | None:
    size = call.elements(0)
    return [[size[0] if size else None]]


RULES: dict[str, Callable[[Call], Sequence[Shape] | None]] = {
    "BlackmanWindow": _window,
    "CenterCropPad": _crop_or_pad,
    "GroupNormalization": _same,
    "HammingWindow": _window,
    "HannWindow": _window,
    "MaxUnpool": _unpool,
    "STFT": _stft,
}
