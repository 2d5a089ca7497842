"""Compiling twice: the second time comes from the cache, unless anything that matters has changed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.cache import compiler  # noqa: E402
from eyas.cache.store import MODULES, OBJECTS, Store  # noqa: E402
from eyas.pipelines.compilation import Compilation  # noqa: E402

X = torch.linspace(-1, 1, 32).reshape(4, 8)


@pytest.fixture
def store(tmp_path: Path, monkeypatch) -> Store:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path / "cache"))
    # The sources may have been edited while the tests ran.
    monkeypatch.setattr(compiler.Compiler, "is_current", True)
    monkeypatch.setattr(compiler, "_process_start", lambda: float("inf"))
    compiler.this_compiler.cache_clear()
    yield Store(tmp_path / "cache")
    compiler.this_compiler.cache_clear()


@pytest.fixture
def compilations(monkeypatch) -> list[int]:
    """One item for each compilation that really happens; constants that it evaluates are others."""
    begun, run = [], Compilation.run

    def counting(self, *args, **kwargs):
        if str(self.program.source):
            begun.append(1)
        return run(self, *args, **kwargs)

    monkeypatch.setattr(Compilation, "run", counting)
    return begun


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5), nn.Softmax(-1)).eval()


def check(module, model: nn.Module) -> None:
    with torch.no_grad():
        np.testing.assert_allclose(np.asarray(module(X)), model(X).numpy(), rtol=1e-5, atol=1e-6)


def count(store: Store, kind: str) -> int:
    return sum(one == kind for one, _ in store.entries())


def test_a_model_is_compiled_once(store: Store, compilations: list, model: nn.Module, tmp_path: Path):
    for turn in range(2):
        module = eyas.compile(model, (X,))
        check(module, model)
        module.save(tmp_path / f"{turn}.eyas")
        assert len(compilations) == 1
    assert (tmp_path / "0.eyas").read_bytes() == (tmp_path / "1.eyas").read_bytes()
    eyas.compile(model, (X,), cache=False).save(tmp_path / "without.eyas")
    assert (tmp_path / "without.eyas").read_bytes() == (tmp_path / "0.eyas").read_bytes()
    assert len(compilations) == 2 and count(store, MODULES) == 1


def test_new_weights_make_a_new_module_of_the_same_dispatches(store: Store, compilations: list, model: nn.Module):
    eyas.compile(model, (X,))
    objects = count(store, OBJECTS)
    assert objects > 0
    with torch.no_grad():
        model[0].weight[3, 3] += 1
    check(eyas.compile(model, (X,)), model)
    assert len(compilations) == 2 and count(store, MODULES) == 2
    assert count(store, OBJECTS) == objects


def test_options_are_part_of_the_key(store: Store, compilations: list, model: nn.Module):
    for options in ({}, {"disable": ["rows"]}, {"max_arena_bytes": 1 << 20}, {"target": "llvm-cpu:x86_64"}):
        eyas.compile(model, (X,), **options)
    assert len(compilations) == 4
    eyas.compile(model, (X,), threads=1, device="local-sync", disable=["rows"])
    assert len(compilations) == 4


@pytest.mark.parametrize("kind", [MODULES, OBJECTS])
def test_damage_is_compiled_away(store: Store, compilations: list, model: nn.Module, kind: str):
    eyas.compile(model, (X,))
    for one, entry in list(store.entries()):
        if one == kind:
            data = bytearray(entry.path.read_bytes())
            data[len(data) // 2] ^= 1
            entry.path.write_bytes(data)
        elif kind == OBJECTS:
            entry.path.unlink()
    check(eyas.compile(model, (X,)), model)
    assert len(compilations) == 2
    check(eyas.compile(model, (X,)), model)
    assert len(compilations) == 2


def test_another_compiler_compiles_anew(store: Store, compilations: list, model: nn.Module, monkeypatch):
    eyas.compile(model, (X,))
    monkeypatch.setattr(compiler, "_version", lambda name: "0")
    compiler.this_compiler.cache_clear()
    eyas.compile(model, (X,))
    assert len(compilations) == 2


def test_dynamic_shapes_entries_and_exported_programs(store: Store, compilations: list, model: nn.Module):
    batch = torch.export.Dim("batch", min=2, max=64)

    def all_kinds() -> None:
        dynamic = eyas.compile(model, (X,), dynamic_shapes=({0: batch},))
        assert np.asarray(dynamic(X[:3])).shape == (3, 5)
        check(dynamic, model)
        check(eyas.compile({"one": (model, (X,)), "two": (model, (X[:2],))}).one, model)
        check(eyas.export(model, X).compile(), model)

    all_kinds()
    assert len(compilations) == 3
    all_kinds()
    assert len(compilations) == 3


def test_dumps_are_always_written(store: Store, compilations: list, model: nn.Module, tmp_path: Path):
    eyas.compile(model, (X,))
    eyas.compile(model, (X,), dump_phases=tmp_path / "dump")
    assert len(compilations) == 2 and (tmp_path / "dump" / "7.vm.mlir").exists()


def test_a_folder_that_cannot_be_written(monkeypatch, model: nn.Module, tmp_path: Path):
    monkeypatch.setenv("EYAS_CACHE", os.devnull)
    check(eyas.compile(model, (X,)), model)


def test_large_modules_are_not_kept(store: Store, compilations: list, model: nn.Module, monkeypatch):
    monkeypatch.setenv("EYAS_CACHE_LIMIT", "1K")
    for _ in range(2):
        check(eyas.compile(model, (X,)), model)
    assert len(compilations) == 2 and count(store, MODULES) == 0


def test_state_starts_anew(store: Store, compilations: list):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x):
            self.count.add_(x)
            return self.count * 1

    for _ in range(2):
        module = eyas.compile(Counter().eval(), (torch.ones(3),))
        for step in (1, 2):
            np.testing.assert_array_equal(np.asarray(module(torch.ones(3))), [step] * 3)
    assert len(compilations) == 1
