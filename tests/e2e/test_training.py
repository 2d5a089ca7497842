"""A training step as one program: 50 steps give the framework's own loss curve, and the same weights in the end."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import UsageError  # noqa: E402
from eyas.frontends.entries import Entry, import_entry  # noqa: E402
from eyas.ir.walk import find_ops  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.request import Phase, Request  # noqa: E402

STEPS = 50
# A bias on keys does not change a softmax: its gradient is rounding, which Adam makes large.
NOISE = "layer.self_attn.in_proj_bias"
TOLERANCE = 1e-4  # of each loss, relative


def mlp():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.grouped, self.pool = nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=4), nn.MaxPool2d(2)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.pool(self.norm(self.first(x)).relu())
        return self.head(self.grouped(x).relu().mean((2, 3)))


def pools():
    """What averages and resizes."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.GroupNorm(2, 6),
        nn.SiLU(),
        nn.AvgPool2d(3, 2, 1),
        nn.Upsample(scale_factor=1.5, mode="bilinear"),
        nn.ReplicationPad2d(1),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(54, 5),
    )


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(50, 16), nn.Parameter(torch.randn(8, 16) * 0.1)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 50)

    def forward(self, x):
        return self.head(self.layer(self.embed(x) + self.place)).transpose(1, 2)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-3)


def nesterov(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=3e-3)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=3e-3, amsgrad=True)


CASES = {
    "mlp-sgd": (mlp, lambda: (torch.randn(32, 20), torch.randint(0, 5, (32,))), nn.CrossEntropyLoss(), sgd),
    "mlp-adam": (mlp, lambda: (torch.randn(32, 20), torch.randint(0, 5, (32,))), nn.CrossEntropyLoss(), adam),
    "cnn-sgd": (
        Convolutional,
        lambda: (torch.randn(8, 3, 8, 8), torch.randint(0, 5, (8,))),
        nn.CrossEntropyLoss(),
        nesterov,
    ),
    "pools-sgd": (pools, lambda: (torch.randn(8, 3, 9, 8), torch.randint(0, 5, (8,))), nn.CrossEntropyLoss(), sgd),
    "transformer-adamw": (
        Transformer,
        lambda: (torch.randint(0, 50, (4, 8)), torch.randint(0, 50, (4, 8))),
        nn.CrossEntropyLoss(),
        adamw,
    ),
    "lstm-adam": (Recurrent, lambda: (torch.randn(4, 5, 8), torch.randn(4, 1)), nn.MSELoss(), adam),
}


# Optimisers and layers that others have as well take their turn where there is time.
REST = ("mlp-sgd", "mlp-adam")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if name in REST else ()) for name in CASES])
def test_loss_curve(name):
    make, batch, loss, optimiser = CASES[name]
    torch.manual_seed(1)
    model = make()
    reference = copy.deepcopy(model)
    own = optimiser(reference.parameters())
    module = eyas.training_step(model, loss, optimiser(model.parameters()), batch())
    losses = []
    for step in range(STEPS):
        torch.manual_seed(step % 4)  # four batches, again and again
        x, y = batch()
        own.zero_grad()
        expected = loss(reference(x), y)
        expected.backward()
        own.step()
        losses.append(float(expected.detach()))
        assert float(module(x, y)) == pytest.approx(losses[-1], rel=TOLERANCE, abs=1e-6), f"step {step}"
    assert losses[-1] < 0.9 * losses[0], "nothing was learned, so agreement shows nothing"
    model.load_state_dict(module.state.torch(), strict=False)
    for key, theirs in reference.state_dict().items():
        if key == NOISE:
            continue
        mine = model.state_dict()[key]
        torch.testing.assert_close(mine, theirs, rtol=2e-3, atol=2e-5, msg=lambda text, key=key: f"{key}: {text}")


def test_weights_and_momentum_are_updated_in_place():
    model = mlp()
    step = eyas.TrainingStep(model, nn.CrossEntropyLoss(), sgd(model.parameters()))
    program = import_entry(Entry(step, (torch.randn(32, 20), torch.randint(0, 5, (32,)))))
    assert str(program.signature) == "(input: f32[32, 20], target: i64[32]) -> (loss: f32[])"
    compilation = driver.run(Request(program, last=Phase.SCHEDULE))
    assert len(find_ops(compilation.module, "stream.state")) == 8
    assert not find_ops(compilation.module, "stream.copy")


def test_training_and_prediction_share_weights(tmp_path):
    torch.manual_seed(0)
    model, x, y = mlp(), torch.randn(32, 20), torch.randint(0, 5, (32,))
    step = eyas.TrainingStep(model, nn.CrossEntropyLoss(), adam(model.parameters()))
    eyas.compile({"train": (step, (x, y)), "predict": (model.eval(), (x,))}).save(tmp_path / "m.eyas")
    module = eyas.load(tmp_path / "m.eyas")
    before = model(x).detach()
    torch.testing.assert_close(module.predict(x), before)
    for _ in range(5):
        module.train(x, y)
    trained = module.predict(x)
    assert (trained - before).abs().max() > 1e-3
    model.load_state_dict(module.state.torch(), strict=False)
    torch.testing.assert_close(trained, model(x).detach())


