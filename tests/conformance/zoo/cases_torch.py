"""Programs in plain torch: recurrences, graphs, sorting, control flow, Fourier transforms, dynamic kinds of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tests.conformance.zoo.build import Inputs, enliven
from tests.conformance.zoo.case import Case, Program
from torch import nn


class LanguageModel(nn.Module):
    """An LSTM over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.recur = nn.Embedding(100, 32), nn.LSTM(32, 32, 2, batch_first=True)
        self.head = nn.Linear(32, 100)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.recur(self.embed(tokens))[0])


class Recurrent(nn.Module):
    """A GRU in both directions, with its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.recur = nn.GRU(16, 32, 1, bidirectional=True)

    def forward(self, x: torch.Tensor) -> Any:
        return self.recur(x)


class Cells(nn.Module):
    """A loop over cells, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(8, 16), nn.GRUCell(16, 16), nn.RNNCell(16, 16)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = x.new_zeros(x.shape[0], 16)
        memory, second, third = hidden, hidden, hidden
        for step in range(x.shape[1]):
            hidden, memory = self.cells[0](x[:, step], (hidden, memory))
            second = self.cells[1](hidden, second)
            third = self.cells[2](second, third)
        return third


def _double(channels: int, out: int) -> nn.Sequential:
    layers = []
    for inner in (channels, out):
        layers += [nn.Conv2d(inner, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Down twice, up twice with transposed convolutions, with skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.middle = _double(3, 8), _double(8, 16), _double(16, 32)
        self.up2, self.join2 = nn.ConvTranspose2d(32, 16, 2, 2), _double(32, 16)
        self.up1, self.join1 = nn.ConvTranspose2d(16, 8, 2, 2), _double(16, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.down1(x)
        second = self.down2(nn.functional.max_pool2d(first, 2))
        middle = self.middle(nn.functional.max_pool2d(second, 2))
        joined = self.join2(torch.cat([self.up2(middle), second], 1))
        return self.out(self.join1(torch.cat([self.up1(joined), first], 1)))


class Recommender(nn.Module):
    """Sums of embeddings by bag, and products between all pairs of features."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(50, 16, mode="sum") for _ in range(3)])
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(22, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())

    def forward(self, dense: torch.Tensor, offsets: torch.Tensor, *indices: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        features = torch.stack([x] + [bag(i, offsets) for bag, i in zip(self.bags, indices, strict=True)], 1)
        products = torch.bmm(features, features.transpose(1, 2))
        rows, columns = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([x, products[:, rows, columns]], 1))


class GraphConvolution(nn.Module):
    """Sums over the edges of a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        gather = lambda x: torch.zeros_like(x).index_add(0, target, x[source])  # noqa: E731
        return self.second(gather(torch.relu(self.first(gather(x)))))


class GraphAttention(nn.Module):
    """A softmax over the edges that end in each node."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.score = nn.Linear(16, 16), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        x = self.project(x)
        scores = nn.functional.leaky_relu(self.score(torch.cat([x[source], x[target]], -1)), 0.2)
        nodes = x.new_full((x.shape[0], 1), float("-inf"))
        largest = nodes.scatter_reduce(0, target[:, None], scores, "amax")
        powers = torch.exp(scores - largest[target])
        total = x.new_zeros(x.shape[0], 1).index_add(0, target, powers)
        return torch.zeros_like(x).index_add(0, target, powers / total[target] * x[source])


class Ranking(nn.Module):
    """Sorting, top-k, cumulative sums, arg max."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        best, places = torch.topk(x, 5)
        ordered, order = torch.sort(x, descending=True)
        return best, places, ordered, order, torch.cumsum(ordered, -1), torch.argmax(x, -1)


class Filter(nn.Module):
    """A filter in the frequency domain."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(17))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft(torch.fft.rfft(x) * self.weight, n=32)


class Spectrogram(nn.Module):
    """The magnitude of a short-time Fourier transform."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(64, device=x.device)
        return torch.stft(x, 64, 16, window=window, return_complex=True).abs()


class Branch(nn.Module):
    """One of two functions, by the data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() * 2, (x,))


class Loop(nn.Module):
    """Doubles until the sum is large."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.while_loop import while_loop

        count = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: x.abs().sum() < 1000, lambda i, x: (i + 1, x * 2), (count, x))


class Experts(nn.Module):
    """Tokens go to the best two of four experts, gathered with nonzero and added back with index_put."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2)
        result = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            row, slot = torch.nonzero(chosen == index, as_tuple=True)
            result = result.index_put((row,), expert(x[row]) * weights[row, slot, None], accumulate=True)
        return result


def _edges(sample: int) -> tuple[torch.Tensor, ...]:
    # Every node has an edge to itself, so that a softmax over its edges exists.
    own = torch.arange(10)
    source, target = torch.randint(0, 10, (30,)), torch.randint(0, 10, (30,))
    return torch.randn(10, 16), torch.cat([own, source]), torch.cat([own, target])


def _bags(sample: int) -> tuple[torch.Tensor, ...]:
    return torch.randn(4, 13), torch.tensor([0, 2, 4, 6]), *(torch.randint(0, 50, (8,)) for _ in range(3))


def _case(name: str, model: Callable[[], nn.Module], inputs: Inputs, batched: bool = True, call: Any = None) -> Case:
    return Case(f"torch/{name}", lambda: Program(enliven(model(), call and call()), inputs), batched=batched)


def _normal(*shape: int) -> Inputs:
    return lambda sample: (torch.randn(shape),)


CASES = (
    _case("lstm-lm", LanguageModel, lambda sample: (torch.randint(0, 100, (2, 12)),)),
    _case("gru", Recurrent, _normal(12, 2, 16), batched=False),
    _case("cells", Cells, _normal(2, 5, 8)),
    _case(
        "transformer-encdec",
        lambda: nn.Transformer(32, 4, 2, 2, 64, batch_first=True),
        lambda sample: (torch.randn(1, 8, 32), torch.randn(1, 6, 32)),
    ),
    _case("unet", UNet, _normal(1, 3, 64, 64), call=lambda: (torch.randn(4, 3, 64, 64),)),
    _case("dlrm-embeddingbag", Recommender, _bags, batched=False),
    _case("gcn-scatter", GraphConvolution, _edges, batched=False),
    _case("gat-softmax", GraphAttention, _edges, batched=False),
    _case("topk-sort", Ranking, _normal(2, 20)),
    _case("fft-filter", Filter, _normal(2, 32)),
    _case("stft", Spectrogram, _normal(1, 256)),
    _case("cond", Branch, lambda sample: (torch.rand(4) * (1 - 2 * sample),)),
    _case("while-loop", Loop, _normal(4)),
    _case("experts", Experts, _normal(6, 16)),
)
