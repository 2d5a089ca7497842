"""The database of trials: what comes back, who may share it, and what becomes of it when something dies."""

from __future__ import annotations

import csv
import json
import random
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from eyas.tune import schema
from eyas.tune.database import Database, DatabaseError, SessionInfo
from eyas.tune.trials import Candidate, Status, Trial


def candidate(number: int = 0, dispatch: str = "d0", strategy: str = "contraction") -> Candidate:
    return Candidate(dispatch, "vmvx", strategy, {"rows": number, "lanes": 16}, f"#codegen.strategy<{number}>")


def trial(number: int = 0, **changes) -> Trial:
    one = changes.pop("candidate", candidate(number))
    made = {"us": 10.0 + number, "baseline_us": 12.0, "ratio": (0.9, 1.0, 1.1), "compile_s": 0.5, "code": f"c{number}"}
    return Trial(one, changes.pop("device", "cpu0"), changes.pop("status", Status.TIMED), **(made | changes))


def test_what_was_added_comes_back(tmp_path):
    path = tmp_path / "folder" / "tuning.db"
    given = [
        trial(1, order="learned"),
        trial(2, status=Status.WRONG, us=None, baseline_us=None, ratio=None, reason='it\'s "off"', reproducer="/r/2"),
    ]
    session = SessionInfo("s", "model.onnx", "vmvx", {"cpu": "a", "cores": 2}, {"budget_s": 60})
    with Database(path, "compiler") as database:
        database.begin(session)
        database.begin(session)
        for one in given:
            database.add("s", one)
        database.describe("d0", "vmvx", "matmul_4x4_f32", {"loops": [4, 4, 4]})
    with Database(path, "compiler") as database:
        assert database.trials() == given
        [found] = database.sessions()
        assert found == session and found.compiler == "compiler" and abs(found.at - time.time()) < 60
        assert database.described()["d0", "vmvx"].facts == {"loops": [4, 4, 4]}


def test_trials_are_found_by_what_they_are_of(tmp_path):
    with Database(tmp_path / "t.db", "one") as database:
        database.add("a", trial(1))
        database.add("a", trial(2, device="cpu1"))
        database.add("b", trial(3, candidate=candidate(3, "d1", "rows")))
        numbers = lambda **by: [one.candidate.point["rows"] for one in database.trials(**by)]  # noqa: E731
        assert numbers() == [1, 2, 3]
        assert numbers(dispatch="d0") == [1, 2]
        assert numbers(dispatch="d0", device="cpu1") == [2]
        assert numbers(strategy="rows") == [3]
        assert numbers(session="b") == [3]
        assert numbers(target="llvm-cpu") == []


def test_times_of_another_compiler_are_kept_and_not_believed(tmp_path):
    with Database(tmp_path / "t.db", "old") as database:
        database.add("a", trial(1))
    with Database(tmp_path / "t.db", "new") as database:
        database.add("b", trial(2))
        assert [one.candidate.point["rows"] for one in database.trials()] == [2]
        assert [one.compiler for one in database.records(any_compiler=True)] == ["old", "new"]


def test_the_compiler_is_this_one_unless_told(tmp_path, monkeypatch):
    from eyas.cache.compiler import this_compiler

    this = this_compiler()
    assert this is None or Database(tmp_path / "t.db").compiler == this.digest
    # One whose files changed under it is like no other, not even like itself.
    monkeypatch.setattr("eyas.tune.database.this_compiler", lambda: None)
    assert Database(tmp_path / "a.db").compiler != Database(tmp_path / "a.db").compiler


def test_the_place_is_a_knob(tmp_path, monkeypatch):
    monkeypatch.setenv("EYAS_TUNE_DATABASE", str(tmp_path / "mine.db"))
    assert Database().path == str(tmp_path / "mine.db")
    monkeypatch.delenv("EYAS_TUNE_DATABASE")
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    assert Database().path == str(tmp_path / "tuning.db")
    monkeypatch.setenv("EYAS_CACHE", "off")
    assert Database().path == ":memory:"


_WRITER = """
import sys
sys.path.insert(0, {root!r})
from tests.unit.tune.test_database import Database, trial
database = Database(sys.argv[1], "c")
first = int(sys.argv[2])
for number in range(first, first + int(sys.argv[3])):
    database.add(f"s{{first}}", trial(number))
    print(number, flush=True)
"""
ROOT = Path(__file__).parents[3]


