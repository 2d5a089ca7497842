"""Every exception that Eyas raises on purpose, under one root.

An error teaches: what went wrong, where (the user's node or line), the value seen, what is allowed, what to do next.
"""

from __future__ import annotations


class EyasError(Exception):
    """Root of all errors that are about the user's input or environment."""

    exit_code = 1


class UsageError(EyasError):
    """A command or an API call was used in a way that cannot work."""

    exit_code = 2


class TargetError(EyasError):
    """A target string names something unknown or impossible."""


class FrontendError(EyasError):
    """A model could not be brought into the input contract."""


class UnsupportedOpError(FrontendError):
    """The model uses an operation that Eyas cannot compile; the message names the node."""


class CompileError(EyasError):
    """A phase failed on IR that arrived legally; the message names the pass and the source location."""


class ModuleError(EyasError):
    """A `.eyas` file is missing, truncated, altered, or made for another machine or version."""


class CallError(EyasError):
    """A module was called with arguments that its signature does not allow."""


class CompileWarning(UserWarning):
    """A dispatch could not be compiled as it should have been, and was compiled in a safer way. The result is right."""


class InternalError(EyasError):
    """A bug of ours. Carries the path of a reproducer when one could be written."""

    exit_code = 70
