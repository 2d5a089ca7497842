"""A function of tensors as a module that `torch.export` takes."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch


class FunctionModule(torch.nn.Module):
    """Calls a function. Modules that it uses are submodules, so that their weights keep their names: the owner of a
    method, the attributes of a callable object, what a closure or a global variable holds. Other tensors that it
    reaches become constants."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        for name, module in _modules_of(function).items():
            self.add_module(name, module)
        self.forward = function if inspect.isfunction(function) or inspect.ismethod(function) else _plain(function)
        self.description = getattr(function, "__qualname__", type(function).__name__).rpartition(".<locals>.")[2]
        self.training = any(module.training for module in self.children())


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A callable of another kind (built in, partial, an object) as a function, which torch.export looks into."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with contextlib.suppress(ValueError):  # not all that is built in has a signature
        forward.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return forward


def _modules_of(function: Any) -> dict[str, torch.nn.Module]:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    found: dict[str, Any] = {}
    if inspect.ismethod(function):
        found["self"] = function.__self__
        function = function.__func__
    elif not inspect.isroutine(function):
        found |= vars(function) if hasattr(function, "__dict__") else {}
    if inspect.isfunction(function):
        variables = inspect.getclosurevars(function)
        found |= {**variables.globals, **variables.nonlocals}
    return {name: value for name, value in found.items() if isinstance(value, torch.nn.Module)}
