"""Rare forms of common torch ops that the importer gets wrong or crashes on, written in forms that it knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.__lshift__.Scalar: aten.bitwise_left_shift.Tensor_Scalar,
        aten.__lshift__.Tensor: aten.bitwise_left_shift.Tensor,
        aten.__rshift__.Scalar: aten.bitwise_right_shift.Tensor_Scalar,
        aten.__rshift__.Tensor: aten.bitwise_right_shift.Tensor,
        aten.bitwise_left_shift.Tensor_Scalar: shift_left,
        aten.bitwise_right_shift.Tensor_Scalar: shift_right,
        aten._assert_async.default: assert_holds,
        aten._assert_async.msg: assert_holds,
        aten._trilinear.default: trilinear,
        aten.addbmm.default: add_products,
        aten.arange.start_step: count,
        aten.diff.default: differences,
        aten.isfinite.default: is_finite,
        aten.neg.default: negative,
        aten.repeat.default: repeat,
        aten.roll.default: roll,
        aten.where.self: choice,
    }


def assert_holds(condition: Tensor, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """A check of ours, which fails the call; the importer's are of sizes, and dropped."""
    torch.ops.eyas.check(condition.reshape(()).to(torch.bool), message)


def add_products(x: Tensor, one: Tensor, other: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """The sum of a batch of products. Factors of whole numbers are whole: torch cuts 0.6 to 0."""
    if x.is_floating_point() or x.is_complex():
        return NotImplemented
    product = torch.bmm(one, other).sum(0, dtype=x.dtype) * int(alpha)
    return product if int(beta) == 0 else x * int(beta) + product


def count(start: Any, end: Any, step: Any = 1, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Tensor:
    """Whole numbers between bounds that are none: what they are is said by the whole parts of the bounds, and how many
    there are by the bounds as they are, but for i64."""
    is_whole = dtype is not None and not (dtype.is_floating_point or dtype.is_complex)
    if not is_whole or not any(isinstance(one, float) for one in (start, end, step)):
        return NotImplemented
    if dtype == torch.int64:
        return torch.arange(int(start), int(end), int(step))
    places = torch.arange(math.ceil((end - start) / step))
    return (places * int(step) + int(start)).to(dtype)


def differences(
    x: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Of neighbours, n times. Where n is 0 nothing is put at the ends either; torch writes to memory then."""
    if n < 0 or not x.dim():
        return NotImplemented  # torch says what is wrong with it
    if n == 0:
        return x.clone()
    given = [one for one in (prepend, x, append) if one is not None]
    x = torch.cat(given, dim) if len(given) > 1 else x
    for _ in range(n):
        if isinstance(x.shape[dim], int) and x.shape[dim] == 0:
            break
        rest = x.shape[dim] - 1
        after, before = x.narrow(dim, 1, rest), x.narrow(dim, 0, rest)
        x = torch.logical_xor(after, before) if x.dtype == torch.bool else after - before
    return x


def choice(condition: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """The importer folds a choice between a value and itself to that value, without the condition's shape. What has
    another shape than the result may turn out to be one value."""
    shape = torch.broadcast_shapes(condition.shape, one.shape, other.shape)
    if one is other:
        return one.expand(shape).clone()
    if one.dim() == other.dim() == 0 and shape:
        return torch.where(condition, one.expand(shape), other)
    return NotImplemented


def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    """The importer divides by dynamic sizes, which may be zero."""
    if all(isinstance(size, int) for size in x.shape):
        return NotImplemented
    for _ in range(len(repeats) - x.dim()):
        x = x.unsqueeze(0)
    sizes = list(x.shape)
    # Before each dimension one that repeats it.
    for dimension in range(len(repeats)):
        x = x.unsqueeze(2 * dimension)
    x = x.expand([size for pair in zip(repeats, sizes, strict=True) for size in pair])
    return x.reshape([count * size for count, size in zip(repeats, sizes, strict=True)])


def trilinear(
    one: Tensor,
    two: Tensor,
    three: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """A product of three tensors, each with dimensions of 1 put in, and its sum over some. The importer sums over
    nothing as over all."""
    for dim in sorted(expand1):
        one = one.unsqueeze(dim)
    for dim in sorted(expand2):
        two = two.unsqueeze(dim)
    for dim in sorted(expand3):
        three = three.unsqueeze(dim)
    product = one * two * three
    return product.sum(list(sumdim)) if sumdim else product


def is_finite(x: Tensor) -> Tensor:
    """Neither infinite nor NaN."""
    if x.is_complex():
        return is_finite(x.real) & is_finite(x.imag)
    return x.abs() < torch.inf if x.is_floating_point() else torch.ones_like(x, dtype=torch.bool)


def shift_left(one: Tensor, other: int) -> Tensor:
    """A shift by a number; the importer has those by tensors."""
    return torch.bitwise_left_shift(one, torch.full((), other, dtype=one.dtype, device=one.device))


def shift_right(one: Tensor, other: int) -> Tensor:
    """As `shift_left`."""
    return torch.bitwise_right_shift(one, torch.full((), other, dtype=one.dtype, device=one.device))


def negative(x: Tensor) -> Tensor:
    """The importer negates integers as f32, which loses all but 24 bits."""
    if x.is_floating_point() or x.is_complex():
        return NotImplemented
    return torch.zeros_like(x) - x


def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """The importer does not wrap shifts that are longer than their dimension."""
    if not dims:
        return torch.roll(x.reshape(-1), shifts, 0).reshape(x.shape) if x.dim() != 1 else torch.roll(x, shifts, 0)
    if all(isinstance(x.shape[dim], int) for dim in dims):
        wrapped = [shift % max(x.shape[dim], 1) for shift, dim in zip(shifts, dims, strict=True)]
        return NotImplemented if wrapped == list(shifts) else torch.roll(x, wrapped, list(dims))
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        places = torch.remainder(torch.arange(size, device=x.device) - shift, size)
        x = torch.index_select(x, dim, places)
    return x
