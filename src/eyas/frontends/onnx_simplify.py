"""Makes an ONNX graph plainer before import, and the subgraphs in it: known sizes, folded constants, corrected ops."""

from __future__ import annotations

from eyas.frontends import onnx_prepare as prepare
from eyas.frontends.onnx_corrections import correct
from eyas.frontends.onnx_file import OnnxModel
from eyas.frontends.onnx_fold import fold
from eyas.frontends.onnx_subgraphs import transform_subgraphs

# Known sizes make more shapes known, and those more sizes: bodies of functions need two or three rounds.
_ROUNDS = 6


def simplify(model: OnnxModel) -> None:
    """Shapes must have been inferred, and are when this returns."""
    _fold(model)
    # onnx infers the shapes inside a subgraph without the values of constants outside; as a model it has them.
    if transform_subgraphs(model, _simplify_subgraph):
        prepare.infer_shapes(model)
        _fold(model)
    if correct(model):
        prepare.normalize(model)
        prepare.infer_shapes(model)
        if fold(model):
            prepare.infer_shapes(model)


def _simplify_subgraph(model: OnnxModel) -> None:
    prepare.infer_shapes(model)
    simplify(model)


def _fold(model: OnnxModel) -> None:
    for _ in range(_ROUNDS):
        if not fold(model):
            break
        prepare.infer_shapes(model)
