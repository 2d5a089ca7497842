"""Dispatches from the cache: equal to what was kept, found by everything that they depend on, and nothing less."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eyas.cache.compiler import Compiler
from eyas.cache.store import OBJECTS, Store
from eyas.codegen.dispatch_cache import DispatchCache, _decode, _encode
from eyas.codegen.jobs import Job
from eyas.codegen.llvm_cpu.compile import CompiledDispatch


class Current(Compiler):
    is_current = True


COMPILED = CompiledDispatch(b"\x7fELF\n\0code", ((128, 4), ((2, (0, 1)), 1)), "rows", "tile 4", ("no reason",))
JOB = Job("kernel", b"bytecode", "llvm-cpu:x86_64", ("rows",), "text")


@pytest.fixture
def cache(tmp_path) -> DispatchCache:
    return DispatchCache(Store(tmp_path), Current((), "digest"))


def test_round_trip(cache: DispatchCache):
    assert _decode(_encode(COMPILED)) == COMPILED
    assert cache.find([JOB]) == [None]
    cache.keep([JOB], [COMPILED])
    assert cache.find([JOB, replace(JOB, name="other", bytecode=b"other")]) == [COMPILED, COMPILED]


@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, text="other"),
        replace(JOB, target="llvm-cpu:x86_64:znver3"),
        replace(JOB, disabled=()),
        replace(JOB, disabled=("rows", "contraction")),
    ],
)
def test_what_it_depends_on(cache: DispatchCache, other: Job):
    cache.keep([JOB], [COMPILED])
    assert cache.find([other]) == [None]


def test_another_compiler(cache: DispatchCache):
    cache.keep([JOB], [COMPILED])
    assert DispatchCache(cache._store, Current((), "other")).find([JOB]) == [None]


def test_a_compiler_that_is_being_edited_keeps_nothing(cache: DispatchCache):
    DispatchCache(cache._store, Compiler((("gone.py", 0, 0),), "digest")).keep([JOB], [COMPILED])
    assert cache.find([JOB]) == [None]


@pytest.mark.parametrize(
    "data", [b"", b"{}\ncode", b"[1]\ncode", b"code", b'{"grid": [], "strategy": ""}\n', b"\xff\n"]
)
def test_other_forms_are_not_read(cache: DispatchCache, data: bytes):
    cache._store.write(OBJECTS, cache._key(JOB), data)
    assert cache.find([JOB]) == [None]
