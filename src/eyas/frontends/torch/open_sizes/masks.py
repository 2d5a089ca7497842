"""Masks of `torch.masked`, which compares their shape with the tensor's from left to right: a size that varies would be
fixed by a comparison that the number of dimensions decides."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import torch
from torch.masked import _ops

Tensor = torch.Tensor


def broadcast_masks() -> AbstractContextManager[Any]:
    """While it lasts, masks have the shape of what they mask where one of its sizes varies."""
    canonical = _ops._input_mask

    def with_shape(input: Any, *args: Any, **kwargs: Any) -> Tensor:
        mask = kwargs.get("mask")
        if isinstance(input, Tensor) and isinstance(mask, Tensor) and mask.layout == torch.strided:
            is_open = any(not isinstance(size, int) for size in input.shape)
            if is_open and mask.dim() <= input.dim():
                kwargs["mask"] = mask.expand(input.shape)
        return canonical(input, *args, **kwargs)

    return mock.patch.object(_ops, "_input_mask", with_shape)
