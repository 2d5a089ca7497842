"""An `If` that can only go one way in a compiled program becomes that branch, behind a check of its condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import onnx

from eyas.errors import FrontendError
from eyas.frontends.onnx import prepare
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.subgraphs import as_model, import_domains, inline, replace_nodes
from eyas.frontends.onnx.symbolic.interpret import Facts, interpret

_THEN, _ELSE = "then_branch", "else_branch"


def take_possible_branches(model: OnnxModel) -> bool:
    """An `If` of which one branch would fail for the shapes that are known becomes the other.

    Models for several sampling rates have this: each branch takes frames of another length.
    """
    taken = {}
    for node in model.proto.graph.node:
        inner = {name: as_model(model, branch) for name, branch in _branches(node).items()}
        possible = [name for name, branch in inner.items() if branch and not prepare.contradiction(branch)]
        if len(inner) == 2 and len(possible) == 1:
            taken[node.name] = (possible[0], "the other one does not fit the shapes that the model was compiled with")
    _take(model, taken)
    return bool(taken)


def assume_branch(model: OnnxModel, fold: Callable[[OnnxModel], None]) -> bool:
    """The first `If` on sizes that are open, whose branches give other ranks, becomes one branch; says whether there
    was one. Exporters write `squeeze` so: the rank depends on a size.

    It is the branch that the rest of the graph can go on with. When it could with both, it is the one after which fewer
    ranks depend on sizes; if that does not decide, the one for a batch of one, and otherwise the general one.
    """
    if not any(map(_branches, model.proto.graph.node)):
        return False
    facts = interpret(model)
    for node in model.proto.graph.node:
        if not _branches(node) or not _ranks_differ(node, facts) or not _is_open(facts, node.input[0]):
            continue
        left = {name: _left_after(model, node, name, fold) for name in (_THEN, _ELSE)}
        possible = {name: count for name, count in left.items() if count is not None}
        if not possible:
            continue
        fewest = [name for name, count in possible.items() if count == min(possible.values())]
        chosen = fewest[0] if len(fewest) == 1 else _for_one(model, node)
        why = "the ranks of what it gives depend on sizes; fix them with example inputs that go the other way"
        _take(model, {node.name: (chosen, why)})
        return True
    return False


def _branches(node: onnx.NodeProto) -> dict[str, onnx.GraphProto]:
    return {attribute.name: attribute.g for attribute in node.attribute} if node.op_type == "If" else {}


def _take(model: OnnxModel, taken: dict[str, tuple[str, str]]) -> None:
    """Puts branches where the `If`s with these names were; the reasons are for those whose call goes another way."""
    if not taken:
        return
    kept: list[onnx.NodeProto] = []
    for node in model.proto.graph.node:
        if node.name not in taken:
            kept.append(node)
            continue
        chosen, why = taken[node.name]
        message = f"{prepare.describe_node(node, model)} must go to its {chosen}: {why}"
        check = {"name": f"{node.name}_check", "domain": "eyas", "wanted": int(chosen == _THEN), "message": message}
        kept.append(onnx.helper.make_node("EyasCheck", [node.input[0]], [], **check))
        kept.extend(inline(_branches(node)[chosen], list(node.output), node.name))
    replace_nodes(model.proto.graph, kept)
    import_domains(model, ["eyas"])


def _ranks_differ(node: onnx.NodeProto, facts: Facts) -> bool:
    then, other = (_branches(node)[name].output for name in (_THEN, _ELSE))
    for one, two in zip(then, other, strict=True):
        shapes = [value.shape for value in (facts.values.get(one.name), facts.values.get(two.name)) if value]
        if len(shapes) == 2 and None not in shapes and len(shapes[0] or ()) != len(shapes[1] or ()):
            return True
    return False


def _is_open(facts: Facts, name: str) -> bool:
    """Whether a condition follows from sizes and is not known."""
    value = facts.values.get(name)
    return value is not None and value.elements is not None and not value.is_constant


def _left_after(model: OnnxModel, node: onnx.NodeProto, chosen: str, fold: Callable[[OnnxModel], None]) -> int | None:
    """How many such `If`s are left when a branch is taken; None where what follows contradicts it."""
    trial = _copy(model)
    _take(trial, {node.name: (chosen, "")})
    try:
        prepare.infer_shapes(trial)
        fold(trial)
    except FrontendError:
        return None
    if prepare.contradiction(trial) is not None:
        return None
    facts = interpret(trial)
    return sum(bool(_branches(one)) and _ranks_differ(one, facts) for one in trial.proto.graph.node)


def _for_one(model: OnnxModel, node: onnx.NodeProto) -> str:
    """The branch for a batch of one, where the first dimension decides; else the one for sizes that are not equal."""
    trial = _copy(model)
    for value in prepare.real_inputs(trial.proto):
        for dim in value.type.tensor_type.shape.dim[:1]:
            if not dim.HasField("dim_value"):
                dim.dim_value = 1
    found = interpret(trial).values.get(node.input[0])
    if found is None or found.elements is None or not found.is_constant:
        return _ELSE
    return _THEN if found.elements.all() else _ELSE


def _copy(model: OnnxModel) -> OnnxModel:
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    return replace(model, proto=proto)
