"""Ops of which torch does not know what shapes they give.

Where all sizes are known it runs such an op on zeros to find out. Where one varies it cannot be traced, unless a
decomposition says what is made of it: here ours do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import torch
from torch._decomp import decomposition_table, meta_table

from eyas.frontends.torch import counting, linear_algebra

_KEYS = (
    *("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd"),
    "CompositeExplicitAutogradNonFunctional",
)


def own_shapes() -> AbstractContextManager[Any]:
    """While it lasts, torch knows them."""
    return mock.patch.dict(decomposition_table, _missing())


@functools.cache
def _missing() -> dict[Any, Callable[..., Any]]:
    ours = {**counting.decompositions(), **linear_algebra.decompositions()}
    return {op: made for op, made in ours.items() if _is_unknown(op)}


def _is_unknown(op: Any) -> bool:
    has_kernel = any(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key) for key in _KEYS)
    return op not in decomposition_table and op not in meta_table and not has_kernel
