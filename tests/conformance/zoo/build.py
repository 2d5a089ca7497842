"""What the tables of the zoo are made with: seeded weights that matter, wrappers that choose results, inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from benchmarks.models import calibrate_batch_norms, prepare_torchvision
from torch import nn

Inputs = Callable[[int], tuple[Any, ...]]


def libraries() -> None:
    """To be called before timm, transformers or torchvision are imported."""
    prepare_torchvision()


def enliven(model: nn.Module, call: tuple[Any, ...] | None = None) -> nn.Module:
    """Gives a fresh model weights as a trained one has them, and puts it into evaluation mode.

    Fresh biases are 0, scales 1, layer scales 1e-6, and the linear layers of transformers so small that their blocks
    add next to nothing: a compiler could drop most of such a model and agree. Batch norms take their statistics from
    `call`, with a larger batch.
    """
    embeddings = {id(layer.weight) for layer in model.modules() if isinstance(layer, (nn.Embedding, nn.EmbeddingBag))}
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.is_floating_point() or parameter.numel() < 2:
                continue
            if (parameter == parameter.flatten()[0]).all():
                _fill(parameter)
            elif parameter.dim() >= 2 and id(parameter) not in embeddings:
                gain = float(parameter.std()) * math.sqrt(parameter[0].numel())
                parameter.mul_(1.0 / gain if gain < 0.5 else 1.0)
    model.eval()
    if call is not None:
        calibrate_batch_norms(model, *call)
    return model


def _fill(parameter: torch.Tensor) -> None:
    """What was constant: ones and layer scales become scales around 1, zeros become small numbers."""
    if parameter.flatten()[0] != 0:
        parameter.uniform_(0.5, 1.5)
    else:
        parameter.normal_(0.0, 0.1 if parameter.dim() < 2 else 1.0 / math.sqrt(parameter[0].numel()))


class Named(nn.Module):
    """A model of transformers with positional arguments that are passed by `names`, and chosen results."""

    def __init__(self, model: nn.Module, names: Sequence[str], results: Sequence[str], fixed: Mapping[str, Any]):
        super().__init__()
        self.model, self.names, self.results, self.fixed = model, tuple(names), tuple(results), dict(fixed)

    def forward(self, *args: Any) -> Any:
        outputs = self.model(**dict(zip(self.names, args, strict=True)), **self.fixed)
        if not self.results:
            return outputs[0]
        return tuple(outputs[name] for name in self.results)


def tokens(length: int = 16, batch: int = 2, vocabulary: int = 100) -> torch.Tensor:
    return torch.randint(5, vocabulary, (batch, length))


def mask(length: int = 16, batch: int = 2) -> torch.Tensor:
    """Ones, with the last quarter of the second row hidden."""
    ones = torch.ones(batch, length, dtype=torch.int64)
    ones[1:, length - length // 4 :] = 0
    return ones


def images(size: int, batch: int = 1, channels: int = 3) -> Inputs:
    return lambda sample: (torch.randn(batch, channels, size, size),)
