"""How composite torch ops are taken apart, where the importer's own way is slow or inexact.

The importer computes variances in f64, carries an argmax through softmax, and has a rounded constant in the tanh form
of GELU. These decompositions stay in f32 (half types are widened for reductions, as torch's kernels do) and leave plain
elementwise and reduction ops that fuse.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch._export.utils
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from eyas.frontends.torch import attention as torch_attention
from eyas.frontends.torch import complex as torch_complex
from eyas.frontends.torch import convolution as torch_convolution
from eyas.frontends.torch import edges as torch_edges
from eyas.frontends.torch import everyday as torch_everyday
from eyas.frontends.torch import exact as torch_exact
from eyas.frontends.torch import fallback as torch_fallback
from eyas.frontends.torch import fourier as torch_fourier
from eyas.frontends.torch import gradients as torch_gradients
from eyas.frontends.torch import images as torch_images
from eyas.frontends.torch import indexing as torch_indexing
from eyas.frontends.torch import linear_algebra as torch_linear_algebra
from eyas.frontends.torch import losses as torch_losses
from eyas.frontends.torch import pooling as torch_pooling
from eyas.frontends.torch import quotients as torch_quotients
from eyas.frontends.torch import random as torch_random
from eyas.frontends.torch import rare as torch_rare
from eyas.frontends.torch import recurrent as torch_recurrent
from eyas.frontends.torch import resize as torch_resize
from eyas.frontends.torch import routing as torch_routing
from eyas.frontends.torch import scalars as torch_scalars
from eyas.frontends.torch import selection as torch_selection
from eyas.frontends.torch import special as torch_special
from eyas.frontends.torch import transformer as torch_transformer
from eyas.frontends.torch.promises import keep_types

aten = torch.ops.aten
Tensor = torch.Tensor


_LEAVES = (aten.full.default,)
"""What the importer lowers well, and others end in: taken apart it would be memory that is filled, which is this."""


_LAYERS = (
    *(torch_exact, torch_quotients, torch_pooling, torch_resize, torch_everyday, torch_images),
    *(torch_scalars, torch_gradients),
)
"""Each goes before what there is already."""


_LIST_OPERATORS = getattr(torch._export.utils, "_materialize_cpp_cia_ops", None)


def decompose(program: torch.export.ExportedProgram, table: Mapping[Any, Callable[..., Any]]) -> Any:
    """`program.run_decompositions(table)`. torch looks up all its operators anew for each of thirty namespaces, which
    is a sixth of what compiling a small model takes; once is enough."""
    if _LIST_OPERATORS is None:
        return program.run_decompositions(dict(table))
    torch._export.utils._materialize_cpp_cia_ops = functools.cache(_LIST_OPERATORS)
    try:
        return program.run_decompositions(dict(table))
    finally:
        torch._export.utils._materialize_cpp_cia_ops = _LIST_OPERATORS


def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """The importer's table with ours on top."""
    return {**_table(), **torch_routing.library_decompositions(), **torch_losses.library_decompositions()}


@functools.cache
def _table() -> dict[Any, Callable[..., Any]]:
    table = {
        **{op: theirs for op, theirs in get_decomposition_table().items() if op not in _LEAVES},
        **torch_convolution.decompositions(),
        **torch_random.decompositions(),
        **torch_rare.decompositions(),
        **torch_complex.decompositions(),
        **torch_edges.decompositions(),
        **torch_fourier.decompositions(),
        **torch_linear_algebra.decompositions(),
        **torch_recurrent.decompositions(),
        **torch_routing.decompositions(),
        **torch_selection.decompositions(),
        **torch_special.decompositions(),
        **torch_transformer.decompositions(),
        aten._native_batch_norm_legit_no_training.default: batch_norm,
        aten._safe_softmax.default: torch_attention.safe_softmax,
        aten._softmax.default: torch_attention.softmax,
        aten.constant_pad_nd.default: constant_pad_nd,
        aten.gelu.default: gelu,
        aten.index.Tensor: torch_indexing.index,
        aten.index_put.default: torch_indexing.index_put,
        aten.lerp.Scalar: lerp,
        aten.native_layer_norm.default: native_layer_norm,
        aten.pow.Tensor_Scalar: power,
        aten.rms_norm.default: rms_norm,
        aten.scaled_dot_product_attention.default: torch_attention.scaled_dot_product_attention,
        aten.squeeze.dims: squeeze,
        aten.std.correction: deviation,
        aten.std_mean.correction: deviation_and_mean,
        aten.topk.default: topk,
        aten.var.correction: variance,
        aten.var_mean.correction: variance_and_mean,
    }
    # torch takes a copy with other strides apart into memory that is written to.
    table[torch.ops.prims.copy_strided.default] = lambda x, strides: x.clone()
    # torch takes this constant apart into memory that is filled, and that into constants.
    table.pop(aten.full.default, None)
    for source in _LAYERS:
        for op, first in source.decompositions().items():
            table[op] = _chain(first, table.get(op))
    typed = {op: keep_types(op, made) if made.__module__.startswith("eyas.") else made for op, made in table.items()}
    return {op: torch_fallback.guarded(decomposition) for op, decomposition in typed.items()}


