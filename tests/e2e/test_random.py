"""Random numbers: Threefry's, from a seed that is state of the module, the same for every target."""

from __future__ import annotations

import numpy as np
import pytest

import eyas
from eyas.errors import UsageError

onnx = pytest.importorskip("onnx")
from onnx import parser  # noqa: E402

MASK = np.uint64(0xFFFFFFFF)


def threefry(key, counter):
    """Threefry-2x32-20 in NumPy; words are u64 below 2^32."""
    keys = [np.uint64(key[0]), np.uint64(key[1])]
    keys.append(keys[0] ^ keys[1] ^ np.uint64(0x1BD11BDA))
    x, y = (np.asarray(counter[at], np.uint64) + keys[at] & MASK for at in range(2))
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y & MASK
            y = (y << np.uint64(rotation) | y >> np.uint64(32 - rotation)) & MASK
            y = y ^ x
        x = x + keys[(group + 1) % 3] & MASK
        y = y + keys[(group + 2) % 3] + np.uint64(group + 1) & MASK
    return x, y


def drawn(shape, seed=0, call=0, stream=0):
    """The two words of each element that the op number `stream` draws."""
    key = threefry((seed & 0xFFFFFFFF, seed >> 32), (call, stream))
    return [words.reshape(shape) for words in threefry(key, (np.arange(np.prod(shape, dtype=int)), 0))]


def compile_text(text, **options):
    return eyas.compile(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), **options)


def test_the_reference_is_threefry():
    assert [int(word) for word in threefry((0, 0), (0, 0))] == [0x6B200159, 0x99BA4EFE]
    key, counter = (0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)
    assert [int(word) for word in threefry(key, counter)] == [0xC4923A9C, 0x483DF7A0]


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_numbers_of_open_shapes(target):
    text = """main (float[n, m] x, float p) => (float[n, m] u, float[n, m] z, float s)
    { u = RandomUniformLike (x)  z = RandomNormalLike <mean = 1.0, scale = 2.0> (x)  s = RandomUniformLike (p) }"""
    module = compile_text(text, target=target)
    for call, shape in enumerate([(3, 5), (1, 1), (0, 4), (37, 130)]):
        u, z, s = module(np.zeros(shape, np.float32), np.float32(0))
        np.testing.assert_array_equal(u, (drawn(shape, call=call)[0] >> np.uint64(8)).astype(np.float32) * 2.0**-24)
        first, second = drawn(shape, call=call, stream=1)
        radius = np.sqrt(-2 * np.log(((first >> np.uint64(1)) + 0.5) * 2.0**-31))
        normal = 1 + 2 * radius * np.cos(2 * np.pi * (second >> np.uint64(8)) * 2.0**-24)
        np.testing.assert_allclose(z, normal, rtol=1e-4, atol=1e-5)
        assert float(s) == float((drawn((), call=call, stream=2)[0] >> np.uint64(8)) * 2.0**-24)


def test_the_seed_is_state():
    module = compile_text("main (float[4] x) => (float[4] y) { y = RandomNormalLike (x) }")
    x = np.zeros(4, np.float32)
    first, second = module(x), module(x)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(module.state["eyas.random"], [0, 2])
    np.testing.assert_array_equal(module.clone()(x), first)
    module.seed(2**40 + 7)
    third = module(x)
    assert not np.array_equal(first, third)
    module.seed(2**40 + 7)
    np.testing.assert_array_equal(module(x), third)
    module.reset()
    np.testing.assert_array_equal(module(x), first)
    with pytest.raises(UsageError, match="draws no random numbers"):
        compile_text("main (float[4] x) => (float[4] y) { y = Relu (x) }").seed(1)


def test_seeds_of_nodes_and_types():
    text = """main (float[3] x) => (double[2, 50] a, double[2, 50] b, float16[100] h, float[2, 50] c)
    {
      a = RandomUniform <shape = [2, 50], dtype = 11, seed = 3.5> ()
      b = RandomUniform <shape = [2, 50], dtype = 11, seed = 3.5> ()
      h = RandomNormal <shape = [100], dtype = 10> ()
      c = RandomUniform <shape = [2, 50], low = -4.0, high = -3.0> ()
    }"""
    a, b, h, c = compile_text(text)(np.zeros(3, np.float32))
    np.testing.assert_array_equal(a, b)
    assert a.dtype == np.float64 and h.dtype == np.float16 and h.std() > 0.5
    assert (a >= 0).all() and (a < 1).all() and (c >= -4).all() and (c < -3).all()


