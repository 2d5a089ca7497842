"""Runs an imported program through upstream's bufferisation and JIT: an oracle that shares no pass with Eyas.

It is slow and covers less than Eyas does; it tells a wrong import from a wrong compilation.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch_mlir.dialects import linalg
from torch_mlir.execution_engine import ExecutionEngine
from torch_mlir.runtime import get_ranked_memref_descriptor, make_nd_memref_descriptor
from torch_mlir.runtime.np_to_memref import as_ctype, make_zero_d_memref_descriptor

from eyas.ir import mlir, parse_module, run_upstream
from eyas.program.dtypes import numpy_dtype
from eyas.program.parameters import Parameter
from eyas.program.program import ImportedProgram

TO_MEMORY = (
    "func.func(convert-elementwise-to-linalg,linalg-generalize-named-ops),"
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map"
    " allow-return-allocs-from-loops}"
)
TO_LLVM = (
    "func.func(tm-tensor-to-loops,convert-linalg-to-loops,lower-affine),expand-strided-metadata,lower-affine,"
    "convert-scf-to-cf,func.func(convert-math-to-llvm),convert-math-to-libm,convert-complex-to-llvm,"
    "finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,convert-index-to-llvm,"
    "reconcile-unrealized-casts"
)
_PARAMETER = re.compile(r'(%\S+) = "flow\.parameter"\(\) \{key = "([^"]+)"\} : \(\) -> (tensor<\S+>)')
_HEAD = re.compile(r"(.*?func\.func (?:public )?@main\()(.*?)(\) .*)", re.DOTALL)


def evaluate(program: ImportedProgram, *arguments: np.ndarray) -> list[np.ndarray]:
    """The program's flat results for flat arguments."""
    results = [(numpy_dtype(result.dtype), len(result.dims)) for result in program.signature.results]
    return evaluate_text(str(program.module), program.parameters, results, arguments)


def evaluate_text(
    text: str,
    parameters: Mapping[str, Parameter],
    results: Sequence[tuple[np.dtype, int]],
    arguments: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """The same for the text of a program; `results` are the types and ranks of what it returns."""
    from eyas.frontends.contract import prepare_context

    text, keys = _parameters_as_arguments(text)
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
    inputs += [np.ascontiguousarray(parameters[key].array()) for key in keys]
    pointers = [ctypes.pointer(ctypes.pointer(get_ranked_memref_descriptor(array))) for array in inputs]
    fields = [(f"r{index}", _descriptor(rank, dtype)) for index, (dtype, rank) in enumerate(results)]
    returned = type("Results", (ctypes.Structure,), {"_fields_": fields})()
    engine.invoke("main", ctypes.pointer(ctypes.pointer(returned)), *pointers)
    return [_to_numpy(getattr(returned, name), dtype) for (name, _), (dtype, _) in zip(fields, results, strict=True)]


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

    text = _PARAMETER.sub(replace, text)
    match = _HEAD.match(text)
    assert match is not None, "a program without @main"
    head, arguments, rest = match.groups()
    return head + ", ".join(filter(None, [arguments, *extra])) + rest, keys


def _descriptor(rank: int, dtype: np.dtype) -> type:
    return make_nd_memref_descriptor(rank, as_ctype(dtype)) if rank else make_zero_d_memref_descriptor(as_ctype(dtype))


def _to_numpy(memref: Any, dtype: np.dtype) -> np.ndarray:
    shape = tuple(getattr(memref, "shape", ()))
    strides = tuple(stride * dtype.itemsize for stride in getattr(memref, "strides", ()))
    address = ctypes.addressof(memref.aligned.contents) + memref.offset * dtype.itemsize
    size = max(int(np.prod(shape)), 1) * dtype.itemsize
    buffer = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memoryview(buffer), strides=strides or None).copy()
