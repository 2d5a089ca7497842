"""A slice of the random graphs, always the same ones; and the reference itself against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.fuzz import shadow
from tests.fuzz.check import check
from tests.fuzz.graph import Graph
from tests.fuzz.lowering import evaluate, from_torch_tensor, leaf_values, torch_model, torch_tensor
from tests.fuzz.ops import TABLE
from tests.fuzz.shadow import LARGEST, Shadow, compare, exact
from tests.fuzz.shrink import shrink
from tests.fuzz.strategies import FRONTENDS, graphs, random_graph
from tests.fuzz.written import graph, leaf, op

# hypothesis only shrinks here; a failure of the slice is shown as small as it gets.
SLICE = settings(
    derandomize=True, database=None, deadline=None, max_examples=4, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_graphs(frontend):

    @SLICE
    @given(graphs(frontend, max_ops=3))
    def passes(one: Graph) -> None:
        outcome = check(one)
        assert not outcome.is_bad, f"{outcome.kind} {outcome.detail}\n{one}"

    passes()


def some_graphs(seed: int, frontend: str | None = None) -> list[Graph]:
    """Graphs of this seed and of others that no test has; a seed may give none."""
    found = [random_graph(seed + 1000 * more, *filter(None, [frontend]))[0] for more in range(6)]
    made = [one for one in found if one is not None]
    assert made, f"seeds {seed}, {seed + 1000}, ... give no graph"
    return made


@pytest.mark.parametrize("seed", range(8))
def test_other_graphs(seed):
    """hypothesis' first examples are alike; these are spread over the whole table."""
    for one in some_graphs(seed):
        outcome = check(one)
        assert not outcome.is_bad, f"{outcome.kind} {outcome.detail}\n{one}"
        if outcome.kind == "passed":
            return
    raise AssertionError("the framework takes none of these graphs")


@pytest.mark.parametrize("seed", range(0, 120, 4))
def test_reference_agrees_with_torch(seed):
    """What torch computes lies inside the bounds."""
    import torch

    made = some_graphs(seed, "torch")[0]
    model = torch_model(made)
    for call in range(made.calls):
        values = leaf_values(made, call)
        with torch.no_grad():
            results = model(*(torch_tensor(values[index]) for index in made.inputs))
        for got, want in zip(results, evaluate(made, call), strict=True):
            problem, _ = compare(from_torch_tensor(got), want)
            assert not problem, f"{problem}\n{made}"


# The reference catches errors: these would all pass if bounds were too wide.


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_two_units_off_is_wrong(dtype):
    x = np.array([0.1, 1.0, 3.0]).astype(shadow.DTYPES[dtype])
    total = shadow.elementwise(np.add, exact(x), exact(x))
    good = (x + x).astype(shadow.DTYPES[dtype])
    assert compare(good, total) == ("", 3)
    for _ in range(2):
        good[1] = np.nextafter(good[1], shadow.DTYPES[dtype].type(np.inf))
    assert compare(good, total)[0].startswith("1 of 3 differ, at [1]")


def test_comparison_inside_the_bound_is_not_compared():
    from tests.fuzz.ops.elementwise import compared

    near = Shadow(np.array([1.0, 2.0]), np.array([0.1, 0.1]), "f64")
    made = compared(np.less, near, exact(np.array([1.05, 3.0])))
    assert list(made.errors()) == [np.inf, 0.0]
    assert list(made.value) == [True, True]


def test_quotient_by_what_may_be_zero_is_not_compared():
    divisor = Shadow(np.array([0.5, 0.5]), np.array([0.6, 0.4]), "f32")
    for name, args in (("div", (exact(np.ones(2, np.float32)), divisor)), ("reciprocal", (divisor,))):
        made = TABLE[name].evaluate(args, {})
        assert list(np.isinf(made.errors())) == [True, False]


def test_product_of_what_may_be_zero_with_an_infinity_is_not_compared():
    from tests.fuzz.shadow import total

    small = Shadow(np.array([[-1e-7], [-1.0]]), np.array([[2e-7], [2e-7]]), "f32")
    made = total(np.matmul, [small, exact(np.array([[np.inf]], np.float32))], 1)
    assert made.errors().tolist() == [[np.inf], [0.0]]


