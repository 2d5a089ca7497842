"""Results have the types that torch gives them, whatever a decomposition made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree

Tensor = torch.Tensor
_UNSIZED = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output, torch.Tag.nondeterministic_seeded)


def keep_types(op: Any, decomposition: Callable[..., Any]) -> Callable[..., Any]:
    """The decomposition with its results in the types that `op` promises for these arguments.

    One that is too narrow to hold them would be wrong already, and is an error. Programs of f32 alone are not checked:
    there is nothing to mix up.
    """
    known: dict[Any, tuple[torch.dtype | None, ...] | None] = {}

    def typed(*args: Any, **kwargs: Any) -> Any:
        made = decomposition(*args, **kwargs)
        if made is NotImplemented:
            return made
        key = _key(args, kwargs)
        if key is None:
            return made
        if key not in known:
            known[key] = _promised(op, args, kwargs)
        wanted = known[key]
        leaves, spec = pytree.tree_flatten(made)
        if wanted is None or len(leaves) != len(wanted):
            return made
        return pytree.tree_unflatten([_as(op, leaf, dtype) for leaf, dtype in zip(leaves, wanted, strict=True)], spec)

    return typed


def _key(args: Any, kwargs: Any) -> Any:
    """What types depend on; None where all is f32."""
    leaves = pytree.tree_leaves((args, kwargs))
    if all(not isinstance(leaf, Tensor) or leaf.dtype == torch.float32 for leaf in leaves):
        if not any(isinstance(leaf, torch.dtype) for leaf in leaves):
            return None
    kinds = tuple(
        (leaf.dtype, bool(leaf.dim())) if isinstance(leaf, Tensor) else leaf if _is_choice(leaf) else type(leaf)
        for leaf in leaves
    )
    return len(args), tuple(kwargs), kinds


def _is_choice(leaf: Any) -> bool:
    return leaf is None or isinstance(leaf, (bool, str, torch.dtype))


def _promised(op: Any, args: Any, kwargs: Any) -> tuple[torch.dtype | None, ...] | None:
    """The types of what the op itself makes, or None where that cannot be asked."""
    if not isinstance(op, torch._ops.OpOverload) or any(tag in op.tags for tag in _UNSIZED):
        return None
    try:
        with disable_proxy_modes_tracing():
            made = _composite(op)(*args, **kwargs)
    except Exception:  # it has no rule for tensors without data: the decomposition is its rule
        return None
    return tuple(leaf.dtype if isinstance(leaf, Tensor) else None for leaf in pytree.tree_leaves(made))


def _composite(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """The op, or torch's composition of other ops where it is one: while a program is taken apart, such an op calls its
    entry in the table, which is what asks here."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    known = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)
    return functools.partial(op._op_dk, key) if known else op


def _as(op: Any, made: Any, wanted: torch.dtype | None) -> Any:
    if not isinstance(made, Tensor) or wanted is None or made.dtype == wanted:
        return made
    if torch.promote_types(made.dtype, wanted) != made.dtype:
        raise TypeError(f"{op} gives {wanted}, and what it is taken apart into gives {made.dtype}")
    return made.to(wanted)
