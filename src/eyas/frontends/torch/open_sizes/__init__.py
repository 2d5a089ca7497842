"""Functions of torch that read sizes as numbers while they are traced, in forms that leave sizes open.

Their kernels would fix a size that varies to that of the example. The forms apply where a size varies; where all are
known, torch's own way is taken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from eyas.frontends.torch.open_sizes import fourier, parts, products

Form = Callable[..., Any]


def forms() -> dict[Any, Form]:
    """By function."""
    found = {function: form for source in (fourier, parts, products) for function, form in source.forms().items()}
    return {function: _where_open(form) for function, form in found.items()}


def _where_open(form: Form) -> Form:
    @functools.wraps(form)
    def choose(*args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        is_open = any(not isinstance(size, int) for tensor in tensors for size in tensor.shape)
        return form(*args, **kwargs) if is_open else NotImplemented

    return choose
