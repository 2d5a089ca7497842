"""One step of AdamW on convolutions of every kind: gradients, moments, statistics and weights against PyTorch in f64.

Activations are smooth. With ReLUs a number near zero that falls to the other side changes gradients by percents, and
nothing could be told from the difference.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402

RATE = 1e-3


class Convolutions(nn.Module):
    """Odd channel counts; one tap and several, strides that leave pixels over, dilation, groups, padding."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2, 19, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(19),
            nn.SiLU(),
            nn.Conv2d(19, 37, 1, stride=2),
            nn.SiLU(),
            nn.Conv2d(37, 40, 3, padding=2, dilation=2, bias=False),
            nn.BatchNorm2d(40),
            nn.SiLU(),
            nn.Conv2d(40, 24, 1, bias=False),
            nn.SiLU(),
            nn.Conv2d(24, 21, (3, 2), stride=(2, 1), padding=(1, 0)),
            nn.SiLU(),
            nn.Conv2d(21, 21, 3, padding=1, groups=3),
            nn.SiLU(),
            nn.Conv2d(21, 18, 5, padding=2, bias=False),
        )
        self.head = nn.Linear(18, 5)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


@pytest.fixture(scope="module")
def case():
    torch.manual_seed(3)
    model = Convolutions()
    x, y = torch.randn(6, 2, 17, 22), torch.randint(0, 5, (6,))
    exact = copy.deepcopy(model).double()
    before = {name: value.detach().clone().numpy() for name, value in exact.named_parameters()}
    own = torch.optim.AdamW(exact.parameters(), lr=RATE, weight_decay=0.05)
    loss = nn.CrossEntropyLoss()(exact(x.double()), y)
    loss.backward()
    gradients = {name: value.grad.numpy().copy() for name, value in exact.named_parameters()}
    own.step()
    return model, (x, y), loss.item(), gradients, before, exact.state_dict()


MODULES: dict[tuple, eyas.Module] = {}


@pytest.mark.parametrize(
    ("target", "width", "kernels", "disable"),
    [
        ("llvm-cpu", None, None, ()),
        ("llvm-cpu", None, None, ("compose-copies",)),
        ("llvm-cpu", None, None, ("propagate-transposes",)),
        *(("vmvx", width, None, ()) for width in (1, 2, 4, 8)),
        ("vmvx", 8, "portable", ()),
    ],
)
def test_one_step(case, target, width, kernels, disable, monkeypatch, tmp_path_factory):
    model, batch, loss, gradients, before, after = case
    for name, value in (("EYAS_VMVX_WIDTH", width), ("EYAS_VMVX_KERNELS", kernels)):
        if value is not None:
            monkeypatch.setenv(name, str(value))
    path = MODULES.get((target, disable))
    if path is None:
        path = MODULES[target, disable] = tmp_path_factory.mktemp("step") / "step.eyas"
        given = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.05)
        eyas.training_step(model, nn.CrossEntropyLoss(), given, batch, target=target, disable=disable).save(path)
    module = eyas.load(path)
    assert float(module(*batch)) == pytest.approx(loss, rel=1e-6)
    state = dict(module.state)
    for name, gradient in gradients.items():
        largest = np.abs(gradient).max()
        first, second = (np.asarray(state[f"optimizer.{name}.{key}"], np.float64) for key in ("exp_avg", "exp_avg_sq"))
        assert np.abs(first / 0.1 - gradient).max() <= 2e-5 * largest, name
        assert np.abs(second / 0.001 - gradient**2).max() <= 4e-5 * largest**2, name
        # The first update is the gradient's sign, so weights follow from the module's own moments and not from ours.
        update = RATE * (first / 0.1) / (np.sqrt(second / 0.001) + 1e-8)
        expected = before[name] * (1 - RATE * 0.05) - update
        np.testing.assert_allclose(state[name], expected, rtol=0, atol=2e-6 * max(1, np.abs(expected).max()))
    for name, value in after.items():
        if "running" in name:
            np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-5, atol=1e-6)
