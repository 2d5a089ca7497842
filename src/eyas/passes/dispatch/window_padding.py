"""Which windows read an image with its padding in place, instead of a padded copy.

Code generation leaves out the taps outside of the image. That pays where the copy costs as much as the window itself
(depthwise convolutions, pooling, few channels), or where much of the work would be with padding (dilated windows).
"""

from __future__ import annotations

import math

from torch_mlir import ir as mlir

from eyas.ir.structured import constant_scalar
from eyas.ir.walk import defining_op

_CONV = "linalg.conv_2d_nhwc_hwcf"
_NEUTRAL = {
    _CONV: 0,
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
    if list(user.operands).count(pad.results[0]) != 1 or not _is_around_image(pad):
        return False
    yielded = list(pad.regions[0].blocks[0].operations)[-1].operands[0]
    owner = defining_op(yielded)
    if owner is None or owner.parent == pad or constant_scalar(yielded) != _NEUTRAL[user.name]:
        return False
    return user.name != _CONV or _pays(user, pad)


def _is_around_image(pad: mlir.Operation) -> bool:
    """Around the two inner dimensions of an image of known size, by amounts that are not negative."""
    source = mlir.RankedTensorType(pad.operands[0].type)
    low, high = (list(mlir.DenseI64ArrayAttr(pad.attributes[name])) for name in ("static_low", "static_high"))
    amounts = list(zip(low, high, strict=True))
    if source.rank != 4 or any(amount < 0 for pair in amounts for amount in pair):
        return False
    return not any(amounts[0] + amounts[3]) and not any(source.is_dynamic_dim(dim) for dim in (1, 2, 3))


def _pays(conv: mlir.Operation, pad: mlir.Operation) -> bool:
    image, padded = (mlir.RankedTensorType(value.type).shape for value in (pad.operands[0], pad.results[0]))
    growth = padded[1] * padded[2] / max(1, image[1] * image[2])
    return image[3] <= _FEW_CHANNELS or growth > _MOSTLY_PADDING
