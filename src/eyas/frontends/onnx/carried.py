"""Loops without what they need not carry, and values of one element whose rank changes on the way.

Exporters of some frameworks let a loop carry all that its body sees: weights, and variables that are not defined before
the first step. Numbers are [] in one place and [1] in another; what they are used for takes both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from eyas.frontends.onnx import prepare
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.subgraphs import FINAL_LOOP, all_graphs, all_nodes, import_domains, replace_nodes, subgraphs
from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret


def tidy_control_flow(model: OnnxModel) -> bool:
    """Says whether something changed and needs inference again. Names must be unique across subgraphs."""
    if not any(node.op_type in ("Loop", "If") for node in all_nodes(model.proto.graph)):
        return False
    changed = _drop_carried(model)
    facts = interpret(model)
    for graph in list(all_graphs(model.proto.graph)):
        kept: list[onnx.NodeProto] = []
        for node in graph.node:
            if node.op_type == "If":
                changed |= _level_branches(model, node, facts)
                kept.extend(_level_condition(model, node, facts))
            elif node.op_type == "Loop" and _body(node).name != FINAL_LOOP:
                changed |= _keep_ranks(model, node, facts)
                kept.extend(_define(model, node, facts))
            kept.append(node)
        if len(kept) != len(graph.node):
            replace_nodes(graph, kept)
            changed = True
    return changed


def _body(node: onnx.NodeProto) -> onnx.GraphProto:
    return next(subgraphs(node))


def _drop_carried(model: OnnxModel) -> bool:
    """Takes values out of loops that never change, and those that nobody reads."""
    changed = False
    graphs = list(all_graphs(model.proto.graph))
    read = {name for graph in graphs for node in graph.node for name in node.input}
    read |= {value.name for graph in graphs for value in graph.output}
    for graph in graphs:
        kept: list[onnx.NodeProto] = []
        for node in graph.node:
            kept.append(node)
            if node.op_type == "Loop" and _body(node).name != FINAL_LOOP:
                kept.extend(_dropped(node, read, found := []))
                changed |= bool(found)
        if len(kept) != len(graph.node):
            replace_nodes(graph, kept)
    return changed


def _dropped(node: onnx.NodeProto, read: set[str], found: list[int]) -> list[onnx.NodeProto]:
    """Drops what can be; returns nodes that stand for results which are as they entered. `found` gets the places."""
    body, after = _body(node), []
    inside = list(all_graphs(body))
    uses = {name for graph in inside for one in graph.node for name in one.input}
    uses |= {value.name for graph in inside[1:] for value in graph.output}
    makers = {name: one for one in body.node for name in one.output}
    for place in reversed(range(len(node.input) - 2)):
        entered, outer = body.input[2 + place].name, node.input[2 + place]
        left = body.output[1 + place].name
        result = node.output[place] if place < len(node.output) else ""
        while left in makers and makers[left].op_type == "Identity":
            left = makers[left].input[0]
        others = {value.name for at, value in enumerate(body.output) if at != 1 + place}
        is_dead = entered not in uses and entered not in others and result not in read
        if left != entered and not is_dead:
            continue
        if left == entered:
            _rename_uses(inside, {entered: outer}, {1 + place})
            if result in read:
                after.append(helper.make_node("Identity", [outer], [result], name=f"{node.name}_kept_{place}"))
        del node.input[2 + place], body.input[2 + place], body.output[1 + place]
        if place < len(node.output):
            del node.output[place]
        found.append(place)
    return after


def _rename_uses(graphs: Sequence[onnx.GraphProto], names: Mapping[str, str], without: set[int]) -> None:
    """Other names for values that nodes read, and for results of inner graphs; a result of the body itself that is such
    a value gets a node that makes it."""
    for depth, graph in enumerate(graphs):
        for node in graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
        for at, value in enumerate(graph.output):
            if value.name not in names or (depth == 0 and at in without):
                continue
            made = f"{value.name}_result_{at}"
            graph.node.append(helper.make_node("Identity", [names[value.name]], [made], name=made))
            value.name = made


def _single(facts: Facts, name: str) -> int | None:
    """The rank of a value of one element."""
    value = facts.values.get(name)
    shape = None if value is None else value.shape
    return None if shape is None or any(size != 1 for size in shape) else len(shape)


def _level_condition(model: OnnxModel, node: onnx.NodeProto, facts: Facts) -> list[onnx.NodeProto]:
    """A condition may be a tensor of one element and any rank; the importer knows those of rank 0 and 1."""
    value = facts.values.get(node.input[0])
    if value is None or value.shape is None or len(value.shape) < 2:
        return []
    shape, result = f"{node.name}_condition_shape", f"{node.name}_condition"
    model.proto.graph.initializer.append(numpy_helper.from_array(np.array([], np.int64), shape))
    reshape = helper.make_node("Reshape", [node.input[0], shape], [result], name=result)
    node.input[0] = result
    return [reshape]


def _level_branches(model: OnnxModel, node: onnx.NodeProto, facts: Facts) -> bool:
    """Gives results of one element the higher rank of both branches."""
    branches, changed = list(subgraphs(node)), False
    for at in range(len(node.output)):
        ranks = [_single(facts, branch.output[at].name) for branch in branches]
        if None in ranks or len(set(ranks)) < 2:
            continue
        for branch, rank in zip(branches, ranks, strict=True):
            wanted = max(one or 0 for one in ranks)
            if rank != wanted:
                _reshape_result(model, branch, at, wanted)
        changed = True
    return changed


def _keep_ranks(model: OnnxModel, node: onnx.NodeProto, facts: Facts) -> bool:
    """Lets values of one element leave a body with the rank with which they enter the loop."""
    body, changed = _body(node), False
    for place, name in enumerate(node.input[2:]):
        before, after = _single(facts, name), _single(facts, body.output[1 + place].name)
        if before is not None and after is not None and before != after:
            _reshape_result(model, body, 1 + place, before)
            changed = True
    return changed


def _define(model: OnnxModel, node: onnx.NodeProto, facts: Facts) -> list[onnx.NodeProto]:
    """Gives variables that are not defined before the first step the shape that steps give them: a body that does not
    read such a value does not miss it. The loop must take a step, which is checked. Returns nodes before the loop."""
    body, made = _body(node), []
    inside = list(all_graphs(body))
    uses = {name for graph in inside for one in graph.node for name in one.input}
    uses |= {value.name for graph in inside for value in graph.output}
    own = {name for graph in inside for one in graph.node for name in one.output}
    own |= {value.name for graph in inside for value in graph.input}
    for place, name in enumerate(node.input[2:]):
        before, after = facts.values.get(name), facts.values.get(body.output[1 + place].name)
        if before is None or after is None or before.shape is None or after.shape is None:
            continue
        sizes = [_place_of(size, facts, own) for size in after.shape]
        is_same = before.shape == after.shape or before.data_type != after.data_type
        if is_same or body.input[2 + place].name in uses or None in sizes:
            continue
        prefix = f"{node.name}_first_{place}"
        made += _zeros(model, prefix, [size for size in sizes if size is not None], after.data_type)
        node.input[2 + place] = prefix
        declared = body.input[2 + place].type.tensor_type
        declared.CopyFrom(onnx.TypeProto.Tensor(elem_type=after.data_type))
    return [*made, *_check_first_step(model, node)] if made else []


def _check_first_step(model: OnnxModel, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Nodes that fail the call where a loop takes no step."""
    name, zero = f"{node.name}_steps", f"{node.name}_no_step"
    conditions, made = list(filter(None, [node.input[1]])), []
    if node.input[0]:
        model.proto.graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), zero))
        made.append(helper.make_node("Greater", [node.input[0], zero], [name], name=name))
        conditions.append(name)
    message = f"{prepare.describe_node(node, model)} must take a step: it defines values that are used after it"
    for at, condition in enumerate(conditions):
        options = {"name": f"{node.name}_check_{at}", "domain": "eyas", "wanted": 1, "message": message}
        made.append(helper.make_node("EyasCheck", [condition], [], **options))
    import_domains(model, ["eyas"])
    return made


