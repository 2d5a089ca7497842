"""Small models of which each makes dispatches for some strategy: odd sizes, dynamic sizes, fused epilogues, weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Program:
    """A model, the call that it is compiled with, and other calls when sizes are dynamic."""

    model: nn.Module
    call: tuple[torch.Tensor, ...]
    others: tuple[tuple[torch.Tensor, ...], ...] = ()
    dynamic: Any = None


class Apply(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[..., torch.Tensor], *parts: nn.Module):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*self.parts, *args)


def _program(function: Callable, *shapes: tuple[int, ...], parts: tuple[nn.Module, ...] = ()) -> Program:
    return Program(Apply(function, *parts).eval(), tuple(torch.randn(shape) for shape in shapes))


def _batches(function: Callable, sizes: tuple[int, ...], *shapes: tuple[int, ...], parts=()) -> Program:
    """The first dimension of every argument is dynamic, and has these sizes."""
    batch = torch.export.Dim("batch", min=1, max=512)
    model = Apply(function, *parts).eval()
    calls = [tuple(torch.randn(size, *shape) for shape in shapes) for size in sizes]
    return Program(model, calls[0], tuple(calls[1:]), {"args": tuple({0: batch} for _ in shapes)})


def linear(layer, x):
    return torch.relu(layer(x))


PROGRAMS: dict[str, Callable[[], Program]] = {
    # contraction: weights in panels, with an epilogue; panels that are staged; one row; batches; dynamic rows
    "linear": lambda: _program(linear, (13, 45), parts=(nn.Linear(45, 50),)),
    "wide": lambda: _program(linear, (9, 300), parts=(nn.Linear(300, 203),)),
    "staged": lambda: _program(torch.matmul, (64, 48), (48, 147)),
    "vector": lambda: _program(linear, (1, 96), parts=(nn.Linear(96, 131),)),
    "batched": lambda: _program(torch.bmm, (3, 7, 19), (3, 19, 21)),
    "dynamic rows": lambda: _batches(linear, (5, 1, 37), (45,), parts=(nn.Linear(45, 50),)),
    # windows: padding, few channels; each channel by itself; pooling
    "image": lambda: _program(
        lambda conv, x: torch.relu(conv(x)), (1, 3, 11, 13), parts=(nn.Conv2d(3, 20, 3, padding=1),)
    ),
    "depthwise": lambda: _program(
        lambda conv, x: conv(x), (1, 19, 12, 9), parts=(nn.Conv2d(19, 19, 3, stride=2, padding=1, groups=19),)
    ),
    "pool": lambda: _program(lambda x: F.max_pool2d(x, 3, 2, 1), (2, 17, 12, 11)),
    "dynamic images": lambda: _batches(
        lambda conv, x: conv(x), (2, 1, 5), (8, 9, 7), parts=(nn.Conv2d(8, 8, 3, padding=1, groups=8),)
    ),
    # transforms
    "winograd": lambda: _program(
        lambda conv, x: torch.relu(conv(x)), (1, 32, 15, 17), parts=(nn.Conv2d(32, 40, 3, padding=1),)
    ),
    # attention
    "attention": lambda: _program(F.scaled_dot_product_attention, (2, 3, 29, 16), (2, 3, 29, 16), (2, 3, 29, 16)),
    "one head": lambda: _program(F.scaled_dot_product_attention, (1, 1, 31, 12), (1, 1, 50, 12), (1, 1, 50, 12)),
    # rows: elementwise, transposes, reductions of both kinds, several nests, padding, dynamic sizes, other types
    "elements": lambda: _program(lambda x, y: torch.tanh(x) * y + 1, (7, 33), (33,)),
    "transpose": lambda: _program(lambda x, y: x.t() + y, (35, 19), (19, 35)),
    "softmax": lambda: _program(lambda x: torch.softmax(x, -1), (5, 3, 37)),
    "norm": lambda: _program(lambda norm, x: F.gelu(norm(x)), (9, 70), parts=(nn.LayerNorm(70),)),
    "sums": lambda: _program(lambda x: x.sum(0) + x.amax(), (23, 41)),
    "padded": lambda: _program(lambda x: F.pad(x, (2, 1, 0, 3)) * 2, (6, 29)),
    "dynamic softmax": lambda: _batches(lambda x: torch.softmax(x, -1), (6, 1, 19), (37,)),
    "dynamic elements": lambda: _batches(lambda x, y: torch.sigmoid(x) - y, (3, 1, 70), (21,), (21,)),
    "doubles": lambda: Program(
        Apply(lambda x: (x.double() * 3).sum(1) > 0).eval(), (torch.randn(11, 27),)
    ),
}  # fmt: skip
