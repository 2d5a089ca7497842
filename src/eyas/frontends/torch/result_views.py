"""Results of a graph that are views of its arguments or of its other results.

AOTAutograd gives such results to its caller as views again, and takes their strides and their place in the storage from
what the compiled graph returned. A module returns tensors of their own, so that torch makes the views, and the numbers
that are asked of them: they compute nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten

# What asks a tensor for a number. Views may begin and end where data says.
_QUESTIONS = (
    aten._local_scalar_dense.default,
    aten.sym_size.int,
    aten.sym_stride.int,
    aten.sym_storage_offset.default,
    aten.sym_numel.default,
)


class Views:
    """The results that torch makes: `made` are their places among all results."""

    def __init__(self, outputs: Sequence[Any]) -> None:
        nodes = [out for out in outputs if isinstance(out, fx.Node)]
        self.roots = {node for node in nodes if not (_is_view(node) or _is_number(node))}
        self.wanted = {
            place: out for place, out in enumerate(outputs) if isinstance(out, fx.Node) and self._is_made(out)
        }
        self.outputs = list(outputs)

    @property
    def made(self) -> frozenset[int]:
        return frozenset(self.wanted)

    def rebuild(self, arguments: Mapping[fx.Node, Any], results: Sequence[Any]) -> list[Any]:
        """The results, where those that are not known yet are made from arguments and others."""
        if not self.wanted:
            return list(results)
        known: dict[fx.Node, Any] = dict(arguments)
        known.update({out: results[place] for place, out in enumerate(self.outputs) if out in self.roots})
        return [
            self._value(self.wanted[place], known) if place in self.wanted else value
            for place, value in enumerate(results)
        ]

    def _is_made(self, node: fx.Node) -> bool:
        return (_is_view(node) or _is_number(node)) and self._is_known(node)

    def _is_known(self, node: fx.Node) -> bool:
        """Whether torch can make it without computing anything."""
        if node.op == "placeholder" or node in self.roots:
            return True
        if not (_is_view(node) or _is_number(node)):
            return False
        return all(self._is_known(operand) for operand in node.all_input_nodes)

    def _value(self, node: fx.Node, known: dict[fx.Node, Any]) -> Any:
        if node not in known:
            args, kwargs = fx.map_arg((node.args, node.kwargs), lambda operand: self._value(operand, known))
            known[node] = node.target(*args, **kwargs)  # type: ignore[operator]
        return known[node]


def _is_view(node: fx.Node) -> bool:
    """A call that gives one tensor in the memory of another."""
    if not isinstance(node.target, torch._ops.OpOverload) or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    schema = node.target._schema
    return not schema.is_mutable and any(result.alias_info is not None for result in schema.returns)


def _is_number(node: fx.Node) -> bool:
    """A number that is asked of a tensor or computed from other numbers."""
    value = node.meta.get("val")
    if not isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return False
    return node.target in _QUESTIONS or not isinstance(node.target, torch._ops.OpOverload)
