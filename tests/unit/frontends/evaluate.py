"""Runs an imported program through a plain loop lowering: an oracle that shares no code with Eyas."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

import numpy as np
from torch_mlir.dialects import linalg
from torch_mlir.execution_engine import ExecutionEngine
from torch_mlir.runtime import get_ranked_memref_descriptor, make_nd_memref_descriptor
from torch_mlir.runtime.np_to_memref import as_ctype, make_zero_d_memref_descriptor

from eyas.frontends.dtypes import numpy_dtype
from eyas.frontends.program import ImportedProgram
from eyas.ir import mlir, parse_module, run_upstream

TO_MEMORY = (
    "func.func(linalg-generalize-named-ops),"
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map"
    " allow-return-allocs-from-loops}"
)
TO_LLVM = (
    "func.func(tm-tensor-to-loops,convert-linalg-to-loops,lower-affine),expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,func.func(convert-math-to-llvm),convert-math-to-libm,convert-complex-to-llvm,"
    "finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,convert-index-to-llvm,"
    "reconcile-unrealized-casts"
)


def evaluate(program: ImportedProgram, *arguments: np.ndarray) -> list[np.ndarray]:
    """The program's flat results for flat arguments."""
    from eyas.frontends.contract import prepare_context

    text, keys = _parameters_as_arguments(str(program.module))
    module = parse_module(text, prepare_context())
    with module.context:
        module.body.operations[0].attributes["llvm.emit_c_interface"] = mlir.UnitAttr.get()
    run_upstream(module, "func.func(tm-tensor-bufferize)")
    _each(module, "bufferization.to_tensor", _mark_restrict)
    run_upstream(module, TO_MEMORY)
    _each(module, "memref.copy", _copy_by_linalg)
    run_upstream(module, TO_LLVM)
    engine = ExecutionEngine(module, opt_level=0)
    inputs = [np.ascontiguousarray(argument) for argument in arguments]
    inputs += [np.ascontiguousarray(program.parameters[key].array()) for key in keys]
    pointers = [ctypes.pointer(ctypes.pointer(get_ranked_memref_descriptor(array))) for array in inputs]
    dtypes = [numpy_dtype(result.dtype) for result in program.signature.results]
    fields = [
        (f"r{index}", _descriptor(len(result.dims), dtype))
        for index, (result, dtype) in enumerate(zip(program.signature.results, dtypes, strict=True))
    ]
    results = type("Results", (ctypes.Structure,), {"_fields_": fields})()
    engine.invoke("main", ctypes.pointer(ctypes.pointer(results)), *pointers)
    return [_to_numpy(getattr(results, name), dtype) for (name, _), dtype in zip(fields, dtypes, strict=True)]


def _each(module: mlir.Module, name: str, change: Callable[[mlir.Operation], None]) -> None:
    found: list[mlir.Operation] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name == name:
            found.append(op)
        return mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in found:
        with mlir.InsertionPoint(op), op.location:
            change(op)


def _mark_restrict(op: mlir.Operation) -> None:
    """What tm-tensor-bufferize allocates has no other name."""
    op.attributes["restrict"] = mlir.UnitAttr.get()


def _copy_by_linalg(op: mlir.Operation) -> None:
    """`memref.copy` would call a runtime library that is not in the wheel."""
    linalg.copy(op.operands[0], outs=[op.operands[1]])
    op.erase()


def _parameters_as_arguments(text: str) -> tuple[str, list[str]]:
    keys: list[str] = []
    extra: list[str] = []

    def replace(match: re.Match[str]) -> str:
        name, key, type_ = match.groups()
        keys.append(key)
        extra.append(f"%parameter{len(keys)}: {type_}")
        return f"{name} = tensor.cast %parameter{len(keys)} : {type_} to {type_}"

    text = re.sub(r'(%\S+) = "flow\.parameter"\(\) \{key = "([^"]+)"\} : \(\) -> (tensor<\S+>)', replace, text)
    head, arguments, rest = re.match(r"(.*?func\.func (?:public )?@main\()(.*?)(\) .*)", text, re.DOTALL).groups()
    return head + ", ".join(filter(None, [arguments, *extra])) + rest, keys


def _descriptor(rank: int, dtype: np.dtype) -> type:
    return make_nd_memref_descriptor(rank, as_ctype(dtype)) if rank else make_zero_d_memref_descriptor(as_ctype(dtype))


def _to_numpy(memref: ctypes.Structure, dtype: np.dtype) -> np.ndarray:
    shape = tuple(getattr(memref, "shape", ()))
    strides = tuple(stride * dtype.itemsize for stride in getattr(memref, "strides", ()))
    address = ctypes.addressof(memref.aligned.contents) + memref.offset * dtype.itemsize
    size = max(int(np.prod(shape)), 1) * dtype.itemsize
    buffer = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, buffer, strides=strides or None).copy()
