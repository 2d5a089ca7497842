"""Sizes that vary go on to vary while a program is taken apart.

A decomposition that asks whether a size is 3 is told so if it was in the example, and the size is 3 from then on, in
all of the program. Here the question fails instead: `guarded` leaves the op as it is, for another decomposition or for
a refusal that names it. So does a question of ours which of two sizes is larger, where the ranges do not say: the
program would be that of the example alone. Whether there is anything at all is not such a question.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.symbolic_shapes import ShapeEnv

_QUIET = logging.getLogger("eyas.sizes")
_QUIET.disabled = True


class FixedSizeError(Exception):
    """A size that varies would be fixed."""


@contextmanager
def keep_sizes(program: torch.export.ExportedProgram) -> Iterator[None]:
    """While it lasts, no size of the program's arguments becomes a number or another size."""
    varying = {symbol: place for place, symbol in _sizes(program)}
    environment = _environment(program)
    if environment is None or not varying:
        yield
        return
    replace = environment._set_replacement

    def checked(symbol: Any, target: Any, reason: str) -> None:
        known = environment.replacements
        if symbol in varying and symbol not in known and symbol not in target.free_symbols:
            raise FixedSizeError(f"{varying[symbol]} may vary, and would have to be {target}")
        replace(symbol, target, reason)

    evaluate = environment.evaluate_expr

    def answered(question: Any, *args: Any, **kwargs: Any) -> Any:
        if _compares(question, varying) and _is_ours() and environment._maybe_evaluate_static(question) is None:
            raise FixedSizeError(f"{question} depends on sizes that may vary")
        return evaluate(question, *args, **kwargs)

    # It logs every question that fails.
    with (
        mock.patch.object(environment, "_set_replacement", checked),
        mock.patch.object(environment, "evaluate_expr", answered),
        mock.patch.object(environment, "log", _QUIET),
    ):
        yield


def _compares(question: Any, varying: Any) -> bool:
    """Whether it asks which of two sizes is larger."""
    if not isinstance(question, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)):
        return False
    few = any(isinstance(side, sympy.Integer) and int(side) <= 2 for side in question.args)
    return not few and any(symbol in varying for symbol in question.free_symbols)


def _is_ours() -> bool:
    """Whether a function of ours asks, and not one of torch's that it calls."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and not any(part in file for part in _ASKING):
            return "/eyas/frontends/" in file.replace("\\", "/")
        frame = frame.f_back
    return False


_ASKING = ("torch/__init__.py", "torch/fx/experimental/", "torch/utils/_stats.py")
"""Where a question passes through on its way from who asks it."""


def _sizes(program: torch.export.ExportedProgram) -> Iterator[tuple[str, Any]]:
    """Sizes of arguments that are known by a symbol, and where they are."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or not isinstance(value, torch.Tensor):
            continue
        for dim, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                yield f"dimension {dim} of '{node.name}'", size.node.expr


def _environment(program: torch.export.ExportedProgram) -> ShapeEnv | None:
    values = (node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder")
    return next((value.fake_mode.shape_env for value in values if isinstance(value, FakeTensor)), None)
