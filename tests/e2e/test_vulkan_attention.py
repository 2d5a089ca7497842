"""Attention on a Vulkan device against PyTorch in double precision: sizes that divide nothing, masks with rows that see
nothing, few queries and many keys, and forms of the kernel that the device of this machine would not choose."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.tools import vulkan

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.codegen.gpu.online_softmax import AttentionKnobs  # noqa: E402
from eyas.codegen.gpu.strategies import attention  # noqa: E402
from eyas.module import container  # noqa: E402
from eyas.module.spirv_executable import read_executable  # noqa: E402

pytestmark = pytest.mark.usefixtures("vulkan_device")


class Attention(nn.Module):
    """What torch makes of it; `heads` says that the arguments are projections, of which heads are cut out."""

    def __init__(self, heads=0, **options):
        super().__init__()
        self.heads, self.options = heads, options

    def forward(self, q, k, v, mask=None):
        if self.heads:
            q, k, v = (x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2) for x in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, **self.options)
        return y.transpose(1, 2).flatten(2) if self.heads else y


@pytest.fixture(
    params=[AttentionKnobs(16, 8, 1, 2, 2, 4, 0, 0), AttentionKnobs(8, 1, 4, 2, 2, 4, 0, 0)], ids=["one", "split"]
)
def small(monkeypatch, request):
    """Where a test is not about the form: little code, which drivers compile quickly, with and without split keys."""
    monkeypatch.setattr(attention, "default_knobs", lambda form, target: request.param)


def draw(batch, heads, rows, keys, depth, width=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((rows, depth), (keys, depth), (keys, width or depth))
    return [torch.randn(batch, heads, *shape, generator=generator) for shape in shapes]


def check(model, inputs, path, tolerance=1e-5, dispatches=1, target="vulkan"):
    """One kernel has all of it (unless told otherwise), and it is right; spirv-val finds nothing wrong with any."""
    module = eyas.compile(model, tuple(inputs), target=target, cache=False)
    kernels = [kernel["strategy"] for kernel in module.manifest["kernels"]]
    assert kernels.count("attention") == dispatches and "loops" not in kernels, kernels
    module.save(path / "attention.eyas")
    for executable in container.read(path / "attention.eyas").executables.values():
        for kernel in read_executable(bytes(executable)):
            assert vulkan.validate(kernel.code) == ""
    expected = model(*(one.double() if one.is_floating_point() else one for one in inputs)).numpy()
    found = torch.as_tensor(module(*inputs)).double().numpy()
    np.testing.assert_allclose(found, expected, tolerance, tolerance * np.nanmax(np.abs(expected)))


@pytest.mark.parametrize(
    "sizes",
    [
        (2, 3, 7, 7, 32),
        (1, 2, 128, 128, 32),
        (1, 2, 197, 197, 64),
        (1, 2, 16, 513, 40),
        (2, 3, 33, 17, 40, 1),
    ],
)
def test_sizes(sizes, tmp_path):
    check(Attention(), draw(*sizes), tmp_path)


@pytest.mark.parametrize("sizes", [(1, 4, 1, 513, 64), (2, 4, 1, 7, 40), (1, 2, 3, 1030, 32)])
def test_few_queries_share_out_the_keys(sizes, tmp_path):
    check(Attention(), draw(*sizes), tmp_path)


@pytest.mark.parametrize("sizes", [(1, 2, 1, 1, 32), (1, 1, 1, 7, 32)])
def test_what_has_no_rows_or_keys_to_speak_of_is_not_fused(sizes, tmp_path):
    check(Attention(), draw(*sizes), tmp_path, dispatches=0)


@pytest.mark.usefixtures("small")
def test_projections_are_read_where_they_lie(tmp_path):
    inputs = [torch.randn(2, n, 4 * 8, generator=torch.Generator().manual_seed(n)) for n in (19, 21, 23)]
    inputs[2] = inputs[2][:, :21]
    check(Attention(heads=4), inputs, tmp_path)


@pytest.mark.usefixtures("small")
def test_causal(tmp_path):
    check(Attention(is_causal=True), draw(1, 2, 45, 45, 8), tmp_path)


@pytest.mark.usefixtures("small")
def test_rows_that_see_nothing_give_zero(tmp_path):
    mask = torch.rand(1, 1, 19, 45, generator=torch.Generator().manual_seed(3)) > 0.7
    mask[0, 0, 4], mask[0, 0, 5, :40] = False, False
    check(Attention(), [*draw(2, 2, 19, 45, 8), mask], tmp_path)


@pytest.mark.usefixtures("small")
def test_rows_that_see_nothing_give_nan_where_nobody_minds(tmp_path):
    class Plain(nn.Module):
        def forward(self, q, k, v, mask):
            return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask, -1) @ v

    mask = torch.zeros(11, 21)
    mask[3], mask[4, :18] = float("-inf"), float("-inf")
    check(Plain(), [*draw(1, 2, 11, 21, 8), mask], tmp_path)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("shape", [(2, 1, 9, 21), (1, 1, 1, 21)])
def test_masks_that_are_added(shape, tmp_path):
    mask = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    check(Attention(), [*draw(2, 2, 9, 21, 8), mask], tmp_path)


@pytest.mark.usefixtures("small")
def test_grouped_heads(tmp_path):
    q, _, _ = draw(1, 8, 9, 21, 8)
    _, k, v = draw(1, 2, 9, 21, 8)
    check(Attention(enable_gqa=True), [q, k, v], tmp_path)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("type_", "tolerance"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_narrow_floats(type_, tolerance, tmp_path):
    check(Attention(), [one.to(type_) for one in draw(1, 3, 17, 65, 8)], tmp_path, tolerance)


@pytest.mark.usefixtures("small")
def test_large_scores_do_not_overflow(tmp_path):
    q, k, v = draw(1, 2, 16, 70, 8)
    check(Attention(), [q * 30, k * 30, v], tmp_path, 1e-4)


def test_softmax_that_is_none_is_left_alone():
    class Squares(nn.Module):
        def forward(self, q, k, v):
            scores = (q @ k.transpose(-2, -1)) ** 2
            return (scores / (scores.mean(-1, keepdim=True) + 1)) @ v

    inputs = draw(1, 2, 16, 24, 32)
    module = eyas.compile(Squares(), tuple(inputs), target="vulkan", cache=False)
    assert "attention" not in [kernel["strategy"] for kernel in module.manifest["kernels"]]
    np.testing.assert_allclose(torch.as_tensor(module(*inputs)), Squares()(*inputs), 1e-5, 1e-5)


@pytest.mark.parametrize("sizes", [(1, 2, 128, 128, 64), (1, 4, 1, 513, 40), (2, 3, 33, 17, 32)])
def test_what_hardware_with_near_shared_memory_gets(sizes, tmp_path):
    subgroup = eyas.Target.parse(vulkan.target()).subgroup
    check(Attention(), draw(*sizes), tmp_path, target=f"vulkan:ampere:subgroup={subgroup},shared=32K")


@pytest.mark.parametrize(
    ("sizes", "knobs"),
    [
        ((1, 2, 40, 50, 32), AttentionKnobs(32, 4, 1, 4, 4, 8, 1, 0)),
        ((1, 2, 100, 130, 80), AttentionKnobs(128, 16, 1, 4, 4, 16, 1, 0)),
        ((1, 2, 1, 513, 64), AttentionKnobs(64, 8, 8, 1, 2, 4, 0, 0)),
        ((1, 2, 3, 197, 40), AttentionKnobs(64, 16, 4, 1, 2, 4, 0, 0)),
        ((1, 2, 70, 90, 64), AttentionKnobs(32, 8, 1, 4, 4, 16, 1, 8)),  # the device's own, if it is another
        ((1, 2, 64, 64, 64), AttentionKnobs(256, 16, 1, 4, 4, 16, 1, 0)),
        ((1, 2, 21, 33, 7), AttentionKnobs(16, 8, 1, 3, 3, 1, 0, 0)),  # threads without columns of their own
        ((1, 2, 21, 33, 24), AttentionKnobs(32, 2, 4, 5, 2, 8, 0, 0)),
    ],
)
def test_forms_of_other_devices(monkeypatch, sizes, knobs, tmp_path):
    if knobs.subgroup:
        knobs = replace(knobs, subgroup=eyas.Target.parse(vulkan.target()).subgroup)
    monkeypatch.setattr(attention, "default_knobs", lambda form, target: knobs)
    check(Attention(), draw(*sizes), tmp_path)
