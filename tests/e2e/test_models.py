"""Small versions of real architectures against their own framework: largest difference over largest value below 1e-4.

Every model's answer must depend on its input, otherwise agreement shows nothing.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import models  # noqa: E402

import eyas  # noqa: E402

TOLERANCE = 1e-4

models.prepare_torchvision()  # transformers and timm import it too


def check(module: eyas.Module, model: Callable, calls: list[tuple]) -> None:
    """The module and the model agree on all calls, and the calls have different answers."""
    answers = []
    for call in calls:
        with torch.no_grad():
            wanted = models.flat(model(*call))
        error = models.relative_error(models.flat(module(*call)), wanted)
        assert error < TOLERANCE, f"relative error {error:.2e}"
        answers.append(wanted[0])
    if len(answers) > 1 and answers[0].shape == answers[1].shape:
        assert models.relative_error([answers[0]], [answers[1]]) > 0.01


def photos(size: int = 64, batch: int = 1) -> list[tuple]:
    torch.manual_seed(7)
    return [(torch.randn(batch, 3, size, size),) for _ in range(2)]


def resnet18() -> tuple[nn.Module, list[tuple]]:
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    model = torchvision.models.resnet18()
    models.calibrate_batch_norms(model, torch.randn(4, 3, 64, 64))
    return model.eval(), photos()


def mobilenet_v2() -> tuple[nn.Module, list[tuple]]:
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    model = torchvision.models.mobilenet_v2()
    models.calibrate_batch_norms(model, torch.randn(4, 3, 64, 64))
    return model.eval(), photos()


def bert() -> tuple[nn.Module, list[tuple]]:
    """Two layers, a mask with padding, the pooled answer and the last states."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=120,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=40,
    )
    model = transformers.BertModel(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))  # fresh biases are zero
    calls = []
    for length in (17, 9):
        mask = torch.ones(2, 17, dtype=torch.int64)
        mask[1, length:] = 0
        calls.append((torch.randint(0, 120, (2, 17)), mask))

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens, mask):
            out = self.model(tokens, attention_mask=mask)
            return out.last_hidden_state, out.pooler_output

    return Wrapped().eval(), calls


def gpt2() -> tuple[nn.Module, list[tuple]]:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=130, n_positions=32, n_embd=48, n_layer=2, n_head=4)
    )

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens):
            return self.model(tokens, use_cache=False).logits

    return Wrapped().eval(), [(torch.randint(0, 130, (2, 11)),) for _ in range(2)]


def vit() -> tuple[nn.Module, list[tuple]]:
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3, num_classes=10
    )
    return model.eval(), photos(32, 2)


def lstm() -> tuple[nn.Module, list[tuple]]:
    """Two layers in both directions; the answer and both states."""
    torch.manual_seed(0)

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True)
            self.head = nn.Linear(32, 5)

        def forward(self, x):
            states, (hidden, cell) = self.lstm(x)
            return self.head(states), hidden, cell

    return Tagger().eval(), [(torch.randn(3, 6, 12),) for _ in range(2)]


