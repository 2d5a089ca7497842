"""Which windows read an image with its padding in place, instead of a padded copy.

Code generation leaves out the taps outside of the image. That pays where the copy costs as much as the window itself
(depthwise convolutions, pooling, few channels), or where much of the work would be with padding (dilated windows).
"""

from __future__ import annotations

import math

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg

from eyas.codegen.common.windows import MAX_TAPS
from eyas.ir.structured import constant_scalar
from eyas.ir.walk import defining_op

_CONV = ("linalg.conv_2d_nhwc_hwcf", "linalg.generic")
_NEUTRAL = {
    "linalg.conv_2d_nhwc_hwcf": 0,
    "linalg.generic": 0,
    "linalg.depthwise_conv_2d_nhwc_hwc": 0,
    "linalg.pooling_nhwc_sum": 0,
    "linalg.pooling_nhwc_max": -math.inf,
    "linalg.pooling_nhwc_min": math.inf,
}
_FEW_CHANNELS = 8
# A padded image that is larger than the image by this much is mostly padding.
_MOSTLY_PADDING = 1.5


def reads_padding_in_place(user: mlir.Operation, pad: mlir.Operation) -> bool:
    """Whether a user of padding is a window that leaves it out."""
    if user.name not in _NEUTRAL or user.operands[0] != pad.results[0] or len(pad.operands) != 1:
        return False
    if list(user.operands).count(pad.results[0]) != 1 or not _is_around_image(pad, user):
        return False
    yielded = list(pad.regions[0].blocks[0].operations)[-1].operands[0]
    owner = defining_op(yielded)
    if owner is None or owner.parent == pad or constant_scalar(yielded) != _NEUTRAL[user.name]:
        return False
    return user.name not in _CONV or (linalg.isa_convolution_op(user) and not _has_lanes(user) and _pays(user, pad))


def _has_lanes(conv: mlir.Operation) -> bool:
    """Whether the image is what changes along the lanes, as in a filter's gradient: its positions are the few taps of
    the filter, and rows of others than these reuse what is read."""
    maps = _maps(conv)
    return any(_has(expr, maps[-1].results[-1]) for expr in maps[0].results)


def _is_around_image(pad: mlir.Operation, user: mlir.Operation) -> bool:
    """Around the dimensions in which a window moves, of an image of known size, by amounts that are not negative; and
    the innermost dimension of the result is another, so that lanes have no edges."""
    source = mlir.RankedTensorType(pad.operands[0].type)
    low, high = (list(mlir.DenseI64ArrayAttr(pad.attributes[name])) for name in ("static_low", "static_high"))
    amounts = list(zip(low, high, strict=True))
    if source.rank != 4 or any(amount < 0 for pair in amounts for amount in pair):
        return False
    maps = _maps(user)
    moving = [dim for dim, expr in enumerate(maps[0].results) if _moves(expr)]
    lanes = maps[-1].results[-1] if len(maps[-1].results) else None
    if any(amounts[dim] != (0, 0) and dim not in moving for dim in range(4)):
        return False
    if lanes is None or any(_has(maps[0].results[dim], lanes) for dim in moving):
        return False
    return not any(source.is_dynamic_dim(dim) for dim in range(1, 4)) and _is_short(user, maps)


def _is_short(user: mlir.Operation, maps: list[mlir.AffineMap]) -> bool:
    """Whether the taps of a window, the second operand's dimensions along which the image moves, can be written out."""
    window = mlir.RankedTensorType(user.operands[1].type)
    moving = [expr for expr in maps[0].results if _moves(expr)]
    taps = [
        size for size, expr in zip(window.shape, maps[1].results, strict=True) if any(_has(one, expr) for one in moving)
    ]
    return not window.has_static_shape or max(taps, default=1) <= MAX_TAPS


def _maps(user: mlir.Operation) -> list[mlir.AffineMap]:
    attributes = user.attributes["indexing_maps"] if "indexing_maps" in user.attributes else None
    maps = linalg.get_indexing_maps(user) if attributes is None else attributes
    return [mlir.AffineMapAttr(one).value for one in maps]


def _moves(expr: mlir.AffineExpr) -> bool:
    return isinstance(expr, mlir.AffineAddExpr)


def _has(expr: mlir.AffineExpr, dim: mlir.AffineExpr) -> bool:
    if isinstance(expr, mlir.AffineAddExpr | mlir.AffineMulExpr):
        return _has(expr.lhs, dim) or _has(expr.rhs, dim)
    return expr == dim


def _pays(conv: mlir.Operation, pad: mlir.Operation) -> bool:
    image, padded = (list(mlir.RankedTensorType(value.type).shape) for value in (pad.operands[0], pad.results[0]))
    still = [size for size, expr in zip(image, _maps(conv)[0].results, strict=True) if not _moves(expr)]
    growth = math.prod(padded[1:]) / max(1, math.prod(image[1:]))
    return (len(still) > 1 and still[-1] <= _FEW_CHANNELS) or growth > _MOSTLY_PADDING
