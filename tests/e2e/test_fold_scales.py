"""Batch normalisation after convolutions, against PyTorch in f64: with it in the weights, and beside them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import eyas


class Network(torch.nn.Module):
    """Two convolutions with a normalisation each; what the first one makes is used twice in `is_shared`."""

    def __init__(self, is_shared: bool) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(5, 24, 3, stride=2, padding=1, bias=False)
        self.first_norm = torch.nn.BatchNorm2d(24)
        self.second = torch.nn.Conv2d(24, 24, 3, padding=1, groups=24, bias=not is_shared)
        self.second_norm = torch.nn.BatchNorm2d(24)
        self.third = torch.nn.Conv2d(24, 19, 1, bias=False)
        self.third_norm = torch.nn.BatchNorm2d(19)
        self.is_shared = is_shared

    def forward(self, x):
        made = self.first(x)
        y = torch.nn.functional.relu6(self.first_norm(made))
        y = torch.nn.functional.hardtanh(self.second_norm(self.second(y)), -0.5, 2.0)
        y = y + made if self.is_shared else y
        return self.third_norm(self.third(y))


@pytest.mark.parametrize("disable", [(), ("fold-scales",), ("evaluate-constants",)], ids=str)
@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_normalised_convolutions(target, is_shared, disable):
    torch.manual_seed(3)
    network = Network(is_shared).eval()
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(-2, 2)
                module.bias.normal_()
                module.running_mean.normal_()
                module.running_var.uniform_(0.1, 4)
    x = torch.randn(2, 5, 13, 9)
    with torch.no_grad():
        expected = network.double()(x.double()).numpy()
        network.float()
    given = eyas.compile(network, (x,), target=target, disable=disable)(x.numpy())
    assert np.abs(given - expected).max() <= 2e-6 * np.abs(expected).max()
    if disable == ():  # factors are gone but for a convolution that has a bias, or whose result is used elsewhere too
        apart = eyas.compile(network, (x,), target=target, disable=("fold-scales",))
        compiled = eyas.compile(network, (x,), target=target)
        assert compiled.manifest["parameters"]["count"] == apart.manifest["parameters"]["count"] - 2
