"""What can be said of a PyTorch model and its inputs before they are traced, where tracing would fail without a reason
or succeed in a way that few users mean."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from eyas.errors import FrontendError, TrainingModeWarning

_PACKAGE = os.path.dirname(sys.modules["eyas"].__file__ or "") + os.sep


def check_tensors(model: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuses tensors that have no dense values."""
    leaves, _ = pytree.tree_flatten_with_path((tuple(args), dict(kwargs)))
    for path, leaf in leaves:
        _check(
            f"example input {_place(path)}", leaf, "pass one with values, for example torch.zeros_like(x, device='cpu')"
        )
    advice = "give it values before compiling: model.to_empty(device='cpu'), then load_state_dict"
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        _check(f"'{name}' of {type(model).__name__}", value, advice)


def _check(what: str, value: Any, advice: str) -> None:
    if not isinstance(value, torch.Tensor):
        return
    if value.layout != torch.strided:
        raise FrontendError(f"{what} is sparse ({value.layout}); only dense tensors can be compiled: x.to_dense()")
    if value.is_meta:
        raise FrontendError(f"{what} is on the device 'meta': it has a shape and no values; {advice}")
    if value.is_quantized:
        raise FrontendError(
            f"{what} is a quantised tensor ({value.dtype}); quantise the exported program instead, so that scales and"
            " zero points are part of it (torch.ao.quantization.quantize_pt2e), or pass x.dequantize()"
        )


def _place(path: Sequence[Any]) -> str:
    """`1` or `mask['left']` for where a leaf is in (args, kwargs)."""
    first, *rest = path[1:]
    name = getattr(first, "key", getattr(first, "idx", ""))
    return f"{name}{pytree.keystr(tuple(rest))}"


def warn_of_training(model: torch.nn.Module) -> None:
    """Says so when a model is in training mode and has layers that then act otherwise: few users mean that."""
    found = next(_trained_otherwise(model), None)
    if found is None:
        return
    name, layer, what = found
    warnings.warn(
        f"{type(model).__name__} is in training mode, so its {type(layer).__name__} '{name}' {what}; call model.eval()"
        " before eyas.compile unless that is meant, or silence this with"
        " warnings.simplefilter('ignore', eyas.errors.TrainingModeWarning)",
        TrainingModeWarning,
        stacklevel=_depth_of_user(),
    )


def _trained_otherwise(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module, str]]:
    for name, layer in model.named_modules():
        if not layer.training:
            continue
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            yield name, layer, "normalises with the statistics of each batch"
        elif isinstance(layer, torch.nn.modules.dropout._DropoutNd) and layer.p > 0:
            yield name, layer, "drops values at random"


def _depth_of_user() -> int:
    """How many callers up the user's own code is."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    return depth
