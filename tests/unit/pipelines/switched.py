"""For each switch, a program in which it changes something: a model, a call, and how its sizes may vary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers torch.ops.quantized_decomposed
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.nn import functional as F

from eyas.tune.spec import Entry, OpMatch, Spec

OPS = torch.ops.quantized_decomposed


@dataclass(frozen=True)
class Case:
    """What to compile. `rtol` is of the largest result."""

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    dynamic_shapes: Any = None
    rtol: float = 2e-5
    precision: str | None = None
    tuning_spec: Spec | None = None


class Of(nn.Module):
    """A function as a module, with some weights and a state."""

    def __init__(self, function: Callable[..., Any], **tensors: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self, *inputs)


def of(function: Callable[..., Any], *inputs: torch.Tensor, **tensors: torch.Tensor) -> Case:
    return Case(Of(function, **tensors).eval(), inputs)


def half_sums() -> Case:
    """Without the pass 600 numbers are summed in 16 bits."""
    return Case(Of(lambda _, x: x.sum(-1)).eval(), (torch.rand(8, 600, dtype=torch.float16),), rtol=2e-2)


def half_products() -> Case:
    layers = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 16)).eval()
    return Case(layers, (torch.randn(8, 24),), rtol=5e-3, precision="f16")


def tuned_product() -> Case:
    entry = Entry("product", OpMatch(kind="contraction"), '#codegen.strategy<"loops", {}>')
    return Case(nn.Linear(24, 48).eval(), (torch.randn(8, 24),), tuning_spec=Spec((entry,)))


def independent_steps() -> Case:
    return of(lambda _, x: scan(lambda h, row: (h.clone(), row * h), x[0], x, dim=0)[1], torch.randn(9, 6))


def largest() -> Case:
    return of(lambda _, x: torch.topk(x, 3)[0], torch.randn(4, 50))


def quantized_product() -> Case:
    def forward(self, x):
        ends = (0.05, 3, -128, 127, torch.int8)
        x = OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, *ends), *ends)
        w = OPS.dequantize_per_tensor(self.w, 0.02, 0, -127, 127, torch.int8)
        return x @ w

    return of(forward, torch.randn(9, 40), w=torch.randint(-127, 128, (40, 24), dtype=torch.int8))


def wide_integers() -> Case:
    x, w = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((9, 40), (40, 24)))
    return of(lambda _, x, w: x.to(torch.int32) @ w.to(torch.int32), x, w)


def convolution() -> Case:
    return Case(nn.Conv2d(3, 8, 5).eval(), (torch.randn(2, 3, 11, 12),))


def two_convolutions() -> Case:
    model = nn.Sequential(nn.Conv2d(3, 8, 5), nn.ReLU(), nn.Conv2d(8, 4, 5))
    return Case(model.eval(), (torch.randn(2, 3, 17, 18),))


def reshaped_product() -> Case:
    return Case(nn.Sequential(nn.Linear(24, 40), nn.ReLU()).eval(), (torch.randn(3, 5, 24),))


def transposed_convolution() -> Case:
    return Case(nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1).eval(), (torch.randn(1, 4, 5, 6),))


def padded_window() -> Case:
    model = nn.Sequential(nn.Conv2d(16, 16, 1), nn.Conv2d(16, 32, 3, padding=9, dilation=9))
    return Case(model.eval(), (torch.randn(1, 16, 8, 8),))


def chosen_matrices() -> Case:
    which = torch.randint(0, 8, (64,))
    return of(lambda _, x, w, which: torch.bmm(x, w[which]), torch.randn(64, 1, 16), torch.randn(8, 16, 32), which)


def normalised_convolution() -> Case:
    model = nn.Sequential(nn.Conv2d(16, 32, 3, bias=False), nn.BatchNorm2d(32)).eval()
    model[1].running_mean.normal_()
    model[1].running_var.uniform_(0.5, 2)
    return Case(model, (torch.randn(1, 16, 9, 10),))


def pooled() -> Case:
    model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.MaxPool2d(3, 2, padding=1))
    return Case(model.eval(), (torch.randn(1, 8, 12, 13),))


def winograd_convolution() -> Case:
    return Case(nn.Conv2d(64, 64, 3, padding=1).eval(), (torch.randn(1, 64, 28, 28),), rtol=1e-4)


def constant_arithmetic() -> Case:
    return of(lambda self, x: x @ torch.sin(self.w).exp(), torch.randn(4, 24), w=torch.randn(24, 40))


def copied_twice() -> Case:
    return of(lambda _, w: torch.flip(w.transpose(0, 1), (2, 3)).permute(2, 3, 0, 1) + 1, torch.randn(8, 4, 3, 3))


def attention() -> Case:
    return of(lambda _, q, k, v: F.scaled_dot_product_attention(q, k, v), *torch.randn(3, 2, 4, 33, 16))


def two_dynamic() -> Case:
    rows = torch.export.Dim("rows", min=2, max=64)
    case = of(lambda _, x, y: (x.exp(), torch.tanh(y)), torch.randn(5, 7), torch.randn(5, 7))
    return Case(case.model, case.inputs, (({0: rows}, {0: rows}),))


def sliced_dynamic() -> Case:
    rows = torch.export.Dim("rows", min=2, max=64)
    case = of(lambda _, x, y: (x + y[: x.shape[0]]).exp(), torch.randn(5, 7), torch.randn(64, 7))
    return Case(case.model, case.inputs, (({0: rows}, None),))


def chain() -> Case:
    return of(lambda _, x, y: torch.tanh(x * y) + x.exp(), torch.randn(9, 33), torch.randn(9, 33))


def softmax_of_product() -> Case:
    return of(lambda _, x, w: torch.softmax(x @ w, -1), torch.randn(19, 33), torch.randn(33, 21))


def equal_layers() -> Case:
    return Case(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()).eval(), (torch.randn(4, 32),))


def state() -> Case:
    def forward(self, x):
        self.total.mul_(0.5).add_(x)
        return self.total * 2

    return of(forward, torch.randn(6, 40), total=torch.randn(6, 40))


def in_place() -> Case:
    return of(
        lambda _, x, w: (torch.softmax(x @ w, -1).cumsum(0) * 3).exp() @ w, torch.randn(33, 33), torch.randn(33, 33) / 9
    )


def several_buffers() -> Case:
    def forward(_, x, w):
        for _ in range(4):
            x = torch.tanh(x @ w)
        return x

    return of(forward, torch.randn(16, 48), torch.randn(48, 48) / 7)


def independent() -> Case:
    return of(lambda _, x, y: (x @ x, y @ y), torch.randn(24, 24), torch.randn(40, 40))


def large_weight() -> Case:
    return Case(nn.Linear(256, 512).eval(), (torch.randn(48, 256),))


class Steps(nn.Module):
    """A loop whose step is no layer that Eyas knows."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(256, 384), nn.Linear(384, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def step(carry: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            new = self.outer(torch.tanh(self.inner(carry))) + row
            return new, new.clone()

        return scan(step, torch.zeros_like(x[0]), x)[1]


