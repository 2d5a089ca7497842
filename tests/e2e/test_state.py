"""State that stays between calls: buffers that torch modules write to, caches in place, shared by entry points."""

from __future__ import annotations

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, FrontendError, UsageError  # noqa: E402
from eyas.ir.walk import find_ops  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.dumps import read_dump_file  # noqa: E402
from eyas.pipelines.request import Phase, Request, Services  # noqa: E402


def scheduled(model, *inputs):
    """The program after the schedule phase."""
    return driver.run(Request(model, inputs, last=Phase.SCHEDULE)).module


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.full((4,), 2.0))

    def forward(self, x):
        self.count += 1
        self.total.add_(x)
        return self.total / self.count


class Cache(nn.Module):
    def __init__(self, length=64):
        super().__init__()
        self.register_buffer("rows", torch.zeros(1, 4, length, 16))

    def forward(self, new, position):
        self.rows.index_copy_(2, position, new)
        return self.rows.sum((0, 1, 3))


def test_buffers_keep_their_values(tmp_path):
    model, x = Counter(), torch.randn(4)
    eyas.compile(Counter(), (x,)).save(tmp_path / "m.eyas")
    module = eyas.load(tmp_path / "m.eyas")
    for _ in range(5):
        x = torch.randn(4)
        torch.testing.assert_close(module(x), model(x))
    assert set(module.state) == {"count", "total"} and module.state["count"] == 5
    torch.testing.assert_close(module.state.torch()["total"], model.total)
    assert eyas.load(tmp_path / "m.eyas").state["count"] == 0, "each loaded module has a state of its own"


def test_state_is_read_set_and_reset():
    module = eyas.compile(Counter(), (torch.zeros(4),))
    copy = module.state["total"]
    copy[:] = 9
    assert module.state["total"].tolist() == [2.0] * 4, "reading copies"
    module.state["total"] = torch.ones(4)
    module.state["count"] = 3
    assert module(torch.zeros(4)).tolist() == [0.25] * 4
    module.reset()
    assert module.state["count"] == 0 and module.state["total"].tolist() == [2.0] * 4
    with pytest.raises(CallError, match=r"state total: f32\[4\]"):
        module.state["total"] = np.ones(5, np.float32)
    with pytest.raises(KeyError, match="no state 'x'; it has: "):
        module.state["x"]


@pytest.mark.parametrize("count", [1, 3])
def test_rows_of_a_cache_are_written_in_place(count):
    positions = torch.arange(count) * 5
    new = torch.randn(1, 4, count, 16)
    program = scheduled(Cache(), new, positions)
    assert not find_ops(program, "stream.copy")
    first = find_ops(program, "stream.dispatch")[0]
    assert "in_place" in first.callee.value
    model, module = Cache(), eyas.compile(Cache(), (new, positions))
    for start in (0, 7, 40):
        new = torch.randn(1, 4, count, 16)
        torch.testing.assert_close(module(new, positions + start), model(new, positions + start))
    torch.testing.assert_close(module.state.torch()["rows"], model.rows)


def test_a_large_cache_is_not_copied():
    class Last(Cache):
        def forward(self, new, position):
            self.rows.index_copy_(2, position, new)
            return self.rows[:, :, :1] + 1

    model = Last(1 << 19)  # 128 MiB
    module = eyas.compile(model, (torch.ones(1, 4, 1, 16), torch.tensor([0])))
    events = [event for run in module.profile(torch.ones(1, 4, 1, 16), torch.tensor([7]), runs=5) for event in run]
    assert not [event for event in events if event.name == "copy"]
    update = sorted(event.duration_us for event in events if "in_place" in event.name)
    assert len(update) == 5 and update[2] < 2000, "to copy 128 MiB takes ten times as long"


