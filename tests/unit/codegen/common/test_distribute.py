"""One function cuts every kernel into workgroups: how many, along which loops, and that it knows the cores."""

from __future__ import annotations

import pytest

from eyas.codegen.common.distribute import ELEMENTS, HEADS, PRODUCTS, cut
from eyas.codegen.common.schedule import GridAxis
from eyas.codegen.common.sizes import Size


def sizes(*extents: int | str) -> tuple[Size, ...]:
    return tuple(Size(1, (0,)) if isinstance(extent, str) else Size(extent) for extent in extents)


def workgroups(loops, axes) -> int:
    count = 1
    for axis in axes:
        count *= -(-loops[axis.loop].static // axis.tile)
    return count


@pytest.mark.parametrize(("cores", "expected"), [(1, 16), (2, 16), (4, 16), (16, 64), (64, 256), (192, 768)])
def test_more_cores_get_more_workgroups(cores, expected):
    loops = sizes(6144, 4096)
    axes = cut(loops, (0, 1), {}, 6144 * 4096, ELEMENTS, cores)
    assert workgroups(loops, axes) == expected


@pytest.mark.parametrize("cores", [2, 64])
def test_small_work_is_not_cut(cores):
    assert cut(sizes(100, 100), (0, 1), {}, 10_000, ELEMENTS, cores) == ()
    assert cut(sizes(0, 100), (0, 1), {}, 0, ELEMENTS, cores) == ()


def test_a_workgroup_has_enough_to_do_however_many_cores_there_are():
    loops = sizes(1024, 100)
    axes = cut(loops, (0, 1), {}, 102_400, ELEMENTS, 192)
    assert 102_400 / workgroups(loops, axes) >= ELEMENTS.points


def test_pieces_are_whole_steps_and_cover_the_loop():
    for extent in (1, 7, 49, 50, 1000, 1023):
        for step in (1, 4, 6, 16, 64):
            for axis in cut(sizes(extent, 10**6), (0,), {0: step}, 10**9, PRODUCTS, 2):
                assert axis.tile % step == 0 and axis.tile < extent


def test_a_second_loop_is_cut_when_the_first_is_short():
    loops = sizes(3, 200, 1000)
    axes = cut(loops, (0, 1), {1: 8}, 600_000, ELEMENTS, 2)
    # The loop that is cut last is the fastest axis.
    assert [axis.loop for axis in axes] == [1, 0] and axes[1] == GridAxis(0, 1)
    assert 12 <= workgroups(loops, axes) <= 24  # whole steps of 8


def test_at_most_three_axes():
    assert len(cut(sizes(2, 2, 2, 2, 10**6), range(5), {}, 16 * 10**6, ELEMENTS, 64)) == 3


def test_loops_of_unknown_extent():
    # The outermost is often a batch of one, so the others are cut as if it were.
    assert cut(sizes("n", 64, 1024), (0, 1, 2), {}, None, ELEMENTS, 2) == (GridAxis(1, 16), GridAxis(0, 1))
    # Along rows there are likely some; a workgroup has enough to do with its piece of them.
    (axis,) = cut(sizes("n", 16), (0,), {0: 6}, None, ELEMENTS, 2)
    assert axis == GridAxis(0, 1026) and axis.tile * 16 >= ELEMENTS.points
    # Lanes of weights first, then the rows of a batch of one.
    loops = sizes("n", "m", 384, 384)
    axes = cut(loops, (2, 0, 1), {1: 6, 2: 64}, None, PRODUCTS, 2)
    assert axes == (GridAxis(1, 18), GridAxis(0, 1), GridAxis(2, 64))


def test_images_of_an_open_batch_are_cut_as_one_image():
    loops = (Size(196, (0,)), Size(256), Size(1024))
    axes = cut(loops, (1, 0), {0: 6, 1: 64}, None, PRODUCTS, 2)
    assert axes == (GridAxis(0, 36), GridAxis(1, 64))  # 4 times 6 workgroups for each image


def test_pieces_of_unknown_loops_have_enough_to_do():
    for known in (1, 3, 40, 1000, 10**6):
        for step in (1, 6):
            for axis in cut(sizes("n", known), (0,), {0: step}, None, ELEMENTS, 64):
                assert axis.tile % step == 0 and axis.tile * known >= ELEMENTS.points


def test_kinds_of_kernels_differ_in_their_grain():
    assert PRODUCTS.workgroups(10**9, 2) == 24 and PRODUCTS.workgroups(10**6, 2) == 6
    assert HEADS.workgroups(10**9, 16) == 32 and ELEMENTS.workgroups(10**9, 16) == 64


def test_rows_of_unknown_number_are_cut_by_the_work_of_all_nests():
    loops, walk = sizes("n", 1, 1, 100), sizes("n", 1, 100, 15)
    (alone,) = cut(loops, (0,), {}, None, ELEMENTS, 2)
    (together,) = cut(loops, (0,), {}, None, ELEMENTS, 2, [walk])
    assert (alone.tile, together.tile) == (164, 11)


def test_little_work_beside_a_loop_of_unknown_extent_stays_together():
    (axis,) = cut(sizes("n", 40), (0, 1), {1: 16}, None, ELEMENTS, 2)
    assert axis == GridAxis(0, 410)
    axes = cut(sizes("n", 4, 1000), (0, 1, 2), {}, None, ELEMENTS, 64)
    assert 4000 / workgroups(sizes(1, 4, 1000), axes) >= ELEMENTS.least
