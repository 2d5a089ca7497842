"""Tensors without elements, of every type."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.float32], ids=str)
def test_ops_that_make_nothing(dtype) -> None:
    def function(nothing, some):
        whole = torch.cat([nothing.reshape(-1), some])
        return (
            nothing * nothing,
            torch.zeros_like(nothing),
            torch.eye(4, 0, dtype=dtype),
            some[:0],
            some[:0].sum(),
            whole,
        )

    inputs = torch.zeros((1, 0, 3), dtype=dtype), torch.arange(3).to(dtype)
    module = eyas.compile(function, inputs, device="local-sync", progress=False)
    torch.testing.assert_close(tuple(module(*inputs)), function(*inputs))
