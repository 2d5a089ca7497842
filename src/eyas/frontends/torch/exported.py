"""A PyTorch model of any accepted kind as an `ExportedProgram`. Imports nothing of MLIR, so that a module that was
compiled before is found without it."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from eyas.errors import FrontendError, UsageError
from eyas.frontends import NO_TORCHSCRIPT
from eyas.frontends.torch.aliases import RestoreWrites, merge_aliases
from eyas.frontends.torch.callables import FunctionModule
from eyas.frontends.torch.checks import check_tensors, warn_of_training
from eyas.frontends.torch.open_sizes.masks import broadcast_masks
from eyas.frontends.torch.open_sizes.missing import own_shapes
from eyas.frontends.torch.origins import note_origins
from eyas.frontends.torch.recurrent import keep_layers
from eyas.frontends.torch.traceable import Traceable


def export_model(
    model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any
) -> tuple[torch.export.ExportedProgram, str, tuple[str, ...] | None, Any, bool]:
    """A model of any accepted kind as what `torch.export` makes of it: the arguments of `import_exported`."""
    names: tuple[str, ...] | None = None
    training = False
    if isinstance(model, torch.export.ExportedProgram):
        exported, description = model, type(model).__name__
        _refuse_inputs(args, kwargs, dynamic_shapes, "an ExportedProgram")
    elif isinstance(model, (str, os.PathLike)):
        exported, description = _load(os.fspath(model)), os.path.basename(os.fspath(model))
        _refuse_inputs(args, kwargs, dynamic_shapes, "a .pt2 file")
    elif isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        raise UsageError(f"a {type(model).__name__} is a TorchScript program, {NO_TORCHSCRIPT}")
    elif isinstance(model, torch.nn.Module) or callable(model):
        model = model if isinstance(model, torch.nn.Module) else FunctionModule(model)
        names = tuple(inspect.signature(model.forward).parameters)
        training = model.training
        description = _description(model)
        check_tensors(model, args, kwargs)
        warn_of_training(model)
        exported = _export(model, tuple(args), dict(kwargs), dynamic_shapes)
    else:
        raise FrontendError(
            f"cannot import a {type(model).__module__}.{type(model).__qualname__}; PyTorch models arrive as an"
            " nn.Module or a function with example inputs, an ExportedProgram, or the path of a .pt2 file"
        )
    return exported, description, names, dynamic_shapes, training


def _export(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> torch.export.ExportedProgram:
    if not args and not kwargs and _required_arguments(model):
        needed = ", ".join(_required_arguments(model))
        raise UsageError(f"{type(model).__name__}.forward needs example inputs: {needed}; pass them after the model")
    args, kwargs = _distinct((args, kwargs))
    if isinstance(dynamic_shapes, dict):
        dynamic_shapes = _complete_dynamic_shapes(model, args, kwargs, dynamic_shapes)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            with RestoreWrites(model), keep_layers(), Traceable(), broadcast_masks(), own_shapes():
                exported = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
            merge_aliases(exported)
            note_origins(model, exported)
            return exported
        except Exception as error:
            raise FrontendError(
                f"torch.export could not trace {_description(model)}: {first_line(error)}; the model's forward must"
                " not branch on tensor values, and shapes that vary must be declared with dynamic_shapes"
            ) from error


def _description(model: torch.nn.Module) -> str:
    """What the user knows a model by."""
    given = getattr(type(model), "eyas_description", type(model).__name__)
    return model.description if isinstance(model, FunctionModule) else given


def _distinct(inputs: Any) -> Any:
    """Copies tensors that occur twice among the example inputs: torch.export would make one argument of them."""
    seen: set[int] = set()

    def separate(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        key = leaf.data_ptr() or id(leaf)
        if key in seen:
            return leaf.detach().clone()
        seen.add(key)
        return leaf

    return pytree.tree_map(separate, inputs)


def _load(path: str) -> torch.export.ExportedProgram:
    if not os.path.exists(path):
        raise FrontendError(f"no such file: '{path}'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.export.load(path)
    except Exception as error:
        raise FrontendError(
            f"'{path}' is not a program that torch.export.save wrote with this version of torch: {first_line(error)}"
        ) from error


def _complete_dynamic_shapes(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """torch wants a key for each argument; those that are not named here are static."""
    try:
        bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise UsageError(f"{type(model).__name__}.forward: {error}") from None
    if any(key not in bound for key in given):
        return given
    return {name: given.get(name) for name in bound}


def _required_arguments(model: torch.nn.Module) -> list[str]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(model.forward).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]


def _refuse_inputs(args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any, what: str) -> None:
    if args or kwargs or dynamic_shapes is not None:
        raise UsageError(f"{what} already has its inputs and shapes; pass it alone")


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")
