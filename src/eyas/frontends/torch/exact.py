"""torch ops whose lowering by the importer loses bits or NaN, or divides by nothing."""

from __future__ import annotations

import functools
import math
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
_HALVES = {torch.float16, torch.bfloat16}
_COMPARISONS_OF_TENSORS = (
    aten.eq.Tensor,
    aten.ge.Tensor,
    aten.gt.Tensor,
    aten.le.Tensor,
    aten.lt.Tensor,
    aten.ne.Tensor,
)
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
        aten.cat.default: _joined(aten.cat.default),
        aten.clamp.default: clamp,
        aten.elu.default: elu,
        aten.full.default: fill,
        aten.full_like.default: fill_like,
        aten.hardtanh.default: bound,
        aten.index_put.default: put_nowhere,
        aten.isclose.default: is_close,
        aten.ldexp.Tensor: scaled,
        aten.linalg_vector_norm.default: norm_of_one,
        aten.logaddexp.default: lambda one, other: log_add(one, other, torch.exp, 1.0),
        aten.logaddexp2.default: lambda one, other: log_add(one, other, torch.exp2, math.log(2)),
        aten.logcumsumexp.default: running_log_sum,
        aten.maximum.default: lambda one, other: _extreme(one, other, torch.gt),
        aten.minimum.default: lambda one, other: _extreme(one, other, torch.lt),
        aten.scatter_reduce.two: scatter_mean,
        aten.sgn.default: sign,
        aten.sign.default: sign,
        aten.stack.default: _joined(aten.stack.default),
        aten.where.self: choose,
        **{op: _in_f32(op) for op in _AVERAGES},
        **{op: _with_number(op) for op in _COMPARISONS},
        **{op: _of_halves(op) for op in _COMPARISONS_OF_TENSORS},
    }


