"""uint8 in torch programs: what the importer computes as if bytes were signed is computed in wider integers.

Conversions of bytes are right, so every decomposition converts first and leaves the op on what it became.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

_BINARY = (
    aten.add.Tensor,
    aten.div.Tensor,
    aten.eq.Tensor,
    aten.ge.Tensor,
    aten.gt.Tensor,
    aten.le.Tensor,
    aten.lt.Tensor,
    aten.maximum.default,
    aten.minimum.default,
    aten.mul.Tensor,
    aten.ne.Tensor,
    aten.pow.Tensor_Tensor,
    aten.sub.Tensor,
)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        **{op: _converted(op) for op in _BINARY},
        aten.abs.default: lambda x: x.clone() if _is_bytes(x) else NotImplemented,
        aten.cumsum.default: _summed(aten.cumsum.default),
        aten.prod.dim_int: _summed(aten.prod.dim_int),
        aten.sort.default: order,
        aten.sum.dim_IntList: _summed(aten.sum.dim_IntList),
        aten.topk.default: largest,
    }


def _is_bytes(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.uint8


def _converted(op: Any) -> Callable[..., Any]:
    """Bytes beside another type, or in a true quotient, have the result's type before they meet it."""

    def decomposition(one: Any, other: Any, **kwargs: Any) -> Any:
        if not (_is_bytes(one) or _is_bytes(other)):
            return NotImplemented
        to = torch.result_type(one, other)
        if op is aten.div.Tensor and not to.is_floating_point:
            to = torch.get_default_dtype()
        if all(value.dtype == to for value in (one, other) if isinstance(value, Tensor)):
            return NotImplemented
        one, other = (value.to(to) if isinstance(value, Tensor) else value for value in (one, other))
        return op(one, other, **kwargs)

    return decomposition


def _summed(op: Any) -> Callable[..., Any]:
    """A sum in another type is one of converted bytes."""

    def decomposition(x: Tensor, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
        if not _is_bytes(x) or dtype == torch.uint8:
            return NotImplemented
        to = dtype or torch.int64
        return op(x.to(to), *args, dtype=to, **kwargs)

    return decomposition


def order(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Sorted bytes and where they were."""
    if not _is_bytes(x):
        return NotImplemented
    values, places = torch.sort(x.to(torch.int32), dim, descending)
    return values.to(torch.uint8), places


def largest(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest or smallest bytes and where they were."""
    if not _is_bytes(x):
        return NotImplemented
    values, places = torch.topk(x.to(torch.int32), k, dim, largest, sorted)
    return values.to(torch.uint8), places
