"""Places in the user's words."""

from __future__ import annotations

import pytest

from eyas.ir.locations import describe_location, source_names


@pytest.mark.parametrize(
    ("location", "names", "described"),
    [
        ('loc("conv_1")', ["conv_1"], "node 'conv_1'"),
        ('loc("fc/mm"("model.py":41:0))', ["fc/mm"], "node 'fc/mm' (model.py:41)"),
        ('loc("model.py":41:3)', ["model.py:41"], "model.py:41"),
        ('loc("-":7:3)', ["line 7"], "line 7"),
        ("loc(unknown)", [], "an unknown place"),
        # The last op of a dispatch comes first in its location.
        ('loc(fused["relu", "conv", "bias"("m.py":1:2), "conv"])', ["conv", "bias", "relu"], "node 'relu' (m.py:1)"),
    ],
)
def test_names_and_lines(location, names, described):
    assert source_names(location) == names
    assert describe_location(location) == described


def test_errors_name_the_last_op_of_a_dispatch():
    assert describe_location('loc(fused["relu", "conv"])') == "node 'relu'"
