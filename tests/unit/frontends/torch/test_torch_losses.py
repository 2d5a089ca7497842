"""A loss that torch computes in parts, with its gradients, in one piece."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import eyas  # noqa: E402

pytestmark = pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="torch has no such function yet")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_loss_and_gradients(reduction, with_bias) -> None:
    target = torch.tensor([0, 3, 2, -100, 1, 3])
    parts = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2, allow_retain_graph=reduction != "none")

    def loss(x, matrix, bias):
        return F.linear_cross_entropy(x, matrix, target, linear_bias=bias, reduction=reduction, options=parts)

    def results(function):
        torch.manual_seed(0)
        leaves = [torch.randn(shape, requires_grad=True) for shape in ((6, 5), (4, 5), (4,))]
        made = function(leaves[0], leaves[1], leaves[2] if with_bias else None)
        (made * torch.arange(1.0, made.numel() + 1).reshape(made.shape)).sum().backward()
        return [made.detach(), *(leaf.grad for leaf in leaves[: 3 if with_bias else 2])]

    compiled = torch.compile(loss, backend="eyas", fullgraph=True)
    for one, other in zip(results(compiled), results(loss), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_of_any_number_of_samples() -> None:
    matrix, parts = torch.randn(4, 5), torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)

    def loss(x, target):
        return F.linear_cross_entropy(x, matrix, target, options=parts)

    count = torch.export.Dim("count", min=2, max=100)
    calls = [(torch.randn(size, 5), torch.randint(0, 4, (size,))) for size in (6, 9)]
    dims = ({0: count}, {0: count})
    module = eyas.compile(loss, calls[0], dynamic_shapes=dims, device="local-sync", progress=False)
    for call in calls:
        torch.testing.assert_close(module(*call), loss(*call), rtol=1e-4, atol=1e-5)
