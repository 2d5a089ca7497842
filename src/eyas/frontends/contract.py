"""The last steps that all frontends share: lowering with errors that name the user's node, parameters out, checks."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Mapping

import numpy as np

from eyas.errors import CompileError, FrontendError, UnsupportedOpError
from eyas.frontends.states import bind_states, initial_values
from eyas.ir import PassPipeline, Upstream, make_context, mlir, parse_module, run_upstream
from eyas.ir.locations import describe_location, node_name
from eyas.ir.passes import parse_upstream
from eyas.ir.walk import functions
from eyas.module.signature import RANDOM_STATE
from eyas.passes.input.convert_random import DRAWS
from eyas.passes.input.drop_asserts import DropAsserts
from eyas.passes.input.drop_unused_results import DropUnusedResults
from eyas.passes.input.externalize_parameters import ExternalizeParameters, take_values
from eyas.passes.input.hoist_sizes import HoistSizes
from eyas.passes.input.hold_small_types import HoldSmallTypes
from eyas.passes.input.narrow_scalars import NarrowScalars
from eyas.passes.input.verify_input_contract import VerifyInputContract, op_label
from eyas.passes.input.wrap_scalars import WrapScalars
from eyas.program.parameters import Parameter
from eyas.program.program import print_module

TO_CONTRACT = PassPipeline(
    (
        # Private functions disappear into @main.
        Upstream("inline,symbol-dce"),
        DropAsserts(),
        HoistSizes(),
        HoldSmallTypes(),
        WrapScalars(),
        # Index arithmetic arrives as affine.apply from some importers.
        Upstream("lower-affine"),
        NarrowScalars(),
        Upstream("canonicalize,cse,symbol-dce"),
        DropUnusedResults(),
        Upstream("canonicalize,cse"),
        ExternalizeParameters(),
        VerifyInputContract(),
    )
)


@functools.cache
def _register_passes() -> None:
    from torch_mlir._mlir_libs import _stablehlo

    _stablehlo.register_stablehlo_passes()


def prepare_context() -> mlir.Context:
    """A fresh context for one import (resource names are unique per context), with all frontends' dialects loaded."""
    _register_passes()
    context = make_context()
    # torch_c, tm_tensor and chlo have no registration of their own: passes that depend on them load them.
    loaders = "torch-backend-to-linalg-on-tensors-backend-pipeline,stablehlo-compatibility-expander"
    run_upstream(parse_module("module {}", context), loaders)
    return context


def keep_early_text(module: mlir.Module) -> Callable[[int], str]:
    """Remembers the module as it is now, as bytecode; prints it when asked."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    data = buffer.getvalue()

    def text(large_elements_limit: int) -> str:
        context = prepare_context()
        # Attributes of other systems, such as mhlo.sharding, are shown as they came.
        context.allow_unregistered_dialects = True
        return print_module(parse_module(data, context), large_elements_limit)

    return text


def lower(module: mlir.Module, passes: str) -> None:
    """Runs an importer's pipeline; a failure names the framework's op and the user's source line.

    Each pass is verified: some lowerings make invalid IR for rare arguments, on which the next pass would crash.
    """
    try:
        with module.context:
            parse_upstream(passes).run(module.operation)
    except mlir.MLIRError as error:
        raise explain_failure(module, error) from error


def finish(module: mlir.Module, parameters: Mapping[str, Parameter], hint: str = "") -> dict[str, Parameter]:
    """Brings a lowered module into the contract; returns the parameters that it uses."""
    try:
        TO_CONTRACT.run(module)
    except UnsupportedOpError as error:
        raise UnsupportedOpError(f"{error}{hint}") from None
    except CompileError as error:
        raise FrontendError(f"the importer made an invalid program: {error}") from error
    seed = _bind_seed(module)
    values = {name: Parameter.of_array(name, array) for name, array in take_values(module).items()}
    available = {**parameters, **values}
    found: dict[str, mlir.Operation] = {}

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name == "flow.parameter":
            found.setdefault(mlir.StringAttr(op.attributes["key"]).value, op)
        return mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for key, op in found.items():
        if key not in available:
            raise FrontendError(f"parameter '{key}' at {describe_location(op.location)} has no data")
    return {**{key: available[key] for key in found}, **seed}


def _bind_seed(module: mlir.Module) -> dict[str, Parameter]:
    """Makes state of what random numbers are drawn from, if the program draws any; returns its first value."""
    (function,) = functions(module)
    if DRAWS not in function.attributes:
        return {}
    del function.attributes[DRAWS]
    type_ = mlir.FunctionType(mlir.TypeAttr(function.attributes["function_type"]).value)
    bind_states(module, {len(type_.inputs) - 1: RANDOM_STATE}, {len(type_.results) - 1: RANDOM_STATE})
    return initial_values({RANDOM_STATE: np.zeros(2, np.int64)})


def explain_failure(module: mlir.Module, error: mlir.MLIRError) -> FrontendError:
    """One line from a failed pipeline: the framework's op that could not be lowered, where, and why."""
    diagnostics = list(getattr(error, "error_diagnostics", None) or [])
    for diagnostic in diagnostics:
        texts = [diagnostic.message, *(note.message for note in diagnostic.notes)]
        op = _failed_op("\n".join(texts))
        # Constants and lists are left behind because the op that uses them was.
        if op and not op.startswith(("constant.", "prim.", "vtensor.")):
            where = describe_location(diagnostic.location)
            error_of_op = UnsupportedOpError(f"'{op}' at {where} is not supported: {_reason(diagnostic.message)}")
            return error_of_op.at(node_name(diagnostic.location))
    if left := _first_left_over(module):
        where = describe_location(left.location)
        failure = UnsupportedOpError(f"'{op_label(left)}' at {where} is not supported: no lowering for it")
        return failure.at(node_name(left.location))
    if diagnostics:
        where = describe_location(diagnostics[0].location)
        failure = FrontendError(f"lowering failed at {where}: {_one_line(diagnostics[0].message)}")
        return failure.at(node_name(diagnostics[0].location))
    return FrontendError(f"lowering failed: {_one_line(str(error))}")


_NAMED_OPERATOR = re.compile(r'torch\.operator"?.*?"(?:torch\.)?(?!torch\.)(\w+\.[\w.]+)"')
_FAILED = re.compile(r"failed to legalize operation '([\w.]+)'|unsupported by backend contract: .*?'(torch[\w.]+)'")


def _failed_op(text: str) -> str | None:
    # `torch.operator "torch.aten.foo"`: an op that the importer has no class for.
    if named := _NAMED_OPERATOR.search(text):
        return named.group(1)
    if failed := _FAILED.search(text):
        return (failed.group(1) or failed.group(2)).removeprefix("torch.")
    return None


def _first_left_over(module: mlir.Module) -> mlir.Operation | None:
    found: list[mlir.Operation] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name.startswith(("torch.aten.", "torch.prims.", "torch.operator", "torch.quantized")):
            found.append(op)
            return mlir.WalkResult.INTERRUPT
        return mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found[0] if found else None


def _reason(message: str) -> str:
    if "failed to legalize" in message or "backend contract" in message:
        return "no lowering for it with these types and arguments"
    return _one_line(message)


def _one_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "unknown failure")
    return line[:300]
