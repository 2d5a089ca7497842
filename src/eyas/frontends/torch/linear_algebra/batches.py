"""Batches of matrices with any leading dimensions, as the one that factorisations take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

Tensor = torch.Tensor


def flat(a: Tensor) -> tuple[list[int], Tensor]:
    """The leading dimensions, and all matrices as [count, rows, columns]."""
    batch = list(a.shape[:-2])
    count = 1
    for size in batch:
        count *= size
    return batch, a.reshape([count, *a.shape[-2:]])


def unflat(a: Tensor, batch: Sequence[int]) -> Tensor:
    return a.reshape([*batch, *a.shape[1:]])


def common_batch(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, list[int]]:
    """Two tensors of matrices, flat, with the leading dimensions that both are broadcast to."""
    batch = list(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    both = [flat(one.expand([*batch, *one.shape[-2:]]))[1] for one in (a, b)]
    return both[0], both[1], batch


def eye(a: Tensor) -> Tensor:
    """Unit matrices as large as the last two dimensions."""
    size = a.shape[-1]
    return torch.eye(size, dtype=a.dtype, device=a.device).expand([*a.shape[:-1], size])


def smaller(a: Tensor) -> Any:
    """The number of rows or of columns, whichever is less; computed where sizes that vary do not say."""
    rows, columns = a.shape[-2:]
    if statically_known_true(rows <= columns):
        return rows
    return columns if statically_known_true(columns <= rows) else torch.sym_min(rows, columns)


def larger(a: Tensor) -> Any:
    rows, columns = a.shape[-2:]
    return rows + columns - smaller(a)