def elu(x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """Near zero exp(x) - 1 has no digits left. Halves are computed as f32, as torch has them."""
    if not x.dtype.is_floating_point:
        return NotImplemented
    wide = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
    below = torch.expm1(wide * input_scale) * (alpha * scale)
    return torch.where(wide > 0, wide * scale, below).to(x.dtype)


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


def _of_halves(op: Any) -> Callable[..., Any]:
    """The importer compares f16 with bf16 as one of them, where torch compares both as f32."""

    def decomposition(one: Any, other: Any) -> Any:
        if isinstance(one, Tensor) and isinstance(other, Tensor) and {one.dtype, other.dtype} == _HALVES:
            return op(one.float(), other.float())
        return equal(one, other) if op is aten.eq.Tensor else NotImplemented

    return decomposition


def clamp(x: Tensor, least: Any = None, most: Any = None) -> Any:
    """Integers between bounds that are none."""
    if x.is_floating_point() or not any(isinstance(bound, float) for bound in (least, most)):
        return NotImplemented
    return torch.clamp(x.to(torch.result_type(x, 0.5)), least, most)


def bound(x: Tensor, least: float = -1.0, most: float = 1.0) -> Any:
    """The importer's own form makes the lower bound of NaN."""
    return torch.clamp(x, least, most) if x.is_floating_point() else NotImplemented


def norm_of_one(
    x: Tensor, order: float = 2, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of one element is what it is away from zero, whose powers may be too large or too small to be had."""
    dims = dim or range(x.dim())
    sizes = [x.shape[axis] for axis in dims] if x.dim() else []
    if not order or not x.is_floating_point() or not sizes or any(not isinstance(n, int) or n != 1 for n in sizes):
        return NotImplemented
    wide = torch.abs(x if dtype is None else x.to(dtype))
    return wide if keepdim else wide.squeeze(list(dims))


def choose(condition: Tensor, one: Tensor, other: Tensor) -> Any:
    """Operands of one type: bytes beside integers are taken for signed, and truths beside bytes crash the importer."""
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


def put_nowhere(x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """No positions: the importer divides by their number."""
    sizes = [size for given in indices if given is not None for size in given.shape]
    return x.clone() if any(isinstance(size, int) and size == 0 for size in sizes) else NotImplemented


def _extreme(one: Tensor, other: Tensor, beats: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """NaN in either operand is the result; the importer's comparison misses it in the first."""
    dtype = torch.result_type(one, other)
    if not dtype.is_floating_point:
        return NotImplemented
    one, other = one.to(dtype), other.to(dtype)
    return torch.where(beats(one, other) | (one != one), one, other)


_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32)


def fill(size: Sequence[int], value: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Tensor:
    """Constants of unsigned types are one element, which torch makes, many times: the importer takes it for signed. Of
    a number that is to be a truth it takes the last bit."""
    if dtype == torch.bool and isinstance(value, (int, float)) and not isinstance(value, bool):
        return torch.full(size, bool(value), dtype=dtype, **kwargs)
    if dtype not in _UNSIGNED:
        return NotImplemented
    if isinstance(value, int):
        value %= torch.iinfo(dtype).max + 1  # beside a tensor a number is of its type, whatever is lost
    one = aten.scalar_tensor(value, dtype=dtype)
    return one.expand(size) if size else one


def fill_like(x: Tensor, value: Any, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Tensor:
    """As above."""
    dtype = dtype or x.dtype
    if dtype != torch.bool and dtype not in _UNSIGNED:
        return NotImplemented
    return torch.full(x.shape, value, dtype=dtype, device=x.device)


# Beyond these any number is infinite or 0, whatever it was.
_LARGEST_SCALE = {torch.float64: 2200, torch.float32: 300}


def scaled(x: Tensor, exponent: Tensor) -> Tensor:
    """x 2^exponent for whole exponents, whose power alone may be too large or too small where the result is not."""
    dtype = torch.result_type(x, exponent)
    if exponent.is_floating_point() or not dtype.is_floating_point:
        return NotImplemented
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    most = _LARGEST_SCALE[wide]
    left, made = exponent.to(torch.int32).clamp(-most, most), x.to(wide)
    for parts in (3, 2, 1):
        step = torch.div(left, parts, rounding_mode="trunc")
        made, left = made * torch.exp2(step.to(wide)), left - step
    return made.to(dtype)


def log_add(one: Tensor, other: Tensor, power: Callable[[Tensor], Tensor], unit: float) -> Tensor:
    """The logarithm of a sum of powers. Beside 1 the smaller power would be lost, and with it a result near 0."""
    dtype = torch.result_type(one, other)
    if not dtype.is_floating_point:
        return NotImplemented
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    one, other = one.to(wide), other.to(wide)
    larger, smaller = torch.where(one >= other, one, other), torch.where(one >= other, other, one)
    made = larger + torch.log1p(power(smaller - larger)) * (1 / unit)
    return torch.where((one == other) & (one.abs() == torch.inf), one, made).to(dtype)


def running_log_sum(x: Tensor, dim: int) -> Tensor:
    """log of the sum of exponentials so far; steps of doubling distance see all of them. The importer's overflows."""
    if not x.dim():
        return x.clone()
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    length, values = x.shape[dim], wide.movedim(dim, -1)
    if not isinstance(length, int):
        before = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        values = torch.logsumexp(torch.where(before, values.unsqueeze(-2), -torch.inf), -1)
        return values.movedim(-1, dim).to(x.dtype)
    step = 1
    while step < length:
        later = _log_sum(values[..., step:], values[..., :-step])
        values = torch.cat([values[..., :step], later], -1)
        step *= 2
    return values.movedim(-1, dim).to(x.dtype)


def _log_sum(one: Tensor, other: Tensor) -> Tensor:
    most, least = torch.maximum(one, other), torch.minimum(one, other)
    return torch.where(torch.isinf(most), most, most + torch.log1p(torch.exp(least - most)))


def scatter_mean(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Means of integers are quotients of sums that wrap around in their own type."""
    if reduce != "mean" or x.is_floating_point():
        return NotImplemented
    total = torch.scatter_reduce(x, dim, index, source, "sum", include_self=include_self)
    start = torch.ones_like(x) if include_self else torch.zeros_like(x)
    count = torch.scatter_add(start, dim, index, torch.ones_like(source)).clamp(min=1)
    return torch.div(total, count, rounding_mode="floor")
