"""Whole numbers: what takes as many steps as they have bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.while_loop import while_loop_op

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.bitwise_and.Scalar: lambda x, y: torch.bitwise_and(x, _beside(y, x)),
        aten.bitwise_or.Scalar: lambda x, y: torch.bitwise_or(x, _beside(y, x)),
        aten.bitwise_xor.Scalar: lambda x, y: torch.bitwise_xor(x, _beside(y, x)),
        aten.bitwise_left_shift.Scalar_Tensor: lambda x, y: torch.bitwise_left_shift(_like(x, y), y),
        aten.bitwise_right_shift.Scalar_Tensor: lambda x, y: torch.bitwise_right_shift(_like(x, y), y),
        aten.bitwise_left_shift.Tensor_Scalar: lambda x, y: _shifted(torch.bitwise_left_shift, x, y),
        aten.bitwise_right_shift.Tensor_Scalar: lambda x, y: _shifted(torch.bitwise_right_shift, x, y),
        aten.fmod.Scalar: lambda x, y: torch.fmod(x, _beside(y, x)),
        aten.gcd.default: gcd,
        aten.heaviside.default: heaviside,
        aten.lcm.default: lcm,
        aten.pow.Scalar: lambda number, x: power(_beside(number, x), x),
        aten.pow.Tensor_Tensor: power,
    }


def _shifted(shift: Callable[..., Tensor], x: Tensor, by: Any) -> Tensor:
    """Truths are whole numbers beside a number."""
    return shift(x.to(torch.result_type(x, by)), _beside(by, x)) if x.dtype == torch.bool else NotImplemented


def heaviside(x: Tensor, at_zero: Tensor) -> Tensor:
    """A step from 0 to 1, with a value of its own at 0."""
    return torch.where(x == 0, at_zero, (x > 0).to(x.dtype))


def gcd(x: Tensor, y: Tensor) -> Tensor:
    """The greatest common divisor, by Euclid: all elements take as many steps as the slowest."""
    dtype = torch.result_type(x, y)
    x, y = (one.contiguous() for one in torch.broadcast_tensors(x.to(dtype).abs(), y.to(dtype).abs()))

    def is_left(x: Tensor, y: Tensor) -> Tensor:
        return (y != 0).any()

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        rest = torch.remainder(x, torch.where(y == 0, 1, y))
        return torch.where(y == 0, x, y), torch.where(y == 0, 0, rest)

    return while_loop_op(is_left, step, (x, y), ())[0]  # pyright: ignore[reportArgumentType]  # the stubs know one carried value


def lcm(x: Tensor, y: Tensor) -> Tensor:
    """The least common multiple; one that is too large for 8 or 16 bits loses its upper ones, as C has it, and may be
    negative then."""
    divisor = gcd(x, y)
    shared = torch.div(x.to(divisor.dtype), torch.where(divisor == 0, 1, divisor), rounding_mode="floor")
    wide = torch.promote_types(divisor.dtype, torch.int32)
    return (shared.to(wide) * y.to(wide)).abs().to(divisor.dtype)


def power(x: Tensor, exponent: Tensor) -> Tensor:
    """By squaring; products wrap around. A negative exponent gives 0 but for 1 and -1. Whole exponents of other numbers
    are rounded to the type of the result, as torch's kernels do: 32767 is even in f16."""
    dtype = torch.result_type(x, exponent)
    if dtype.is_floating_point and exponent.dtype != dtype and not exponent.is_floating_point():
        return torch.pow(x.to(dtype), exponent.to(dtype))
    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        return NotImplemented
    base, exponent = (one.contiguous() for one in torch.broadcast_tensors(x.to(dtype), exponent.to(dtype)))
    rest = exponent.clamp(min=0)

    def is_left(made: Tensor, factor: Tensor, rest: Tensor) -> Tensor:
        return (rest != 0).any()

    def step(made: Tensor, factor: Tensor, rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return torch.where((rest & 1) == 1, made * factor, made), factor * factor, torch.bitwise_right_shift(rest, 1)

    made = while_loop_op(is_left, step, (torch.ones_like(base), base.clone(), rest), ())[0]  # pyright: ignore[reportArgumentType]  # the stubs know one carried value
    unit = torch.where(base == 1, 1, torch.where(base == -1, 1 - 2 * (exponent & 1), 0)).to(dtype)
    return torch.where(exponent < 0, unit, made) if dtype.is_signed else made


def _like(number: Any, x: Tensor) -> Tensor:
    return torch.full((), number, dtype=x.dtype, device=x.device)


def _beside(number: Any, x: Tensor) -> Tensor:
    """A number as a tensor of the type that it has beside another."""
    return torch.full((), number, dtype=torch.result_type(x, number), device=x.device)
