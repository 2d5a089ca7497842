"""What a module's manifest says of its kernels and of where each dispatch comes from."""

from __future__ import annotations

import torch

import eyas


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))))


def test_every_dispatch_has_the_names_of_its_ops():
    manifest = eyas.compile(Net().eval(), (torch.ones(4, 32),)).manifest
    sources = manifest["sources"]["main"]
    assert len(sources) == sum(kernel["dispatches"] for kernel in manifest["kernels"])
    layers = [[name for name in names if "first" in name or "second" in name] for names in sources]
    # Equal kernels are kept once; their dispatches still know which layer they are.
    assert any("first" in name for names in layers for name in names)
    assert any("second" in name for names in layers for name in names)
    assert not any("first" in " ".join(names) and "second" in " ".join(names) for names in layers)


def test_kernels_have_flops_bytes_and_ops():
    manifest = eyas.compile(Net().eval(), (torch.ones(4, 32),)).manifest
    products = [kernel for kernel in manifest["kernels"] if kernel["flops"]]
    assert (
        sum(kernel["flops"] * kernel["dispatches"] for kernel in products) == manifest["flops"] == 2 * 2 * 4 * 32 * 32
    )
    assert all(kernel["bytes"] >= 4 * (2 * 4 * 32 + 32 * 32) for kernel in products)
    assert all(any("mat" in op or "sum over" in op for op in kernel["ops"]) for kernel in products)
    dynamic = eyas.compile(Net().eval(), (torch.ones(4, 32),), dynamic_shapes=({0: torch.export.Dim("n")},)).manifest
    assert any(kernel["bytes"] is None for kernel in dynamic["kernels"])
    assert all(kernel["flop_terms"] == [[2 * 32 * 32, 0]] for kernel in dynamic["kernels"] if kernel["flops"] is None)
