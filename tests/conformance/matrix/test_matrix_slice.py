"""A seeded sample of the compile matrix: dispatches of small models, each for a few of the CPUs, compiled and linked.

`make compile-matrix` is the whole of it.
"""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

from tests.conformance.matrix.__main__ import report  # noqa: E402
from tests.conformance.matrix.collect import Dispatch, dispatches_of  # noqa: E402
from tests.conformance.matrix.compile import CPUS, compile_all  # noqa: E402

from eyas.targets import Target  # noqa: E402


class Small(torch.nn.Module):
    """Convolutions of several kinds, attention, normalisation, pooling, embedding: a little of each."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.wide = torch.nn.Conv2d(16, 64, 3, stride=2, padding=1)
        self.depthwise = torch.nn.Conv2d(64, 64, 5, padding=2, groups=64)
        self.norm = torch.nn.LayerNorm(64)
        self.attention = torch.nn.MultiheadAttention(64, 4, batch_first=True)
        self.words = torch.nn.Embedding(50, 64)
        self.head = torch.nn.Linear(64, 37)

    def forward(self, image, words):
        x = torch.relu(self.stem(image))
        x = torch.nn.functional.hardswish(self.depthwise(self.wide(x)))
        x = torch.nn.functional.avg_pool2d(x, 2).flatten(2).transpose(1, 2)
        x = self.norm(torch.cat([x, self.words(words)], 1))
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return torch.softmax(self.head(x), -1), x.to(torch.bfloat16).cumsum(1), x.argmax(-1).to(torch.uint8) >> 2


@pytest.fixture(scope="module")
def dispatches() -> list[Dispatch]:
    torch.manual_seed(0)
    inputs = (torch.randn(1, 3, 32, 32), torch.randint(0, 50, (1, 9)))
    with torch.no_grad():
        return list(dispatches_of("small", Small().eval(), inputs))


def test_a_sample_compiles_for_every_cpu(dispatches):
    """Each CPU at least once, and each dispatch."""
    chance = random.Random(0)
    pairs = [(chance.choice(dispatches), cpu) for cpu in CPUS]
    pairs += [(one, chance.choice(CPUS)) for one in dispatches]
    results = compile_all(pairs, 2)
    assert len(results) == len(pairs) and [one for one in results if one.problem] == []
    assert {one.strategy for one in results} >= {"contraction", "rows"}
    assert f"{len(dispatches)} different dispatches" in report(dispatches, results)[0]


def test_the_cpus_are_many_and_known():
    targets = [Target.parse(f"llvm-cpu:{cpu}") for cpu in CPUS]
    assert len(set(targets)) >= 20 and {one.arch for one in targets} == {"x86_64", "aarch64", "riscv64"}


def test_what_does_not_compile_is_told(dispatches):
    broken = Dispatch("small", "broken", dispatches[0].text.replace("@dispatch", "@other"))
    (result,) = compile_all([(broken, CPUS[0])], 1)
    assert result.problem.startswith("not linked: ")
