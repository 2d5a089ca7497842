"""Views that were legal with the strides of torch's kernels, and are not with those of decompositions."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402
from eyas.frontends.torch.views import views_may_copy  # noqa: E402


class Attention(torch.nn.Module):
    """What torch's kernel for CPUs allows: its result is (batch, rows, heads, width) in memory."""

    def forward(self, x):
        batch, rows, width = x.shape
        heads = x.view(batch, rows, 4, width // 4).transpose(1, 2)
        out = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
        return out.transpose(1, 2).view(batch, rows, width)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_view_of_attention(dynamic: bool) -> None:
    x = torch.randn(2, 7, 32)
    shapes = ({0: torch.export.Dim("batch", min=1, max=8), 1: torch.export.Dim("rows", min=2, max=64)},)
    module = eyas.compile(Attention(), (x,), dynamic_shapes=shapes if dynamic else None)
    for size in [(2, 7), (3, 5)] if dynamic else [(2, 7)]:
        x = torch.randn(*size, 32)
        torch.testing.assert_close(module(x), Attention()(x), rtol=1e-5, atol=1e-5)


def test_the_users_program_stays_as_it_was() -> None:
    program = torch.export.export(Attention(), (torch.randn(2, 7, 32),))
    before = str(program.graph)
    with views_may_copy(program):
        assert "aten.view" not in str(program.graph) and "aten.reshape" in str(program.graph)
    assert str(program.graph) == before and "aten.view" in before
    eyas.export(program)
    assert str(program.graph) == before


def test_writing_to_a_view_writes_to_its_source() -> None:
    class Writes(torch.nn.Module):
        def forward(self, x):
            y = x.clone()
            y.view(-1)[1:].add_(1.0)
            return y

    x = torch.randn(3, 4)
    torch.testing.assert_close(eyas.compile(Writes(), (x,))(x), Writes()(x), rtol=0, atol=0)
