"""Memory of torch tensors: which of them are the same, and their values as arrays."""

from __future__ import annotations

from typing import Any

import torch

from eyas.program.dtypes import numpy_dtype, short_name


def identity(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal for tensors that are the same memory seen the same way."""
    if tensor.layout != torch.strided or not tensor.data_ptr():
        return (id(tensor),)
    return (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)


def as_numpy(tensor: torch.Tensor) -> Any:
    """A NumPy view of a tensor's memory; a copy only for tensors that are not in the host's memory."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(numpy_dtype("bf16"))
    if tensor.dtype.is_floating_point and tensor.itemsize == 1:
        return tensor.view(torch.uint8).numpy().view(numpy_dtype(short_name(str(tensor.dtype), "a weight")))
    return tensor.numpy()


def from_numpy(array: Any) -> torch.Tensor:
    """A tensor that shares an array's memory. Types that NumPy has from ml_dtypes have the same names in torch."""
    if array.dtype.kind != "V":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(f"i{array.itemsize}")).view(getattr(torch, array.dtype.name))
