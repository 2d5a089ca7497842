"""Eyas compiles machine-learning models and runs them.

Public names only, loaded on first use: `import eyas` costs nothing, and a machine that only runs modules needs NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from eyas.errors import CompileWarning, EyasError, require

if TYPE_CHECKING:
    from eyas.api import compile, export, training_step
    from eyas.frontends.entries import Entry
    from eyas.frontends.torch.training import TrainingStep
    from eyas.runtime import Device, DeviceTensor, Module, devices, load
    from eyas.runtime.futures import Future
    from eyas.targets import Target
    from eyas.verification.verify import verify

__version__ = "0.1.0"

_LAZY = {
    "Device": "eyas.runtime",
    "Future": "eyas.runtime.futures",
    "DeviceTensor": "eyas.runtime",
    "devices": "eyas.runtime",
    "Entry": "eyas.frontends.entries",
    "compile": "eyas.api",
    "export": "eyas.api",
    "TrainingStep": "eyas.frontends.torch.training",
    "load": "eyas.runtime",
    "training_step": "eyas.api",
    "verify": "eyas.verification.verify",
    "Module": "eyas.runtime",
    "Target": "eyas.targets",
}

_COMPILES = ("compile", "export", "training_step", "verify")

__all__ = [
    "CompileWarning",
    "Device",
    "DeviceTensor",
    "Entry",
    "EyasError",
    "Future",
    "Module",
    "Target",
    "TrainingStep",
    "__version__",
    "compile",
    "devices",
    "export",
    "load",
    "training_step",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _COMPILES:
        require("torch_mlir", f"eyas.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'eyas' has no attribute '{name}'; public names: {', '.join(__all__)}")
