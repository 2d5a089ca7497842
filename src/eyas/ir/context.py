"""Contexts: where MLIR keeps types, attributes and dialects. Every dialect of ours is loaded into each one."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.passmanager import PassManager

from eyas.errors import CompileError
from eyas.ir.diagnostics import first_diagnostic


def make_context() -> mlir.Context:
    """A fresh context with upstream, torch, StableHLO and all Eyas dialects, and diagnostics kept for our errors."""
    from torch_mlir._mlir_libs import _stablehlo
    from torch_mlir.dialects import torch as torch_dialect

    from eyas.dialects import load_all

    context = mlir.Context()
    # Python passes and patterns run under the GIL, and worker processes give the parallelism.
    context.enable_multithreading(False)
    torch_dialect.register_dialect(context)
    _stablehlo.register_dialect(context)
    with context:
        load_all()
        # The wheel registers tm_tensor only as a dependency of passes, so an empty run loads it.
        empty = mlir.Module.parse("module {}")
        PassManager.parse("builtin.module(func.func(convert-torch-to-tmtensor))").run(empty.operation)
    context.emit_error_diagnostics = False
    return context


def parse_module(text: str | bytes, context: mlir.Context, source: str = "<text>") -> mlir.Module:
    """Parses MLIR text or bytecode; a syntax error becomes one CompileError that names the line."""
    try:
        with context:
            return mlir.Module.parse(text)
    except mlir.MLIRError as error:
        where, message = first_diagnostic(error)
        raise CompileError(f"{source} is not valid MLIR: {message} (at {where})") from None


def clone_into(op: mlir.Operation, context: mlir.Context) -> mlir.Module:
    """Copies a module into another context through bytecode; resources without data stay references."""
    import io

    buffer = io.BytesIO()
    op.operation.write_bytecode(buffer)
    return parse_module(buffer.getvalue(), context)
