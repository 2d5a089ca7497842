"""Every exception that Eyas raises on purpose, under one root.

An error teaches: what went wrong, where (the user's node or line), the value seen, what is allowed, what to do next.
"""

from __future__ import annotations

import importlib.util
from typing import Self

# What `pip install eyas` leaves out -> the extra that has it.
EXTRA_OF = {"torch_mlir": "compiler", "llvmlite": "compiler", "ml_dtypes": "compiler", "typer": "cli", "rich": "cli"}
EXTRA_OF |= {name: name for name in ("torch", "onnx", "jax")} | {"ray": "fleet"}


class EyasError(Exception):
    """Root of all errors that are about the user's input or environment."""

    exit_code = 1


class UsageError(EyasError):
    """A command or an API call was used in a way that cannot work."""

    exit_code = 2


class TargetError(EyasError):
    """A target string names something unknown or impossible."""


class FrontendError(EyasError):
    """A model could not be brought into the input contract. `node` is the framework's node that it is about, where one
    is to blame."""

    node: str = ""

    def at(self, node: str) -> Self:
        self.node = node
        return self


class UnsupportedOpError(FrontendError):
    """The model uses an operation that Eyas cannot compile; the message names the node."""


class CompileError(EyasError):
    """A phase failed on IR that arrived legally; the message names the pass and the source location."""


class ModuleError(EyasError):
    """A `.eyas` file is missing, truncated, altered, or made for another machine or version."""


class IncompatibleError(ModuleError):
    """A module was made for another kind of device, for one that can do more, or for another version."""


class CallError(EyasError):
    """A module was called with arguments that its signature does not allow."""


class CompileWarning(UserWarning):
    """A dispatch could not be compiled as it should have been, and was compiled in a safer way. The result is right."""


class InternalError(EyasError):
    """A bug of ours. Carries the path of a reproducer when one could be written."""

    exit_code = 70


class TrainingModeWarning(UserWarning):
    """A PyTorch model was compiled in training mode, in which some of its layers act otherwise."""


class MissingPackageError(EyasError):
    """Something was asked for that needs a package which is not installed; the message names the extra that has it."""

    def __init__(self, package: str, what: str = "this") -> None:
        super().__init__(
            f"{what} needs the package '{package}', which is not installed here: pip install"
            f" 'eyas[{EXTRA_OF[package]}]'. Without extras Eyas runs modules: eyas.load(...)."
        )


def require(package: str, what: str) -> None:
    """Raises MissingPackageError unless a package of `EXTRA_OF` is installed."""
    if importlib.util.find_spec(package) is None:
        raise MissingPackageError(package, what)
