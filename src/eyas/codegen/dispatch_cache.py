"""Compiled dispatches by what they were compiled from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from eyas.cache.compiler import Compiler, this_compiler
from eyas.cache.digest import key_of
from eyas.cache.store import OBJECTS, Store
from eyas.codegen.common.backend import CompiledDispatch
from eyas.codegen.jobs import Job

_FIELDS = tuple(field.name for field in dataclasses.fields(CompiledDispatch) if field.name != "object")


class DispatchCache:
    """Finds and keeps the dispatches of one compilation."""

    def __init__(self, store: Store, compiler: Compiler) -> None:
        self._store, self._compiler = store, compiler

    @staticmethod
    def of(store: Store | None) -> DispatchCache | None:
        compiler = this_compiler() if store is not None else None
        return DispatchCache(store, compiler) if store is not None and compiler is not None else None

    def find(self, jobs: Sequence[Job]) -> list[CompiledDispatch | None]:
        return [_decode(self._store.read(OBJECTS, self._key(job))) for job in jobs]

    def keep(self, jobs: Sequence[Job], compiled: Sequence[CompiledDispatch]) -> None:
        if not jobs or not self._compiler.is_current:
            return
        for job, one in zip(jobs, compiled, strict=True):
            if one.given_up:  # the next compilation may fare better
                continue
            self._store.write(OBJECTS, self._key(job), _encode(one))
        self._store.trim()

    def _key(self, job: Job) -> str:
        return key_of("dispatch", self._compiler.digest, job.target, sorted(job.disabled), job.text)


def _encode(compiled: CompiledDispatch) -> bytes:
    """A line of JSON, then the object file."""
    facts = {name: getattr(compiled, name) for name in _FIELDS}
    return json.dumps(facts).encode() + b"\n" + compiled.object


def _decode(data: bytes | None) -> CompiledDispatch | None:
    if data is None:
        return None
    line, separator, code = data.partition(b"\n")
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    if not separator or not isinstance(facts, dict) or sorted(facts) != sorted(_FIELDS):
        return None
    return CompiledDispatch(object=code, **{name: _tuples(value) for name, value in facts.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