def test_choices_of_onnx():
    text = """main (float[n] p, float[r, 3] logs, bool train) =>
      (bool[n] flips, int64[r, 2000] chosen, float[n] kept, bool[n] mask)
    {
      flips = Bernoulli <dtype = 9> (p)
      chosen = Multinomial <sample_size = 2000, dtype = 7> (logs)
      ratio = Constant <value = float {0.25}> ()
      kept, mask = Dropout (p, ratio, train)
    }"""
    module = compile_text(text)
    p = np.full(20000, 0.3, np.float32)
    chances = np.array([[0.2, 0.0, 0.8], [0.5, 0.25, 0.25]])
    with np.errstate(divide="ignore"):
        logs = np.log(chances).astype(np.float32)
    flips, chosen, kept, mask = module(p, logs, np.array(True))
    assert abs(flips.mean() - 0.3) < 0.02 and flips.dtype == np.bool_
    for row, chance in zip(chosen, chances, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 2000, chance, atol=0.05)
    assert abs(mask.mean() - 0.75) < 0.02
    np.testing.assert_allclose(kept, np.where(mask, p / 0.75, 0), rtol=1e-6)
    *_, kept, mask = module(p, logs, np.array(False))
    assert mask.all() and np.array_equal(kept, p)


def test_each_trip_of_a_loop_draws_anew():
    text = """main (int64 n, float[3] x) => (float[3] y, float[k, 3] rows)
    {
      yes = Constant <value = bool {1}> ()
      y, rows = Loop (n, yes, x) <body = step (int64 i, bool c, float[3] s) => (bool on, float[3] t, float[3] row) {
        row = RandomUniformLike (s)
        t = Add (s, row)
        on = Identity (c)
      }>
    }"""
    y, rows = compile_text(text)(np.int64(5), np.zeros(3, np.float32))
    assert len(np.unique(rows)) == 15
    np.testing.assert_allclose(y, rows.sum(0), rtol=1e-6)


def test_ops_of_torch():
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional

    def draw(x):
        chances = torch.tensor([0.1, 0.2, 0.0, 0.7]).expand(x.shape[0], 4)
        return {
            "rand": torch.rand(x.shape),
            "randn": torch.randn_like(x),
            "half": torch.rand(x.shape, dtype=torch.float16),
            "dropout": functional.dropout(x, 0.3, True),
            "bernoulli": torch.bernoulli(torch.full_like(x, 0.25)),
            "randint": torch.randint(3, 9, x.shape),
            "randperm": torch.randperm(40),
            "normal": torch.normal(x, 2.0),
            "few": torch.multinomial(chances, 3),
            "many": torch.multinomial(chances, 30, True),
            "exponential": torch.empty_like(x).exponential_(2.0),
            "uniform": torch.empty_like(x).uniform_(-3, 5),
        }

    n = torch.export.Dim("n", min=2)
    module = eyas.compile(draw, (torch.ones(4, 30),), dynamic_shapes=({0: n},))
    x = torch.ones(700, 30)
    first, second = module(x), module(x)
    module.seed(0)
    again = module(x)
    for name, value in first.items():
        assert torch.equal(value, again[name]) and not torch.equal(value, second[name]), name
    means = {name: value.double().mean().item() for name, value in first.items()}
    for name, mean in (("rand", 0.5), ("randn", 0), ("half", 0.5), ("dropout", 1), ("bernoulli", 0.25), ("normal", 1)):
        assert abs(means[name] - mean) < 0.05, name
    assert abs(means["exponential"] - 0.5) < 0.02 and abs(means["uniform"] - 1) < 0.1
    assert first["half"].max() < 1 and first["half"].dtype == torch.float16
    assert first["randint"].unique().tolist() == [3, 4, 5, 6, 7, 8]
    assert first["randperm"].sort()[0].tolist() == list(range(40))
    assert (first["few"].sort(-1)[0] == torch.tensor([0, 1, 3])).all()
    counts = torch.bincount(first["many"].flatten(), minlength=4) / first["many"].numel()
    torch.testing.assert_close(counts, torch.tensor([0.1, 0.2, 0, 0.7]), atol=0.02, rtol=0)


def test_dropout_in_a_training_step():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    step = eyas.training_step(model, torch.nn.MSELoss(), optimizer, (x, y))
    first, second = float(step(x, y)), float(step(x, y))
    assert first != second
    step.seed(0)
    assert float(step(x, y)) == first
