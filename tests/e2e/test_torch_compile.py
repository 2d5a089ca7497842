"""`torch.compile(model, backend="eyas")`: new shapes, graph breaks, gradients."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from eyas.frontends.torch.dynamo import eyas_backend  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    torch.manual_seed(0)
    torch._dynamo.reset()


def small_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 5),
    )


def test_one_module_for_several_shapes():
    model = small_cnn().eval()
    compiled = torch.compile(model, backend=eyas_backend)
    with torch.no_grad():
        for batch, size in ((1, 8), (2, 8), (3, 11)):
            image = torch.randn(batch, 3, size, size)
            torch.testing.assert_close(compiled(image), model(image), rtol=1e-4, atol=1e-5)


def test_graph_breaks():
    def branchy(x):
        y = x * 2
        if y.sum() > 0:
            return y.relu() + 1
        return y - 1

    compiled = torch.compile(branchy, backend=eyas_backend)
    for sign in (1.0, -1.0):
        x = torch.rand(7) * sign
        torch.testing.assert_close(compiled(x), branchy(x))


class Broken(nn.Module):
    """A layer that Dynamo cannot trace in one piece: two of them share the graphs of their parts."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        torch._dynamo.graph_break()
        return torch.tanh(x)


def test_layers_that_share_a_graph_have_their_own_weights():
    model = nn.Sequential(Broken(), Broken(), Broken()).eval()
    compiled = torch.compile(model, backend=eyas_backend)
    x = torch.randn(3, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))


def test_weights_that_change_between_calls():
    model = nn.Linear(4, 4).eval()
    compiled = torch.compile(model, backend=eyas_backend)
    x = torch.randn(3, 4)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x))
            model.weight.mul_(2)


def test_graphs_without_tensors_and_with_numbers():
    def table(x):
        made = torch.arange(6).reshape(2, 3) * 2
        rows = x.shape[0] + 1
        torch._dynamo.graph_break()
        return made, x * rows

    compiled = torch.compile(table, backend=eyas_backend)
    for size in (3, 5, 6):
        x = torch.rand(size)
        for ours, theirs in zip(compiled(x), table(x), strict=True):
            torch.testing.assert_close(ours, theirs)


def test_branches_that_use_new_shapes():
    """Sizes are arguments of the bodies when Dynamo traces for any shape."""

    def branchy(x):
        rows = x.shape[0] * 2
        return torch.cond(x.sum() > 0, lambda x: x.sin() * rows, lambda x: x.cos() + x.shape[0], (x,))

    compiled = torch.compile(branchy, backend=eyas_backend)
    with torch.no_grad():
        for size in (3, 5, 6):
            for sign in (1.0, -1.0):
                x = torch.rand(size, 4) * sign
                torch.testing.assert_close(compiled(x), branchy(x))


def test_loops_that_use_new_shapes():
    from torch._higher_order_ops.while_loop import while_loop

    def doubled(x):
        rows = x.shape[0]
        count = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: x.sum() < 100 * rows, lambda i, x: (i + 1, x * 2 + rows), (count, x))

    compiled = torch.compile(doubled, backend=eyas_backend)
    with torch.no_grad():
        for size in (3, 5, 6):
            x = torch.rand(size, 4)
            for ours, theirs in zip(compiled(x), doubled(x), strict=True):
                torch.testing.assert_close(ours, theirs)


def test_training_follows_eager():
    def network():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))

    x = torch.randn(32, 8)
    y = x.sum(1, keepdim=True)
    losses = []
    for wrap in (lambda m: m, lambda m: torch.compile(m, backend=eyas_backend)):
        model = network()
        call, optimizer, curve = wrap(model), torch.optim.SGD(model.parameters(), 0.1), []
        for _ in range(20):
            loss = ((call(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            curve.append(loss.item())
        losses.append(torch.tensor(curve))
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-3, atol=1e-6)
    assert losses[1][-1] < losses[1][0] / 4


def test_options_reach_the_compiler():
    model = nn.Linear(4, 4).eval()
    compiled = torch.compile(model, backend=eyas_backend, options={"disable": ("rows", "contraction"), "threads": 1})
    with torch.no_grad():
        x = torch.randn(3, 4)
        torch.testing.assert_close(compiled(x), model(x))


def test_registered_by_name():
    from importlib.metadata import entry_points

    names = {entry.name: entry.value for entry in entry_points(group="torch_dynamo_backends")}
    assert names.get("eyas") == "eyas.frontends.torch.dynamo:eyas_backend"
