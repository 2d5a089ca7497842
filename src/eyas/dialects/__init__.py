"""Eyas's own dialects, one file each, in the order that a program meets them: flow, stream, hal, codegen, vm."""

from __future__ import annotations

import importlib
import sys

DIALECTS = {"flow": "Flow", "stream": "Stream", "hal": "Hal", "codegen": "Codegen", "vm": "Vm"}


def load_all() -> None:
    """Loads every dialect into the current context."""
    for name, class_name in DIALECTS.items():
        module = importlib.import_module(f"eyas.dialects.{name}")
        # The bindings look here for each op that they wrap; a miss costs a search of the whole path every time.
        sys.modules.setdefault(f"torch_mlir.dialects.{name}", module)
        getattr(module, class_name).load()