def test_training_goes_on_where_the_optimiser_is():
    torch.manual_seed(0)
    model, x, y = mlp(), torch.randn(32, 20), torch.randint(0, 5, (32,))
    optimiser, loss = adam(model.parameters()), nn.CrossEntropyLoss()

    def step():
        optimiser.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimiser.step()
        return float(value.detach())

    for _ in range(3):
        step()
    module = eyas.training_step(model, loss, optimiser, (x, y))
    assert module.state["optimizer.step"] == 3
    for _ in range(5):
        expected = step()
        assert float(module(x, y)) == pytest.approx(expected, rel=1e-5)


def test_a_learning_rate_that_is_a_tensor_follows_a_schedule():
    torch.manual_seed(0)
    model, loss = mlp(), nn.CrossEntropyLoss()
    reference = copy.deepcopy(model)

    def groups(one):
        return [{"params": one[0].parameters()}, {"params": one[2].parameters(), "lr": torch.tensor(0.02)}]

    own = torch.optim.AdamW(groups(reference), lr=torch.tensor(0.01))
    given = torch.optim.AdamW(groups(model), lr=torch.tensor(0.01))
    batch = torch.randn(32, 20), torch.randint(0, 5, (32,))
    module = eyas.training_step(model, loss, given, batch)
    assert module.state["optimizer.lr"] == np.float32(0.01) and module.state["optimizer.lr.1"] == np.float32(0.02)
    for step in range(20):
        rates = 0.01 * (step + 1), 0.02 / (step + 1)
        for group, name, rate in zip(own.param_groups, ("optimizer.lr", "optimizer.lr.1"), rates, strict=True):
            group["lr"] = torch.tensor(rate)
            module.state[name] = np.float32(rate)
        own.zero_grad()
        expected = loss(reference(batch[0]), batch[1])
        expected.backward()
        own.step()
        assert float(module(*batch)) == pytest.approx(float(expected.detach()), rel=TOLERANCE, abs=1e-6), f"step {step}"


def test_frozen_parameters_stay():
    torch.manual_seed(0)
    model, x, y = mlp(), torch.randn(32, 20), torch.randint(0, 5, (32,))
    model[0].requires_grad_(False)
    module = eyas.training_step(
        model, nn.CrossEntropyLoss(), sgd(p for p in model.parameters() if p.requires_grad), (x, y)
    )
    assert {name for name in module.state if not name.startswith("optimizer")} == {"2.weight", "2.bias"}
    assert float(module(x, y)) > float(module(x, y))


def test_what_is_not_supported_is_said():
    model, batch = mlp(), (torch.randn(32, 20), torch.randint(0, 5, (32,)))
    with pytest.raises(UsageError, match="optimiser NAdam is not supported; supported: SGD, Adam"):
        eyas.training_step(model, nn.CrossEntropyLoss(), torch.optim.NAdam(model.parameters()), batch)
    with pytest.raises(UsageError, match="needs an example batch"):
        eyas.training_step(model, nn.CrossEntropyLoss(), sgd(model.parameters()), ())
    with pytest.raises(UsageError, match="dampening"):
        eyas.training_step(
            model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1, 0.9, dampening=0.5), batch
        )


def test_a_jax_step_carries_its_state():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def loss(weights, x, y):
        return jnp.mean((jnp.tanh(x @ weights["w1"] + weights["b1"]) @ weights["w2"] - y) ** 2)

    @jax.jit
    def step(state, batch):
        """Adam, by hand."""
        weights, first, second, count = state
        value, gradient = jax.value_and_grad(loss)(weights, *batch)
        count = count + 1
        each = jax.tree_util.tree_map
        first = each(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = each(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
        scale = 0.01 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        weights = each(lambda w, m, v: w - scale * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
        return (weights, first, second, count), value

    rng = np.random.default_rng(0)
    weights = {"w1": rng.normal(size=(8, 16)), "b1": np.zeros(16), "w2": rng.normal(size=(16, 1))}
    weights = {name: jnp.asarray(value, jnp.float32) * 0.3 for name, value in weights.items()}
    zeros = jax.tree_util.tree_map(jnp.zeros_like, weights)
    state = (weights, zeros, zeros, jnp.float32(0))
    x, y = rng.normal(size=(16, 8)).astype(np.float32), rng.normal(size=(16, 1)).astype(np.float32)
    module = eyas.compile(step, (state, (x, y)), carry={0: 0})
    for _ in range(STEPS):
        state, expected = step(state, (x, y))
        assert float(module((x, y))) == pytest.approx(float(expected), rel=TOLERANCE)
    np.testing.assert_allclose(module.state["arg0.0.w1"], state[0]["w1"], rtol=1e-3, atol=1e-4)
    assert module.state["arg0.3"] == STEPS
