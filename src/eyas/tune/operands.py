"""Values for a dispatch that runs by itself: as a model would have them, exact ones, and ones that are no numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from torch_mlir import ir as mlir

from eyas.ir.walk import entry_block, find_ops, is_tensor
from eyas.program.dtypes import numpy_dtype
from eyas.tune.program import Tensor

_POSITIVE = ("math.sqrt", "math.rsqrt", "math.log", "math.log2", "math.log1p")


class Kind(Enum):
    """What the values are like."""

    NORMAL = "normal"
    EXACT = "exact"
    """Small integers, whatever the type: sums of their products have no rounding in any order."""
    NOT_FINITE = "not finite"
    """Normal, with a few infinities and NaNs."""


@dataclass(frozen=True)
class Range:
    """What is known of the values of an operand: indices lie below a bound, arguments of logarithms above zero."""

    below: int | None = None
    positive: bool = False


def ranges_of(function: mlir.OpView) -> list[Range]:
    """For each tensor operand of a dispatch function. Where several could be indices, all of them are small enough."""
    arguments = [argument for argument in entry_block(function).arguments if is_tensor(argument)]
    bounds = [size for op in find_ops(function, "tensor.extract") for size in _computed_sizes(op)]
    for op in find_ops(function, "tm_tensor.scatter"):
        original = mlir.RankedTensorType(op.operation.operands[-1].type)
        bounds += [size for size in original.shape if size > 0][: 1 or None]
    bound = min(bounds, default=None)
    positive = bool(find_ops(function, *_POSITIVE))
    found = []
    for argument in arguments:
        element = mlir.RankedTensorType(argument.type).element_type
        is_index = isinstance(element, mlir.IntegerType) and element.width >= 32
        found.append(Range(bound if is_index else None, positive and isinstance(element, mlir.FloatType)))
    return found


def _computed_sizes(op: mlir.OpView) -> list[int]:
    """Sizes of the dimensions that a `tensor.extract` reads at computed positions."""
    source, *positions = op.operation.operands
    sizes = []
    for size, position in zip(mlir.RankedTensorType(source.type).shape, positions, strict=True):
        owner = position.owner
        is_loop = not isinstance(owner, mlir.Block) and owner.name in ("linalg.index", "arith.constant")
        if not is_loop and size > 0:
            sizes.append(size)
    return sizes


def array_of(tensor: Tensor, known: Range, kind: Kind, seed: Sequence[int]) -> np.ndarray:
    """Values of an operand; the same for the same seed."""
    random, dtype = np.random.default_rng(list(seed)), numpy_dtype(tensor.dtype)
    if tensor.dtype == "bool":
        return random.integers(0, 2, tensor.shape).astype(bool)
    if tensor.dtype[0] in "iu":
        if known.below is not None:
            return random.integers(0, max(known.below, 1), tensor.shape).astype(dtype)
        bits = 8 * dtype.itemsize
        if bits <= 8:
            return random.integers(*((-128, 128) if tensor.dtype[0] == "i" else (0, 256)), tensor.shape).astype(dtype)
        return random.integers(0, 100, tensor.shape).astype(dtype)
    if kind is Kind.EXACT:
        values = random.integers(-2, 3, tensor.shape).astype(np.float32)
        values = np.abs(values) + 1 if known.positive else values
    elif tensor.dtype.startswith("c"):
        return (random.standard_normal(tensor.shape) + 1j * random.standard_normal(tensor.shape)).astype(dtype)
    else:
        values = random.standard_normal(tensor.shape, np.float32)
        values = np.abs(values) + np.float32(0.1) if known.positive else values
    if kind is Kind.NOT_FINITE and values.size:
        flat = values.reshape(-1)
        places = random.integers(0, flat.size, min(3, flat.size))
        flat[places] = np.array([np.nan, np.inf, -np.inf], np.float32)[: len(places)]
    return values.astype(dtype)
