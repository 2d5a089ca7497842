"""Every trial that was ever made, in one SQLite file that processes and models share.

A trial is on disk when `add` returns: it is one transaction in a write-ahead log, which a death of the process at any
moment leaves whole. Rows say which compiler made the code. Times of another compiler are not believed, since its code
is another; they are kept because a model of what is fast learns from them all the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eyas import knobs
from eyas.cache.compiler import this_compiler
from eyas.errors import EyasError
from eyas.tune import schema
from eyas.tune.trials import Candidate, Status, Trial

IN_MEMORY = ":memory:"
_WAIT_S = 60.0
"""How long a writer waits for others; a transaction takes milliseconds."""


class DatabaseError(EyasError):
    """The file of trials cannot be used; it is as it was."""


@dataclass(frozen=True)
class SessionInfo:
    """One run of the tuner: what it tuned, where, and how it was asked to."""

    id: str
    model: str = ""
    target: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    """What devices are called, how many cores, and what else is worth knowing when numbers are compared."""
    options: Mapping[str, Any] = field(default_factory=dict)
    at: float = field(default=0.0, compare=False)
    """When it began, in seconds since 1970; the database's to say, as the next."""
    compiler: str = field(default="", compare=False)


@dataclass(frozen=True)
class Record:
    """A row: a trial, and when and by whom it was made."""

    trial: Trial
    session: str
    at: float
    """Seconds since 1970."""
    compiler: str


@dataclass(frozen=True)
class Described:
    """What a dispatch is called, and its shapes, from which features of its trials are made (`features.py`)."""

    dispatch: str
    target: str
    name: str
    facts: Mapping[str, Any]


def new_session_id() -> str:
    return uuid.uuid4().hex[:12]


def compiler_digest() -> str:
    """Of the compiler that this process runs. One whose files changed while it ran is like no other."""
    compiler = this_compiler()
    return compiler.digest if compiler is not None else f"edited-{uuid.uuid4().hex}"


