"""Schedules as text: what is printed, what is read, and what is said of text that cannot be."""

from __future__ import annotations

import re

import pytest

from eyas.codegen.common.fields import FieldError
from eyas.codegen.common.schedule import Block, GridAxis, Panels, Schedule, Tile
from eyas.dialects import codegen
from eyas.ir import make_context, mlir

FULL = Schedule(
    (Tile(16, 1, 2, 0, 4, (2, 3)), Tile()), (GridAxis(0, 24), GridAxis(2, 1)), (Panels(1, 32),), (2,), Block(1, 24)
)


@pytest.fixture(scope="module")
def context():
    return make_context()


def read(text: str, context) -> Schedule:
    with context:
        return Schedule.from_attribute(mlir.Attribute.parse(text))


def test_what_is_printed_is_read_back(context):
    with context:
        text = str(FULL.to_attribute())
        assert Schedule.from_attribute(FULL.to_attribute()) == FULL
    assert read(text, context) == FULL
    assert text.count("loop = 1 : i64") == 1 and "inside = [2, 3]" in text and text.endswith("}, {}]}")


def test_numbers_are_read_with_and_without_their_type(context):
    text = (
        "{tiles = [{width = 16, loop = 1 : i64, inside = array<i64: 2, 3>, unroll_loop = 0 : index, unroll = 4 : i32}]}"
    )
    assert read(text, context) == Schedule((Tile(16, 1, 1, 0, 4, (2, 3)),))


def test_what_is_left_out_has_its_default(context):
    assert read("{}", context) == Schedule(())
    assert read("{tiles = [{}]}", context) == Schedule((Tile(),))
    assert read("{block = {rows = 8}}", context).block == Block(0, 8)


def test_the_example_of_the_dialect_is_what_is_parsed(context):
    """The text in the docs of the attribute, and of the dialect, is a schedule."""
    tile = re.search(r"`({loop = 1, .*?})`", codegen.StrategyAttr.__doc__)[1]
    axis, panels, staged, block = re.findall(
        r"`({loop = 0, tile[^`]*|{binding[^`]*|\[1\]|{nest[^`]*)`", codegen.StrategyAttr.__doc__
    )
    text = f"{{tiles = [{tile}], grid = [{axis}], packed = [{panels}], staged = {staged}, block = {block}}}"
    expected = Schedule((Tile(16, 1, 2, 0, 4, (2, 3)),), (GridAxis(0, 24),), (Panels(1, 32),), (1,), Block(1, 24))
    assert read(text, context) == expected
    example = re.search(r'#codegen\.strategy<"contraction", ({.*})>', codegen.__doc__, re.DOTALL)[1]
    assert read(example, context) == Schedule((Tile(16, 1, 2, 0, 4),), (GridAxis(0, 24),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{tile = []}", "tile is no field; did you mean 'tiles'? (allowed are: tiles, grid, packed, staged, block,"),
        ("{tiles = [{with = 3}]}", "tiles[0].with is no field; did you mean 'width'?"),
        ("{tiles = [{}, {zzz = 3}]}", "tiles[1].zzz is no field (allowed are: loop, width,"),
        ("{tiles = {}}", "tiles is {}; it must be a list"),
        ("{tiles = [array<i64: 16, 1, 2, 0, 4>]}", "tiles[0] is array<i64: 16, 1, 2, 0, 4>; it must be named fields"),
        ('{tiles = [{width = "16"}]}', 'tiles[0].width is "16"; it must be a whole number'),
        ("{tiles = [{width = true}]}", "tiles[0].width is true; it must be a whole number"),
        ("{tiles = [{width = 1.5}]}", "it must be a whole number"),
        ("{tiles = [{inside = 2}]}", "tiles[0].inside is 2 : i64; it must be a list"),
        ("{tiles = [{inside = [2, 1.0]}]}", "tiles[0].inside[1] is 1.0"),
        ("{grid = [{loop = 1}]}", "grid[0].tile is missing; give it a whole number"),
        ("{grid = [{loop = 1, tile = 2}, {tile = 2}]}", "grid[1].loop is missing"),
        ("{packed = [1]}", "packed[0] is 1 : i64; it must be named fields: {binding = ..., lanes = ...}"),
        ("{packed = [{binding = 1}]}", "packed[0].lanes is missing"),
        ("{block = 24}", "block is 24 : i64; it must be named fields"),
        ("{block = {nest = 1}}", "block.rows is missing"),
        ("[]", "the schedule is []; it must be named fields"),
    ],
)
def test_what_cannot_be_read_is_said(text, said, context):
    with pytest.raises(FieldError) as caught:
        read(text, context)
    assert said in str(caught.value)
