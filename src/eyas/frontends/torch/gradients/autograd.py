"""Gradients of a decomposition by torch's own autograd, while a program is taken apart.

Decompositions run below autograd: torch has excluded its dispatch keys by then. With the keys back, a forward function
in plain ops is differentiated as anywhere else, and what comes of it is traced like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._C import DispatchKey

Tensor = torch.Tensor

_KEYS = (DispatchKey.ADInplaceOrView, DispatchKey.AutogradFunctionality, DispatchKey.AutogradOther)


def gradients(
    forward: Callable[..., Any], inputs: Sequence[Tensor | None], wanted: Sequence[bool], given: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """What `forward(*inputs)` makes of the gradients `given` for its results: those for the wanted inputs, None for the
    others. Results that got no gradient count for nothing."""
    with _autograd():
        leaves = [
            None if one is None else one.detach().requires_grad_(want) for one, want in zip(inputs, wanted, strict=True)
        ]
        made = forward(*leaves)
        results = [made] if isinstance(made, Tensor) else list(made)
        pairs = [
            (result, gradient.detach())
            for result, gradient in zip(results, given, strict=True)
            if gradient is not None and result.requires_grad
        ]
        chosen = [leaf for leaf, want in zip(leaves, wanted, strict=True) if want and leaf is not None]
        found: Iterator[Tensor | None] = iter([None] * len(chosen))
        if pairs and chosen:
            found = iter(torch.autograd.grad(_firsts(pairs), chosen, _seconds(pairs), allow_unused=True))
        return [
            _or_zeros(next(found), leaf) if want and leaf is not None else None
            for leaf, want in zip(leaves, wanted, strict=True)
        ]


def _firsts(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
    return [first for first, _ in pairs]


def _seconds(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[Tensor]:
    return [second for _, second in pairs]


def _or_zeros(gradient: Tensor | None, leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf.detach()) if gradient is None else gradient.detach()


@contextmanager
def _autograd() -> Iterator[None]:
    is_excluded, exclude = (
        torch._C._dispatch_tls_is_dispatch_key_excluded,
        torch._C._dispatch_tls_set_dispatch_key_excluded,
    )
    with ExitStack() as stack:
        for key in filter(is_excluded, _KEYS):
            exclude(key, False)
            stack.callback(exclude, key, True)
        stack.enter_context(torch.enable_grad())
        # It would send ops that autograd sees through to kernels that it does not.
        stack.enter_context(torch._C._DisablePythonDispatcher())
        yield
