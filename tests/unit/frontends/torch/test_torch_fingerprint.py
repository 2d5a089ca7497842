"""Digests of torch programs: the same for the same model, another for any change that the module would show."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from eyas.cache.digest import Uncacheable  # noqa: E402
from eyas.frontends.torch.exported import export_model  # noqa: E402
from eyas.frontends.torch.fingerprint import fingerprint  # noqa: E402


class Model(nn.Module):
    def __init__(self, scale: float = 0.5):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 6)
        self.register_buffer("shift", torch.linspace(0, 1, 6))
        self.scale = scale

    def forward(self, x, y=None):
        x = self.second(self.first(x)) * self.scale + self.shift
        return {"sum": x if y is None else x + y, "first": x}


X = torch.zeros(3, 4)


def digest(model, *args, dynamic_shapes=None, **kwargs) -> str:
    return fingerprint(*export_model(model.eval(), args or (X,), kwargs, dynamic_shapes))


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model()


def test_the_same_model(model: Model):
    assert digest(model) == digest(model) == digest(copy.deepcopy(model)) == digest(model, torch.ones(3, 4))


def test_a_single_bit_of_a_weight(model: Model):
    before = digest(model)
    for tensor in (model.second.weight, model.first.bias, model.shift):
        with torch.no_grad():
            tensor.view(torch.int32).view(-1)[-1] ^= 1
        after = digest(model)
        assert after != before
        before = after


def test_a_minus_zero(model: Model):
    with torch.no_grad():
        model.shift.zero_()
        before = digest(model)
        model.shift[3] = -0.0
    assert digest(model) != before


def renamed(model: Model) -> Model:
    class Other(Model):
        pass

    other = Other()
    other.load_state_dict(model.state_dict())
    return other


def changed(model: Model, name: str, value) -> Model:
    setattr(model, name, value)
    return model


CHANGES = {
    "a number in forward": lambda m: digest(changed(m, "scale", 0.25)),
    "the class": lambda m: digest(renamed(m)),
    "the type of weights": lambda m: digest(m.double(), X.double()),
    "shapes": lambda m: digest(m, torch.zeros(2, 4)),
    "an argument": lambda m: digest(m, X, torch.zeros(6)),
    "how it is passed": lambda m: digest(m, X, y=torch.zeros(6)),
    "a keyword's shape": lambda m: digest(m, X, y=torch.zeros(3, 6)),
    "strides of a weight": lambda m: digest(changed(m.second, "weight", nn.Parameter(m.second.weight.data.T)) and m),
    "tied weights": lambda m: digest(changed(m, "first", nn.Linear(4, 6)) and m),
}


def test_any_change(model: Model):
    seen = {"none": digest(model)}
    for name, change in CHANGES.items():
        one = change(copy.deepcopy(model))
        assert one not in seen.values(), name
        seen[name] = one


def test_shared_memory(model: Model):
    model.second.weight.data.copy_(torch.eye(6))
    other = copy.deepcopy(model)
    model.third = nn.Linear(6, 6)
    other.third = nn.Linear(6, 6)
    other.third.load_state_dict(model.third.state_dict())
    model.third.weight.data.copy_(model.second.weight.data)
    other.third.weight = other.second.weight
    for one in (model, other):
        one.forward = lambda x, one=one: one.third(one.second(one.first(x)))
    assert digest(model) != digest(other)


def test_the_line_where_an_op_comes_from():
    def make(text: str) -> nn.Module:
        names: dict = {}
        exec(compile(text, "/somewhere/model.py", "exec"), {"nn": nn}, names)
        return names["M"]()

    text = "class M(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    assert digest(make(text)) == digest(make(text)) != digest(make("\n" + text))


class Branch(nn.Module):
    def __init__(self, number: float):
        super().__init__()
        self.number = number

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + self.number, lambda x: x - 1, (x,))


def test_bodies_of_operators_count():
    assert digest(Branch(1.0)) == digest(Branch(1.0)) != digest(Branch(2.0))


def test_training_mode_counts():
    layer = nn.Sequential(nn.Linear(4, 4))
    exported = [fingerprint(*export_model(layer.train(mode), (X,), {}, None)) for mode in (True, False)]
    assert exported[0] != exported[1]


def test_dynamic_sizes_have_no_digest(model: Model):
    with pytest.raises(Uncacheable):
        digest(model, dynamic_shapes={"x": {0: torch.export.Dim("batch", min=2, max=9)}})
    program = torch.export.export(model, (X,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    with pytest.raises(Uncacheable):
        fingerprint(program, "", None, None, False)


def test_tensor_subclasses_have_no_digest(model: Model):
    class Tagged(torch.Tensor):
        pass

    exported = export_model(model.eval(), (X,), {}, None)
    exported[0].state_dict["shift"] = model.shift.as_subclass(Tagged)
    with pytest.raises(Uncacheable, match="Tagged"):
        fingerprint(*exported)
