"""Whole models on `far`, whose memory the host cannot see and whose work is done later, beside a local device."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import eyas
from eyas.errors import CallError
from eyas.pipelines import driver
from eyas.pipelines.request import Request

TARGETS = ["llvm-cpu", "vmvx"]


class Network(nn.Module):
    """Weights of several layers, a convolution and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 5, 3, padding=1)
        self.linear = nn.Linear(5 * 7 * 9, 11)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self.convolution(x))
        return self.linear(hidden.flatten(1)).softmax(-1), hidden.amax((2, 3))


class Counter(nn.Module):
    """Adds a looked-up value to what it has seen so far."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((4,), 0.5))
        self.register_buffer("table", torch.arange(12.0).reshape(3, 4))

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        self.total += nn.functional.embedding(index, self.table).sum(0)
        return self.total * 2


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_with_weights(target: str):
    torch.manual_seed(0)
    model = Network().eval()
    x = torch.randn(2, 3, 7, 9)
    module = eyas.compile(model, (x,), target=target, device="far")
    assert not module.device.host_visible and module.device.asynchronous
    for _ in range(3):
        x = torch.randn(2, 3, 7, 9)
        for got, want in zip(module(x), model(x), strict=True):
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("external", [False, True])
def test_many_weights_of_odd_sizes(external: bool, tmp_path: Path):
    """Those in the module's file are copied together; in another file they begin anywhere."""
    torch.manual_seed(1)
    layers = [nn.Linear(*sizes) for sizes in itertools.pairwise((3, 70, 1, 129, 33, 5))]
    model, x = nn.Sequential(*layers).eval(), torch.randn(4, 3)
    weights = tmp_path / "w.safetensors" if external else None
    driver.compile(Request(model, (x,), targets=(eyas.Target.parse("llvm-cpu"),), external_weights=weights)).save(
        tmp_path / "m.eyas"
    )
    assert not external or weights.exists()
    found = eyas.load(tmp_path / "m.eyas", device="far")(x)
    torch.testing.assert_close(torch.as_tensor(found), model(x))


def test_many_submissions_of_one_call_and_several_clones():
    """Dynamic sizes are recorded again at each call; clones have memory of their own and share the weights."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)).eval()
    rows = torch.export.Dim("rows", max=64)
    one = eyas.compile(model, (torch.randn(3, 8),), dynamic_shapes={"input": {0: rows}}, device="far")
    two = one.clone()
    for count in (1, 2, 7, 64):
        x = torch.randn(count, 8)
        futures = [module.submit(x + offset) for offset, module in enumerate((one, two, one, two))]
        for offset, future in enumerate(futures):
            torch.testing.assert_close(future.result(), model(x + offset), rtol=1e-4, atol=1e-5)


def test_sizes_that_depend_on_data_are_read_back():
    class Select(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.nonzero(x), x.masked_select(x > 1)

    x = torch.tensor([[0.0, 2.0, 3.0], [1.0, 0.0, 5.0]])
    module = eyas.compile(Select(), (x,), device="far")
    for value in (x, torch.zeros(2, 3), torch.full((2, 3), 4.0)):
        for got, want in zip(module(value), Select()(value), strict=True):
            assert torch.equal(got, want)


@pytest.mark.parametrize("target", TARGETS)
def test_state_and_a_call_that_fails(target: str):
    module = eyas.compile(Counter(), (torch.tensor([0]),), target=target, device="far")
    reference = Counter()
    for index in (2, 0, 1, 2):
        torch.testing.assert_close(module(torch.tensor([index])), reference(torch.tensor([index])))
    np.testing.assert_array_equal(np.asarray(module.state["total"]), reference.total.numpy())
    with pytest.raises(CallError, match="a value in the data is not allowed"):
        module(torch.tensor([7]))
    module.reset()
    reference = Counter()
    torch.testing.assert_close(module(torch.tensor([1])), reference(torch.tensor([1])))
    module.state["total"] = np.arange(4, dtype=np.float32)
    reference.total = torch.arange(4.0)
    torch.testing.assert_close(module(torch.tensor([1])), reference(torch.tensor([1])))


def test_results_that_stay_there_feed_the_next_call():
    torch.manual_seed(2)
    model = nn.Linear(6, 6).eval()
    x = torch.randn(4, 6)
    module = eyas.compile(model, (x,), device="far")
    value = module.on_device(x)
    want = model(x)
    for _ in range(3):
        value, want = module.on_device(value), model(want)
    np.testing.assert_allclose(np.asarray(value), want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_the_profile_has_the_same_commands():
    x = torch.randn(2, 3, 7, 9)
    model = Network().eval()
    near, far = (eyas.compile(model, (x,), device=device).profile(x, runs=2) for device in ("local-sync", "far"))
    assert [[event.name for event in run] for run in near] == [[event.name for event in run] for run in far]
    assert all(event.end_ns >= event.start_ns > 0 for run in far for event in run)
