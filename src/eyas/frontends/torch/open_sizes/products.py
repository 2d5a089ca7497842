"""Products of tensors whose sizes vary, and norms and bags of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


def forms() -> dict[Any, Callable[..., Any]]:
    """By function."""
    in_parts = getattr(F, "linear_cross_entropy", None)  # older versions of torch have none
    return {
        **({in_parts: linear_cross_entropy} if in_parts else {}),
        torch.kron: kron,
        Tensor.kron: kron,
        torch.bilinear: bilinear,
        F.embedding_bag: embedding_bag,
        torch.chain_matmul: lambda *matrices: multi_dot(matrices),
        torch.linalg.multi_dot: multi_dot,
        torch.linalg.matrix_norm: matrix_norm,
    }


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Each element of the one times all of the other."""
    rank = max(input.dim(), other.dim())
    one, two = (x.reshape([1] * (rank - x.dim()) + list(x.shape)) for x in (input, other))
    shape = [first * second for first, second in zip(one.shape, two.shape, strict=True)]
    for dim in range(rank):
        one, two = one.unsqueeze(2 * dim + 1), two.unsqueeze(2 * dim)
    return (one * two).reshape(shape)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W y for each pair of rows and each matrix of the weights."""
    results, width, other = weight.shape
    half = (input1 @ weight.permute(1, 0, 2).reshape(width, results * other)).unflatten(-1, (results, other))
    product = (half * input2.unsqueeze(-2)).sum(-1)
    return product if bias is None else product + bias


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Bags with a row that does not count, by the operator behind it: it takes that row's place as it is given."""
    if padding_idx is None or padding_idx < 0 or max_norm is not None or mode not in _MODES:
        return NotImplemented
    if input.dim() == 2:
        offsets = torch.arange(0, input.numel(), input.shape[1], dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    options = (scale_grad_by_freq, _MODES.index(mode), sparse, per_sample_weights, include_last_offset)
    return torch.ops.aten._embedding_bag(weight, input, offsets, *options, padding_idx)[0]


_MODES = ("sum", "mean", "max")


def linear_cross_entropy(*args: Any, options: Any = None, **kwargs: Any) -> Tensor:
    """In one piece: how many parts there are would depend on the size."""
    return NotImplemented if options is None else F.linear_cross_entropy(*args, options=None, **kwargs)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """A chain of products. Which order is the shortest depends on sizes; a vector at the end is taken first."""
    if tensors[-1].dim() == 1:
        return functools.reduce(lambda product, matrix: matrix @ product, reversed(tensors))
    return functools.reduce(torch.matmul, tensors)


def matrix_norm(
    A: Tensor,  # noqa: N803
    ord: Any = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The largest or smallest sum of a column or a row; torch has the others itself."""
    if ord not in (1, -1, float("inf"), float("-inf")):
        return NotImplemented
    x = A if dtype is None else A.to(dtype)
    rows, columns = (one % x.dim() for one in dim)
    summed, chosen = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = x.abs().sum(summed, keepdim=True)
    found = sums.amax(chosen, keepdim=True) if ord > 0 else sums.amin(chosen, keepdim=True)
    return found if keepdim else found.squeeze(chosen).squeeze(summed - (chosen < summed))
