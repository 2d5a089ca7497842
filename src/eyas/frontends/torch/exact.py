"""torch ops whose lowering by the importer loses bits or NaN, or divides by nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


_AVERAGES = (
    aten.avg_pool1d.default,
    aten.avg_pool2d.default,
    aten.avg_pool3d.default,
    aten.mean.default,
    aten.mean.dim,
)
_MIXED = (aten.bitwise_and.Tensor, aten.bitwise_or.Tensor, aten.bitwise_xor.Tensor)
_COMPARISONS = (
    aten.eq.Scalar,
    aten.ge.Scalar,
    aten.gt.Scalar,
    aten.le.Scalar,
    aten.lt.Scalar,
    aten.ne.Scalar,
)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.add.Tensor: _by_tensor(aten.add.Tensor),
        aten.cat.default: _joined(aten.cat.default),
        aten.clamp.default: clamp,
        aten.div.Tensor_mode: floor_quotient,
        aten.eq.Tensor: equal,
        aten.index_put.default: put_nowhere,
        aten.isclose.default: is_close,
        aten.maximum.default: lambda one, other: _extreme(one, other, torch.gt),
        aten.minimum.default: lambda one, other: _extreme(one, other, torch.lt),
        aten.mul.Tensor: _by_tensor(aten.mul.Tensor),
        aten.sgn.default: sign,
        aten.sign.default: sign,
        aten.stack.default: _joined(aten.stack.default),
        aten.sub.Tensor: _by_tensor(aten.sub.Tensor),
        aten.where.self: choose,
        **{op: _in_f32(op) for op in _AVERAGES},
        **{op: _with_number(op) for op in _COMPARISONS},
        **{op: _of_one_type(op) for op in _MIXED},
    }


def _by_tensor(op: Any) -> Callable[..., Any]:
    """The importer crashes on products and differences of 8-bit integers and numbers, not on those of tensors; and on
    truths as numbers."""

    def decomposition(one: Any, other: Any, **kwargs: Any) -> Any:
        if isinstance(other, bool) and isinstance(one, Tensor) and one.dtype != torch.bool:
            return op(one, int(other), **kwargs)
        is_number = isinstance(other, int) and not isinstance(other, bool)
        if not (isinstance(one, Tensor) and one.dtype == torch.int8 and is_number):
            return NotImplemented
        wrapped = (other + 128) % 256 - 128
        return op(one, torch.full((), wrapped, dtype=torch.int8, device=one.device), **kwargs)

    return decomposition


def _with_number(op: Any) -> Callable[..., Any]:
    """The importer folds comparisons of constants with numbers as if both were of one kind: 1.0 < 0 comes out true."""

    def decomposition(x: Tensor, number: Any) -> Any:
        if not isinstance(number, (bool, int, float)):
            return NotImplemented
        to = torch.result_type(x, number)
        kind = float if to.is_floating_point else int if to != torch.bool else bool
        if to.is_complex or (to == x.dtype and type(number) is kind):
            return NotImplemented
        return op(x.to(to), kind(number))

    return decomposition


def _of_one_type(op: Any) -> Callable[..., Any]:
    """Bytes beside integers are taken for signed, and truths beside bytes crash the importer."""

    def decomposition(one: Tensor, other: Tensor) -> Any:
        to = torch.result_type(one, other)
        return NotImplemented if one.dtype == other.dtype else op(one.to(to), other.to(to))

    return decomposition


def clamp(x: Tensor, least: Any = None, most: Any = None) -> Any:
    """Integers between bounds that are none."""
    if x.is_floating_point() or not any(isinstance(bound, float) for bound in (least, most)):
        return NotImplemented
    return torch.clamp(x.to(torch.result_type(x, 0.5)), least, most)


def choose(condition: Tensor, one: Tensor, other: Tensor) -> Any:
    """As above."""
    to = torch.result_type(one, other)
    return NotImplemented if one.dtype == other.dtype else torch.where(condition, one.to(to), other.to(to))


def _joined(op: Any) -> Callable[..., Any]:
    """As above."""

    def decomposition(tensors: Sequence[Tensor], dim: int = 0) -> Any:
        to = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
        if all(tensor.dtype == to for tensor in tensors):
            return NotImplemented
        return op([tensor.to(to) for tensor in tensors], dim)

    return decomposition


def sign(x: Tensor) -> Tensor:
    """Of comparisons with a number of x's kind; see above."""
    if not x.is_floating_point():
        return NotImplemented
    return torch.where(x > 0.0, 1.0, torch.where(x < 0.0, -1.0, 0.0)).to(x.dtype)


def _in_f32(op: Any) -> Callable[..., Any]:
    """Averages of halves: the importer rounds the sum before it divides, which may overflow."""

    def decomposition(x: Tensor, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
        to = dtype or x.dtype
        if to not in (torch.float16, torch.bfloat16):
            return NotImplemented
        return op(x.float(), *args, **kwargs).to(to)

    return decomposition


def equal(one: Any, other: Any) -> Tensor:
    """The importer takes each number for equal to itself, NaN too; it does not say that of unequal."""
    if not (isinstance(one, Tensor) and one.is_floating_point()):
        return NotImplemented
    return torch.logical_not(one != other)


def is_close(one: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Made of `equal`, which sees NaN."""
    if not (one.is_floating_point() and other.is_floating_point()):
        return NotImplemented
    distance = (one - other).abs()
    close = equal(one, other) | (torch.isfinite(distance) & (distance <= atol + (rtol * other).abs()))
    return close | ((one != one) & (other != other)) if equal_nan else close


def floor_quotient(one: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The importer divides integers of 64 bits as f64, which has 53."""
    if rounding_mode != "floor" or not (isinstance(one, Tensor) and isinstance(other, Tensor)):
        return NotImplemented
    if one.dtype != torch.int64 or other.dtype != torch.int64:
        return NotImplemented
    quotient = torch.div(one, other, rounding_mode="trunc")
    rest = one - quotient * other
    return quotient - ((rest != 0) & ((rest < 0) != (other < 0))).to(torch.int64)


def put_nowhere(x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """No positions: the importer divides by their number."""
    sizes = [size for given in indices if given is not None for size in given.shape]
    return x.clone() if any(isinstance(size, int) and size == 0 for size in sizes) else NotImplemented


def _extreme(one: Tensor, other: Tensor, beats: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """NaN in either operand is the result; the importer's comparison misses it in the first."""
    if not one.is_floating_point() or one.dtype != other.dtype:
        return NotImplemented
    return torch.where(beats(one, other) | (one != one), one, other)
