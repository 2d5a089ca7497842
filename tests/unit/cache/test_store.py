"""The store: what was written is read, what was damaged is not, the oldest goes first, and processes share it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eyas.cache.store import MODULES, OBJECTS, Store, open_store, why_not

KEYS = [f"{number:02x}" * 32 for number in range(8)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache", 1000)


def only_file(store: Store, kind: str = OBJECTS) -> Path:
    (path,) = [entry.path for one, entry in store.entries() if one == kind]
    return path


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def test_what_was_written_is_read(store: Store):
    assert store.read(OBJECTS, KEYS[0]) is None and store.open(OBJECTS, KEYS[0]) is None
    store.write(OBJECTS, KEYS[0], b"code")
    store.write(OBJECTS, KEYS[1], b"")
    assert store.read(OBJECTS, KEYS[0]) == b"code" and store.read(OBJECTS, KEYS[1]) == b""
    assert store.read(MODULES, KEYS[0]) is None
    with store.open(OBJECTS, KEYS[0]) as file:
        assert file.read() == b"code"


@pytest.mark.parametrize("damage", [b"", b"cod", b"codf", b"code\0"])
def test_a_damaged_entry_is_removed(store: Store, damage: bytes):
    store.write(OBJECTS, KEYS[0], b"code")
    only_file(store).write_bytes(damage)
    assert store.read(OBJECTS, KEYS[0]) is None
    assert list(store.entries()) == []
    store.write(OBJECTS, KEYS[0], b"code")
    only_file(store).write_bytes(damage)
    assert store.open(OBJECTS, KEYS[0]) is None
    assert list(store.entries()) == []


def test_an_entry_under_the_name_of_another_is_not_used(store: Store):
    store.write(OBJECTS, KEYS[0], b"one")
    store.write(OBJECTS, KEYS[1], b"two")
    one, two = sorted(entry.path for _, entry in store.entries())
    two.write_bytes(one.read_bytes())
    assert store.read(OBJECTS, KEYS[1]) is None and store.read(OBJECTS, KEYS[0]) == b"one"


def test_the_unused_go_first(store: Store):
    for key in KEYS[:4]:
        store.write(OBJECTS, key, bytes(300))
    for number, (_, entry) in enumerate(sorted(store.entries(), key=lambda pair: pair[1].path)):
        age(entry.path, 100 - number)
    assert store.read(OBJECTS, KEYS[0]) is not None  # makes it the youngest
    assert store.trim() == (1, 300)
    assert [store.read(OBJECTS, key) is not None for key in KEYS[:4]] == [True, False, True, True]
    assert store.trim(0) == (3, 900)


def test_an_evicted_module_stays_readable_for_who_has_it_open(store: Store):
    file = store.create(MODULES, KEYS[0], lambda out: out.write(b"module"))
    assert store.trim(0) == (1, 6)
    file.seek(0)
    assert file.read() == b"module"


def test_leftovers_of_writers_that_died(store: Store):
    store.write(OBJECTS, KEYS[0], b"code")
    old, new = (only_file(store).with_name(f"{name}.part") for name in ("old", "new"))
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    age(old, 7200)
    assert len(list(store.entries())) == 1
    assert not old.exists() and new.exists()


def test_a_failed_write_leaves_nothing(store: Store):
    def fail(out):
        out.write(b"half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        store.create(MODULES, KEYS[0], fail)
    assert list(store.folder.rglob("*.*")) == []


def test_a_folder_that_cannot_be_used(monkeypatch, tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert "cannot be made" in why_not(tmp_path / "file" / "cache")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert "everybody" in why_not(shared)
    monkeypatch.setenv("EYAS_CACHE", str(shared))
    assert open_store() is None
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    shared.chmod(0o700)
    assert "belongs to user" in why_not(shared)


def test_the_environment(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path / "new"))
    monkeypatch.setenv("EYAS_CACHE_LIMIT", "1M")
    assert open_store() == Store(tmp_path / "new", 1 << 20)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("EYAS_CACHE", "off")
    assert open_store() is None


WRITER = """
import sys
from pathlib import Path
from eyas.cache.store import OBJECTS, Store
store = Store(Path(sys.argv[1]), 3000)
for turn in range(150):
    key = f"{turn % 10:02x}" * 32
    data = store.read(OBJECTS, key)
    assert data is None or data == key.encode() * 8, (key, data)
    store.write(OBJECTS, key, key.encode() * 8)
    if turn % 7 == 0:
        store.trim()
"""


def test_processes_share_a_folder(tmp_path: Path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "cache")]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    store = Store(tmp_path / "cache", 3000)
    store.trim()
    assert 0 < sum(entry.size for _, entry in store.entries()) <= 3000
