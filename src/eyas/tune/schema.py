"""The tables of the tuner's database, and how a file of an older Eyas becomes one of this."""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x45594153
"""`EYAS`: what tells a file of ours from any other that SQLite reads."""

STEPS = (
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, at REAL NOT NULL, compiler TEXT NOT NULL, model TEXT NOT NULL, target TEXT NOT NULL,
        machine TEXT NOT NULL, options TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE dispatches (
        dispatch TEXT NOT NULL, target TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL,
        PRIMARY KEY (dispatch, target)
    ) WITHOUT ROWID;
    CREATE TABLE trials (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, at REAL NOT NULL, compiler TEXT NOT NULL,
        dispatch TEXT NOT NULL, target TEXT NOT NULL, strategy TEXT NOT NULL, point TEXT NOT NULL,
        schedule TEXT NOT NULL, device TEXT NOT NULL, status TEXT NOT NULL, us REAL, baseline_us REAL,
        ratio_low REAL, ratio REAL, ratio_high REAL, compile_s REAL NOT NULL, code TEXT NOT NULL,
        reason TEXT NOT NULL, reproducer TEXT NOT NULL, proposed_by TEXT NOT NULL
    );
    CREATE INDEX trials_of_dispatch ON trials (dispatch, target, device);
    CREATE INDEX trials_of_session ON trials (session);
    """,
)
"""What makes schema N+1 of schema N. A step is never edited once released; a change is another one."""


def version_of(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def application_of(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA application_id").fetchone()[0]


def is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


def upgrade(connection: sqlite3.Connection) -> None:
    """Makes the tables those of this version, in one transaction: whoever dies in it has done nothing. Processes that
    come at the same moment wait, and find it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[version_of(connection) :]:
            for statement in filter(None, map(str.strip, step.split(";"))):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
