"""Decompositions that fail leave an op as it is, also those that lead back to each other."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from eyas.frontends.torch.decompositions import decomposition_table  # noqa: E402
from eyas.frontends.torch.fallback import guarded  # noqa: E402


def test_a_circle_fails_once():
    """Each step would try its second way at every depth, which takes longer than anyone waits."""
    calls = []

    @guarded
    def one(x):
        calls.append(x)
        return x if other(x) is NotImplemented and other(x) is NotImplemented else NotImplemented

    @guarded
    def other(x):
        return one(x)

    assert one(1) is NotImplemented
    assert len(calls) < 2000


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, lambda *size: torch.full(size, 3.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.bool])
def test_constants_are_one_op(make, dtype):
    class Model(torch.nn.Module):
        def forward(self, x):
            return make(2, 3).to(dtype), torch.zeros((), dtype=dtype), torch.empty_strided((2,), (1,), dtype=dtype) + x

    program = torch.export.export(Model(), (torch.ones(2),)).run_decompositions(decomposition_table())
    assert len(program.graph.nodes) < 12
