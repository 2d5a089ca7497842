"""The node tests of the installed `onnx` package: models, inputs, expected outputs and tolerances as it gives them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

# Inputs that say what shape or which axes, not what numbers: real models give them as constants, the tests as inputs.
_PARAMETERS: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "If": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "NonMaxSuppression": (2, 3, 4),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
_IMAGE_OPS = {"ImageDecoder"}


@dataclass(frozen=True)
class Case:
    """One test. `numeric` says whether all that it needs are tensors of numbers, which is what the bar counts."""

    name: str
    op: str
    model: onnx.ModelProto
    data_sets: Sequence[tuple[Sequence[object], Sequence[object]]]
    rtol: float
    atol: float
    numeric: bool
    expanded: bool
    parameters: frozenset[str] = frozenset()

    def specialized(self) -> tuple[onnx.ModelProto, list[bool]] | None:
        """The model with its parameter inputs as constants, and which inputs are left; None when it has none."""
        if len(self.data_sets) != 1:
            return None
        graph = self.model.graph
        values = [value.name in self.parameters for value in graph.input]
        if not any(values):
            return None
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for index in reversed(range(len(values))):
            if values[index]:
                del model.graph.input[index]
                array = np.asarray(self.data_sets[0][0][index])
                model.graph.initializer.append(numpy_helper.from_array(array, graph.input[index].name))
        model.ir_version = max(model.ir_version, 4)
        return model, [not constant for constant in values]


def collect(pattern: str = "") -> list[Case]:
    """All node tests whose name matches, in the package's order."""
    with warnings.catch_warnings():
        # The package computes its own expected values with overflows and divisions by zero.
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    # An expanded copy has the parameters of the operator that it was.
    parameters = {test.name: _parameters(test.model) for test in found if "_expanded" not in test.name}
    return [_case(test, parameters) for test in found if re.search(pattern, test.name)]


def _parameters(model: onnx.ModelProto) -> frozenset[str]:
    """Names of inputs that say what shape or which axes."""
    return frozenset(
        name
        for node in model.graph.node
        for index, name in enumerate(node.input)
        if index in _parameter_indices(node) and name
    )


def _case(test: object, parameters: dict[str, frozenset[str]]) -> Case:
    nodes = test.model.graph.node
    name = test.name
    expanded = "_expanded" in name
    op = nodes[0].op_type if len(nodes) == 1 else "expanded functions" if expanded else nodes[-1].op_type
    chosen = parameters.get(name.split("_expanded")[0], frozenset()) | _parameters(test.model)
    return Case(name, op, test.model, test.data_sets, test.rtol, test.atol, _is_numeric(test.model), expanded, chosen)


def _is_numeric(model: onnx.ModelProto) -> bool:
    if any(node.domain.startswith("ai.onnx.preview") or node.op_type in _IMAGE_OPS for node in model.graph.node):
        return False
    values = [*model.graph.input, *model.graph.output]
    return all(
        value.type.WhichOneof("value") == "tensor_type"
        and value.type.tensor_type.elem_type not in (onnx.TensorProto.STRING, onnx.TensorProto.UNDEFINED)
        for value in values
    )


def _parameter_indices(node: onnx.NodeProto) -> tuple[int, ...]:
    return (1,) if node.op_type.startswith("Reduce") else _PARAMETERS.get(node.op_type, ())
