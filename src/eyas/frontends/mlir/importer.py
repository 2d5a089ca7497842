"""MLIR: text, bytecode or a path, in the torch, StableHLO, TOSA or linalg dialects, told apart by the ops inside."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from eyas.errors import FrontendError, UsageError
from eyas.frontends.contract import finish, keep_early_text, lower
from eyas.frontends.functions import make_private, public_functions, select_main, signature_of
from eyas.frontends.stablehlo import lower_stablehlo, parse_stablehlo
from eyas.ir import PassPipeline, mlir
from eyas.module.trees import CallTree, flat_results
from eyas.passes.input.hide_constants import HideConstants
from eyas.passes.input.match_scalars import MatchScalars
from eyas.program.program import ImportedProgram, Source, count_ops

ONNX_TO_TORCH = "func.func(convert-torch-onnx-to-torch)"
TORCH_TO_LINALG = (
    "torchdynamo-export-to-torch-backend-pipeline{ extra-library=},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true}"
)
ONNX_TO_LINALG = (
    "torch-onnx-to-torch-backend-pipeline{backend-legal-ops=aten.flatten.using_ints,aten.unflatten.int},"
    "torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true}"
)
TOSA_TO_LINALG = (
    "func.func(tosa-optional-decompositions),canonicalize,"
    "func.func(tosa-infer-shapes,tosa-make-broadcastable,tosa-to-linalg-named),canonicalize,"
    "func.func(tosa-layerwise-constant-fold,tosa-make-broadcastable),"
    "func.func(tosa-to-linalg,tosa-to-arith{include-apply-rescale=true},tosa-to-tensor,tosa-to-scf),"
    "canonicalize,cse"
)


def import_model(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> ImportedProgram:
    """Imports MLIR. The program has its types already, so there are no example inputs."""
    if args or kwargs or dynamic_shapes is not None:
        raise UsageError("an MLIR program already has its types; pass it alone")
    text, description = _read(model)
    return import_text(text, description)


def import_text(program: str | bytes, description: str) -> ImportedProgram:
    """Parses a program, finds its dialect, lowers it. Each of several public functions is an entry point, unless one is
    @main."""
    module = parse_stablehlo(program, description)
    with module.context:
        names = public_functions(module)
    if len(names) < 2 or "main" in names or not all(map(str.isidentifier, names)):
        return _import_module(module, description)
    from eyas.frontends.entries import merge

    programs = {}
    for name in names:
        module = parse_stablehlo(program, description)
        with module.context:
            make_private(module, [other for other in names if other != name])
        programs[name] = _import_module(module, f"{description} @{name}")
    return merge(programs)


def _import_module(module: mlir.Module, description: str) -> ImportedProgram:
    with module.context:
        main = select_main(module, description)
        signature = signature_of(main)
        has_unsigned = any(map(_is_unsigned, [*main.type.inputs, *main.type.results]))
    dialects = {name.partition(".")[0] for name in count_ops(module.operation)}
    early_text = keep_early_text(module) if dialects & {"torch", "stablehlo", "chlo", "tosa"} else None
    if "torch" in dialects:
        onnx = _has_onnx(module)
        if onnx:
            lower(module, ONNX_TO_TORCH)
        PassPipeline((MatchScalars(),) if onnx else (MatchScalars(), HideConstants())).run(module)
        lower(module, ONNX_TO_LINALG if onnx else TORCH_TO_LINALG)
    elif "tosa" in dialects:
        lower(module, TOSA_TO_LINALG)
    elif dialects & {"stablehlo", "chlo"} or has_unsigned:
        # Of a program that does nothing its types tell what it is: no other has unsigned ones.
        lower_stablehlo(module)
    parameters = finish(module, {})
    in_tree = CallTree.flat([argument.name for argument in signature.arguments])
    out_tree = flat_results([result.name for result in signature.results])
    return ImportedProgram(module, parameters, signature, in_tree, out_tree, Source("mlir", description), early_text)


def _read(model: Any) -> tuple[str | bytes, str]:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), "<bytes>"
    if isinstance(model, mlir.Module):
        return str(model), "<module>"
    if isinstance(model, str) and "{" in model:
        return model, "<text>"
    path = os.fspath(model)
    if not os.path.isfile(path):
        raise FrontendError(f"no such file: '{path}'")
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] == b"ML\xefR":
        return data, os.path.basename(path)
    try:
        return data.decode(), os.path.basename(path)
    except UnicodeDecodeError:
        raise FrontendError(f"'{path}' is neither MLIR text nor MLIR bytecode") from None


def _is_unsigned(type_: mlir.Type) -> bool:
    element = type_.element_type if isinstance(type_, mlir.ShapedType) else type_
    return isinstance(element, mlir.IntegerType) and element.is_unsigned


def _has_onnx(module: mlir.Module) -> bool:
    found = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name == "torch.operator" and str(op.attributes["name"]).startswith('"onnx.'):
            found.append(op)
            return mlir.WalkResult.INTERRUPT
        return mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return bool(found)
