"""Makes an ONNX graph plainer before import, and the subgraphs in it: known sizes, folded constants, corrected ops."""

from __future__ import annotations

import onnx

from eyas.frontends.onnx import prepare
from eyas.frontends.onnx.corrections import correct
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.fold import fold
from eyas.frontends.onnx.padding import state_padding
from eyas.frontends.onnx.subgraphs import as_model, import_domains, inline, replace_nodes, transform_subgraphs

# Known sizes make more shapes known, and those more sizes: bodies of functions need two or three rounds.
_ROUNDS = 6


def simplify(model: OnnxModel) -> None:
    """Shapes must have been inferred, and are when this returns."""
    _fold(model)
    # onnx infers the shapes inside a subgraph without the values of constants outside; as a model it has them.
    if transform_subgraphs(model, _simplify_subgraph):
        prepare.infer_shapes(model)
        if _take_possible_branches(model):
            prepare.infer_shapes(model)
        _fold(model)
    if state_padding(model):
        prepare.infer_shapes(model)
    if correct(model):
        prepare.normalize(model)
        prepare.infer_shapes(model)
        if fold(model):
            prepare.infer_shapes(model)
        _infer_inside(model)


def _infer_inside(model: OnnxModel) -> None:
    """Shapes inside the bodies of new loops, which depend on constants of the main graph."""

    def infer(inner: OnnxModel) -> None:
        prepare.infer_shapes(inner)
        _infer_inside(inner)

    transform_subgraphs(model, infer)


def _simplify_subgraph(model: OnnxModel) -> None:
    prepare.infer_shapes(model)
    _fold(model)
    # A branch that cannot run is left out below; what it has that is not supported does not matter.
    if prepare.contradiction(model) is None:
        simplify(model)


def _take_possible_branches(model: OnnxModel) -> bool:
    """An `If` of which one branch would fail for the shapes that are known becomes the other, behind a check.

    Models for several sampling rates have this: each branch takes frames of another length.
    """
    graph = model.proto.graph
    kept: list[onnx.NodeProto] = []
    for node in graph.node:
        branches = {attribute.name: attribute.g for attribute in node.attribute} if node.op_type == "If" else {}
        inner = {name: as_model(model, branch) for name, branch in branches.items()}
        possible = [name for name, branch in inner.items() if branch and not prepare.contradiction(branch)]
        if len(branches) == 2 and len(possible) == 1:
            message = (
                f"{prepare.describe_node(node, model)} must go to its {possible[0]}: the other one does not fit the"
                " shapes that the model was compiled with"
            )
            wanted = int(possible[0] == "then_branch")
            check = {"name": f"{node.name}_check", "domain": "eyas", "wanted": wanted, "message": message}
            kept.append(onnx.helper.make_node("EyasCheck", [node.input[0]], [], **check))
            kept.extend(inline(branches[possible[0]], list(node.output), node.name))
        else:
            kept.append(node)
    if len(kept) == len(graph.node):
        return False
    replace_nodes(graph, kept)
    import_domains(model, ["eyas"])
    return True


def _fold(model: OnnxModel) -> None:
    for _ in range(_ROUNDS):
        if not fold(model):
            break
        prepare.infer_shapes(model)
