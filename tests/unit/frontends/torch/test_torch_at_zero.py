"""Sizes of 0, of which torch says what holds from 2 on."""

from __future__ import annotations

import operator

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402
from eyas.errors import CallError  # noqa: E402
from eyas.frontends.torch.at_zero import cancel_factors  # noqa: E402

SIZE = torch.export.Dim("size", min=0, max=64)


@pytest.mark.parametrize("offset", [0, 1])  # 1: torch's size would be below 0
def test_a_shape_that_is_wrong_at_zero_is_refused_there(offset):
    def least(x):
        return x.diagonal(offset, -1, 0)

    module = eyas.compile(least, (torch.randn(5, 7, 1),), dynamic_shapes={"x": {0: SIZE}}, progress=False)
    for size in (5, 1):
        x = torch.randn(size, 7, 1)
        torch.testing.assert_close(module(x), least(x))
    with pytest.raises(CallError, match="must be at least 1"):
        module(torch.randn(0, 7, 1))


def test_a_shape_that_holds_at_zero_is_taken_there():
    def product(x, y):
        return x @ y, (x * 2).flatten(1)

    calls = [(torch.randn(size, 3, size), torch.randn(size, size, 2)) for size in (5, 1, 0)]
    dims = {"x": {0: SIZE, 2: SIZE}, "y": {0: SIZE, 1: SIZE}}
    module = eyas.compile(product, calls[0], dynamic_shapes=dims, progress=False)
    for call in calls:
        torch.testing.assert_close(module(*call), product(*call), rtol=1e-4, atol=1e-5)


def test_a_quotient_by_a_factor_is_the_other_factors():
    class Model(torch.nn.Module):
        def forward(self, x):
            size = x.shape[0]
            return x.new_ones(((size * size) // size, 3 * size // 2))

    program = torch.export.export(Model(), (torch.randn(4, 2),), dynamic_shapes=({0: SIZE},))
    quotients = [node for node in program.graph.nodes if node.target is operator.floordiv]
    cancel_factors(program)
    left = [node for node in program.graph.nodes if node.target is operator.floordiv]
    assert (len(quotients), len(left)) == (2, 1)


def test_the_rest_of_a_view_is_what_is_left_of_its_sizes():
    """The importer divides for it, by a size that may be 0. The cube of a size is a product."""

    def views(x):
        n, m = x.shape[0], x.shape[3]
        return x.reshape(n, -1), x.reshape(-1, m), x.reshape(n * m, -1), x.new_ones(n**3)

    dims = {"x": {0: SIZE, 3: torch.export.Dim("other", min=0, max=64)}}
    module = eyas.compile(views, (torch.randn(5, 8, 8, 6),), dynamic_shapes=dims, progress=False)
    for sizes in ((5, 6), (1, 3), (0, 4), (3, 0), (7, 1), (0, 0)):
        x = torch.randn(sizes[0], 8, 8, sizes[1])
        got = module(x)
        assert [list(one.shape) for one in got] == [
            [sizes[0], 64 * sizes[1]],
            [64 * sizes[0], sizes[1]],
            [sizes[0] * sizes[1], 64],
            [sizes[0] ** 3],
        ]
        for one in got[:3]:
            torch.testing.assert_close(one.reshape(-1), x.reshape(-1))
