"""The code generator of each target, loaded when it is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from eyas.targets import Target
from eyas.targets.registry import codegen_module, codegen_modules

if TYPE_CHECKING:
    from eyas.codegen.common.backend import Backend


def all_switches() -> tuple[str, ...]:
    """What some target's dispatches can be compiled without."""
    backends = [importlib.import_module(name).BACKEND for name in codegen_modules()]
    return tuple(dict.fromkeys(name for backend in backends for name in backend.switches))


def backend_of(target: Target) -> Backend:
    """What compiles for this target."""
    return importlib.import_module(codegen_module(target)).BACKEND
