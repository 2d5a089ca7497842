"""MLIR diagnostics become one sentence that points at the user's node or line."""

from __future__ import annotations

import re

from torch_mlir import ir as mlir

from eyas.errors import CompileError, EyasError

_FILE_LINE = re.compile(r'"([^"]+)":(\d+):(\d+)')
_NAME = re.compile(r'loc\((?:fused\[)?"([^"]+)"[(),\]]')


def describe_location(location: mlir.Location | str) -> str:
    """The most useful part of a location: a named node first, then a source line, then 'an unknown place'."""
    text = str(location)
    if name := _NAME.search(text):
        return f"node '{name.group(1)}'"
    if place := _FILE_LINE.search(text):
        file, line, _ = place.groups()
        if file not in ("-", "<unknown>"):
            return f"{file}:{line}"
        return f"line {line}"
    return "an unknown place"


def first_diagnostic(error: mlir.MLIRError) -> tuple[str, str]:
    """Where and what of the first error that a pass or the parser reported."""
    diagnostics = getattr(error, "error_diagnostics", None) or []
    if not diagnostics:
        return "an unknown place", str(error).splitlines()[0]
    first = diagnostics[0]
    message = first.message.splitlines()[0]
    return describe_location(first.location), message


def raise_as_compile_error(error: mlir.MLIRError, what: str, kind: type[EyasError] = CompileError) -> None:
    """Raises `kind` for a failed pass: '<what> failed at <where>: <message>'."""
    where, message = first_diagnostic(error)
    raise kind(f"{what} failed at {where}: {message}") from error