def _chain(first: Callable[..., Any], second: Callable[..., Any] | None) -> Callable[..., Any]:
    """The second where the first does not apply."""

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        made = first(*args, **kwargs)
        return second(*args, **kwargs) if made is NotImplemented and second is not None else made

    return decomposition


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """The tanh form, and the exact one of half types: 1 + erf(x) rounded to them has nothing left of small results. The
    exact one of others lowers well by itself."""
    wide = _widened(x)
    if approximate != "tanh":
        return NotImplemented if wide is x else torch.nn.functional.gelu(wide).to(x.dtype)
    inner = math.sqrt(2.0 / math.pi) * (wide + 0.044715 * (wide * wide * wide))
    return (0.5 * wide * (1.0 + torch.tanh(inner))).to(x.dtype)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """x scale + shift, with both computed for each channel, as torch's kernel does. They depend on weights alone."""
    wide = _widened(x)
    scale = 1 / torch.sqrt(variance.to(wide.dtype) + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    channels = [1, -1] + [1] * (x.dim() - 2)
    result = wide * scale.view(channels) + shift.view(channels)
    none = x.new_empty(0)
    return result.to(x.dtype), none, none


def lerp(start: Tensor, end: Tensor, weight: float) -> Tensor:
    """Between two tensors, from the nearer one, as torch's kernels have it; which one that is, is known here."""
    wide = torch.float32 if start.dtype in (torch.float16, torch.bfloat16) else start.dtype
    first, last = start.to(wide), end.to(wide)
    between = first + weight * (last - first) if abs(weight) < 0.5 else last - (last - first) * (1 - weight)
    return between.to(start.dtype)


def native_layer_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) rsqrt(variance + eps) weight + bias, in two passes."""
    wide = _widened(x)
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    scale = torch.rsqrt((centered * centered).mean(dims, keepdim=True) + eps)
    result = centered * scale
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.to(x.dtype), mean, scale


def rms_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x rsqrt(mean of squares + eps) weight; eps is that of the type that is computed in, unless given."""
    wide = _widened(x)
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    least = torch.finfo(wide.dtype).eps if eps is None else eps
    result = wide * torch.rsqrt((wide * wide).mean(dims, keepdim=True) + least)
    return (result if weight is None else result * weight).to(x.dtype)


def variance(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    """Mean of squared distances from the mean, with Bessel's correction."""
    return variance_and_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def variance_and_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Variance and mean, in two passes."""
    if x.is_complex():
        return NotImplemented
    dims = list(dim) if dim else list(range(x.dim()))
    count: Any = 1
    for index in dims:
        count = count * x.shape[index]
    wide = _widened(x)
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    total = (centered * centered).sum(dims, keepdim=keepdim)
    lost = 1 if correction is None else correction
    if isinstance(count, int):
        result = total / max(count - lost, 0)
    else:
        result = total / (torch.full((), count, dtype=wide.dtype, device=x.device) - lost).clamp(min=0)
    return result.to(x.dtype), (mean if keepdim else wide.mean(dims)).to(x.dtype)


def deviation(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    """The root of the variance."""
    return deviation_and_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def deviation_and_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """The root of the variance, and the mean."""
    if x.is_complex():
        return NotImplemented
    square, mean = variance_and_mean(_widened(x), dim, correction=correction, keepdim=keepdim)
    return torch.sqrt(square).to(x.dtype), mean.to(x.dtype)


def constant_pad_nd(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """Negative amounts cut first: `tensor.pad` has no meaning for them, and folds where the sizes come out equal."""
    if not any(isinstance(amount, int) and amount < 0 for amount in pad):
        return NotImplemented
    for position in range(0, len(pad), 2):
        dim, before, after = x.dim() - 1 - position // 2, min(pad[position], 0), min(pad[position + 1], 0)
        x = x.narrow(dim, -before, x.shape[dim] + before + after)
    return aten.constant_pad_nd(x, [max(amount, 0) for amount in pad], value)


def squeeze(x: Tensor, dims: Sequence[int]) -> Tensor:
    """A view; torch's own way ends in an operator that cannot be traced a second time."""
    chosen = {dim % max(x.dim(), 1) for dim in dims}
    return x.view([size for dim, size in enumerate(x.shape) if dim not in chosen or size != 1])


def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Any order will do when none is asked for; the importer has only the sorted one."""
    return NotImplemented if sorted else aten.topk(x, k, dim, largest, True)


def power(x: Tensor, exponent: float) -> Tensor:
    """Small whole exponents as products, square roots as such. The exponent of an f16 is rounded to f16: 1e-9 is 0."""
    if x.dtype == torch.float16 and isinstance(exponent, float) and float(np.float16(exponent)) != exponent:
        return torch.pow(x, float(np.float16(exponent)))
    if exponent in (2, 3, 4) and (x.is_floating_point() or (x.is_complex() and isinstance(exponent, int))):
        square = x * x
        return square if exponent == 2 else square * x if exponent == 3 else square * square
    if exponent in (0.5, -0.5) and x.is_floating_point():
        return torch.sqrt(x) if exponent == 0.5 else torch.rsqrt(x)
    if isinstance(exponent, int) and exponent >= 0 and not (x.is_floating_point() or x.is_complex()):
        return _whole_power(x.to(torch.result_type(x, exponent)), exponent)
    return NotImplemented


def _whole_power(x: Tensor, exponent: int) -> Tensor:
    """Of integers, by squaring; products wrap around."""
    result = None
    while exponent:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        x = x * x if exponent else x
    return torch.ones_like(x) if result is None else result.clone()


def _widened(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
