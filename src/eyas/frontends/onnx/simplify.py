"""Makes an ONNX graph plainer before import, and the subgraphs in it: known sizes, folded constants, corrected ops."""

from __future__ import annotations

from eyas.frontends.onnx import prepare
from eyas.frontends.onnx.branches import assume_branch, take_possible_branches
from eyas.frontends.onnx.carried import tidy_control_flow
from eyas.frontends.onnx.corrections import correct
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.fold import fold
from eyas.frontends.onnx.grown import give_room
from eyas.frontends.onnx.padding import state_padding
from eyas.frontends.onnx.sequences import resolve_sequences
from eyas.frontends.onnx.step_slices import gather_step_slices
from eyas.frontends.onnx.subgraphs import transform_subgraphs

# Known sizes make more shapes known, and those more sizes: bodies of functions need two or three rounds.
_ROUNDS = 6


def simplify(model: OnnxModel) -> None:
    """Shapes must have been inferred, and are when this returns."""
    _fold(model)
    for change in (resolve_sequences, tidy_control_flow, gather_step_slices, give_room):
        if change(model):
            prepare.infer_shapes(model)
            _fold(model)
    while assume_branch(model, _fold):
        prepare.infer_shapes(model)
        _fold(model)
    # onnx infers the shapes inside a subgraph without the values of constants outside; as a model it has them.
    if transform_subgraphs(model, _simplify_subgraph):
        prepare.infer_shapes(model)
        if take_possible_branches(model):
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


def _fold(model: OnnxModel) -> None:
    for _ in range(_ROUNDS):
        if not fold(model):
            break
        prepare.infer_shapes(model)
