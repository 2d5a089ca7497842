"""Which taps of a window are inside of an image."""

from __future__ import annotations

import itertools

from eyas.codegen.common.windows import Window


def test_rows_inside_is_what_the_condition_says():
    for step, dilation, shift, extent in itertools.product((1, 2, 3), (1, 2, 5), (-7, -1, 0, 2), (1, 4, 9)):
        window = Window(tap=1, dilation=dilation, steps={0: step}, shift=shift, extent=extent)
        for tap, start, rows in itertools.product(range(4), (0, 3, 8), (1, 4, 6)):
            low, high = window.rows_inside(0, tap, start, rows)
            inside = [row for row in range(rows) if 0 <= shift + step * (start + row) + dilation * tap < extent]
            assert list(range(low, high)) == inside
