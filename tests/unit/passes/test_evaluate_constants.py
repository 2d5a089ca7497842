# ruff: noqa: E501 - lines of IR are as long as they are
"""`evaluate-constants`: the values are NumPy's, the names say where they come from, and what is not used is not kept."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import programs as p  # noqa: E402

import eyas  # noqa: E402
from eyas.ir import PassPipeline, Upstream, make_context, mlir, parse_module  # noqa: E402
from eyas.ir.walk import find_ops  # noqa: E402
from eyas.passes.optimize.evaluate_constants import EvaluateConstants  # noqa: E402
from eyas.pipelines.constants import evaluate_with  # noqa: E402
from eyas.pipelines.request import Services  # noqa: E402
from eyas.program.parameters import Parameter, ParameterStore  # noqa: E402

ID2 = p.affine(2, [0, 1])


def parameter(name: str, key: str, shape, dtype: str = "f32") -> str:
    return f'%{name} = "flow.parameter"() {{key = "{key}"}} : () -> {p.tensor_type(shape, dtype)}\n'


def run(text: str, arrays: dict[str, np.ndarray]) -> tuple[mlir.Module, dict[str, np.ndarray], list[str]]:
    """The module, all values, and the keys that the module still reads."""
    table = ParameterStore({key: Parameter.of_array(key, array) for key, array in arrays.items()})
    module = parse_module(text, make_context())
    PassPipeline((EvaluateConstants(table, evaluate_with((), Services())), Upstream("canonicalize,cse"))).run(module)
    assert module.operation.verify()
    used = [op.key.value for op in find_ops(module, "flow.parameter")]
    return module, {key: one.array() for key, one in table.items()}, used


@pytest.fixture
def weight() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)


def transpose(name: str, source: str, shape) -> str:
    a, c = p.tensor_type(shape), p.tensor_type(shape[::-1])
    return f"%{name}_e = tensor.empty() : {c}\n%{name} = linalg.transpose ins(%{source} : {a}) outs(%{name}_e : {c}) permutation = [1, 0]\n"


def add(name: str, left: str, right: str, shape) -> str:
    a = p.tensor_type(shape)
    body = "%r = arith.addf %i0, %i1 : f32"
    return f"%{name}_e = tensor.empty() : {a}\n" + p.generic(
        name, [(left, a, ID2), (right, a, ID2)], (f"{name}_e", a, ID2), "pp", body, "f32"
    )


def test_a_transposed_weight_becomes_a_parameter(weight):
    c = p.tensor_type([7, 5])
    text = p.main(
        [("x", c)],
        parameter("w", "fc.weight", [5, 7]) + transpose("t", "w", [5, 7]) + add("z", "x", "t", [7, 5]),
        [("z", c)],
    )
    module, values, used = run(text, {"fc.weight": weight})
    assert used == ["fc.weight#transpose"]
    np.testing.assert_array_equal(values["fc.weight#transpose"], weight.T)
    assert np.shares_memory(values["fc.weight#transpose"], weight)
    assert not find_ops(module, "linalg.transpose") and len(find_ops(module, "linalg.generic")) == 1


def test_a_chain_is_evaluated_at_once(weight):
    """Only what the rest of the program uses is kept; the name says what was done last."""
    c = p.tensor_type([7, 5])
    lines = parameter("w", "fc.weight", [5, 7]) + parameter("b", "fc.bias", [7, 5])
    lines += transpose("t", "w", [5, 7]) + add("s", "t", "b", [7, 5]) + add("z", "x", "s", [7, 5])
    bias = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)
    _, values, used = run(p.main([("x", c)], lines, [("z", c)]), {"fc.weight": weight, "fc.bias": bias})
    assert len(used) == 1 and used[0].endswith("#generic") and used[0].split("#")[0] in ("fc.weight", "fc.bias")
    np.testing.assert_array_equal(values[used[0]], weight.T + bias)


def test_two_results_of_one_weight_have_two_names(weight):
    c = p.tensor_type([7, 5])
    lines = (
        parameter("w", "w", [5, 7])
        + transpose("t", "w", [5, 7])
        + add("a", "t", "t", [7, 5])
        + add("b", "a", "t", [7, 5])
    )
    lines += add("y", "x", "a", [7, 5]) + add("z", "x", "b", [7, 5])
    _, values, used = run(p.main([("x", c)], lines, [("y", c), ("z", c)]), {"w": weight})
    assert len(used) == len(set(used)) == 2 and all(key.startswith("w#") for key in used)
    np.testing.assert_array_equal(values[used[0]], 2 * weight.T)
    np.testing.assert_array_equal(values[used[1]], weight.T * 2 + weight.T)


def test_tables_become_parameters():
    lines = "%t = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>\n" + add("z", "x", "t", [2, 2])
    module, values, used = run(
        p.main([("x", "tensor<2x2xf32>")], lines, [("z", "tensor<2x2xf32>")]), {"constant_0": np.ones(1)}
    )
    assert used == ["constant_0_"]  # that name was taken
    np.testing.assert_array_equal(values["constant_0_"], np.array([[1, 2], [3, 4]], np.float32))
    assert not find_ops(module, "arith.constant")


def test_what_depends_on_an_argument_stays(weight):
    c = p.tensor_type([5, 7])
    text = p.main([("x", c)], parameter("w", "w", [5, 7]) + add("z", "x", "w", [5, 7]), [("z", c)])
    _, values, used = run(text, {"w": weight})
    assert used == ["w"] and list(values) == ["w"]


def test_splats_and_reshapes_are_left_alone(weight):
    """Making them again costs nothing; storing them would."""
    c = p.tensor_type([35])
    lines = parameter("w", "w", [5, 7]) + f"%k = arith.constant dense<1.5> : {c}\n"
    lines += f"%f = tensor.collapse_shape %w [[0, 1]] : {p.tensor_type([5, 7])} into {c}\n%e = tensor.empty() : {c}\n"
    one = p.affine(1, [0])
    lines += p.generic(
        "z",
        [("x", c, one), ("f", c, one), ("k", c, one)],
        ("e", c, one),
        "p",
        "%s = arith.addf %i0, %i1 : f32\n%r = arith.addf %s, %i2 : f32",
        "f32",
    )
    module, values, used = run(p.main([("x", c)], lines, [("z", c)]), {"w": weight})
    assert used == ["w"] and list(values) == ["w"] and len(find_ops(module, "tensor.collapse_shape")) == 1


def test_a_large_broadcast_is_not_stored():
    n = 1024
    a, s = p.tensor_type([n, n]), p.tensor_type([n])
    lines = parameter("w", "w", [n]) + f"%e = tensor.empty() : {a}\n"
    lines += p.generic("b", [("w", s, p.affine(2, [1]))], ("e", a, ID2), "pp", "%r = arith.negf %i0 : f32", "f32")
    _, values, used = run(
        p.main([("x", a)], lines + add("z", "x", "b", [n, n]), [("z", a)]), {"w": np.ones(n, np.float32)}
    )
    assert used == ["w"] and list(values) == ["w"]


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i8", "i32", "i64", "i1"])
def test_every_type(dtype):
    array = p.random_array(np.random.default_rng(3), (5, 7), dtype)
    a, c = p.tensor_type([5, 7], dtype), p.tensor_type([7, 5], dtype)
    lines = parameter("w", "w", [5, 7], dtype)
    lines += f"%e = tensor.empty() : {c}\n%t = linalg.transpose ins(%w : {a}) outs(%e : {c}) permutation = [1, 0]\n"
    lines += "%c0 = arith.constant 0 : index\n" + p.generic(
        "z", [("x", c, ID2), ("t", c, ID2)], ("e", c, ID2), "pp", f"%r = arith.select %k, %i0, %i1 : {dtype}", dtype
    )
    lines = "%k = arith.constant false\n" + lines
    _, values, used = run(p.main([("x", c)], lines, [("z", c)]), {"w": array})
    assert used == ["w#transpose"]
    p.compare(values["w#transpose"], np.ascontiguousarray(array.T), 0, 0)
    assert values["w#transpose"].dtype == array.dtype


def test_modules_hold_only_what_they_read():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(60, 50), torch.nn.ReLU(), torch.nn.Linear(50, 40))
    x = torch.randn(4, 60)
    module = eyas.compile(model, (x,))
    with torch.no_grad():
        torch.testing.assert_close(module(x), model(x), rtol=1e-5, atol=1e-5)
    stored = {name: tuple(shape) for name, _, shape, *_ in module._core.parameters()}
    # In panels or not is for the strategy to say.
    assert {name.partition("#panels")[0]: stored[name] for name in stored if "weight" in name} == {
        "0.weight#transpose": (60, 50),
        "2.weight#transpose": (50, 40),
    }
    assert len([name for name in stored if "weight" in name]) == 2


def test_functions_of_positions_become_parameters():
    """No weight takes part: sines are worth storing, the positions themselves are not."""
    a = p.tensor_type([5, 7])
    positions = (
        "%j = linalg.index 1 : index\n%k = arith.index_cast %j : index to i64\n%n = arith.sitofp %k : i64 to f32\n"
    )
    text = p.main(
        [("x", a)],
        f"%e = tensor.empty() : {a}\n"
        + p.generic("s", [], ("e", a, ID2), "pp", positions + "%r = math.sin %n : f32", "f32")
        + p.generic("q", [], ("e", a, ID2), "pp", positions + "%r = arith.addf %n, %n : f32", "f32")
        + add("y", "x", "s", [5, 7])
        + add("z", "y", "q", [5, 7]),
        [("z", a)],
    )
    module, values, used = run(text, {})
    assert used == ["constant#generic"]
    np.testing.assert_allclose(values["constant#generic"], np.tile(np.sin(np.arange(7)), (5, 1)), rtol=1e-6, atol=1e-7)


def test_sizes_that_depend_on_constant_data_are_found_by_the_call():
    torch = pytest.importorskip("torch")

    class Chosen(torch.nn.Module):
        def forward(self, x):
            return torch.combinations(x, r=1)

    x = torch.randn(3)
    torch.testing.assert_close(eyas.compile(Chosen(), (x,))(x), x.reshape(3, 1))
