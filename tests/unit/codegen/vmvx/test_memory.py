"""Which stores may claim that no two elements have one address."""

from __future__ import annotations

import itertools

import pytest

from eyas.codegen.common.kernel import Access, Storage
from eyas.codegen.common.sizes import Size
from eyas.codegen.vmvx.builder import Builder
from eyas.codegen.vmvx.memory import View, is_distinct

ROWS, COLUMNS = 5, 7


@pytest.mark.parametrize(("row", "lane"), list(itertools.product((0, 1, 2, 5, 6, 7, 8, 14, 35), repeat=2)))
def test_a_claim_is_true(row, lane):
    builder = Builder()
    index = builder.scalar("width")
    view = View((index, index), 0, 1, index, index)
    access = Access(Storage("out", None, (Size(64),)), (), (Size(row), Size(lane)))  # type: ignore[arg-type]
    places = [r * row + c * lane for r in range(ROWS) for c in range(COLUMNS)]
    claimed = is_distinct(access, view, [Size(ROWS), Size(COLUMNS)])
    assert not claimed or len(set(places)) == len(places)
    rows_apart = row and lane and (row >= lane * COLUMNS or lane >= row * ROWS)
    assert claimed == bool(rows_apart)


def test_strides_of_dynamic_shapes_are_known_to_be_apart():
    builder = Builder()
    index = builder.scalar("width")
    view = View((index, index), 0, 1, index, index)
    size = Size(1, (0,))
    access = Access(Storage("out", None, (Size(8), size)), (), (size, Size(1)))  # type: ignore[arg-type]
    assert is_distinct(access, view, [Size(8), size])
    assert not is_distinct(access, view, [Size(8), Size(1, (1,))])