def start_writer(path: Path, first: int, count: int = 10**9) -> subprocess.Popen:
    command = [sys.executable, "-c", _WRITER.format(root=str(ROOT)), str(path), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_a_killed_writer_loses_nothing_that_it_said(tmp_path):
    path, draw, said = tmp_path / "t.db", random.Random(7), set()
    for turn in range(6):
        writer = start_writer(path, turn * 10**6)
        assert writer.stdout is not None
        said.add(int(writer.stdout.readline()))
        time.sleep(draw.random() * 0.15)
        writer.kill()
        said |= {int(line) for line in writer.stdout.read().split()}
        writer.wait()
        found = Database(path, "c").trials()
        numbers = [one.candidate.point["rows"] for one in found]
        assert said <= set(numbers), "a trial that was recorded is gone"
        assert len(numbers) == len(set(numbers)) and len(numbers) - len(said) <= turn + 1
        assert found == [trial(number) for number in numbers], "a trial is half written"
    assert len(said) > 20


def test_processes_write_side_by_side(tmp_path):
    path = tmp_path / "t.db"  # made by whoever is first
    writers = [start_writer(path, turn * 1000, 40) for turn in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    found = [one.candidate.point["rows"] for one in Database(path, "c").trials()]
    assert sorted(found) == [turn * 1000 + number for turn in range(3) for number in range(40)]


def test_threads_share_one(tmp_path):
    with Database(tmp_path / "t.db", "c") as database:
        write = lambda first: [database.add("s", trial(first + number)) for number in range(25)]  # noqa: E731
        threads = [threading.Thread(target=write, args=(100 * turn,)) for turn in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(database.trials()) == 100


def test_a_newer_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "t.db"
    Database(path, "c").close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(DatabaseError, match="schema 99.*up to 1.*newer"):
        Database(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (99,)


def test_an_older_file_is_brought_up_to_date(tmp_path, monkeypatch):
    path = tmp_path / "t.db"
    with Database(path, "c") as database:
        database.add("s", trial(1))
    later = (*schema.STEPS, "CREATE TABLE more (x); ALTER TABLE sessions ADD COLUMN note TEXT NOT NULL DEFAULT ''")
    monkeypatch.setattr(schema, "STEPS", later)
    with Database(path, "c") as database:
        assert database.trials() == [trial(1)]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
        assert connection.execute("SELECT count(*) FROM more").fetchone() == (0,)


def test_a_step_that_fails_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "t.db"
    with Database(path, "c") as database:
        database.add("s", trial(1))
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, "CREATE TABLE more (x); CREATE TABLE trials (x)"))
    with pytest.raises(DatabaseError, match="trials"):
        Database(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)


@pytest.mark.parametrize("damage", ["text", "torn", "pages"])
def test_a_damaged_file_is_named_and_left_alone(tmp_path, damage):
    path = tmp_path / "t.db"
    with Database(path, "c") as database:
        for number in range(300):
            database.add("s", trial(number))
    good = path.read_bytes()
    bad = {
        "text": b"not a database, and no empty file either" * 20,
        "torn": good[: len(good) // 2 // 4096 * 4096],
        "pages": good[:4096] + b"\x5a" * 8192 + good[12288:],
    }[damage]
    path.write_bytes(bad)
    with pytest.raises(DatabaseError, match=r"damaged \(.+\); it was left as it is.*mv .*recover"):
        Database(path)
    assert path.read_bytes() == bad


def test_a_database_of_others_is_refused(tmp_path):
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE notes (x)")
    with pytest.raises(DatabaseError, match="another program"):
        Database(path)


def test_a_folder_that_cannot_be_had(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="cannot be made"):
        Database(tmp_path / "file" / "t.db")
    with pytest.raises(DatabaseError, match="cannot be used"):
        Database(tmp_path)


def test_exports(tmp_path):
    with Database(tmp_path / "t.db", "c") as database:
        database.begin(SessionInfo("s", "m.onnx", "vmvx"))
        database.describe("d0", "vmvx", "matmul", {"loops": [4]})
        database.add("s", trial(1, reason='a "b", c\nd'))
        database.add("s", trial(2, status=Status.REFUSED, us=None, ratio=None))
        assert database.export_csv(tmp_path / "t.csv") == database.export_json(tmp_path / "t.json") == 2
    with (tmp_path / "t.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first["name"] == "matmul" and first["reason"] == 'a "b", c\nd' and float(first["ratio"]) == 1.0
    assert json.loads(first["point"]) == {"lanes": 16, "rows": 1}
    assert second["status"] == "refused" and second["us"] == ""
    data = json.loads((tmp_path / "t.json").read_text())
    assert data["sessions"][0]["model"] == "m.onnx" and data["dispatches"][0]["facts"] == {"loops": [4]}
    assert [one["us"] for one in data["trials"]] == [11.0, None]
    assert sorted(one.name for one in tmp_path.iterdir() if "part" in one.name) == []
