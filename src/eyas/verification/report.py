"""What `eyas.verify` found, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eyas.verification.bisect import Blame
from eyas.verification.layers import Row


@dataclass
class Report:
    """`results` are those of the program as it is; `layers` those of the program that returns its layers as well."""

    model: str
    reference: str
    signature: str
    results: list[Row] = field(default_factory=list)
    layers: list[Row] = field(default_factory=list)
    hidden: bool = False
    blame: Blame | None = None
    confirmed: bool | None = None
    """Whether the whole program is right without the culprit; None when that was not asked."""
    reproducer: str | None = None
    command: str | None = None
    reproducer_ops: int = 0
    reproducer_dispatches: int = 0

    @property
    def ok(self) -> bool:
        return not any(row.wrong for row in (*self.results, *self.layers))

    @property
    def first(self) -> Row | None:
        """The first wrong value in program order."""
        return next((row for row in self.rows if row.wrong), None)

    @property
    def rows(self) -> list[Row]:
        """Every value once, in program order: a result as the program without layers as results gave it, when wrong."""
        alone = {row.layer.name: row for row in self.results if row.wrong}
        shown = [alone.pop(row.layer.name, row) if not row.wrong else row for row in self.layers]
        known = {row.layer.name for row in shown}
        return shown + [row for row in self.results if row.layer.name not in known]

    @property
    def worst(self) -> Row | None:
        """The value with the largest error."""
        every = (*self.layers, *self.results)
        compared = [row for row in every if row.difference is not None and not row.agrees_with]
        return max(compared, key=_error, default=None)

    @property
    def summary(self) -> list[str]:
        """The findings as sentences."""
        skipped = [row for row in self.layers if row.difference is None]
        lines = [f"{self.model} against {self.reference}: {len(self.layers) - len(skipped)} layers compared"]
        if skipped:
            lines.append(
                f"{len(skipped)} layers could not be compared, such as '{skipped[0].layer.name}': {skipped[0].note}"
            )
        if excused := [row for row in self.rows if row.agrees_with]:
            lines.append(_not_ours(excused, self.reference))
        if self.ok:
            worst = self.worst
            lines.append("all within tolerance" + (f"; largest error {show(_error(worst))}" if worst else ""))
            return lines
        first = self.first
        assert first is not None and first.difference is not None
        where = f" at {first.layer.place}" if first.layer.place else ""
        op = f", {first.layer.op}{where}," if first.layer.op else ""
        lines.append(f"first wrong: '{first.layer.name}'{op} error {show(_error(first))}: {first.difference.reason}")
        lines.append(self._untapped())
        if self.blame is not None:
            lines += self._blamed(self.blame)
        if self.command:
            ops, dispatches = self.reproducer_ops, self.reproducer_dispatches
            size = f"{ops} op{'' if ops == 1 else 's'} in {dispatches} dispatch{'' if dispatches == 1 else 'es'}"
            lines += [f"reproducer of {size}: {self.reproducer}", f"  {self.command}"]
        return lines

    def _untapped(self) -> str:
        wrong = [row.layer.name for row in self.results if row.wrong]
        if not wrong:
            return "the program's results are right: it is wrong only when layers are results as well"
        hint = "; it hides when all layers are results as well" if self.hidden else ""
        return f"the program as it is, without layers as results, is wrong too{hint}"

    def _blamed(self, blame: Blame) -> list[str]:
        count = len(blame.tried)
        tried = "1 way to compile it was tried" if count == 1 else f"{count} ways to compile it were tried"
        if not blame.culprits:
            return [f"no pass or strategy is to blame alone: {blame.reason} ({tried})"]
        lines = [f"to blame: {blame.name} ({tried})"]
        others = [name for name in blame.cures if name not in blame.culprits]
        if others:
            lines.append(f"  also right without any one of: {', '.join(others)}")
        if len(blame.culprits) > 1:
            lines.append("  only together: look at what they share")
        if self.confirmed is not None:
            lines.append(f"  the whole program is {'right' if self.confirmed else 'still wrong'} without it")
        return lines

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        blame = self.blame
        return {
            "model": self.model,
            "reference": self.reference,
            "signature": self.signature,
            "ok": self.ok,
            "results": [_row(row) for row in self.results],
            "layers": [_row(row) for row in self.layers],
            "first": _row(self.first) if self.first else None,
            "wrong_as_it_is": any(row.wrong for row in self.results),
            "blame": blame
            and {
                "culprits": list(blame.culprits),
                "cures": list(blame.cures),
                "tried": [{"without": list(off), "right": right} for off, right in blame.tried],
                "reason": blame.reason,
                "confirmed": self.confirmed,
            },
            "reproducer": self.reproducer,
            "command": self.command,
            "reproducer_ops": self.reproducer_ops,
            "reproducer_dispatches": self.reproducer_dispatches,
        }

    def __str__(self) -> str:
        return "\n".join(self.summary)


def _not_ours(rows: list[Row], reference: str) -> str:
    """What is said of layers that differ from the reference, and are right."""
    first = rows[0]
    assert first.difference is not None
    counted = f"{len(rows)} layers differ" if len(rows) > 1 else "1 layer differs"
    exact = "" if first.agrees_with == reference else f" by {first.agrees_with}"
    return (
        f"{counted} from the reference and {'are' if len(rows) > 1 else 'is'} right for what it is computed from, as"
        f" computed again{exact}: a rounding at a tie, or integers that the reference does not compute exactly; first"
        f" '{first.layer.name}', {first.layer.op}: {first.difference.reason}"
    )


def _error(row: Row | None) -> float:
    return row.difference.error if row is not None and row.difference is not None else 0.0


def show(error: float) -> str:
    """An error in few digits."""
    return f"{error:.1e}" if np.isfinite(error) else "inf"


def _row(row: Row) -> dict[str, Any]:
    compared = row.difference.to_json() if row.difference is not None else {"ok": None, "reason": row.note}
    return {
        "name": row.layer.name,
        "op": row.layer.op,
        "place": row.layer.place,
        "dtype": row.dtype,
        "shape": list(row.shape),
        **compared,
        "agrees_with": row.agrees_with,
    }