def test_overflow_is_certain_or_unknown():
    big = exact(np.array([3e38, 2e38, 1.0], np.float32))
    doubled = shadow.elementwise(np.add, big, big)
    assert list(doubled.value) == [np.inf, np.inf, 2.0] and doubled.errors()[0] == 0.0
    half = exact(np.array([60000.0, np.inf], np.float16))
    assert list(shadow.elementwise(np.add, half, half).errors()) == [np.inf, 0.0]
    edge = Shadow(np.array([65500.0]), np.array([100.0]), "f16")
    assert shadow.elementwise(np.add, edge, exact(np.array([0.0], np.float16))).errors()[0] == np.inf


def test_zeros_that_stand_for_nothing_leave_doubt():
    """Of a transposed convolution by 2: where an infinite weight meets no pixel, and where an infinite pixel meets the
    tap that only one of the two kinds of outputs has."""
    strides, weights = (1, 2), np.ones((1, 1, 1, 3), np.float32)
    pixels = np.array([1, 2, np.inf, 3], np.float32).reshape(1, 1, 1, 4)
    made = TABLE["transposed_conv"].evaluate([exact(pixels), exact(weights)], {"strides": strides, "padding": (0, 0)})
    assert list(np.isinf(made.errors().reshape(-1))) == [False] * 3 + [True] + [False] * 5
    weights[..., 0] = np.inf
    pixels[..., 2] = 1
    made = TABLE["transposed_conv"].evaluate([exact(pixels), exact(weights)], {"strides": strides, "padding": (0, 0)})
    assert list(np.isinf(made.errors().reshape(-1))) == [index % 2 == 1 or index == 8 for index in range(9)]


def test_what_torch_makes_nan_by_its_kernel_is_not_compared():
    """gelu of infinity is infinity, or NaN in torch's vectors of f32."""
    x = np.array([np.inf, np.nan, 1.0] * 6, np.float32)
    made = TABLE["torch_gelu"].evaluate([exact(x)], {})
    assert not compare(np.where(np.isinf(x), x, made.value).astype(np.float32), made)[0]
    assert list(np.isinf(made.errors()[1:3])) == [False, False]
    assert compare(np.where(np.isnan(x), 0, made.value).astype(np.float32), made)[0]


def test_nan_is_known_beside_numbers_that_may_overflow():
    values = exact(np.array([np.nan, LARGEST["f32"], 0.5], np.float32))
    made = TABLE["torch_hardtanh"].evaluate([values], {})
    assert np.isnan(made.value[0]) and made.errors()[0] == 0


def test_a_divisor_that_may_be_zero_is_tried_as_zero():
    nearly = Shadow(np.array([1e-39]), np.array([2e-38]), "f32")
    made = TABLE["div_floor"].evaluate([exact(np.zeros(1, np.float32)), nearly], {})
    assert np.isinf(made.errors()).all()


def test_doubles_that_cancel_have_the_rounding_of_their_steps():
    made = TABLE["torch_tanhshrink"].evaluate([exact(np.linspace(0.01, 0.3, 127))], {})
    assert (made.errors() > 1e-18).all() and (made.errors() < 1e-15).all()


def test_shrinking_keeps_what_matters():
    """A chain of five ops of which one 'fails': what is left is that op and its argument."""
    steps = [op(name, index) for index, name in enumerate(("neg", "exp", "floor", "abs", "sin"))]
    chain = graph("jax", leaf("f32", 7), *steps)
    small = shrink(chain, [], lambda one: any(node.op == "floor" for node in one.nodes), "jax", 20.0)
    assert [node.op for node in small.nodes] == ["input", "floor"]


def test_a_list_of_numbers_is_an_example():
    """What the campaign draws, hypothesis replays: the first graph that it tries is the same."""
    from hypothesis import find
    from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes

    one, choices = random_graph(11, "jax")
    database = InMemoryExampleDatabase()
    database.save(b"key", choices_to_bytes(tuple(choices)))
    how = settings(database=database, phases=[Phase.reuse], max_examples=1)
    assert find(graphs("jax"), lambda given: given == one, settings=how, database_key=b"key") == one
