"""Checks that torch orders by tokens: of the results of factorisations, whether they could be completed.

A token is an argument and a result of the program that orders ops with effects. Here each such check becomes an op that
fails the call, and tokens leave the program.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import TokenArgument

from eyas.frontends.torch.linear_algebra.systems import failure

aten = torch.ops.aten
_CHECK = aten._linalg_check_errors.default


def resolve_effects(graph: fx.Graph) -> None:
    """Replaces `with_effects(token, _linalg_check_errors, info, name)` by a check without a token."""
    effects = getattr(torch.ops.higher_order, "with_effects", None)
    for node in list(graph.nodes):
        if node.target is effects and node.args[1] is _CHECK:
            token, _, info, name = node.args
            _insert_check(graph, node, info, name, node.kwargs.get("is_matrix", False))
            for user in list(node.users):
                assert user.target is operator.getitem and user.args[1] == 0, user
                user.replace_all_uses_with(token)
                graph.erase_node(user)
            graph.erase_node(node)
        elif node.target is _CHECK:
            _insert_check(graph, node, *node.args, **node.kwargs)
            graph.erase_node(node)


def drop_tokens(program: torch.export.ExportedProgram) -> None:
    """Resolves effects of an exported program, whose signature then has no tokens."""
    graph, signature = program.graph, program.graph_signature
    resolve_effects(graph)
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    is_token = [isinstance(spec.arg, TokenArgument) for spec in signature.output_specs]
    results: Any = output.args[0]
    output.args = (tuple(one for one, token in zip(results, is_token, strict=True) if not token),)
    signature.output_specs[:] = [one for one, token in zip(signature.output_specs, is_token, strict=True) if not token]
    names = {spec.arg.name for spec in signature.input_specs if isinstance(spec.arg, TokenArgument)}
    for node in list(graph.nodes):
        if node.op == "placeholder" and node.name in names and not node.users:
            graph.erase_node(node)
    signature.input_specs[:] = [spec for spec in signature.input_specs if not isinstance(spec.arg, TokenArgument)]
    program.graph_module.recompile()


def _insert_check(graph: fx.Graph, node: fx.Node, info: fx.Node, api_name: str, is_matrix: bool = False) -> None:
    with graph.inserting_before(node):
        zero = _call(graph, node, aten.eq.Scalar, info, 0)
        all_zero = _call(graph, node, aten.all.default, zero)
        _call(graph, node, torch.ops.eyas.check.default, all_zero, failure(api_name, is_matrix))


def _call(graph: fx.Graph, origin: fx.Node, target: Any, *args: Any) -> fx.Node:
    node = graph.call_function(target, args)
    node.meta.update({key: value for key, value in origin.meta.items() if key in ("stack_trace", "nn_module_stack")})
    values = fx.map_arg(args, lambda operand: operand.meta["val"])
    node.meta["val"] = target(*values)
    return node
