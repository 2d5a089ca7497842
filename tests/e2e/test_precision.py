"""Models in f32 that are computed in half precision, against PyTorch in f32: each kind of layer, on each target."""

from __future__ import annotations

import pytest
from tests.tools.slices import half_of

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import TargetError, UsageError  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.request import Phase, Request  # noqa: E402
from eyas.targets import Target  # noqa: E402

RTOL = {"f16": 4e-3, "bf16": 3e-2}


class Encoder(nn.Module):
    """Embedding, attention with a mask of the lowest f32, norms, and what passes by the layers."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.table = heads, nn.Embedding(50, width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, ids, seen):
        x = self.table(ids)
        mask = (1.0 - seen[:, None, None, :]) * torch.finfo(torch.float32).min
        for _ in range(2):
            heads = self.project(x).view(*ids.shape, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(*heads.unbind(0), attn_mask=mask)
            x = self.first(x + self.out(a.transpose(1, 2).reshape(x.shape)))
            x = self.second(x + self.narrow(F.gelu(self.wide(x))))
        return x


def encoder():
    seen = torch.ones(2, 32)
    seen[0, 20:], seen[1, :] = 0, 0  # of the second nothing is seen, which must not become NaN
    return Encoder(), (torch.randint(0, 50, (2, 32)), seen)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n = nn.Conv2d(3, 16, 3, padding=1, stride=2), nn.BatchNorm2d(16)
        self.b, self.c = nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(32, 8, 1)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.n(self.a(x))), 3, 2, 1)
        x = torch.cat([x, F.silu(self.b(x))], 1)
        return F.adaptive_avg_pool2d(self.c(x), 1).flatten(1).softmax(-1)


def convolutions():
    return Convolutions(), (torch.randn(2, 3, 31, 31),)


CASES = {"encoder": encoder, "convolutions": convolutions}


def case_of(name):
    torch.manual_seed(0)
    model, inputs = CASES[name]()
    model.eval().requires_grad_(False)
    return model, inputs, model(*inputs)


def close(got, want, precision):
    assert got.dtype == want.dtype
    error = float((got - want).abs().max() / want.abs().max())
    assert error < RTOL[precision], error
    return error


@pytest.mark.parametrize(
    ("name", "target", "precision"),
    half_of(tuple(CASES), ("llvm-cpu", "vmvx"), ("f16", "bf16")),
)
def test_half_precision_is_near(name, target, precision):
    model, inputs, want = case_of(name)
    module = eyas.compile(model, inputs, target=target, precision=precision)
    error = close(module(*inputs), want, precision)
    assert error > 1e-6, "nothing was rounded"
    assert module.manifest["provenance"]["precision"] == precision


@pytest.mark.parametrize(("name", "precision"), half_of(tuple(CASES), ("f16", "bf16")))
def test_half_precision_is_near_on_a_gpu(name, precision, vulkan_device):
    model, inputs, want = case_of(name)
    close(eyas.compile(model, inputs, target="vulkan", precision=precision)(*inputs), want, precision)


def test_weights_and_memory_take_half_the_bytes():
    model, inputs, _ = case_of("encoder")
    whole, half = (eyas.compile(model, inputs, precision=precision) for precision in (None, "f16"))
    assert half.manifest["memory"]["arena_bytes"] <= 0.6 * whole.manifest["memory"]["arena_bytes"]
    text = driver.run(Request(model, inputs, precision="f16", last=Phase.OPTIMIZE)).as_text()
    weights = [line for line in text.splitlines() if '"flow.parameter"' in line]
    assert all("f16>" in line for line in weights if line.count("x") > 1 and "tensor<64x" in line)


def test_sizes_may_vary():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 8)).eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    module = eyas.compile(model, (torch.randn(2, 16),), dynamic_shapes=({0: batch},), precision="f16")
    for size in (1, 7):
        x = torch.randn(size, 16)
        close(module(x), model(x).detach(), "f16")


def test_what_becomes_an_index_is_exact():
    """3000 and a half is no f16."""

    class Model(nn.Module):
        def forward(self, x, w, table):
            position = x * 3000.5
            y = x @ w
            return y.sum() * 0 + table[(position[0] * 2).to(torch.int64)]

    x, w, table = torch.ones(1, 4), torch.ones(4, 4), torch.arange(8000.0)
    module = eyas.compile(Model().eval(), (x, w, table), precision="f16")
    assert module(x, w, table).tolist() == [6001.0] * 4


def test_state_keeps_its_type():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.randn(8, 16))

        def forward(self, x):
            self.rows.copy_(torch.cat([self.rows[1:], x], 0))
            return x @ self.rows.T

    torch.manual_seed(0)
    model, x = Cache().eval(), torch.randn(1, 16)
    module = eyas.compile(model, (x,), precision="f16")
    close(module(x), model(x), "f16")
    assert module.state.torch()["rows"].dtype == torch.float32
    assert torch.equal(module.state.torch()["rows"], model.rows)


def test_torch_compile_takes_it():
    model, inputs, want = case_of("convolutions")
    torch._dynamo.reset()
    fast = torch.compile(model, backend="eyas", options={"precision": "f16"})
    with torch.no_grad():
        assert close(fast(*inputs), want, "f16") > 1e-6


def test_a_module_of_another_precision_is_not_taken_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    model, inputs, _ = case_of("convolutions")
    first, second = (eyas.compile(model, inputs, precision=precision) for precision in (None, "f16"))
    assert [one.manifest["provenance"]["precision"] for one in (first, second)] == [None, "f16"]


def test_what_cannot_be_is_refused():
    model, inputs, _ = case_of("convolutions")
    with pytest.raises(UsageError, match="precision 'f8' is none of f16, bf16"):
        eyas.compile(model, inputs, precision="f8")
    with pytest.raises(TargetError, match="precision f16 needs 'f16' and 'storage16', which target 'vulkan:baseline'"):
        driver.run(Request(model, inputs, precision="f16", targets=(Target.parse("vulkan:baseline"),)))


def test_verify_says_what_it_loses():
    model, inputs, _ = case_of("encoder")
    report = eyas.verify(model, inputs, precision="f16")
    assert report.ok, report
    assert max(row.difference.error for row in report.rows if row.difference) > 1e-5
    assert not eyas.verify(model, inputs, precision="f16", rtol=1e-6, atol=0.0).ok
