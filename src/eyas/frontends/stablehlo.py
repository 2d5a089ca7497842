"""StableHLO to linalg: text, bytecode and portable artifacts, and the pipeline."""

from __future__ import annotations

from torch_mlir._mlir_libs import _stablehlo

from eyas.errors import CompileError, FrontendError
from eyas.frontends.contract import lower, prepare_context
from eyas.ir import PassPipeline, mlir, parse_module
from eyas.passes.input.convert_stablehlo_complex_constants import ConvertStablehloComplexConstants
from eyas.passes.input.convert_stablehlo_composites import ConvertStablehloComposites
from eyas.passes.input.convert_stablehlo_control_flow import ConvertStablehloControlFlow
from eyas.passes.input.convert_stablehlo_convolution import ConvertStablehloConvolution
from eyas.passes.input.convert_stablehlo_degenerate import ConvertStablehloDegenerate
from eyas.passes.input.convert_stablehlo_fft import ConvertStablehloFft
from eyas.passes.input.convert_stablehlo_gather import ConvertStablehloGather
from eyas.passes.input.convert_stablehlo_linear_algebra import ConvertStablehloLinearAlgebra
from eyas.passes.input.convert_stablehlo_scatter import ConvertStablehloScatter
from eyas.passes.input.convert_stablehlo_select_and_scatter import ConvertStablehloSelectAndScatter
from eyas.passes.input.convert_stablehlo_shapes import ConvertStablehloShapes
from eyas.passes.input.convert_stablehlo_sort import ConvertStablehloSort
from eyas.passes.input.convert_stablehlo_windows import ConvertStablehloWindows
from eyas.passes.input.fold_size_casts import FoldSizeCasts

SIMPLIFY = (
    # Composites have their decompositions with them.
    "func.func(stablehlo-legalize-composite-to-call),inline,symbol-dce,"
    "func.func(chlo-legalize-to-stablehlo,stablehlo-complex-math-expander,stablehlo-canonicalize-dynamism),"
    "canonicalize"
)
TO_LOOPS = PassPipeline(
    (
        ConvertStablehloShapes(),
        # What upstream has no lowering for; regions of these ops are read before control flow around them moves.
        ConvertStablehloWindows(),
        ConvertStablehloConvolution(),
        ConvertStablehloGather(),
        ConvertStablehloScatter(),
        ConvertStablehloSort(),
        ConvertStablehloSelectAndScatter(),
        ConvertStablehloLinearAlgebra(),
        ConvertStablehloFft(),
        ConvertStablehloControlFlow(),
        ConvertStablehloComplexConstants(),
        ConvertStablehloDegenerate(),
    )
)
TO_LINALG = "stablehlo-legalize-to-linalg,stablehlo-convert-to-signless,canonicalize,cse,symbol-dce"


def is_portable_artifact(data: bytes) -> bool:
    """Whether bytes are StableHLO's versioned bytecode, which `jax.export` and TensorFlow write."""
    return data[:4] == b"ML\xefR" and b"StableHLO_v" in data[:64]


def parse_stablehlo(program: str | bytes, source: str) -> mlir.Module:
    """Parses StableHLO text, bytecode or a portable artifact."""
    context = prepare_context()
    if isinstance(program, bytes) and is_portable_artifact(program):
        try:
            with context:
                module = _stablehlo.deserialize_portable_artifact(context, program)
        except (mlir.MLIRError, ValueError, RuntimeError) as error:
            raise FrontendError(f"{source} is not a StableHLO artifact of a known version: {error}") from None
        return module
    # JAX marks modules and arguments with attributes of dialects that exist nowhere (mhlo, jax).
    context.allow_unregistered_dialects = True
    try:
        module = parse_module(program, context, source)
    except CompileError as error:
        raise FrontendError(str(error)) from None
    finally:
        context.allow_unregistered_dialects = False
    return module


def lower_stablehlo(module: mlir.Module) -> None:
    """Lowers StableHLO and chlo to linalg."""
    drop_foreign_attributes(module)
    PassPipeline((ConvertStablehloComposites(),)).run(module)
    lower(module, SIMPLIFY)
    TO_LOOPS.run(module)
    lower(module, TO_LINALG)
    PassPipeline((FoldSizeCasts(),)).run(module)


def drop_foreign_attributes(module: mlir.Module) -> None:
    """Removes the marks of other systems: partition counts, shardings, result names."""
    for name in list(module.operation.attributes):
        if "." in name and not name.startswith("flow."):
            del module.operation.attributes[name]
    for op in module.body.operations:
        if op.operation.name == "func.func":
            for name in list(op.attributes):
                if name in ("arg_attrs", "res_attrs") or name.startswith(("jax.", "mhlo.", "tf.")):
                    del op.attributes[name]
