"""Sizes that may be 0: torch takes every size that varies for 2 or more while it traces.

What it then says of sizes need not hold at 0. A quotient such as (n * n) // n, which it writes for the rest of a view,
is n; a diagonal along n and 1, which it takes for one element, has none. The first is written so; programs with the
second are those of sizes from 1, and a call with 0 is refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import ValueRanges

aten = torch.ops.aten


_VIEWS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default)


def cancel_factors(program: torch.export.ExportedProgram) -> None:
    """Replaces a quotient of a product by its own factors by the other factors, and so the rest (-1) of a view, which
    the importer divides for.

        view(%x: [n, 8, m], [%n, -1])  becomes  view(%x, [%n, 8 * sym_size(%x, 2)])
    """
    for module in program.graph_module.modules():
        if not isinstance(module, fx.GraphModule):
            continue
        for node in list(module.graph.find_nodes(op="call_function", target=operator.floordiv)):
            rest = _without(list(_factors(node.args[0])), list(_factors(node.args[1])))
            if rest is not None:
                node.replace_all_uses_with(_product(node, rest))
                module.graph.erase_node(node)
        for view in _VIEWS:
            for node in list(module.graph.find_nodes(op="call_function", target=view)):
                _name_rest(node)


def _name_rest(node: fx.Node) -> None:
    source: Any = node.args[0]
    sizes = node.args[1]
    value = source.meta.get("val") if isinstance(source, fx.Node) else None
    if not (isinstance(value, torch.Tensor) and isinstance(sizes, (list, tuple)) and -1 in sizes):
        return
    place = list(sizes).index(-1)
    given = [size for at, size in enumerate(sizes) if at != place]
    if all(isinstance(size, int) for size in given):
        return
    have = [_Size(source, dim) if isinstance(size, torch.SymInt) else size for dim, size in enumerate(value.shape)]
    rest = _without(have, [factor for size in given for factor in _factors(size)])
    if rest is not None:
        node.update_arg(1, [*sizes[:place], _product(node, rest), *sizes[place + 1 :]])


@dataclass(frozen=True)
class _Size:
    """An open size of a tensor, for which the program may have no node yet."""

    source: fx.Node
    dim: int

    @property
    def value(self) -> Any:
        return self.source.meta["val"].shape[self.dim]

    def node_before(self, node: fx.Node) -> fx.Node:
        with node.graph.inserting_before(node):
            made = node.graph.call_function(aten.sym_size.int, (self.source, self.dim))
        made.meta["val"] = self.value
        return made


_Factor = int | fx.Node | _Size


def _factors(value: Any) -> Iterator[_Factor]:
    target = value.target if isinstance(value, fx.Node) and value.op == "call_function" else None
    if target is operator.mul:
        for argument in value.args:
            yield from _factors(argument)
    elif target in (operator.pow, pow) and isinstance(exponent := value.args[1], int) and exponent > 0:
        yield from [factor for factor in _factors(value.args[0]) for _ in range(exponent)]
    else:
        yield value


def _without(factors: list[Any], taken: list[Any]) -> list[Any] | None:
    """What is left of the factors, or None if some of `taken` are not among them."""
    number, divisor = (math.prod(one for one in all_ if isinstance(one, int)) for all_ in (factors, taken))
    if divisor == 0 or number % divisor:
        return None
    left = [one for one in factors if not isinstance(one, int)]
    for one in taken:
        if isinstance(one, int):
            continue
        place = next((at for at, other in enumerate(left) if _expression(one) == _expression(other)), None)
        if place is None:
            return None
        del left[place]
    return left if number == divisor else [*left, number // divisor]


def _expression(factor: _Factor) -> Any:
    value = _value(factor)
    return value.node.expr if isinstance(value, torch.SymInt) else factor


def _value(factor: _Factor) -> Any:
    if isinstance(factor, _Size):
        return factor.value
    return factor.meta.get("val") if isinstance(factor, fx.Node) else factor


def _product(node: fx.Node, factors: list[_Factor]) -> Any:
    made: Any = None
    for factor in factors:
        here = factor.node_before(node) if isinstance(factor, _Size) else factor
        if made is None:
            made = here
            continue
        value = operator.mul(_value(made), _value(here))
        with node.graph.inserting_before(node):
            made = node.graph.call_function(operator.mul, (made, here))
        made.meta["val"] = value
    return 1 if made is None else made


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
