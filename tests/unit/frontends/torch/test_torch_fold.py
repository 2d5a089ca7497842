"""Constants of torch programs: what is computed before import, and what is not."""

import pytest
import torch
from torch import nn

import eyas
from eyas.frontends.torch.fold import fold_constants
from eyas.program.literals import LARGEST_INLINE_BYTES


class Table(nn.Module):
    def __init__(self, size: int = 10):
        super().__init__()
        self.register_buffer("table", torch.arange(float(size)))

    def forward(self, x):
        return x + self.table[1::4].exp(), self.table.flip(0)


def folded(model: nn.Module, *inputs: torch.Tensor) -> torch.export.ExportedProgram:
    program = torch.export.export(model, inputs).run_decompositions({})
    fold_constants(program)
    return program


def targets(program: torch.export.ExportedProgram) -> list[str]:
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def test_small_constants_are_computed():
    program = folded(Table(), torch.ones(1))
    assert targets(program) == ["aten.add.Tensor"]
    made = [value for name, value in program.constants.items() if name.startswith("folded.")]
    assert any(torch.equal(value, torch.arange(10.0)[1::4].exp()) for value in made)
    # Results are looked up by name.
    names = {node.name for node in program.graph.nodes}
    assert all(spec.arg.name in names for spec in program.graph_signature.output_specs)


def test_large_constants_are_left():
    program = folded(Table(LARGEST_INLINE_BYTES), torch.ones(1))
    assert "aten.exp.default" in targets(program)


def test_random_numbers_are_left():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.full((4,), 0.5))

        def forward(self, x):
            return x + torch.bernoulli(self.table)

    assert "aten.bernoulli.default" in targets(folded(Noisy(), torch.ones(4)))


def test_state_is_not_a_constant():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count * 2

    module = eyas.compile(Counter(), (torch.zeros(2),))
    assert [float(module(torch.zeros(2))[0]) for _ in range(3)] == [2, 4, 6]


def test_results_keep_their_order():
    model, x = Table(), torch.ones(1)
    for ours, theirs in zip(eyas.compile(model, (x,))(x), model(x), strict=True):
        torch.testing.assert_close(ours, theirs)


class Unsigned(nn.Module):
    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.register_buffer("table", torch.arange(40 * 33).reshape(40, 33).to(dtype))

    def forward(self, x, rows):
        same = self.table.expand(40, 33).detach()[:]
        return self.table.clone(), same, self.table.view(-1), self.table.index_add(0, x, rows)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint32])
def test_unsigned_constants_are_results_after_ops_that_are_nothing(dtype):
    """Adding no rows is a copy, and the importer loses a conversion between a copy and a result."""
    model = Unsigned(dtype)
    given = torch.zeros(0, dtype=torch.int64), torch.zeros(0, 33, dtype=dtype)
    for got, want in zip(eyas.compile(model, given)(*given), model(*given), strict=True):
        assert got.dtype == want.dtype and torch.equal(got, want)


def test_results_of_a_size_that_the_data_says_are_not_compared_with_what_they_are_made_of():
    x = torch.tensor([3, 0, 3], dtype=torch.uint8)
    wanted = torch.bincount(x, x.to(torch.int64), 4)[:4]
    assert torch.equal(eyas.compile(lambda x: torch.bincount(x, x.to(torch.int64), 4)[:4], (x,))(x), wanted)


class Infinite(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("image", torch.arange(160.0).reshape(4, 5, 8).to(torch.bfloat16))
        self.register_buffer("weight", torch.arange(1.0, 41.0).reshape(2, 5, 4).to(torch.bfloat16))
        self.image[3, 4, 4] = torch.inf

    def forward(self, x):
        return nn.functional.conv1d(self.image, self.weight, None, 2, 1, 2) + x


def test_products_of_constants_are_not_torchs():
    """Its convolution of bf16 is NaN beside an infinity that no window has: zeros fill up its blocks of channels."""
    model, x = Infinite(), torch.zeros(1, dtype=torch.bfloat16)
    exact = nn.functional.conv1d(model.image.double(), model.weight.double(), None, 2, 1, 2)
    torch.testing.assert_close(eyas.compile(model, (x,))(x).double(), exact, rtol=0.01, atol=0)