def _place_of(size: ex.Integer, facts: Facts, own: set[str]) -> int | tuple[str, int] | None:
    """A size that is known before a loop: a number, or a value and the dimension of it."""
    if isinstance(size, int):
        return size
    place = facts.places.get(next(iter(ex.dims_in(size)))) if ex.is_dimension(size) else None
    return None if place is None or place[0] in own else place


def _zeros(model: OnnxModel, name: str, sizes: Sequence[int | tuple[str, int]], data_type: int) -> list[onnx.NodeProto]:
    nodes, parts = [], []

    def constant(values: Sequence[int]) -> str:
        parts_name = f"{name}_{len(nodes)}_{len(parts)}"
        model.proto.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), parts_name))
        return parts_name

    for at, size in enumerate(sizes):
        if isinstance(size, int):
            parts.append(constant([size]))
            continue
        source, axis = size
        nodes.append(helper.make_node("Shape", [source], [f"{name}_shape_{at}"], name=f"{name}_shape_{at}"))
        index, part = constant([axis]), f"{name}_size_{at}"
        nodes.append(helper.make_node("Gather", [f"{name}_shape_{at}", index], [part], name=part, axis=0))
        parts.append(part)
    zero = numpy_helper.from_array(np.zeros(1, helper.tensor_dtype_to_np_dtype(data_type)))
    if parts:
        nodes.append(helper.make_node("Concat", parts, [f"{name}_sizes"], name=f"{name}_sizes", axis=0))
    shape = f"{name}_sizes" if parts else constant([])
    nodes.append(helper.make_node("ConstantOfShape", [shape], [name], name=name, value=zero))
    return nodes


def _reshape_result(model: OnnxModel, graph: onnx.GraphProto, at: int, rank: int) -> None:
    value = graph.output[at]
    name = f"{value.name}_ranked_{at}"
    model.proto.graph.initializer.append(numpy_helper.from_array(np.ones(rank, np.int64), f"{name}_shape"))
    graph.node.append(helper.make_node("Reshape", [value.name, f"{name}_shape"], [name], name=name))
    graph.output[at].CopyFrom(helper.make_tensor_value_info(name, value.type.tensor_type.elem_type, [1] * rank))
