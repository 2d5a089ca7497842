"""What a tuning shows while it runs: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from eyas.cli.common import note, show_time
from eyas.tune.session import Listener

if TYPE_CHECKING:
    from eyas.tune.dispatches import Dispatch
    from eyas.tune.trials import Trial


class Lines(Listener):
    """A line for each dispatch and for what is better than anything before it."""

    def __init__(self) -> None:
        self._best: dict[str, float] = {}

    def on_dispatch(self, dispatch: Dispatch, noise: float, us: float) -> None:
        note(f"{dispatch.name}: {show_time(us)}, {dispatch.share:.1%} of the model, noise {noise:.1%}")

    def on_trial(self, dispatch: Dispatch, trial: Trial, best: float, left_s: float) -> None:
        if best > self._best.get(dispatch.name, 1.0):
            self._best[dispatch.name] = best
            note(f"{dispatch.name}: {best:.2f} x, {left_s:.0f} s left: {trial.candidate.schedule}")
        elif trial.reproducer:
            note(f"{dispatch.name}: {trial.status.value}, {trial.reason}; kept in {trial.reproducer}")

    def on_note(self, text: str) -> None:
        note(text)


class Bar(Listener):
    """The dispatch that has its turn, trials, the best gain, and the time that is left."""

    def __init__(self, seconds: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            BarColumn(),
            TextColumn("{task.fields[left]} left, {task.fields[trials]} trials"),
            TextColumn("{task.fields[best]}"),
            TextColumn("{task.fields[what]}", markup=False),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        fields: dict[str, Any] = {"left": f"{seconds:.0f} s", "trials": 0, "best": "", "what": "compiling the model"}
        self._task = self._progress.add_task("tune", total=seconds, **fields)
        self._begin, self._trials = time.monotonic(), 0

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_dispatch(self, dispatch: Dispatch, noise: float, us: float) -> None:
        self._show(what=dispatch.name, best="")

    def on_trial(self, dispatch: Dispatch, trial: Trial, best: float, left_s: float) -> None:
        self._trials += 1
        text = f"best {best:.2f} x" if best > 1 else ""
        self._show(trials=self._trials, what=dispatch.name, best=text, left=f"{left_s:.0f} s")
        if trial.reproducer:
            self.on_note(f"{dispatch.name}: {trial.status.value}, {trial.reason}; kept in {trial.reproducer}")

    def on_note(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _show(self, **fields: Any) -> None:
        self._progress.update(self._task, completed=time.monotonic() - self._begin, **fields)
