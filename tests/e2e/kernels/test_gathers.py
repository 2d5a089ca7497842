# ruff: noqa: E501 - lines of IR are as long as they are
"""Reads at computed positions: inside the table, or not at all."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import programs as p
import pytest

from eyas.errors import CallError


def gather_text(rows: int | str, columns: int, count: int, checked: bool, index: str = "i64") -> str:
    """Row %i[n] of a table, with the check that importers add when `checked`."""
    t, i, c = p.tensor_type([rows, columns]), p.tensor_type([count], index), p.tensor_type([count, columns])
    bound = "%c0 = arith.constant 0 : index\n%bound = tensor.dim %t, %c0 : " + t
    check = (
        f"%size = arith.index_cast %bound : index to {index}\n%ok = arith.cmpi ult, %i0, %size : {index}\n"
        'cf.assert %ok, "out of range"\n'
    )
    body = (check if checked else "") + (
        f"%row = arith.index_cast %i0 : {index} to index\n%column = linalg.index 1 : index\n"
        f"%r = tensor.extract %t[%row, %column] : {t}"
    )
    lines = bound + f"\n%e = tensor.empty() : {c}\n"
    lines += p.generic("z", [("i", i, p.affine(2, [0]))], ("e", c, p.affine(2, [0, 1])), "pp", body, "f32")
    return p.main([("t", t), ("i", i)], lines, [("z", c)])


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (7, 3), (17, 16), (5, 33)])
@pytest.mark.parametrize("index", ["i32", "i64"])
def test_gather(rng, count, columns, index):
    table, rows = p.random_array(rng, (11, columns), "f32"), rng.integers(0, 11, count).astype(p.NUMPY[index])
    for checked in (False, True):
        p.assert_both(gather_text(11, columns, count, checked, index), [table, rows], table[rows])


def test_dynamic_gather(rng):
    modules = p.compiled(gather_text("?", 5, 3, True))
    for rows in (1, 4, 100):
        table, at = p.random_array(rng, (rows, 5), "f32"), rng.integers(0, rows, 3)
        for module in modules:
            np.testing.assert_array_equal(module(table, at), table[at])


BAD_ROWS = [11, -1, 1 << 40, -(1 << 62)]


@pytest.mark.parametrize("row", BAD_ROWS)
@pytest.mark.parametrize("columns", [1, 3, 33])
def test_gather_out_of_range_fails_the_call(rng, row, columns):
    table = p.random_array(rng, (11, columns), "f32")
    for module in p.compiled(gather_text(11, columns, 4, True)):
        with pytest.raises(CallError):
            module(table, np.array([0, 1, row, 2]))
        good = np.array([3, 1, 10, 0])
        np.testing.assert_array_equal(module(table, good), table[good])  # the module still works


@pytest.mark.parametrize("row", BAD_ROWS)
def test_unchecked_gather_stays_inside_the_table(rng, row):
    table = p.random_array(rng, (11, 33), "f32")
    for module in p.compiled(gather_text(11, 33, 2, False)):
        given = module(table, np.array([row, 5]))
        assert (given[0] == table[0 if row < 0 else 10]).all() and (given[1] == table[5]).all()


def test_plain_loops_stay_inside_the_table():
    """In a process of its own: a read outside may end it."""
    text = gather_text(11, 33, 2, False)
    for row in BAD_ROWS:
        program = (
            f"import numpy as np, eyas\nmodule = eyas.compile({text!r}, disable={p.LOOPS!r})\n"
            "table = np.arange(363, dtype=np.float32).reshape(11, 33)\n"
            f"given = module(table, np.array([{row}, 5]))\n"
            "assert np.isin(given, table).all() and (given[1] == table[5]).all()"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (row, done.returncode, done.stderr[-500:])


def mismatched_add() -> str:
    a, identity = "tensor<?xf32>", p.affine(1, [0])
    lines = f"%c0 = arith.constant 0 : index\n%d = tensor.dim %x, %c0 : {a}\n%e = tensor.empty(%d) : {a}\n"
    lines += p.generic(
        "z", [("x", a, identity), ("y", a, identity)], ("e", a, identity), "p", "%r = arith.addf %i0, %i1 : f32", "f32"
    )
    return p.main([("x", a), ("y", a)], lines, [("z", a)])


def test_sizes_that_disagree_never_read_outside():
    """Two dynamic sizes that the program takes to be equal: the call fails, in a process of its own in case it crashes."""
    program = (
        f"import numpy as np, eyas\nmodule = eyas.compile({mismatched_add()!r})\n"
        "try:\n    module(np.ones(1 << 22, np.float32), np.ones(3, np.float32))\n"
        "except eyas.EyasError as error:\n    print('refused:', error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("refused:"), (
        done.returncode,
        done.stdout,
        done.stderr[-500:],
    )
