"""Sizes that may be 0: torch takes every size that varies for 2 or more while it traces.

What it then says of sizes need not hold at 0. A quotient such as (n * n) // n, which it writes for the rest of a view,
is n; a diagonal along n and 1, which it takes for one element, has none. The first is written so; programs with the
second are those of sizes from 1, and a call with 0 is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import ValueRanges


def cancel_factors(program: torch.export.ExportedProgram) -> None:
    """Replaces a quotient of a product by its own factors by the other factors."""
    for module in program.graph_module.modules():
        if not isinstance(module, fx.GraphModule):
            continue
        for node in list(module.graph.find_nodes(op="call_function", target=operator.floordiv)):
            rest = _without(list(_factors(node.args[0])), list(_factors(node.args[1])))
            if rest is not None:
                node.replace_all_uses_with(_product(node, rest))
                module.graph.erase_node(node)


def _factors(value: Any) -> Iterator[Any]:
    if isinstance(value, fx.Node) and value.op == "call_function" and value.target is operator.mul:
        for argument in value.args:
            yield from _factors(argument)
    elif value != 1:
        yield value


def _without(factors: list[Any], taken: list[Any]) -> list[Any] | None:
    """What is left of the factors, or None if some of `taken` are not among them."""
    for one in taken:
        place = next((at for at, other in enumerate(factors) if _is_same(one, other)), None)
        if place is None:
            return None
        del factors[place]
    return factors


def _is_same(one: Any, other: Any) -> bool:
    return _expression(one) == _expression(other)


def _expression(factor: Any) -> Any:
    value = factor.meta.get("val") if isinstance(factor, fx.Node) else factor
    return value.node.expr if isinstance(value, torch.SymInt) else factor


def _product(node: fx.Node, factors: list[Any]) -> Any:
    made: Any = 1
    for factor in factors:
        if made == 1:
            made = factor
            continue
        value = operator.mul(*(one.meta["val"] if isinstance(one, fx.Node) else one for one in (made, factor)))
        with node.graph.inserting_before(node):
            made = node.graph.call_function(operator.mul, (made, factor))
        made.meta["val"] = value
    return made


def exclude_zeros(program: torch.export.ExportedProgram, exported: torch.export.ExportedProgram) -> None:
    """Takes 0 out of the range of each size with which a tensor of `exported` has another shape than torch says."""
    example = {size.node.expr: size.node.hint for size in _sizes_of(exported.graph.find_nodes(op="placeholder"))}
    for symbol, bounds in list(program.range_constraints.items()):
        if bounds.lower == 0 and symbol in example and not _holds(exported, {**example, symbol: 0}, symbol):
            program.range_constraints[symbol] = ValueRanges(1, bounds.upper)


def _holds(exported: torch.export.ExportedProgram, sizes: Mapping[Any, int], symbol: Any) -> bool:
    """Follows shapes through the program. What cannot be followed has the shape that torch says."""
    values: dict[fx.Node, Any] = {}
    with FakeTensorMode(), torch.no_grad():
        for node in exported.graph.nodes:
            try:
                said = values[node] = _with_sizes(node.meta.get("val"), sizes)
            except _BelowZero:
                return False
            if node.op != "call_function" or said is None or not _depends(node, symbol):
                continue
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            try:
                made = node.target(*args, **kwargs)
            except Exception:  # it needs data, or takes nothing that is empty, as when torch runs it
                continue
            if _shapes(made) != _shapes(said):
                return False
    return True


def _sizes_of(nodes: Iterable[fx.Node]) -> Iterator[torch.SymInt]:
    """Sizes that vary: those of tensors, and numbers."""
    for node in nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            for size in value.shape if isinstance(value, torch.Tensor) else (value,):
                if isinstance(size, torch.SymInt):
                    yield size


def _depends(node: fx.Node, symbol: Any) -> bool:
    return any(symbol in size.node.expr.free_symbols for size in _sizes_of(node.all_input_nodes))


class _BelowZero(Exception):
    """A tensor would have a size below 0."""


def _with_sizes(value: Any, sizes: Mapping[Any, int]) -> Any:
    """Tensors with numbers for sizes; None where one depends on data."""

    def number(size: int | torch.SymInt) -> int:
        return int(size.node.expr.xreplace(sizes)) if isinstance(size, torch.SymInt) else size

    def made(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            shape = [number(size) for size in leaf.shape]
            if min(shape, default=0) < 0:
                raise _BelowZero
            return torch.empty(shape, dtype=leaf.dtype, device=leaf.device)
        return number(leaf)

    try:
        return pytree.tree_map_only((torch.Tensor, torch.SymInt), made, value)
    except (TypeError, ZeroDivisionError):
        return None


def _shapes(value: Any) -> list[Any]:
    return [list(one.shape) for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]
