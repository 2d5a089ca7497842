"""The collector is as it was once the pause is over, also after an error."""

from __future__ import annotations

import gc

import pytest

from eyas.frontends.collection import paused_collection


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled: bool):
    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ValueError), paused_collection():
            assert not gc.isenabled()
            with paused_collection():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
