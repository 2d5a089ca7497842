"""Keys differ whenever values do; large buffers are hashed in pieces with the same result."""

from __future__ import annotations

import itertools
from collections import OrderedDict

import numpy as np
import pytest

from eyas.cache import digest
from eyas.cache.digest import Uncacheable, digest_of_file, digests_of, digests_of_arrays, key_of

DIFFERENT = [
    None,
    "None",
    0,
    False,
    0.0,
    -0.0,
    "0",
    b"0",
    "",
    [],
    (),
    {},
    [[]],
    [0],
    (0,),
    [0, 0],
    ["a", "b"],
    ["ab"],
    ["a", ["b"]],
    ["str 1;b"],
    {"a": 1},
    {"a": "1"},
    {"a": 1, "b": 2},
    {"b": 2, "a": 1},
    float("inf"),
    1e308,
    1,
    True,
    "\ud800",
]


def test_different_values_have_different_keys():
    for left, right in itertools.combinations(DIFFERENT, 2):
        assert key_of(left) != key_of(right), (left, right)


def test_arguments_do_not_run_together():
    assert len({key_of("a", "b"), key_of("ab"), key_of("a"), key_of(["a", "b"]), key_of("a", "b", None)}) == 5


def test_equal_values_have_equal_keys():
    for value in DIFFERENT:
        assert key_of(value) == key_of(value)
    assert key_of({"a": 1}) == key_of(OrderedDict(a=1))


@pytest.mark.parametrize("value", [object(), np.int64(1), {1, 2}, [lambda: 0]])
def test_what_is_not_plain_is_refused(value):
    with pytest.raises(Uncacheable):
        key_of(value)


def test_pieces(monkeypatch, tmp_path):
    data = np.random.default_rng(0).integers(0, 255, 1000, dtype=np.uint8).tobytes()
    sizes = [0, 1, 63, 64, 65, 128, 1000]
    monkeypatch.setattr(digest, "_CHUNK_BYTES", 64)
    together = digests_of([data[:size] for size in sizes])
    assert len(set(together)) == len(sizes)
    for size, expected in zip(sizes, together, strict=True):
        assert digests_of([data[:size]]) == [expected]
        (tmp_path / "file").write_bytes(data[:size])
        with open(tmp_path / "file", "rb") as file:
            assert digest_of_file(file) == expected
    for at in (0, 63, 64, 500, 999):
        changed = bytearray(data)
        changed[at] ^= 1
        assert digests_of([changed]) != [together[-1]]


def test_arrays_by_their_elements():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    plain, turned, copied, empty = digests_of_arrays([array, array.T, array.T.copy(), np.empty((0, 3))])
    assert turned == copied != plain
    assert empty == digests_of([b""])[0]
    assert digests_of_arrays([array.T, array]) == [turned, plain]
    assert digests_of_arrays([np.float32(3).reshape(())]) == digests_of([np.float32(3).tobytes()])
