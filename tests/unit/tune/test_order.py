"""Orders, on costs that are made up: what each needs until it has nearly the best."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest
from tests.unit.tune.simulated import TARGET, candidates_of, cost_us, features, product_facts, trial_of

from eyas.errors import UsageError
from eyas.tune.database import Database
from eyas.tune.features import key_of
from eyas.tune.learned import Learned, examples_of
from eyas.tune.order import Heuristic, Order, Random, make_order
from eyas.tune.trials import Status

SHAPES = ((128, 384, 384), (196, 576, 96), (49, 160, 960), (784, 192, 32))


def filled(database: Database, shapes=SHAPES[1:]) -> Database:
    """A database that knows some trials of other dispatches."""
    for number, shape in enumerate(shapes):
        facts = product_facts(*shape)
        every = candidates_of(f"d{number}", facts)
        database.describe(f"d{number}", TARGET, f"product {shape}", facts.to_json())
        for one in every[:: len(every) // 60]:
            database.add("s", trial_of(one, facts, cost_us(every[40], facts)))
    return database


def trials_until_near(order: Order, shape: tuple[int, int, int]) -> int:
    facts = product_facts(*shape)
    left, tried = candidates_of("new", facts), []
    known = features(left, facts)
    times = {key_of(one): cost_us(one, facts) for one in left}
    best, baseline = min(times.values()), times[key_of(left[40])]
    while True:
        for number in order.propose(left, known, tried)[:4]:
            tried.append(trial_of(left[number], facts, baseline))
            if tried[-1].us <= 1.05 * best:
                return len(tried)
        done = {key_of(one.candidate) for one in tried}
        left = [one for one in left if key_of(one) not in done]


@pytest.mark.parametrize("name", ["random", "heuristic", "learned"])
def test_every_order_gives_all_candidates_once(name):
    facts = product_facts(64, 64, 64)
    candidates = candidates_of("d", facts)
    order = make_order(name, filled(Database(":memory:", "c")), 1)
    assert sorted(order.propose(candidates, features(candidates, facts), [])) == list(range(len(candidates)))
    assert order.propose([], {}, []) == []


def test_an_unknown_order_is_named():
    with pytest.raises(UsageError, match="no order 'best'; there are random, heuristic, learned"):
        make_order("best", Database(":memory:", "c"), 1)


def test_a_seed_is_an_order():
    facts = product_facts(64, 64, 64)
    candidates = candidates_of("d", facts)
    known = features(candidates, facts)
    one, same, other = (Random(seed).propose(candidates, known, []) for seed in (1, 1, 2))
    assert one == same != other


def test_the_heuristic_needs_fewer_trials_than_chance():
    ours = statistics.mean(trials_until_near(Heuristic(seed), SHAPES[0]) for seed in range(3))
    chance = statistics.mean(trials_until_near(Random(seed), SHAPES[0]) for seed in range(6))
    assert ours < chance


def test_what_was_learned_of_other_dispatches_helps_a_new_one():
    known = examples_of(filled(Database(":memory:", "c")))
    ours = statistics.mean(trials_until_near(Learned(known, seed), SHAPES[0]) for seed in range(2))
    chance = statistics.mean(trials_until_near(Random(seed), SHAPES[0]) for seed in range(10))
    assert ours * 2.5 < chance


def test_it_learns_from_the_dispatch_itself():
    """Trials that say the opposite of all others turn the order round."""
    facts, known = product_facts(*SHAPES[0]), examples_of(filled(Database(":memory:", "c")))
    candidates = candidates_of("new", facts)
    names = features(candidates, facts)
    tried = [replace(trial_of(one, facts, 100.0), us=10.0 if one.point["width"] == 8 else 100.0) for one in candidates]
    tried = tried[::7]
    first = Learned(known, 1).propose(candidates, names, tried)[:20]
    assert sum(candidates[one].point["width"] == 8 for one in first) > 12, "a third of all are narrow"


def test_a_session_that_goes_on_is_proposed_the_same():
    """Whatever the database has of the session itself by then: it is told of its trials in the same order again."""
    database = filled(Database(":memory:", "c"))
    facts = [product_facts(*shape) for shape in SHAPES[:2]]
    lists = [candidates_of(f"new{number}", one) for number, one in enumerate(facts)]

    def proposals() -> list[list[int]]:
        order, found, tried = make_order("learned", database, 1, "mine"), [], ([], [])
        for number in (0, 1, 0):
            names = features(lists[number], facts[number])
            found.append(order.propose(lists[number], names, tried[number]))
            for one in found[-1][:8]:
                tried[number].append(trial_of(lists[number][one], facts[number], 50.0))
                database.describe(f"new{number}", TARGET, "new", facts[number].to_json())
                database.add("mine", tried[number][-1])
        return found

    assert proposals() == proposals()


def test_dispatches_of_a_session_learn_from_each_other():
    facts, order = [product_facts(*shape) for shape in SHAPES[:2]], Learned(Database(":memory:", "c"), 1)
    first, second = (candidates_of(f"new{number}", one) for number, one in enumerate(facts))
    names = features(first, facts[0]) | features(second, facts[1])
    # On this machine everything with more than two vectors is bad, which no fact says.
    trials = [trial_of(one, facts[0], cost_us(first[40], facts[0])) for one in first[::2]]
    tried = [
        one if one.candidate.point["vectors"] < 3 else type(one)(one.candidate, "d", Status.CRASHED) for one in trials
    ]
    order.propose(first, names, tried)
    few = [second[one].point["vectors"] < 3 for one in order.propose(second, names, [])[:20]]
    assert sum(few) >= 15, "two fifths of all, and every fifth is for finding out"


def test_without_a_past_the_heuristic_leads():
    facts = product_facts(*SHAPES[0])
    candidates = candidates_of("new", facts)
    names = features(candidates, facts)
    learned = Learned(Database(":memory:", "c"), 1).propose(candidates, names, [])
    assert set(learned[:12]) & set(Heuristic(1).propose(candidates, names, [])[:12])


def test_trials_that_failed_teach_to_stay_away():
    facts, database = product_facts(*SHAPES[0]), Database(":memory:", "c")
    every = candidates_of("d", facts)
    database.describe("d", TARGET, "product", facts.to_json())
    for one in every:
        bad = one.point["vectors"] >= 4
        trial = trial_of(one, facts, 50.0)
        database.add("s", type(trial)(one, "cpu0", Status.CRASHED) if bad else trial)
    other = product_facts(*SHAPES[1])
    candidates = candidates_of("e", other)
    first = Learned(database, 1).propose(candidates, features(candidates, other), [])[:20]
    assert all(candidates[one].point["vectors"] < 4 for one in first)


def test_notes_that_cannot_be_read_stop_nobody():
    database = filled(Database(":memory:", "c"))
    count = len(examples_of(database).gains)
    facts = product_facts(8, 8, 8)
    one = candidates_of("odd", facts)[0]
    database.describe("odd", TARGET, "odd", {"nests": "of another version"})
    database.add("s", trial_of(one, facts, 1.0))
    assert len(examples_of(database).gains) == count