def loop() -> Case:
    return Case(Steps().eval(), (torch.randn(12, 1, 256),))


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(24, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.layer(x), lambda x: x * 2, (x,))


def branch() -> Case:
    return Case(Branch().eval(), (torch.randn(3, 24),))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(16, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


def layer() -> Case:
    return Case(Layer().eval(), (torch.randn(12, 2, 16),))


def long_sum() -> Case:
    return Case(Of(lambda _, x: x.sum()), (torch.rand(1021, 512),))


CASES: dict[str, Callable[[], Case]] = {
    "speculate-branches": branch,
    "count-loops": loop,
    "batch-loops": independent_steps,
    "outline-control-flow": loop,
    "convert-sorts": largest,
    "widen-accumulators": half_sums,
    "quantize-contractions": quantized_product,
    "narrow-contractions": wide_integers,
    "skip-inserted-zeros": transposed_convolution,
    "convert-conv-layout": convolution,
    "propagate-transposes": two_convolutions,
    "split-reductions": long_sum,
    "propagate-reshapes": reshaped_product,
    "trim-windows": padded_window,
    "fuse-gathers": chosen_matrices,
    "fold-scales": normalised_convolution,
    "winograd": winograd_convolution,
    "evaluate-constants": constant_arithmetic,
    "compose-copies": copied_twice,
    "fuse-attention": attention,
    "lower-precision": half_products,
    "unify-dimensions": two_dynamic,
    "fold-index-ranges": sliced_dynamic,
    "form-dispatches": chain,
    "deduplicate-executables": equal_layers,
    "apply-tuning-spec": tuned_product,
    "write-state-in-place": state,
    "reuse-in-place": in_place,
    "plan-memory": several_buffers,
    "insert-barriers": independent,
    "pack-weights": large_weight,
    "microkernels": softmax_of_product,
    "contraction": softmax_of_product,
    "transforms": winograd_convolution,
    "windows": pooled,
    "attention": attention,
    "recurrence": layer,
    "rows": softmax_of_product,
    "expand-math": softmax_of_product,
    "optimize-llvm": softmax_of_product,
}
