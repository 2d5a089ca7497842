"""How many trials orders need to come near the best known schedule: `python benchmarks/tune_order.py`.

Replays the tables that `tune_tables.py` made; nothing is timed. For a dispatch the learned order knows the trials of
the other models (any target) and nothing of the dispatch's own model, and is asked again after every batch, as the
tuner does. The number that counts is that of trials until one is within 5 % of the best of the table; the median over
dispatches and seeds, and of the ratio to random.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from eyas.targets import Target
from eyas.tune.facts import Facts
from eyas.tune.features import Features, Key, features_of, key_of
from eyas.tune.learned import Examples, Learned, gain_of
from eyas.tune.order import Heuristic, Order, Random
from eyas.tune.trials import Candidate, Status, Trial

FOLDER = Path(__file__).parents[1] / "build" / "tune_tables"
NEAR = 1.05
BATCH = 4
FEWEST, LEAST_US = 20, 10.0
"""Points, and microseconds, below which a dispatch's table says nothing about orders."""
_DISTURBED = 1.05


@dataclass(frozen=True)
class Timed:
    """A dispatch of a model, and every schedule of it that was timed."""

    model: str
    name: str
    target: str
    trials: tuple[Trial, ...]
    features: dict[Key, Features]

    @property
    def best_us(self) -> float:
        """The fastest, each normalised by its own baseline."""
        return min(relative(one) for one in self.trials)


def relative(trial: Trial) -> float:
    assert trial.us and trial.baseline_us
    return trial.us / trial.baseline_us


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tables", type=Path, default=FOLDER)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every number")
    parser.add_argument("--verbose", action="store_true", help="a line for each dispatch")
    options = parser.parse_args()
    tables = [one for path in sorted(options.tables.glob("*.jsonl")) for one in read_table(path)]
    if not tables:
        raise SystemExit(f"no tables in {options.tables}; python benchmarks/tune_tables.py makes them")
    started, numbers, learned = time.monotonic(), [], {}
    for one in tables:
        counts = {order: [] for order in ("random", "heuristic", "learned")}
        if one.model not in learned:
            known = examples([other for other in tables if other.model != one.model])
            learned[one.model] = [Learned(known, seed) for seed in range(options.seeds)]
        for seed in range(options.seeds):
            counts["random"].append(trials_until_near(Random(seed), one))
            counts["heuristic"].append(trials_until_near(Heuristic(seed), one))
            counts["learned"].append(trials_until_near(learned[one.model][seed].fresh(), one))
        numbers.append(
            {"model": one.model, "target": one.target, "dispatch": one.name, "points": len(one.trials)} | counts
        )
        if options.verbose:
            best = 1 / one.best_us
            means = "  ".join(f"{order} {statistics.mean(found):5.1f}" for order, found in counts.items())
            print(
                f"{one.model:13} {one.target[-17:]:17} {one.name[:44]:44} {best:5.2f}x of {len(one.trials):3}  {means}",
                flush=True,
            )
    report(numbers, time.monotonic() - started)
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1))


def report(numbers: list[dict], seconds: float) -> None:
    models, targets = {one["model"] for one in numbers}, {one["target"] for one in numbers}
    points = statistics.median(one["points"] for one in numbers)
    print(
        f"{len(numbers)} dispatches of {len(models)} models ({', '.join(sorted(models))}) for {len(targets)} targets,"
        f" {points:.0f} schedules each in the median, {len(numbers[0]['random'])} seeds"
    )
    chance = statistics.median(count for one in numbers for count in one["random"])
    for order in ("random", "heuristic", "learned"):
        every = [count for one in numbers for count in one[order]]
        ratios = [a / b for one in numbers for a, b in zip(one["random"], one[order], strict=True)]
        own = [statistics.mean(one["random"]) / statistics.mean(one[order]) for one in numbers]
        print(
            f"{order:10} median {statistics.median(every):5.1f}, mean {statistics.mean(every):5.1f} trials;"
            f" fewer than random: of medians {chance / statistics.median(every):.2f}x,"
            f" median of ratios {statistics.median(ratios):.2f}x, by dispatch {statistics.median(own):.2f}x"
        )
    print(f"{seconds:.0f} s")


def read_table(path: Path) -> Iterator[Timed]:
    """The dispatches of a file, each with the rounds in which it was timed; schedules that repeat count once."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    about, rounds = lines[0], [one for one in lines[1:] if "failed" not in one]
    target = Target.parse(about["target"])
    for name, data in about["dispatches"].items():
        facts, trials, features = Facts.from_json(data), {}, {}
        # A baseline that is far above that of other rounds met another program in all of its turns.
        usual = sorted(one[name]["baseline_us"] for one in rounds if name in one)
        most = _DISTURBED * usual[len(usual) // 4] if usual else 0.0
        if most < LEAST_US:
            continue
        for one in rounds:
            if name not in one:
                continue
            found = one[name]
            strategy = found["schedule"].split('"')[1]
            candidate = Candidate(f"{about['model']} {name}", str(target), strategy, found["point"], found["schedule"])
            key = key_of(candidate)
            trials[key] = Trial(candidate, "here", Status.TIMED, found["us"], min(found["baseline_us"], most))
            features[key] = features_of(candidate, facts, target)
        if len(trials) >= FEWEST:
            yield Timed(about["model"], name, str(target), tuple(trials.values()), features)


def examples(tables: list[Timed]) -> Examples:
    trials = [(trial, one.features[key_of(trial.candidate)]) for one in tables for trial in one.trials]
    return Examples(
        tuple(features for _, features in trials),
        tuple(gain_of(trial) for trial, _ in trials),
        tuple((trial.candidate.dispatch, trial.candidate.target) for trial, _ in trials),
    )


def trials_until_near(order: Order, timed: Timed) -> int:
    """How many trials an order takes until one is near the best."""
    left, tried = list(timed.trials), []
    while left:
        proposed = order.propose([one.candidate for one in left], timed.features, tried)
        batch = [left[number] for number in proposed[:BATCH]]
        for one in batch:
            tried.append(one)
            if relative(one) <= NEAR * timed.best_us:
                return len(tried)
        left = [one for number, one in enumerate(left) if number not in set(proposed[:BATCH])]
    raise AssertionError("the best is near itself")


if __name__ == "__main__":
    main()
