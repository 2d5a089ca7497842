"""Which loop nests are attention, which knobs devices get, and what is said about knobs that do not fit."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from eyas.codegen.common.analysis import Analysis, analysis_of  # noqa: E402
from eyas.codegen.gpu.attention_form import attention_form  # noqa: E402
from eyas.codegen.gpu.online_softmax import AttentionKnobs  # noqa: E402
from eyas.codegen.gpu.strategies.attention import Attention, shared_bytes  # noqa: E402
from eyas.dialects import flow  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.request import Phase, Request  # noqa: E402
from eyas.targets import Target  # noqa: E402

PROFILES = ["baseline", "lavapipe", "swiftshader", "adreno", "mali", "rdna3", "hopper"]


class Scores(torch.nn.Module):
    """softmax(change(scores)) with something done to the weights."""

    def __init__(self, change=lambda s: s, after=lambda p: p):
        super().__init__()
        self.change, self.after = change, after

    def forward(self, q, k, v):
        scores = self.change(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
        return self.after(torch.softmax(scores, -1)) @ v


def analyses(model, rows=48, keys=96, depth=32, target="vulkan:hopper") -> list[Analysis]:
    """What is known of each dispatch of a model."""
    args = (torch.zeros(1, 2, rows, depth), torch.zeros(1, 2, keys, depth), torch.zeros(1, 2, keys, depth))
    chosen, known = Target.parse(target), {}
    module = driver.run(Request(model, args, {}, targets=(chosen,), last=Phase.DISPATCH)).module
    return [analysis_of(op, known, chosen.near_bytes) for op in module.body.operations if flow.is_executable(op)]


def attentive(model, **sizes) -> list[Analysis]:
    found = analyses(model, **sizes)
    return [one for one in found if one.raw is not None and not isinstance(attention_form(one.raw), str)]


@pytest.mark.parametrize(
    "change",
    [lambda s: s, lambda s: s + 1, lambda s: torch.tanh(s / 30) * 30, lambda s: s.masked_fill(s < 0, float("-inf"))],
)
def test_anything_may_be_done_to_scores(change):
    (found,) = attentive(Scores(change))
    assert found.raw is not None
    form = attention_form(found.raw)
    assert not isinstance(form, str)
    assert (form.row_count, form.key_count, form.width) == (48, 96, 32)


@pytest.mark.parametrize("after", [lambda p: p * p, lambda p: p + 0.1, torch.relu])
def test_nothing_else_may_be_done_to_weights(after):
    found = analyses(Scores(after=after))
    assert len(found) > 1, "the products are not in one dispatch with what lies between them"
    assert not attentive(Scores(after=after))


@pytest.mark.parametrize("rows", [1, 3, 48, 1000])
@pytest.mark.parametrize("keys", [2, 7, 96, 4099])
def test_every_device_has_knobs_that_fit(rows, keys):
    (found,) = attentive(Scores(), rows=rows, keys=keys)
    for profile in PROFILES:
        target = Target.parse(f"vulkan:{profile}")
        chosen = Attention.choose(found, target)
        assert isinstance(chosen, Attention) and chosen.problem() is None, (profile, chosen)
        assert chosen.knobs.threads <= target.max_threads
        assert shared_bytes(chosen.form, chosen.knobs) <= target.shared_bytes


def test_few_queries_use_many_threads():
    (found,) = attentive(Scores(), rows=1, keys=4096)
    knobs = Attention.choose(found, Target.parse("vulkan:hopper")).knobs
    assert knobs.threads >= 64 and knobs.splits > 1


GOOD = AttentionKnobs(threads=64, side=8, splits=1, rows=4, keys=4, depth=16, staged=1, subgroup=0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({}, None),
        ({"threads": 48}, "threads is 48; it must be a power of two"),
        ({"splits": 16}, "threads is 64; it must be at least side * splits"),
        ({"rows": 0}, "rows is 0; it must be 1 to 64"),
        ({"rows": 7}, "rows is 7; 8 teams of so many are more than the 48 rows"),
        ({"keys": 13}, "keys is 13; 8 threads with so many are more than the 96 keys"),
        ({"staged": 2}, "staged is 2; it must be 0 or 1"),
        ({"splits": 2}, "staged is 1; it must be 0 where parts of a workgroup have keys of their own"),
        ({"rows": 2}, "staged is 1; it must be 0 where a thread has other than 4 rows and 4 keys"),
        ({"depth": 5}, "depth is 5; where operands are staged it must divide the 32 steps of the sum"),
        ({"depth": 5, "staged": 0}, None),
        ({"subgroup": 32}, None),
        ({"subgroup": 4}, "subgroup is 4; it must be 0, or staged must be 1 and side divide it"),
        ({"subgroup": 32, "staged": 0}, "subgroup is 32; it must be 0, or staged must be 1 and side divide it"),
    ],
)
def test_knobs_that_do_not_fit(change, complaint):
    (found,) = attentive(Scores())
    kernel = Attention.kernel_of(found)
    assert not isinstance(kernel, str)
    assert Attention.check(kernel, replace(GOOD, **change)) == complaint


def test_one_product_is_not_attention():
    class Product(torch.nn.Module):
        def forward(self, q, k, v):
            return q @ k.transpose(-2, -1)

    (found, *_) = analyses(Product())
    assert Attention.choose(found, Target.parse("vulkan:hopper")) == "no softmax between two products"
