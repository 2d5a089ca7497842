"""Nets that are trained through `torch.compile(backend="eyas")`: several steps of an optimiser, the same losses and
weights as eager torch."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402


class Images(nn.Module):
    """Batch statistics, group statistics, and pools of both kinds."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.SiLU(),
            nn.AvgPool2d(3, 2, 1),
            nn.Conv2d(8, 12, 3, padding=1, bias=False),
            nn.GroupNorm(3, 12),
            nn.SiLU(),
            nn.MaxPool2d(2),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(48, 5),
        )

    def forward(self, x):
        return self.layers(x)


class Words(nn.Module):
    """A table of words and a block of a transformer."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 16, padding_idx=0)
        self.block = nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0, batch_first=True, activation="gelu")
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.block(self.words(x)).mean(1))


class Steps(nn.Module):
    """A recurrent layer over a sequence."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer(6, 10, batch_first=True)
        self.head = nn.Linear(10, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


def train(model, batches, steps):
    """The losses, and the weights at the end."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(steps):
        x, y = batches[step % len(batches)]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), list(model.state_dict().values())


CASES = {
    "images": (Images, lambda: torch.randn(4, 3, 11, 12), 5, False),
    "words": (Words, lambda: torch.randint(0, 11, (3, 7)), 4, False),
    "lstm": (lambda: Steps(nn.LSTM), lambda: torch.randn(4, 5, 6), 3, True),
    "gru": (lambda: Steps(nn.GRU), lambda: torch.randn(4, 5, 6), 3, True),
    "lstm_in_torch": (lambda: Steps(nn.LSTM), lambda: torch.randn(4, 5, 6), 3, False),
}


@pytest.mark.parametrize("name", CASES)
def test_losses_and_weights_follow_eager(name):
    build, batch, classes, allow_rnn = CASES[name]
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = build()
    own = copy.deepcopy(model)
    batches = [(x := batch(), torch.randint(0, classes, x.shape[:1])) for _ in range(2)]
    compiled = torch.compile(model, backend="eyas", fullgraph=name != "lstm_in_torch")
    with torch._dynamo.config.patch(allow_rnn=allow_rnn):
        losses, weights = train(compiled, batches, 5)
    want, own_weights = train(own, batches, 5)
    torch.testing.assert_close(losses, want, rtol=2e-4, atol=2e-4)
    assert want[-1] < want[0]
    for one, other in zip(weights, own_weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-4)


def test_gradients_of_as_many_elements_as_a_mask_chooses():
    """The forward graph returns how many there are, for the backward graph."""

    def chosen(x, mask):
        return torch.masked_select(x, mask) * 3

    torch._dynamo.reset()
    compiled = torch.compile(chosen, backend="eyas", fullgraph=True, dynamic=False)
    for mask in (torch.tensor([True, False, True, True]), torch.tensor([False, False, True, False])):
        x = torch.randn(4, requires_grad=True)
        made = compiled(x, mask)
        made.sum().backward()
        torch.testing.assert_close(made, chosen(x, mask))
        torch.testing.assert_close(x.grad, 3.0 * mask)
