"""Views of an exported program whose strides were those of torch's kernels.

A decomposition gives the same numbers as the kernel that it replaces, but not always with the same strides: torch's
attention on CPUs writes (batch, rows, heads, width) and returns a transposed view of it. A `view` after it that was
legal when the model was traced would then be refused. Tensors have no strides in the compiler, so there a view and a
reshape are one; while the program is taken apart, views are reshapes, which copy where they have to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

aten = torch.ops.aten


@contextmanager
def views_may_copy(program: torch.export.ExportedProgram) -> Iterator[None]:
    """Makes reshapes of a program's views, and views of them again at the end: the program may be the user's."""
    views = [node for graph in _graphs(program) for node in graph.nodes if node.target is aten.view.default]
    changed = [node for node in views if not _depends_on_data(node)]
    for node in changed:
        node.target = aten.reshape.default
    try:
        yield
    finally:
        for node in changed:
            node.target = aten.view.default


def drop_vain_checks(program: torch.export.ExportedProgram) -> None:
    """Takes out checks of what cannot be otherwise: where in its storage a tensor begins, which torch before 2.13
    asserts of slices whose place the data says, though a tensor has no storage here; and that a truth is 0 or 1."""
    vain = (aten.sym_storage_offset.default, torch.sym_ite)
    for graph in _graphs(program):
        for node in [one for one in graph.nodes if one.target in vain]:
            asking = [node]
            for one in asking:  # grows while it is gone through
                asking += [user for user in one.users if user not in asking]
            if all(one.users or one.target in (*vain, aten._assert_scalar.default) for one in asking):
                for one in sorted(asking, key=list(graph.nodes).index, reverse=True):
                    graph.erase_node(one)


def _graphs(program: torch.export.ExportedProgram) -> Iterator[torch.fx.Graph]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield module.graph


def _depends_on_data(node: torch.fx.Node) -> bool:
    """A reshape asks about strides, which cannot be answered where sizes are known only at run time."""
    nodes = [leaf for leaf in pytree.tree_leaves((node, node.args)) if isinstance(leaf, torch.fx.Node)]
    values = [each.meta.get("val") for each in nodes]
    return any(value is None or bool(free_unbacked_symbols(value)) for value in values)
