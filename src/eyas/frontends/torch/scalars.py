"""Ops along a dimension, of tensors that have none.

torch takes a tensor without dimensions where one dimension is meant, as if it had one of size 1. So it gets one for the
op, and the results lose it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

OPS = (
    *(aten.all.dim, aten.all.dims, aten.any.dim, aten.any.dims, aten.amax.default, aten.amin.default),
    *(aten.argmax.default, aten.argmin.default, aten.aminmax.default, aten.max.dim, aten.min.dim),
    *(aten.median.dim, aten.nanmedian.dim, aten.mode.default, aten.kthvalue.default, aten.topk.default),
    *(aten.sort.default, aten.sort.stable, aten.argsort.stable),
    *(aten.cumsum.default, aten.cumprod.default, aten.cummax.default, aten.cummin.default, aten.logcumsumexp.default),
    *(aten._softmax.default, aten._log_softmax.default, aten._safe_softmax.default, aten.logsumexp.default),
    *(aten.sum.dim_IntList, aten.mean.dim, aten.prod.dim_int, aten.nansum.default),
    *(aten.var.correction, aten.std.correction, aten.var_mean.correction, aten.std_mean.correction),
    *(aten.linalg_vector_norm.default, aten.norm.ScalarOpt_dim, aten.norm.ScalarOpt_dim_dtype),
    *(aten.gather.default, aten.index_select.default, aten.index_fill.int_Scalar, aten.index_fill.int_Tensor),
    *(aten.index_add.default, aten.index_copy.default, aten.index_reduce.default),
    *(aten.scatter.src, aten.scatter.value, aten.scatter.reduce, aten.scatter.value_reduce),
    *(aten.scatter_add.default, aten.scatter_reduce.two, aten.flip.default, aten.renorm.default),
    *(aten.count_nonzero.dim_IntList, aten.cumulative_trapezoid.x),
)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {op: _with_dimension(op) for op in OPS}


def _with_dimension(op: Any) -> Callable[..., Any]:
    def decomposition(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dim():
            return NotImplemented
        # The places and values that are given may have no dimension either; those that have one say how many there are.
        rank = (
            max((one.dim() for one in args if isinstance(one, Tensor)), default=0) if op is aten.gather.default else 0
        )
        made = op(*[_one(each) for each in (x, *args)], **{name: _one(each) for name, each in kwargs.items()})
        if isinstance(made, Tensor):
            return made if rank or not made.dim() else made.reshape(())
        return tuple(one.reshape(()) if one.dim() else one for one in made)

    return decomposition


def _one(value: Any) -> Any:
    return value.reshape(1) if isinstance(value, Tensor) and not value.dim() else value
