"""What a schedule takes for granted of its surroundings: edits of a dump that break it are refused, with the reason."""

from __future__ import annotations

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from eyas.errors import CompileError  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.dumps import read_dump  # noqa: E402
from eyas.pipelines.request import Phase, Request  # noqa: E402
from eyas.targets import Target  # noqa: E402

TARGETS = (Target.parse("llvm-cpu:x86_64:x86-64-v3"),)
TILE = "tiles = [{loop = 1, width = 8, vectors = VECTORS, unroll_loop = 0, unroll = 3}]"


@pytest.fixture(scope="module")
def product():
    """A product whose weight is packed: dumps before and after, its weights, a call and its results."""
    torch.manual_seed(0)
    model, x = nn.Linear(300, 203).eval(), torch.randn(9, 300)
    compilation = driver.run(Request(model, (x,), targets=TARGETS, last=Phase.SCHEDULE))
    before = compilation.as_text()
    compilation.run([Phase.HAL])
    with torch.no_grad():
        return before, compilation.as_text(), dict(compilation.parameters), x.numpy(), model(x).numpy()


def noted(text: str, schedule: str, strategy: str = "contraction") -> str:
    """A dump whose function that multiplies has this strategy."""
    lines = text.splitlines()
    number = next(i for i, line in enumerate(lines) if re.search(r"func\.func private @\w*matmul", line))
    lines[number] = re.sub(r"codegen\.strategy = #codegen\.strategy<.*?}>, ", "", lines[number])
    attribute = f'codegen.strategy = #codegen.strategy<"{strategy}", {{{schedule}}}>, '
    lines[number] = lines[number].replace("attributes {", "attributes {" + attribute, 1)
    return "\n".join(lines)


def resume(text: str, weights, after: Phase):
    return driver.compile(Request(read_dump(text, weights), targets=TARGETS, after=after)).load()


def test_weights_of_a_noted_strategy_are_packed_for_its_tile(product):
    before, _, weights, x, expected = product
    dump = read_dump(noted(before, TILE.replace("VECTORS", "3")), weights)
    compilation = driver.run(Request(dump, targets=TARGETS, after=Phase.SCHEDULE, last=Phase.HAL))
    text = compilation.as_text()
    assert "#panels24" in text and "packed = [{binding = 1 : i64, lanes = 24 : i64}]" in text
    assert "codegen.remarks" in text or "codegen.rejected" in text
    module = resume(text, dict(compilation.parameters), Phase.HAL)
    np.testing.assert_allclose(module(x), expected, rtol=1e-4, atol=1e-4)


def test_panels_that_are_asked_for_are_made(product):
    before, _, weights, x, expected = product
    text = noted(before, f"{TILE}, packed = [{{binding = 1, lanes = 16}}]".replace("VECTORS", "2"))
    module = resume(text, weights, Phase.SCHEDULE)
    np.testing.assert_allclose(module(x), expected, rtol=1e-4, atol=1e-4)


def test_a_tile_of_other_lanes_than_the_packed_weights(product):
    _, after, weights, *_ = product
    lanes = int(re.search(r"lanes = (\d+)", after)[1])
    wrong = 1 if lanes != 8 else 2
    with pytest.raises(
        CompileError, match=rf"packed\[0\]\.lanes is {lanes}, but the tile reads panels of .* = {8 * wrong}"
    ):
        resume(
            noted(after, f"{TILE}, packed = [{{binding = 1, lanes = {lanes}}}]".replace("VECTORS", str(wrong))),
            weights,
            Phase.HAL,
        )


def test_lanes_that_are_not_those_of_the_weights(product):
    _, after, weights, *_ = product
    lanes = int(re.search(r"lanes = (\d+)", after)[1])
    other = 8 if lanes != 8 else 16
    text = noted(after, f"{TILE}, packed = [{{binding = 1, lanes = {other}}}]".replace("VECTORS", str(other // 8)))
    with pytest.raises(
        CompileError, match=rf"lies in panels of {other} lanes, but parameter '.*#panels{lanes}' lies in"
    ):
        resume(text, weights, Phase.HAL)


def test_packed_weights_that_a_schedule_forgets(product):
    _, after, weights, *_ = product
    with pytest.raises(CompileError, match=r"lies in its own order, but parameter '.*' lies in panels of \d+ lanes"):
        resume(noted(after, TILE.replace("VECTORS", "2")), weights, Phase.HAL)
    with pytest.raises(CompileError, match="lies in its own order"):
        resume(noted(after, "", "loops"), weights, Phase.HAL)


def test_panels_of_what_is_no_weight():
    model, x, y = torch.matmul, torch.randn(9, 300), torch.randn(300, 203)

    class Product(nn.Module):
        def forward(self, x, y):
            return model(x, y)

    compilation = driver.run(Request(Product(), (x, y), targets=TARGETS, last=Phase.SCHEDULE))
    text = noted(compilation.as_text(), f"{TILE}, packed = [{{binding = 1, lanes = 16}}]".replace("VECTORS", "2"))
    with pytest.raises(CompileError, match="in panels of 16 lanes, but that buffer lies in its own order"):
        resume(text, {}, Phase.SCHEDULE)


class Chain(nn.Module):
    """Two dispatches, of which the second writes over its operand."""

    def forward(self, x):
        return torch.softmax(x, -1).cumsum(0).exp().softmax(0) * 2


def test_plain_loops_do_not_write_over_what_they_read():
    x = torch.randn(24, 40)
    compilation = driver.run(Request(Chain(), (x,), targets=TARGETS, last=Phase.SCHEDULE))
    text = compilation.as_text()
    in_place = re.findall(r'"stream\.dispatch"\(((%\w+), \2)\) .*callee = @(\w+)', text)
    assert in_place, "the model has no dispatch that works in place"
    name = in_place[0][2]
    edited = re.sub(
        rf"(func\.func private @{name}\(.*?attributes {{)",
        r'\1codegen.strategy = #codegen.strategy<"loops", {}>, ',
        text,
    )
    assert edited != text
    with pytest.raises(CompileError, match="written where binding 0 is read, which it does not allow; those that do: "):
        resume(edited, {}, Phase.SCHEDULE)


def test_tensors_without_elements_lie_anywhere():
    """The empty operand has the offset of the result, which is written by plain loops."""

    class Counts(nn.Module):
        def forward(self, x):
            return torch.histc(x, 101)

    x = torch.empty(0)
    module = driver.compile(Request(Counts(), (x,), targets=TARGETS)).load()
    np.testing.assert_array_equal(module(x.numpy()), np.zeros(101))
