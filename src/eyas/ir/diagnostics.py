"""MLIR diagnostics become one sentence that points at the user's node or line."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.errors import CompileError, EyasError
from eyas.ir.locations import UNKNOWN, describe_location


def first_diagnostic(error: mlir.MLIRError) -> tuple[str, str]:
    """Where and what of the first error that a pass or the parser reported."""
    diagnostics = getattr(error, "error_diagnostics", None) or []
    if not diagnostics:
        return UNKNOWN, str(error).splitlines()[0]
    first = diagnostics[0]
    message = first.message.splitlines()[0]
    return describe_location(first.location), message


def raise_as_compile_error(error: mlir.MLIRError, what: str, kind: type[EyasError] = CompileError) -> None:
    """Raises `kind` for a failed pass: '<what> failed at <where>: <message>'."""
    where, message = first_diagnostic(error)
    raise kind(f"{what} failed at {where}: {message}") from error
