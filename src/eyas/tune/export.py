"""All trials as a table for other programs: CSV with a column for each field, or JSON with sessions and dispatches."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from eyas.errors import UsageError

if TYPE_CHECKING:
    from eyas.tune.database import Database

COLUMNS = (
    "at", "session", "compiler", "dispatch", "name", "target", "device", "strategy", "point", "schedule", "status",
    "us", "baseline_us", "ratio_low", "ratio", "ratio_high", "compile_s", "code", "reason", "reproducer", "order",
)  # fmt: skip


def rows(database: Database) -> Iterator[dict[str, Any]]:
    """A dictionary of `COLUMNS` for each trial of every compiler."""
    names = {key: one.name for key, one in database.described().items()}
    for record in database.records(any_compiler=True):
        trial, one = record.trial, record.trial.candidate
        low, middle, high = trial.ratio or (None, None, None)
        yield {
            "at": datetime.fromtimestamp(record.at, UTC).isoformat(timespec="milliseconds"),
            "session": record.session, "compiler": record.compiler, "dispatch": one.dispatch,
            "name": names.get((one.dispatch, one.target), ""), "target": one.target, "device": trial.device,
            "strategy": one.strategy, "point": dict(one.point), "schedule": one.schedule,
            "status": trial.status.value, "us": trial.us, "baseline_us": trial.baseline_us, "ratio_low": low,
            "ratio": middle, "ratio_high": high, "compile_s": trial.compile_s, "code": trial.code,
            "reason": trial.reason, "reproducer": trial.reproducer, "order": trial.order,
        }  # fmt: skip


def write_csv(database: Database, path: Path) -> int:
    """Writes the trials, points as JSON in a column; returns how many there are."""
    count = 0
    with _replacing(path) as file:
        writer = csv.DictWriter(file, list[str](COLUMNS))
        writer.writeheader()
        for row in rows(database):
            writer.writerow(row | {"point": json.dumps(row["point"], sort_keys=True)})
            count += 1
    return count


def write_json(database: Database, path: Path) -> int:
    """Writes sessions, dispatches and trials; returns how many trials there are."""
    trials = list(rows(database))
    sessions = [
        {"id": one.id, "at": one.at, "compiler": one.compiler, "model": one.model, "target": one.target}
        | {"machine": dict(one.machine), "options": dict(one.options)}
        for one in database.sessions()
    ]
    dispatches = [
        {"dispatch": one.dispatch, "target": one.target, "name": one.name, "facts": dict(one.facts)}
        for one in database.described().values()
    ]
    with _replacing(path) as file:
        json.dump({"format": 1, "sessions": sessions, "dispatches": dispatches, "trials": trials}, file, indent=1)
    return len(trials)


class _replacing:
    """A file that takes another's place once it is complete."""

    def __init__(self, path: Path) -> None:
        self.path, self.part = path, path.with_name(f"{path.name}.{os.getpid()}.part")

    def __enter__(self) -> IO[str]:
        try:
            self.file = self.part.open("w", newline="", encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"'{self.path}' cannot be written: {error.strerror}; give a file in a folder that is there"
            ) from error
        return self.file

    def __exit__(self, kind: object, *_: object) -> None:
        self.file.close()
        if kind is None:
            os.replace(self.part, self.path)
        else:
            self.part.unlink(missing_ok=True)
