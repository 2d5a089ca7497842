"""torch's own decompositions, for ops that nothing here has a lowering for.

Which ops the importer can lower depends on their types and arguments, and is known only when it has tried. So an import
that fails at an op is done again with torch's way to take that op apart, until it succeeds or fails at an op that torch
has no other way for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import torch
from torch._decomp import decomposition_table as torch_table
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

Decomposition = Callable[..., Any]
Table = Mapping[Any, Decomposition]

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_DEPTH: ContextVar[int] = ContextVar("depth", default=0)
"""How many guarded decompositions are under way, one inside the other."""

# A model that still fails after so many ops has a problem of another kind.
MOST_RETRIES = 24


def with_fallback(table: Table, op: Any) -> dict[Any, Decomposition] | None:
    """The table with torch's decomposition of an op, behind ours where there is one; None where torch has none, or the
    table has it already."""
    if not isinstance(op, OpOverload) or isinstance(table.get(op), _Fallback):
        return None
    theirs = _theirs(op)
    if theirs is None or theirs is getattr(table.get(op), "decomposition", None):
        return None
    return {**table, op: _Fallback(table.get(op), theirs)}


def guarded(decomposition: Decomposition) -> Decomposition:
    """A decomposition that fails leaves the op as it is: another may be found for it, and if not, the refusal names the
    op and not what its decomposition stumbled over. Decompositions that lead back to each other fail as one, at the
    outermost: each of them would otherwise try its other ways at every depth."""

    @functools.wraps(decomposition, updated=())
    def attempt(*args: Any, **kwargs: Any) -> Any:
        depth = _DEPTH.set(_DEPTH.get() + 1)
        try:
            return decomposition(*args, **kwargs)
        except GuardOnDataDependentSymNode:
            raise  # says what depends on the data, and where
        except RecursionError:
            if _DEPTH.get() > 1:
                raise
            return NotImplemented
        except Exception:
            return NotImplemented
        finally:
            _DEPTH.reset(depth)

    attempt.decomposition = decomposition  # type: ignore[attr-defined]
    return attempt


class _Fallback:
    """Ours where it applies, or torch's."""

    def __init__(self, ours: Decomposition | None, theirs: Decomposition) -> None:
        self.ours, self.theirs = ours, theirs
        self.active = False
        # Tables are told apart by the names of what is in them.
        self.__name__ = getattr(theirs, "__name__", type(theirs).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.active:
            return NotImplemented  # theirs leads back to the op itself
        made = NotImplemented if self.ours is None else self.ours(*args, **kwargs)
        if made is not NotImplemented:
            return made
        self.active = True
        try:
            return guarded(self.theirs)(*args, **kwargs)
        finally:
            self.active = False


def _theirs(op: OpOverload) -> Decomposition | None:
    if op.namespace == "prims":
        # What the primitive does, in terms of public functions.
        return getattr(op, "impl_aten", None)
    if op in torch_table:
        return torch_table[op]
    if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), _COMPOSITE):
        # Not `op.decompose`, which leads back to the table while a program is taken apart.
        return functools.partial(op._op_dk, _COMPOSITE)
    return None
