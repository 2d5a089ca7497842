"""Comparisons on a machine whose times jump, drift and have long tails."""

import numpy as np
import pytest

from eyas.tune.timing import Noise, Ratio, confirm, noise_of, race, ratio_of
from eyas.tune.trials import Status


class Machine:
    """Gives times of modules that take 1 or what `speeds` says, disturbed by other programs."""

    def __init__(self, seed: int, speeds=None, load_bias: float = 0.01) -> None:
        self.random, self.speeds, self.bias = np.random.default_rng(seed), speeds or {}, load_bias
        self.turns, self.drift, self.loads = 0, 0.0, {}

    def load(self, name: str) -> None:
        """Where memory happens to lie costs a little, for as long as a module is loaded."""
        self.loads[name] = self.random.normal(0, self.bias)

    def sample(self, names, turns):
        found = {name: [] for name in names}
        for _ in range(turns):
            self.turns += 1
            self.drift += self.random.normal(0, 0.05)
            for name in self.random.permutation(list(names)):
                us = 100 / self.speeds.get(str(name), 1.0) * np.exp(self.drift + self.loads.get(str(name), 0.0))
                us *= np.exp(self.random.normal(0, 0.03))
                if self.random.random() < 0.2:  # another program had the core
                    us *= self.random.uniform(1.2, 4)
                found[str(name)].append(us)
        return found

    def compare(self, one: str, other: str) -> Ratio:
        for name in ("a", "b"):
            self.load(name)
        self.speeds.update(a=self.speeds.get(one, 1.0), b=self.speeds.get(other, 1.0))
        times = self.sample(["a", "b"], 24)
        return ratio_of(times["a"], times["b"])


def test_the_interval_holds_the_truth():
    held = 0
    for seed in range(100):
        machine = Machine(seed, {"fast": 1.25}, load_bias=0.0)
        times = machine.sample(["base", "fast"], 30)
        ratio = ratio_of(times["base"], times["fast"])
        held += ratio.low <= 1.25 <= ratio.high
        assert ratio.low <= ratio.estimate <= ratio.high
    assert held >= 88


def test_single_turns_that_went_wrong_have_no_weight():
    base, fast = [100.0] * 12, [80.0] * 11 + [8000.0]
    assert ratio_of(base, fast).estimate == pytest.approx(1.25)


def test_a_slow_candidate_is_given_up_early():
    machine = Machine(0, {"slow": 0.4})
    timed = race(machine.sample, "base", "slow")
    assert timed.status is Status.BEATEN and machine.turns < 20
    machine = Machine(0, {"good": 1.2})
    assert race(machine.sample, "base", "good", best=1.6).status is Status.BEATEN


def test_a_fast_candidate_is_timed_until_its_interval_is_narrow():
    machine = Machine(1, {"fast": 1.3}, load_bias=0.0)
    timed = race(machine.sample, "base", "fast", narrow=0.05)
    assert timed.status is Status.TIMED and timed.turns > 6
    assert timed.ratio.low < 1.3 < timed.ratio.high and timed.ratio.low > 1


def tuned_gain(seed: int, speed: float, candidates: int = 40) -> bool:
    """What a session does: the best of many, then compared afresh."""
    machine = Machine(seed, {"candidate": speed})
    noise = noise_of(lambda: machine.compare("base", "base"))
    best, found = 1.0, None
    for _ in range(candidates):
        machine.load("candidate")
        timed = race(machine.sample, "base", "candidate", best)
        if timed.ratio.low > best:
            best, found = timed.ratio.low, timed
    return found is not None and confirm(lambda: machine.compare("base", "candidate"), noise).is_gain


def test_a_baseline_tuned_against_itself_gains_nothing():
    assert not any(tuned_gain(seed, 1.0) for seed in range(20))


def test_gains_beyond_noise_are_found():
    assert sum(tuned_gain(seed, 1.3, candidates=4) for seed in range(10)) >= 9


def test_noise_is_the_largest_difference_of_equal_code():
    ratios = iter([1.01, 0.95, 1.02, 1.0])
    noise = noise_of(lambda: Ratio(1.0, next(ratios), 1.0))
    assert noise.level == pytest.approx(1 / 0.95 - 1) and noise.threshold == pytest.approx(1 / 0.95)
    assert Noise(0.001).threshold == 1.01


def test_a_gain_must_hold_each_time_but_one():
    ratios = iter([1.2, 1.01, 1.2, 1.2, 1.2, 1.2])
    assert confirm(lambda: Ratio(1.0, next(ratios), 1.3), Noise(0.05)).is_gain
    ratios = iter([1.2, 1.01, 1.2, 1.03, 1.2, 1.2])
    assert not confirm(lambda: Ratio(1.0, next(ratios), 1.3), Noise(0.05)).is_gain
    assert next(ratios) == 1.2  # the rest was not measured