class Database:
    """The file at `path`; None is that of `knobs.tune_database()`, and memory where nothing is kept.

    Threads may share one. A process that was forked opens the file anew.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, compiler: str | None = None) -> None:
        self.path = str(path if path is not None else knobs.tune_database() or IN_MEMORY)
        self.compiler = compiler if compiler is not None else compiler_digest()
        self._lock = threading.RLock()
        self._connection, self._process = self._open(), os.getpid()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing ------------------------------------------------------------------------------------------------------

    def begin(self, session: SessionInfo) -> None:
        """Notes a session; one that goes on is noted once."""
        values = (
            session.id, time.time(), self.compiler, session.model, session.target,
            _text(session.machine), _text(session.options),
        )  # fmt: skip
        with self._use() as connection:
            connection.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def describe(self, dispatch: str, target: str, name: str, facts: Mapping[str, Any]) -> None:
        """Notes what a dispatch is; what is noted last holds."""
        with self._use() as connection:
            values = (dispatch, target, name, _text(facts))
            connection.execute("INSERT OR REPLACE INTO dispatches VALUES (?, ?, ?, ?)", values)

    def add(self, session: str, trial: Trial) -> None:
        """Keeps a trial; it is on disk afterwards."""
        one, ratio = trial.candidate, trial.ratio or (None, None, None)
        values = (
            session, time.time(), self.compiler, one.dispatch, one.target, one.strategy, _text(dict(one.point)),
            one.schedule, trial.device, trial.status.value, trial.us, trial.baseline_us, *ratio, trial.compile_s,
            trial.code, trial.reason, trial.reproducer, trial.order,
        )  # fmt: skip
        with self._use() as connection:
            connection.execute(f"INSERT INTO trials VALUES (NULL{', ?' * len(values)})", values)

    # --- reading ------------------------------------------------------------------------------------------------------

    def trials(
        self,
        dispatch: str | None = None,
        target: str | None = None,
        device: str | None = None,
        strategy: str | None = None,
        session: str | None = None,
        any_compiler: bool = False,
    ) -> list[Trial]:
        """Trials in the order in which they were made. Those of other compilers only if asked for: to learn from."""
        return [one.trial for one in self.records(dispatch, target, device, strategy, session, any_compiler)]

    def records(
        self,
        dispatch: str | None = None,
        target: str | None = None,
        device: str | None = None,
        strategy: str | None = None,
        session: str | None = None,
        any_compiler: bool = False,
    ) -> list[Record]:
        """The same with when and by whom."""
        wanted = {"dispatch": dispatch, "target": target, "device": device, "strategy": strategy, "session": session}
        wanted["compiler"] = None if any_compiler else self.compiler
        given = {name: value for name, value in wanted.items() if value is not None}
        where = f" WHERE {' AND '.join(f'{name} = ?' for name in given)}" if given else ""
        with self._use() as connection:
            rows = connection.execute(f"SELECT * FROM trials{where} ORDER BY id", tuple(given.values())).fetchall()
        return [_record(row) for row in rows]

    def sessions(self) -> list[SessionInfo]:
        """All sessions, the oldest first."""
        with self._use() as connection:
            rows = connection.execute("SELECT * FROM sessions ORDER BY at, id").fetchall()
        return [
            SessionInfo(
                row["id"], row["model"], row["target"], json.loads(row["machine"]), json.loads(row["options"]),
                row["at"], row["compiler"],
            )
            for row in rows
        ]  # fmt: skip

    def described(self) -> dict[tuple[str, str], Described]:
        """What is known of dispatches, by digest and target."""
        with self._use() as connection:
            rows = connection.execute("SELECT * FROM dispatches").fetchall()
        return {
            (row["dispatch"], row["target"]): Described(
                row["dispatch"], row["target"], row["name"], json.loads(row["facts"])
            )
            for row in rows
        }

    def export_csv(self, path: str | os.PathLike[str]) -> int:
        from eyas.tune.export import write_csv

        return write_csv(self, Path(path))

    def export_json(self, path: str | os.PathLike[str]) -> int:
        from eyas.tune.export import write_json

        return write_json(self, Path(path))

    # --- the file -----------------------------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        if self.path != IN_MEMORY:
            try:
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DatabaseError(
                    f"the folder of the tuning database '{self.path}' cannot be made: {error}"
                ) from error
        connection = None
        with self._explained():
            # Transactions are ours to begin: a statement by itself is one.
            connection = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
            connection.row_factory = sqlite3.Row
            try:
                self._check(connection)
                _use_log(connection)
                if schema.version_of(connection) < len(schema.STEPS):
                    schema.upgrade(connection)
            except BaseException:
                connection.close()
                raise
        assert connection is not None
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Raises for a file that is not ours, is from the future, or is damaged. Nothing is written before."""
        empty, version = schema.is_empty(connection), schema.version_of(connection)
        if not empty and schema.application_of(connection) != schema.APPLICATION_ID:
            raise DatabaseError(
                f"'{self.path}' is a database of another program; name another file with --database or"
                " EYAS_TUNE_DATABASE"
            )
        if version > len(schema.STEPS):
            raise DatabaseError(
                f"the tuning database '{self.path}' has schema {version}, and this Eyas knows schemas up to"
                f" {len(schema.STEPS)}: a newer one wrote it. Use that one, or name another file with --database or"
                " EYAS_TUNE_DATABASE"
            )
        found = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
        if found != ["ok"]:
            raise sqlite3.DatabaseError(found[0].splitlines()[-1])

    @contextlib.contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            if self._process != os.getpid():
                # A connection of the parent must be neither used nor closed here.
                self._inherited = self._connection
                self._connection, self._process = self._open(), os.getpid()
            yield self._connection

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """What SQLite says, as an error that says what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise DatabaseError(
                f"the tuning database '{self.path}' cannot be used: {error}. Look at its folder's permissions, the"
                " space on its disk, and whether another program holds it; or name another file with --database or"
                " EYAS_TUNE_DATABASE"
            ) from error
        except sqlite3.DatabaseError as error:
            raise DatabaseError(
                f"the tuning database '{self.path}' is damaged ({error}); it was left as it is. Move it out of the way"
                f" to begin a new one (mv '{self.path}' '{self.path}.damaged'), or save what can be read:"
                f" sqlite3 '{self.path}' .recover | sqlite3 recovered.db"
            ) from error


def _use_log(connection: sqlite3.Connection) -> None:
    """A write-ahead log: readers and a writer do not wait for each other. Changing to it needs the file alone, for
    which SQLite does not wait."""
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    # Each commit reaches the disk, so that not even a power failure takes a trial.
    connection.execute("PRAGMA synchronous = FULL")


def _record(row: sqlite3.Row) -> Record:
    candidate = Candidate(row["dispatch"], row["target"], row["strategy"], json.loads(row["point"]), row["schedule"])
    ratio = (row["ratio_low"], row["ratio"], row["ratio_high"]) if row["ratio"] is not None else None
    trial = Trial(
        candidate, row["device"], Status(row["status"]), row["us"], row["baseline_us"], ratio, row["compile_s"],
        row["code"], row["reason"], row["reproducer"], row["proposed_by"],
    )  # fmt: skip
    return Record(trial, row["session"], row["at"], row["compiler"])


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), sort_keys=True)
