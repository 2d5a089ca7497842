"""Points are drawn from the whole space, each once, in an order that the seed decides."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time

import pytest

from eyas.codegen.common.expressions import Implies, Var, ceil_div, divides, equal, least, most, odd, one_of, select
from eyas.codegen.common.space import Knob, Space, advice, law
from eyas.tune.solver import in_processes, points
from eyas.tune.space_text import space_from_json, space_to_json

pytest.importorskip("z3")
A, B, C, D = (Var(name) for name in ("tiles[0].a", "b", "c", "d"))
SMALL = Space(
    "small",
    (
        Knob("tiles[0].a", (-1, 1, 2, 4, 8), "first"), Knob("b", (1, 2, 3, 5, 7), "second"),
        Knob("c", tuple(range(1, 13)), "third"), Knob("d", (0, 1), "fourth"),
    ),
    (
        law(A * B <= 24, "b is {b}"),
        law(divides(C, 12) | equal(D, 1), "c is {c}"),
        law(Implies(equal(D, 1), odd(C) <= most(B, 9)), "d is {d}"),
        law(select(A > 2, ceil_div(12, C), 1) <= least(C, 4), "c is {c}"),
        advice(~one_of(B, (5,)) | (A >= -1), "b is {b}"),
    ),
)  # fmt: skip
LARGE = Space(
    "large",
    tuple(Knob(f"k{number}", tuple(range(1, 17)), "one of many") for number in range(40)),
    tuple(
        law(Var(f"k{number}") * Var(f"k{number + 1}") <= 30, "k is too large") for number in range(39)
    ) + (law(divides(Var("k0") + Var("k39"), 24), "k0 is {k0}"),),
)  # fmt: skip


def box(space: Space) -> list[dict[str, int]]:
    values = itertools.product(*(knob.domain for knob in space.knobs))
    return [dict(zip((knob.name for knob in space.knobs), one, strict=True)) for one in values]


def key(point: dict[str, int]) -> tuple:
    return tuple(sorted(point.items()))


def test_all_points_are_drawn_once_and_then_it_ends():
    valid = {key(point) for point in box(SMALL) if SMALL.problem(point) is None}
    drawn = [key(point) for point in points(SMALL, 1)]
    assert len(drawn) == len(set(drawn)) and set(drawn) == valid
    assert 50 < len(valid) < SMALL.size()


def test_a_space_without_points_ends_at_once():
    none = Space("none", SMALL.knobs, (law(A > 100, "too small"),))
    assert list(points(none, 0)) == []
    assert list(points(Space("one", (), ()), 0)) == [{}]


def test_the_first_points_are_there_at_once_and_differ():
    """1e48 points of which nearly none is valid."""
    begin = time.process_time()
    drawn = list(itertools.islice(points(LARGE, 3), 12))
    assert time.process_time() - begin < 20
    assert all(LARGE.problem(point) is None for point in drawn)
    for one, other in itertools.combinations(drawn, 2):
        assert sum(one[name] != other[name] for name in one) > 10


def test_the_seed_decides():
    first, again, other = (list(itertools.islice(points(SMALL, seed), 8)) for seed in (5, 5, 6))
    assert first == again and first != other


def test_neighbours_share_most_values():
    (middle,) = itertools.islice(points(LARGE, 7), 1)
    near = list(itertools.islice(points(LARGE, 8, near=middle), 6))
    shared = [sum(point[name] == middle[name] for name in point) for point in near]
    assert sum(shared) / len(shared) > 24 and all(LARGE.problem(point) is None for point in near)


def test_solvers_run_in_processes_of_their_own():
    with in_processes({"small": SMALL, "large": LARGE}, seed=2) as solvers:
        drawn = [solvers.next("small") for _ in range(5)] + [solvers.next("small", near=box(SMALL)[0])]
        assert LARGE.problem(solvers.next("large")) is None
        assert all(SMALL.problem(point) is None for point in drawn) and len(set(map(key, drawn))) == 6
        count = 6
        while solvers.next("small") is not None:
            count += 1
        assert count == len(list(points(SMALL, 1)))


def test_spaces_travel_as_text():
    for space in (SMALL, LARGE):
        assert space_from_json(space_to_json(space)) == space


def test_without_z3_the_extra_is_named():
    code = (
        "import sys; sys.modules['z3'] = None\n"
        "from eyas.tune.formulas import import_z3\n"
        "from eyas.errors import UsageError\n"
        "try:\n    import_z3()\nexcept UsageError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'eyas[tune]'" in said
