"""From the importer's ops to linalg: upstream's pipelines, and what of ours runs before and between them."""

from __future__ import annotations

from eyas.frontends.contract import lower
from eyas.ir import PassPipeline, mlir
from eyas.passes.input.convert_checks import OPERATOR as CHECK
from eyas.passes.input.convert_checks import ConvertChecks
from eyas.passes.input.convert_dynamic_views import ConvertDynamicViews
from eyas.passes.input.convert_products import OPERATOR as PRODUCT
from eyas.passes.input.convert_products import ConvertProducts
from eyas.passes.input.convert_random import OPERATOR as RANDOM
from eyas.passes.input.convert_random import ConvertRandom
from eyas.passes.input.convert_recurrences import FROM_ONNX as RECURRENCE
from eyas.passes.input.convert_recurrences import ConvertRecurrences
from eyas.passes.input.convert_rows import OPERATOR as SET_ROW
from eyas.passes.input.convert_rows import ConvertRows
from eyas.passes.input.convert_sizes import SCALAR as SIZE
from eyas.passes.input.convert_sizes import ConvertSizes
from eyas.passes.input.convert_torch_control_flow import ConvertTorchControlFlow
from eyas.passes.input.convert_trees import OPERATOR as TREES
from eyas.passes.input.convert_trees import ConvertTrees
from eyas.passes.input.convert_type_operators import OPERATORS, ConvertTypeOperators
from eyas.passes.input.match_scalars import MatchScalars

TO_TORCH = "func.func(convert-torch-onnx-to-torch)"
TO_TORCH_BACKEND = (
    "torch-onnx-to-torch-backend-pipeline{backend-legal-ops=aten.flatten.using_ints,aten.unflatten.int,"
    + ",".join((*OPERATORS, CHECK, PRODUCT, RANDOM, RECURRENCE, SET_ROW, SIZE, TREES))
    + "}"
)
TO_LINALG = "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true}"

# What upstream must not see while it brings ops of torch into its contract.
BEFORE = PassPipeline((MatchScalars(),))
# Between that and linalg: what upstream's lowering to linalg does wrong, or does not know.
BETWEEN = PassPipeline(
    (
        ConvertSizes(),
        ConvertDynamicViews(),
        ConvertTypeOperators(),
        ConvertProducts(),
        ConvertTrees(),
        ConvertRecurrences(),
        ConvertRows(),
        ConvertChecks(),
        ConvertRandom(),
        ConvertTorchControlFlow(),
    )
)


def lower_graph(module: mlir.Module) -> None:
    """Changes the module; a failure names the node. Upstream may end the process: `apart.py` is for graphs that make it
    do so."""
    lower(module, TO_TORCH)
    BEFORE.run(module)
    lower(module, TO_TORCH_BACKEND)
    BETWEEN.run(module)
    lower(module, TO_LINALG)
