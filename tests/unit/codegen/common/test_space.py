"""Spaces say what is wrong with a point, and how many there are."""

from __future__ import annotations

from eyas.codegen.common.expressions import Var, divides
from eyas.codegen.common.grid_space import GridSpace
from eyas.codegen.common.schedule import GridAxis
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.space import Knob, Space, advice, domain, law, listed, powers_of_two, suited

WIDTH, ROWS = Var("tiles[0].width"), Var("rows")
SPACE = Space(
    "sample",
    (Knob("tiles[0].width", (4, 8, 16), "lanes"), Knob("rows", (1, 2, 3, 4), "rows")),
    (
        law(WIDTH * ROWS <= 32, "rows is {rows}; {all} are more than 32", all=WIDTH * ROWS),
        advice(divides(ROWS, 12), "rows is {rows}; it should divide 12, with {tiles[0].width} lanes"),
        advice(ROWS <= 3, "rows is {rows}; 3 are enough"),
    ),
)


def test_problems_are_told_in_order():
    assert SPACE.problem({"tiles[0].width": 8, "rows": 2}) is None
    assert SPACE.problem({"tiles[0].width": 16, "rows": 4}) == "rows is 4; 64 are more than 32"
    assert SPACE.problem({"tiles[0].width": 8, "rows": 4}) == "rows is 4; 3 are enough"
    assert SPACE.problem({"tiles[0].width": 8, "rows": 5}) == "rows is 5; its domain is 1, 2, 3, 4"
    assert SPACE.problem({"rows": 1}).startswith("tiles[0].width is missing; knobs are")
    assert SPACE.problem({"tiles[0].width": 8, "rows": 1, "row": 1}).startswith("row is no knob")


def test_laws_alone_allow_what_is_not_worth_trying():
    assert SPACE.problem({"tiles[0].width": 4, "rows": 5}, laws_only=True) is None
    assert SPACE.problem({"tiles[0].width": 16, "rows": 3}, laws_only=True) == "rows is 3; 48 are more than 32"


def test_sizes_and_domains():
    assert SPACE.size() == 12 and SPACE.knob("rows").domain == (1, 2, 3, 4)
    assert domain([3, 1, 3], 2) == (1, 2, 3)
    assert powers_of_two(2, 20) == (2, 4, 8, 16) and powers_of_two(8, 4) == ()
    assert listed((1, 2)) == "1, 2" and listed(tuple(range(1, 40))) == "1, 2, ... 39"


def test_advice_that_the_default_does_not_take_is_left_out():
    held = suited(SPACE.constraints, {"tiles[0].width": 8, "rows": 4})
    assert held == SPACE.constraints[:2]


def test_grids_are_numbers_of_workgroups():
    grid = GridSpace((Size(100), Size(48), Size(1, (0,))), (0, 1, 2))
    axes = grid.grid({"workgroups[0]": 4, "workgroups[1]": 1, "piece[2]": 10}, (2, 0, 1), {0: 8, 2: 4})
    assert axes == (GridAxis(0, 32), GridAxis(2, 12)), "pieces of whole steps, the last that is cut first"
    assert grid.point(axes) == {"workgroups[0]": 4, "workgroups[1]": 1, "piece[2]": 12}
    assert grid.point(()) == {"workgroups[0]": 1, "workgroups[1]": 1, "piece[2]": 0}
    assert grid.grid(grid.point(()), (0, 1, 2), {}) == ()


def test_two_numbers_of_workgroups_never_mean_the_same_grid():
    grid = GridSpace((Size(100),), (0,))
    (same, many) = grid.constraints(lambda loop: 8, (), cores=1)
    valid = [count for count in range(1, 14) if same.problem({"workgroups[0]": count}) is None]
    assert valid == [1, 2, 3, 4, 5, 7, 13]
    cut = [grid.grid({"workgroups[0]": count}, (0,), {0: 8}) for count in valid]
    assert len(set(cut)) == len(cut)
    assert many.problem({"workgroups[0]": 65}) == "workgroups[0] is 65; 65 workgroups are more than 64"
