"""Functions of torch that `torch.export` stops at, in forms that it can trace.

Some of them ask for a value while the program is traced, which it does not have yet: whether two tensors are equal, or
how many classes there are. Here the answer is part of the program. Others look at the data only to complain about it;
those complain when the module is called. And some ask for a size that varies, which the example would answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from eyas.frontends.torch import open_sizes
from eyas.frontends.torch.covariance import corrcoef, cov
from eyas.frontends.torch.ctc import ctc_loss
from eyas.frontends.torch.fourier import short_time
from eyas.frontends.torch.linear_algebra.least_squares import lstsq
from eyas.frontends.torch.parts import combinations, narrow

Tensor = torch.Tensor


class Traceable(TorchFunctionMode):
    """While it lasts, calls of these functions are traced in their other form."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = _FORMS[func](*args, **kwargs) if func in _FORMS else NotImplemented
        return func(*args, **kwargs) if made is NotImplemented else made


def all_close(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are near to each other."""
    return torch.isclose(x, other, rtol, atol, equal_nan).all().item()


def equal(x: Tensor, other: Tensor) -> Any:
    """Whether two tensors have one shape and the same elements."""
    if x.dim() != other.dim() or any(one != size for one, size in zip(x.shape, other.shape, strict=True)):
        return False
    return (x == other).all().item()


def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """As many classes as the largest number asks for, where the call does not say how many."""
    if num_classes != -1:
        return NotImplemented
    classes = x.max().item() + 1
    torch._check(classes >= 1)
    return (x.unsqueeze(-1) == torch.arange(classes, device=x.device)).to(torch.int64)


def gaussian_nll_loss(
    x: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Minus the logarithm of a normal density. Variances below 0 fail the call of the module."""
    if not isinstance(var, Tensor) or reduction not in _REDUCTIONS:
        return NotImplemented
    if var.shape != x.shape and var.shape == x.shape[:-1]:
        var = var.unsqueeze(-1)
    if var.dim() != x.dim() or any(size not in (1, whole) for size, whole in zip(var.shape, x.shape, strict=True)):
        return NotImplemented  # torch says what is wrong with it
    torch.ops.eyas.check(torch.logical_not((var < 0).any()), "gaussian_nll_loss: var has negative entries")
    var = var.clamp(min=eps)
    loss = 0.5 * (torch.log(var) + torch.square(x - target) / var + (math.log(2 * math.pi) if full else 0.0))
    return _REDUCTIONS[reduction](loss)


def assert_holds(condition: Any, message: str = "") -> Any:
    """Of a tensor, the call of the module fails where it does not hold."""
    return torch.ops.aten._assert_async.msg(condition, message) if isinstance(condition, Tensor) else NotImplemented


_REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda loss: loss,
    "mean": lambda loss: loss.mean(),
    "sum": lambda loss: loss.sum(),
}
_FORMS: dict[Any, Callable[..., Any]] = {
    **open_sizes.forms(),
    torch._assert: assert_holds,
    torch.allclose: all_close,
    Tensor.allclose: all_close,
    torch.combinations: combinations,
    torch.corrcoef: corrcoef,
    Tensor.corrcoef: corrcoef,
    torch.cov: cov,
    Tensor.cov: cov,
    torch.equal: equal,
    Tensor.equal: equal,
    torch.narrow: narrow,
    Tensor.narrow: narrow,
    F.ctc_loss: ctc_loss,
    torch.ctc_loss: ctc_loss,
    F.gaussian_nll_loss: gaussian_nll_loss,
    F.one_hot: one_hot,
    torch.linalg.lstsq: lstsq,
    torch.stft: short_time,
    Tensor.stft: short_time,
}
