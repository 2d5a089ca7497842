"""The code generator of each target, loaded when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from eyas.targets import Target

if TYPE_CHECKING:
    from eyas.codegen.common.backend import Backend

_MODULES = {"llvm-cpu": "eyas.codegen.llvm_cpu.compile", "vmvx": "eyas.codegen.vmvx.compile"}


def backend_of(target: Target) -> Backend:
    """What compiles for this target."""
    target.check_supported()
    return load_backend(target.backend)


def load_backend(name: str) -> Backend:
    """The code generator of a backend by its name."""
    return importlib.import_module(_MODULES[name]).BACKEND
