"""The compiler's digest: changes with any of its files, and there is none while they are being edited."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from eyas.cache import compiler


@pytest.fixture
def package(tmp_path: Path, monkeypatch) -> Path:
    (tmp_path / "passes").mkdir()
    (tmp_path / "passes" / "one.py").write_text("a = 1")
    (tmp_path / "core.so").write_bytes(b"code")
    (tmp_path / "notes.txt").write_text("")
    for path in tmp_path.rglob("*"):
        os.utime(path, (1e9, 1e9))
    monkeypatch.setattr(compiler, "_root", lambda: tmp_path)
    return tmp_path


def found() -> compiler.Compiler | None:
    return compiler.this_compiler.__wrapped__()


def write(path: Path, text: str) -> None:
    path.write_text(text)
    os.utime(path, (1e9, 1e9))


def test_every_source_file_counts(package: Path):
    first = found()
    assert first is not None and first.is_current
    write(package / "notes.txt", "more")
    assert found() == first
    for path in (package / "passes" / "one.py", package / "core.so", package / "two.py"):
        write(path, "b = 12")
        assert found().digest != first.digest and not first.is_current
        first = found()


def test_names_and_places_count(package: Path):
    first = found()
    (package / "passes" / "one.py").rename(package / "one.py")
    assert found().digest != first.digest


def test_the_versions_of_libraries_count(package: Path, monkeypatch):
    first = found()
    monkeypatch.setattr(compiler, "_version", lambda name: "0")
    assert found().digest != first.digest


def test_no_digest_when_a_file_is_younger_than_the_process(package: Path):
    first = found()
    os.utime(package / "core.so", (time.time() + 1,) * 2)
    assert found() is None and not first.is_current


def test_when_the_process_began():
    assert 0 < time.time() - compiler._process_start() < 24 * 3600 * 30
    begin = float(os.popen("date +%s.%N").read())
    child = os.popen(f"{sys.executable} -c 'from eyas.cache import compiler; print(compiler._process_start())'").read()
    assert begin - 1 < float(child) < time.time()
