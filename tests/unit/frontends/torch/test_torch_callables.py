"""Functions of tensors are compiled as modules are, with the weights of what they use."""

from __future__ import annotations

import functools
import sys

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402
from eyas.errors import FrontendError  # noqa: E402
from eyas.frontends.torch.exported import export_model  # noqa: E402

LAYER = torch.nn.Linear(6, 4)


def scaled(x, scale=2.0):
    return LAYER(x) * scale


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(6, 4)

    def encode(self, x):
        return self.layer(x).relu()


class Callable:
    def __init__(self) -> None:
        self.layer = torch.nn.Linear(6, 4)

    def __call__(self, x):
        return self.layer(x).tanh()


def closure():
    inner, shift = torch.nn.Linear(6, 4), torch.randn(4)
    return lambda x: inner(x) + shift


def cases():
    return {
        "global": (scaled, ["LAYER.weight", "LAYER.bias"]),
        "partial": (functools.partial(scaled, scale=3.0), ["LAYER.weight", "LAYER.bias"]),
        "method": (Model().encode, ["self.layer.weight", "self.layer.bias"]),
        "object": (Callable(), ["layer.weight", "layer.bias"]),
        "closure": (closure(), ["inner.weight", "inner.bias"]),
        "plain": (lambda x: torch.softmax(x, -1) @ torch.eye(6), []),
        "builtin": (torch.sin, []),
    }


@pytest.mark.parametrize("name", list(cases()))
def test_functions(name: str) -> None:
    function, weights = cases()[name]
    x = torch.randn(3, 6)
    module = eyas.compile(function, (x,))
    torch.testing.assert_close(module(x), function(x).detach(), rtol=1e-5, atol=1e-5)
    assert set(weights) <= set(export_model(function, (x,), {}, None)[0].state_dict)


def test_keywords_results_that_nest_and_entry_points() -> None:
    def both(x, *, mask):
        return {"sum": x + mask, "parts": (x, mask)}

    x, mask = torch.randn(2, 3), torch.randn(2, 3)
    module = eyas.compile(both, (x,), kwargs={"mask": mask})
    torch.testing.assert_close(module(x, mask=mask)["sum"], x + mask)
    module = eyas.compile({"both": eyas.Entry(both, (x,), kwargs={"mask": mask}), "sine": (torch.sin, (x,))})
    torch.testing.assert_close(module.sine(x), torch.sin(x), rtol=1e-6, atol=1e-6)
    assert eyas.verify(both, (x,), kwargs={"mask": mask}).ok


def test_a_function_without_tensors_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    with pytest.raises(FrontendError, match=r"cannot tell what the function 'scaled' is: give it example inputs"):
        eyas.compile(scaled, (1.0,))
