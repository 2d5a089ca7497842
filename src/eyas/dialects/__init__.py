"""Eyas's own dialects, one file each, in the order that a program meets them: flow, stream, hal, codegen, vm."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

from torch_mlir import ir as mlir

ON_DEMAND = {"tuning": "Tuning"}
"""Those that few contexts need."""

DIALECTS = {"flow": "Flow", "stream": "Stream", "hal": "Hal", "codegen": "Codegen", "vm": "Vm"}


def load_all() -> None:
    """Loads every dialect into the current context."""
    for name, class_name in DIALECTS.items():
        module = importlib.import_module(f"eyas.dialects.{name}")
        # The bindings look here for each op that they wrap; a miss costs a search of the whole path every time.
        sys.modules.setdefault(f"torch_mlir.dialects.{name}", module)
        _load(getattr(module, class_name))


def load_on_demand(name: str) -> None:
    """Loads one of the others into the current context, unless it is there."""
    if not mlir.Context.current.is_dialect_loaded(name):
        module = importlib.import_module(f"eyas.dialects.{name}")
        sys.modules.setdefault(f"torch_mlir.dialects.{name}", module)
        _load(getattr(module, ON_DEMAND[name]))


# The definition of each dialect as IRDL bytecode. Making it from the classes takes 8 ms longer.
_DEFINITIONS: dict[type, bytes] = {}


def _load(dialect: Any) -> None:
    emit = dialect._emit_module
    if dialect in _DEFINITIONS:
        dialect._emit_module = classmethod(lambda cls: mlir.Module.parse(_DEFINITIONS[cls]))
    try:
        dialect.load()
    finally:
        dialect._emit_module = emit
    if dialect not in _DEFINITIONS:
        buffer = io.BytesIO()
        dialect._mlir_module.operation.write_bytecode(buffer)
        _DEFINITIONS[dialect] = buffer.getvalue()