def test_slices_are_written_in_place():
    class Slice(Cache):
        def forward(self, new):
            self.rows[:, :, 3:5] = new
            return self.rows.sum()

    new = torch.randn(1, 4, 2, 16)
    assert not find_ops(scheduled(Slice(), new), "stream.copy")
    model, module = Slice(), eyas.compile(Slice(), (new,))
    for _ in range(2):
        new = torch.randn(1, 4, 2, 16)
        torch.testing.assert_close(module(new), model(new), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(module.state.torch()["rows"], model.rows)


def test_the_old_value_stays_readable():
    """Who reads the old value does so before it is overwritten, whatever order the model has."""

    class Delay(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(8))
            self.register_buffer("b", torch.ones(8))

        def forward(self, x):
            old_a, old_b = self.a.clone(), self.b.clone()
            self.a.copy_(old_b)  # they change places
            self.b.copy_(old_a + x)
            return old_a, (old_a * old_b).flip(0), self.b * 1

    model, module = Delay(), eyas.compile(Delay(), (torch.zeros(8),))
    for _ in range(4):
        x = torch.randn(8)
        for mine, theirs in zip(module(x), model(x), strict=True):
            torch.testing.assert_close(mine, theirs)
    for name, value in module.state.torch().items():
        torch.testing.assert_close(value, getattr(model, name))


def test_shapes_of_states_swap_and_constants_are_set():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("x", torch.arange(6.0).reshape(2, 3))
            self.register_buffer("flag", torch.zeros(3, dtype=torch.bool))
            self.register_buffer("zeroed", torch.ones(4))

        def forward(self, y):
            self.x.copy_(self.x.t().reshape(2, 3))
            self.flag.copy_(y > 0)
            self.zeroed.zero_()
            return self.x.sum(1)

    model, module = Mixed(), eyas.compile(Mixed(), (torch.zeros(3),))
    for _ in range(3):
        y = torch.randn(3)
        torch.testing.assert_close(module(y), model(y))
    for name, value in module.state.torch().items():
        torch.testing.assert_close(value, getattr(model, name))


def test_batch_norm_trains_its_statistics():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    x = torch.randn(4, 3, 8, 8)
    module = eyas.compile(model.train(), (x,))
    for _ in range(3):
        x = torch.randn(4, 3, 8, 8)
        torch.testing.assert_close(module(x), model(x), rtol=1e-4, atol=1e-5)
    for name, value in module.state.torch().items():
        torch.testing.assert_close(value, model.state_dict()[name], rtol=1e-5, atol=1e-6)


def test_arguments_that_the_model_writes_to_are_written():
    class Accumulate(nn.Module):
        def forward(self, total, x):
            total.add_(x)
            return {"mean": total.mean()}

    module = eyas.compile(Accumulate(), (torch.zeros(4), torch.ones(4)))
    total = torch.zeros(4)
    for step in range(1, 3):
        assert module(total, torch.ones(4))["mean"] == step and total.tolist() == [step] * 4
    array = np.zeros(4, np.float32)
    module(array, np.ones(4, np.float32))
    assert array.tolist() == [1] * 4
    array.flags.writeable = False
    with pytest.raises(CallError, match="argument 0 is written to by the model, but cannot be"):
        module(array, np.ones(4, np.float32))


class Attend(nn.Module):
    """One head that reads the whole cache up to the position."""

    def __init__(self, cache):
        super().__init__()
        self.cache = cache

    def forward(self, x, position):
        self.cache.rows.index_copy_(2, position, x)
        mask = torch.arange(self.cache.rows.shape[2]) <= position[-1]
        scores = (x @ self.cache.rows.transpose(2, 3)).masked_fill(~mask, float("-inf"))
        return scores.softmax(-1) @ self.cache.rows


def test_entry_points_share_state_by_name():
    class Peek(nn.Module):
        def __init__(self, cache):
            super().__init__()
            self.cache = cache

        def forward(self):
            return self.cache.rows.sum(), self.cache.length * 2

    class Sized(Cache):
        def __init__(self):
            super().__init__()
            self.register_buffer("length", torch.zeros((), dtype=torch.int64))

    class Counting(Attend):
        def forward(self, x, position):
            self.cache.length += x.shape[2]
            return super().forward(x, position)

    cache = Sized()
    model = Counting(cache)
    prompt, word = torch.randn(1, 4, 6, 16), torch.randn(1, 4, 1, 16)
    module = eyas.compile(
        {
            "prefill": (model, (prompt, torch.arange(6))),
            "decode": (model, (word, torch.tensor([6]))),
            "peek": Peek(cache),
        }
    )
    assert set(module.state) == {"cache.rows", "cache.length"}
    torch.testing.assert_close(module.prefill(prompt, torch.arange(6)), model(prompt, torch.arange(6)))
    for position in range(6, 12):
        word = torch.randn(1, 4, 1, 16)
        expected = model(word, torch.tensor([position]))
        torch.testing.assert_close(module.decode(word, torch.tensor([position])), expected)
    total, length = module.peek()
    assert length == 24
    np.testing.assert_allclose(total, cache.rows.sum(), rtol=1e-4)


def test_entry_points_must_agree_on_state():
    x = (torch.zeros(4),)
    other = Counter()
    other.total.fill_(7)
    with pytest.raises(FrontendError, match="state 'total' starts from other values"):
        eyas.compile({"a": (Counter(), x), "b": (other, x)})


def test_a_call_that_fails_while_writing_leaves_no_half_state():
    module = eyas.compile(Cache(), (torch.ones(1, 4, 1, 16), torch.tensor([0])))
    row = torch.randn(1, 4, 1, 16)
    before = module(row, torch.tensor([3]))
    with pytest.raises(CallError, match="expected f32"):
        module(torch.randn(1, 4, 2, 16), torch.tensor([3]))
    torch.testing.assert_close(module(row, torch.tensor([3])), before)
    with pytest.raises(CallError, match="index out of range"):
        module(row, torch.tensor([64]))
    for use in (lambda: module(row, torch.tensor([3])), lambda: module.state["rows"]):
        with pytest.raises(CallError, match="state 'rows' is undefined.*reset"):
            use()
    module.reset()
    torch.testing.assert_close(module(row, torch.tensor([3])), before)


def test_calls_of_several_threads_are_ordered():
    module = eyas.compile(Counter(), (torch.zeros(4),))
    x = np.ones(4, np.float32)
    threads = [threading.Thread(target=lambda: [module(x) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert module.state["count"] == 800 and module.state["total"].tolist() == [802.0] * 4


def test_dumps_keep_state(tmp_path):
    exported = eyas.export(Counter(), torch.zeros(4))
    driver.run(Request(exported.program, last=Phase.HAL), Services(dump=tmp_path))
    dump = read_dump_file(tmp_path / "3.dispatch.mlir")
    module = driver.compile(Request(dump, after=Phase.DISPATCH)).load()
    assert module(np.ones(4, np.float32)).tolist() == [3.0] * 4 and module.state["count"] == 1


@pytest.mark.parametrize("name", ["write-state-in-place", "rows", "plan-memory"])
def test_state_does_not_depend_on_optimisation(name):
    model, module = Cache(), eyas.compile(Cache(), (torch.ones(1, 4, 1, 16), torch.tensor([0])), disable=[name])
    for position in (3, 5):
        row = torch.randn(1, 4, 1, 16)
        torch.testing.assert_close(module(row, torch.tensor([position])), model(row, torch.tensor([position])))


@pytest.mark.parametrize("disable", [(), ("microkernels",)])
def test_state_of_bytecode(disable):
    """A row of a cache is written in place by plain loops, into a binding that is an argument of the dispatch."""
    model, counter = Cache(), Counter()
    inputs = (torch.randn(1, 4, 3, 16), torch.tensor([5, 9, 2]))
    module = eyas.compile(Cache(), inputs, target="vmvx", disable=disable)
    counted = eyas.compile(Counter(), (torch.randn(4),), target="vmvx", disable=disable)
    for _ in range(3):
        new, position = torch.randn(1, 4, 3, 16), torch.randperm(64)[:3]
        torch.testing.assert_close(module(new, position), model(new, position), rtol=1e-4, atol=1e-4)
        x = torch.randn(4)
        torch.testing.assert_close(counted(x), counter(x))
    torch.testing.assert_close(module.state.torch()["rows"], model.rows)
    torch.testing.assert_close(counted.state.torch()["total"], counter.total)


def test_carried_arguments_of_a_module():
    class Step(nn.Module):
        def forward(self, state, x):
            return {"h": state["h"] * 0.5 + x}, state["h"].sum()

    with pytest.raises(UsageError, match="arguments are 0 to 1"):
        eyas.compile(Step(), ({"h": torch.ones(3)}, torch.ones(3)), carry={2: 0})
    with pytest.raises(UsageError, match="argument 1 is .* but result 1 that should replace it"):
        eyas.compile(Step(), ({"h": torch.ones(3)}, torch.ones(3)), carry={1: 1})
    module = eyas.compile(Step(), ({"h": torch.ones(3)}, torch.ones(3)), carry={0: 0})
    assert [float(module(torch.ones(3))) for _ in range(3)] == [3.0, 4.5, 5.25]
    assert list(module.state) == ["state.h"]


def test_llama_decodes_with_a_static_cache():
    """Hugging Face's own cache, whose tensors are buffers too: prompt and words against the model without a cache."""
    from benchmarks.models import prepare_torchvision

    prepare_torchvision()  # transformers imports it
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=100, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.model, self.cache = model, transformers.StaticCache(config, max_cache_len=32)
            self.cache.early_initialization(1, 2, 16, torch.float32, torch.device("cpu"))
            for index, layer in enumerate(self.cache.layers):
                self.register_buffer(f"keys{index}", layer.keys)
                self.register_buffer(f"values{index}", layer.values)

        def forward(self, ids, position):
            return self.model(input_ids=ids, position_ids=position[None], past_key_values=self.cache).logits

    step, words = Step(), torch.randint(0, 100, (1, 6))
    positions = torch.arange(6)
    module = eyas.compile({"prefill": (step, (words, positions)), "decode": (step, (words[:, :1], positions[:1]))})
    assert {"keys0", "values0", "keys1", "values1"} <= set(module.state)
    with torch.no_grad():
        logits = module.prefill(words, positions)
        torch.testing.assert_close(logits, model(words).logits, rtol=1e-4, atol=1e-5)
        for position in range(6, 12):
            words = torch.cat([words, logits[:, -1:].argmax(-1)], 1)
            logits = module.decode(words[:, -1:], torch.tensor([position]))
            torch.testing.assert_close(logits, model(words).logits[:, -1:], rtol=1e-4, atol=1e-5)


def test_jax_caches_are_updated_in_place():
    jax = pytest.importorskip("jax")

    def step(cache, new, position):
        cache = jax.lax.dynamic_update_slice(cache, new, (0, position, 0))
        return cache, cache.sum((0, 2))

    call = (np.zeros((4, 64, 16), np.float32), np.ones((4, 1, 16), np.float32), np.int32(3))
    compilation = driver.run(Request(step, call, carry={0: 0}, last=Phase.SCHEDULE))
    assert not find_ops(compilation.module, "stream.copy")
    module, cache = eyas.compile(step, call, carry={0: 0}), call[0]
    for position in (3, 70, 5):  # JAX clamps
        new = np.random.default_rng(position).normal(size=(4, 1, 16)).astype(np.float32)
        cache, expected = step(cache, new, position)
        np.testing.assert_allclose(module(new, np.int32(position)), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(module.state["arg0"], cache)


def test_torch_compile_writes_to_buffers():
    torch.manual_seed(0)
    model, reference = (nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)) for _ in range(2))
    reference.load_state_dict(model.state_dict())
    compiled = torch.compile(model, backend="eyas")
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 8)
            torch.testing.assert_close(compiled(x), reference(x), rtol=1e-4, atol=1e-5)
    for name, value in reference.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)