def unet() -> tuple[nn.Module, list[tuple]]:
    """Strided, dilated and transposed convolutions, group norm, concatenation, upsampling."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Conv2d(3, 12, 3, stride=2, padding=1)
            self.wide = nn.Conv2d(12, 12, 3, padding=2, dilation=2, groups=4)
            self.norm = nn.GroupNorm(3, 12)
            self.up = nn.ConvTranspose2d(12, 8, 4, stride=2, padding=1)
            self.out = nn.Conv2d(11, 2, 1)

        def forward(self, x):
            small = nn.functional.silu(self.norm(self.wide(torch.relu(self.down(x)))))
            nearest = nn.functional.interpolate(small, scale_factor=2.0)
            return self.out(torch.cat([self.up(small), x], 1)), nearest

    return Net().eval(), photos(20, 2)


def convnext_block() -> tuple[nn.Module, list[tuple]]:
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.depthwise = nn.Conv2d(16, 16, 7, padding=3, groups=16)
            self.norm = nn.LayerNorm(16)
            self.grow, self.shrink = nn.Linear(16, 64), nn.Linear(64, 16)
            self.scale = nn.Parameter(torch.randn(16))

        def forward(self, x):
            y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
            return x + (self.scale * self.shrink(nn.functional.gelu(self.grow(y)))).permute(0, 3, 1, 2)

    return Block().eval(), [(torch.randn(2, 16, 14, 14),) for _ in range(2)]


TORCH = [resnet18, mobilenet_v2, bert, gpt2, vit, lstm, unet, convnext_block]


@pytest.mark.parametrize("make", TORCH, ids=lambda make: make.__name__)
def test_torch(make):
    model, calls = make()
    check(eyas.compile(model, calls[0]), model, calls)


@pytest.mark.parametrize(
    "make",
    [resnet18, gpt2, *(pytest.param(one, marks=pytest.mark.long) for one in (bert, vit))],
    ids=lambda make: make.__name__,
)
def test_onnx_exports(make, tmp_path, caplog):
    pytest.importorskip("onnxscript")
    caplog.set_level(logging.CRITICAL)
    model, calls = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, calls[0], tmp_path / "model.onnx", dynamo=True, verbose=False)
    check(eyas.compile(tmp_path / "model.onnx"), model, calls)


def test_plain_loops_give_the_same_model():
    """The whole path once without any strategy."""
    model, calls = convnext_block()
    check(eyas.compile(model, calls[0], disable=("contraction", "rows")), model, calls)


def test_each_driver_and_thread_count_agrees():
    model, calls = unet()
    made = eyas.compile(model, calls[0], device="local-sync")
    check(made, model, calls)
    check(eyas.compile(model, calls[0], threads=3), model, calls)


def test_dynamic_batch_and_sequence():
    """One module, several sizes."""
    model, _ = gpt2()
    batch, length = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("length", min=2, max=32)
    module = eyas.compile(model, (torch.randint(0, 130, (2, 11)),), dynamic_shapes=({0: batch, 1: length},))
    for shape in [(1, 2), (2, 11), (3, 32), (8, 7)]:
        check(module, model, [(torch.randint(0, 130, shape),)])


def test_dynamic_batch_of_photos():
    model, _ = resnet18()
    batch = torch.export.Dim("batch", min=1, max=8)
    module = eyas.compile(model, photos(64, 2)[0], dynamic_shapes=({0: batch},))
    for size in (1, 2, 5):
        check(module, model, photos(64, size))


def test_index_out_of_the_vocabulary_fails_the_call():
    model, calls = gpt2()
    module = eyas.compile(model, calls[0])
    bad = calls[0][0].clone()
    bad[1, 3] = 130
    with pytest.raises(eyas.EyasError):
        module(bad)
    check(module, model, calls)


def test_bytes():
    """u8 photos: a cast, sums that wrap, a comparison, a maximum that is not signed."""

    class Bytes(nn.Module):
        def forward(self, x):
            return x.float().mean((2, 3)) / 255, x + x, (x > 100).sum(dtype=torch.int64), x.amax((2, 3))

    torch.manual_seed(0)
    x = torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    given, wanted = eyas.compile(Bytes(), (x,))(x), Bytes()(x)
    assert [one.dtype for one in given] == [one.dtype for one in wanted]
    torch.testing.assert_close(given[0], wanted[0], rtol=1e-5, atol=1e-6)
    assert all(torch.equal(a, b) for a, b in zip(given[1:], wanted[1:], strict=True))


NARROW = [
    pytest.param(torch.float16, 4e-3, id="f16"),
    pytest.param(torch.bfloat16, 3e-2, id="bf16"),  # the bias is small enough to be a constant
]


@pytest.mark.parametrize(("dtype", "tolerance"), NARROW)
def test_narrow_floats(dtype, tolerance):
    """A layer in f16 or bf16 against the same in f32, to a few roundings of its own type."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(33, 64), nn.GELU(), nn.LayerNorm(64)).to(dtype).eval()
    x = torch.randn(5, 33, dtype=dtype)
    with torch.no_grad():
        wide = model.float()(x.float())
    given = eyas.compile(model.to(dtype), (x,))(x)
    assert given.dtype == dtype
    error = ((given.float() - wide).abs().max() / wide.abs().max()).item()
    assert error < tolerance, error


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_small_narrow_constants(dtype):
    """So few values that MLIR prints them as numbers."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor([0.5, -1.25, 3.0], dtype=dtype))

        def forward(self, x):
            return x * self.scale

    x = torch.ones(2, 3, dtype=dtype)
    assert torch.equal(eyas.compile(Scaled(), (x,))(x), Scaled()(x))


def test_running_sums_of_dynamic_size():
    """Positions from a mask, as language models count them."""

    class Positions(nn.Module):
        def forward(self, mask):
            return torch.cumsum(mask, 1) - 1, torch.cumsum(torch.ones_like(mask), 0)

    batch, length = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("length", min=2, max=32)
    module = eyas.compile(Positions(), (torch.ones(2, 11, dtype=torch.int64),), dynamic_shapes=({0: batch, 1: length},))
    torch.manual_seed(0)
    for shape in [(1, 2), (3, 7), (8, 32)]:
        mask = torch.randint(0, 2, shape)
        assert all(torch.equal(a, b) for a, b in zip(module(mask), Positions()(mask), strict=True))


def test_sizes_that_depend_on_data():
    class Places(nn.Module):
        def forward(self, x):
            return torch.nonzero(x)

    x = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    module = eyas.compile(Places(), (x,))
    for one in (x, torch.zeros(2, 3), torch.ones(2, 3)):
        assert torch.equal(module(one), torch.nonzero(one))


# JAX


def test_jax_mlp():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 4)
    weights = [
        (jax.random.normal(keys[0], (12, 33)), jax.random.normal(keys[1], (33,))),
        (jax.random.normal(keys[2], (33, 5)), jnp.ones(5)),
    ]

    @jax.jit
    def mlp(x):
        hidden = jax.nn.gelu(x @ weights[0][0] + weights[0][1])
        return jax.nn.log_softmax(hidden @ weights[1][0] + weights[1][1])

    calls = [(np.random.default_rng(seed).standard_normal((7, 12)).astype(np.float32),) for seed in range(2)]
    check(eyas.compile(mlp, calls[0]), mlp, calls)


def test_jax_cnn():
    jax = pytest.importorskip("jax")

    keys = jax.random.split(jax.random.key(0), 3)
    first, second = jax.random.normal(keys[0], (3, 3, 3, 16)) / 5, jax.random.normal(keys[1], (3, 3, 16, 8)) / 12
    dense = jax.random.normal(keys[2], (8, 4))
    layout = ("NHWC", "HWIO", "NHWC")

    @jax.jit
    def cnn(x):
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, first, (2, 2), "SAME", dimension_numbers=layout))
        x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.relu(
            jax.lax.conv_general_dilated(x, second, (1, 1), "SAME", rhs_dilation=(2, 2), dimension_numbers=layout)
        )
        return jax.nn.softmax(x.mean((1, 2)) @ dense)

    calls = [(np.random.default_rng(seed).standard_normal((2, 21, 19, 3)).astype(np.float32) * 4,) for seed in range(2)]
    check(eyas.compile(cnn, calls[0]), cnn, calls)
