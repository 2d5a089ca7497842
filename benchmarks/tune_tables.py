"""Times many schedules of the slowest dispatches of models, once, for `tune_order.py` to replay.

    python benchmarks/tune_tables.py --model mobilenet_v2 --target llvm-cpu:x86_64:x86-64-v3:cores=1 --rounds 80

A round draws a valid schedule for each of those dispatches, compiles the model with all of them, checks its results,
and times each dispatch in turns with the same model as it is by default. What is kept is the ratio of the fastest
times of a round: other programs slow down both. Each round is a process, and a line of the table; more are added to
those that are there. The device runs everything in one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("EYAS_COMPILE_IN_PROCESS", "1")  # a round is a process of its own

FOLDER = Path(__file__).parents[1] / "build" / "tune_tables"
_SECONDS = 600
_TURNS, _CALLS = 6, 3
_DRAWS = 400


@dataclass(frozen=True)
class Tuned:
    """A dispatch to vary: its function in the dump, and what is known of it."""

    function: str
    facts: dict[str, Any]
    strategy: str
    schedule: dict[str, Any]
    us: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="mobilenet_v2", choices=sorted(_models()))
    parser.add_argument("--target", default="llvm-cpu:x86_64:x86-64-v3:cores=1")
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--dispatches", type=int, default=12, help="the slowest so many")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    name = f"{options.model}-{re.sub(r'[^a-z0-9]+', '-', options.target)}.jsonl"
    table = Table(options.model, options.target, FOLDER / name, options.dispatches)
    table.add(options.rounds, options.seed)


def _models() -> dict[str, Callable[[], Any]]:
    from benchmarks import models

    return {
        "mobilenet_v2": models.mobilenet_v2,
        "minilm": models.minilm,
        "resnet18": _resnet18,
        "toy": models.toy_model,
    }


def _resnet18() -> Any:
    from benchmarks import models

    models.prepare_torchvision()
    import torch
    import torchvision

    torch.manual_seed(0)
    model, call = torchvision.models.resnet18().eval(), torch.randn(1, 3, 224, 224)
    models.calibrate_batch_norms(model, call)
    return models.Case("resnet18", model, (call,))


class Table:
    """The rounds of one model and target."""

    def __init__(self, model: str, target: str, path: Path, dispatches: int) -> None:
        from eyas.pipelines import driver
        from eyas.pipelines.request import Phase, Request
        from eyas.targets import Target

        self.path, self.name, self.target = path, model, Target.parse(target)
        self.case = _models()[model]()
        request = Request(
            self.case.model, self.case.args, self.case.kwargs, targets=(self.target,), last=Phase.SCHEDULE
        )
        compilation = driver.run(request)
        self.dump, self.weights = compilation.as_text(), dict(compilation.parameters)
        self.expected = self.case.run()
        self.baseline = self._compile({}).load("local-sync")
        self.inputs = self.case.args, dict(self.case.kwargs)
        times = self._times(self.baseline, 4)
        self.tuned = self._choose(times, dispatches)
        print(f"{model} for {target}: {len(self.tuned)} dispatches, {sum(times.values()):.0f} us a call", flush=True)
        if not path.exists():
            about = {
                "model": model, "target": str(self.target), "date": time.strftime("%Y-%m-%d"),
                "dispatches": {one.function: one.facts for one in self.tuned},
                "defaults": {one.function: _text(one.strategy, one.schedule) for one in self.tuned},
                "us": {one.function: one.us for one in self.tuned},
            }  # fmt: skip
            path.write_text(json.dumps(about) + "\n")

    def add(self, rounds: int, seed: int) -> None:
        done = len(self.path.read_text().splitlines()) - 1
        for number in range(done, rounds):
            draw = random.Random(f"{seed} {number}")
            start = time.monotonic()
            outcome = self._apart(draw)
            if isinstance(outcome, str):
                outcome = {"failed": outcome}
            with self.path.open("a") as file:
                file.write(json.dumps(outcome) + "\n")
            said = outcome.get("failed") or f"{len(outcome)} timed"
            print(f"round {number}: {said}, {time.monotonic() - start:.1f} s", flush=True)

    def _apart(self, draw: random.Random) -> dict[str, Any] | str:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                signal.alarm(_SECONDS)
                with os.fdopen(writing, "w") as file:
                    try:
                        json.dump(self._round(draw), file)
                    except Exception as error:  # noqa: BLE001 - whatever it is, it is the round's
                        json.dump(f"{type(error).__name__}: {error}"[:300], file)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as file:
            said = file.read()
        _, status = os.waitpid(child, 0)
        return json.loads(said) if said else f"died with {status}"

    def _round(self, draw: random.Random) -> dict[str, Any] | str:
        from benchmarks.models import flat, relative_error

        chosen = self._draw(draw)
        module = self._compile({name: text for name, (text, _) in chosen.items()}).load("local-sync")
        args, kwargs = self.inputs
        error = relative_error(flat(module(*args, **kwargs)), self.expected)
        if not error < 1e-3:
            return f"wrong by {error}: {json.dumps({name: text for name, (text, _) in chosen.items()})}"
        best: tuple[dict[str, float], dict[str, float]] = {}, {}
        for turn in range(_TURNS if sum(one.us for one in self.tuned) < 10_000 else _TURNS // 2):
            for which in (0, 1) if turn % 2 else (1, 0):
                for name, us in self._times((module, self.baseline)[which], _CALLS).items():
                    best[which][name] = min(us, best[which].get(name, us))
        return {
            name: {"schedule": text, "point": point, "us": best[0][name], "baseline_us": best[1][name]}
            for name, (text, point) in chosen.items()
        }

    def _times(self, module: Any, calls: int) -> dict[str, float]:
        """The fastest time of each kernel, in microseconds; of one that runs several times in a call, the sum of the
        fastest of each: a call is longer than what other programs leave it at a stretch."""
        args, kwargs = self.inputs
        every = module.profile(*args, *kwargs.values(), runs=calls)
        found: dict[str, float] = {}
        for same in zip(*every, strict=True):
            found[same[0].name] = found.get(same[0].name, 0.0) + min(event.duration_us for event in same)
        return found

    def _compile(self, schedules: dict[str, str]) -> Any:
        from eyas.pipelines import driver
        from eyas.pipelines.dumps import read_dump
        from eyas.pipelines.request import Phase, Request

        text = self.dump
        for function, schedule in schedules.items():
            pattern = rf"(func\.func private @{re.escape(function)}\(.*?attributes \{{)"
            text, count = re.subn(pattern, lambda one, s=schedule: f"{one[1]}codegen.strategy = {s}, ", text, count=1)
            assert count == 1, function
        return driver.compile(Request(read_dump(text, self.weights), targets=(self.target,), after=Phase.SCHEDULE))

    def _functions(self) -> tuple[Any, dict[str, Any]]:
        from eyas.ir.walk import functions
        from eyas.pipelines.dumps import read_dump

        program = read_dump(self.dump, self.weights)
        return program, {one.attributes["sym_name"].value: one for one in functions(program.module)}

    def _choose(self, times: dict[str, float], count: int) -> list[Tuned]:
        from eyas.codegen.backends import backend_of
        from eyas.codegen.common.analysis import analysis_of
        from eyas.tune.facts import facts_of

        program, functions = self._functions()
        tuned: list[Tuned] = []
        with program.module.context:
            for name in sorted(times, key=lambda one: -times[one]):
                if name not in functions or len(tuned) == count:
                    continue
                found = analysis_of(functions[name], {}, self.target.near_bytes)
                if found.raw is None:
                    continue
                strategy, _ = backend_of(self.target).select(functions[name], self.target, frozenset(), found)
                fields = _plain(str(strategy.schedule_attribute()))
                if fields.get("tiles"):
                    facts = facts_of(functions[name], self.target, found).to_json()
                    tuned.append(Tuned(name, facts, strategy.name, fields, times[name]))
        return tuned

    def _draw(self, draw: random.Random) -> dict[str, tuple[str, dict[str, int]]]:
        """A valid schedule for each dispatch, as text and as a point: half of them from anywhere in the space of a
        strategy, half near the default, as the tuner's own search has them."""
        from torch_mlir import ir as mlir

        from eyas.codegen.backends import backend_of
        from eyas.codegen.common.analysis import analysis_of
        from eyas.codegen.common.strategies.base import Strategy
        from eyas.tune.search import schedule_text

        program, functions = self._functions()
        backend, chosen = backend_of(self.target), {}
        strategies = {one.name: one for one in backend.strategies}
        with program.module.context, mlir.Location.unknown():
            for one in self.tuned:
                function = functions[one.function]
                found = analysis_of(function, {}, self.target.near_bytes)
                spaces, _ = backend.spaces(function, self.target, frozenset(), found)
                default, _ = backend.select(function, self.target, frozenset(), found)
                names = [name for name in spaces if name != "loops"]
                for _ in range(_DRAWS):
                    is_near = default.name in names and draw.random() < 0.5
                    name = default.name if is_near else draw.choice(names)
                    point = _point(spaces[name], default.point if is_near else None, draw)
                    made = strategies[name].at(found, self.target, point) if point is not None else ""
                    if isinstance(made, Strategy) and made.problem() is None and isinstance(made.tried(), Strategy):
                        chosen[one.function] = schedule_text(made), point
                        break
        return chosen


def _point(space: Any, near: dict[str, int] | None, draw: random.Random) -> dict[str, int] | None:
    """A valid point, of all or of those that differ from `near` in a few knobs; None where none was met."""
    for _ in range(_DRAWS):
        if near is None:
            point = {knob.name: draw.choice(knob.domain) for knob in space.knobs}
        else:
            changed = draw.sample(space.knobs, min(draw.randint(1, 4), len(space.knobs)))
            point = dict(near) | {knob.name: draw.choice(knob.domain) for knob in changed}
        if space.problem(point) is None:
            return point
    return None


def _plain(text: str) -> dict[str, Any]:
    return json.loads(re.sub(r"(\w+) = ", r'"\1": ', re.sub(r" : i64", "", text)))


def _to_text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_to_text(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_to_text, value)) + "]"
    return json.dumps(value)


def _text(strategy: str, fields: dict[str, Any]) -> str:
    return f'#codegen.strategy<"{strategy}", {_to_text(fields)}>'


if __name__ == "__main__":
    main()
