"""Fleets: what a death costs, who waits for whom, and that ratios do not depend on the device."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eyas.errors import MissingPackageError, UsageError
from eyas.tune.fleet import Fleet, FleetError, LocalFleet, Lost, Maker, make_fleet

MAKE = Maker("tests.unit.tune.fleet_work:make")


@pytest.fixture(scope="module")
def fleet():
    with LocalFleet(MAKE, 2) as made:
        yield made


def test_every_task_is_answered_and_workers_keep_what_they_have(fleet):
    found = dict(fleet.run(["a", "b", "c", "d", "e"]))
    assert set(found) == set("abcde") and all(answer[2] == task for task, answer in found.items())
    assert len({answer[0] for answer in found.values()}) <= 2
    assert max(answer[1] for answer in found.values()) > 1


@pytest.mark.parametrize(("how", "said"), [("killed", "SIGKILL"), ("exits", "exit code 3")])
def test_a_death_costs_its_task_and_nothing_else(fleet, how, said):
    tasks = ["a", "b", ("die", how), "c", "d", "e"]
    found = list(fleet.run(tasks))
    lost = [(task, answer) for task, answer in found if isinstance(answer, Lost)]
    assert lost == [(("die", how), Lost(f"its worker died: {said}"))]
    assert sorted(map(str, (task for task, _ in found))) == sorted(map(str, tasks))


def test_a_task_that_raises_leaves_its_worker_alive(fleet):
    before = dict(fleet.run(["a", "b"]))
    [(_, answer)] = fleet.run([("raise", "no such tile")])
    assert isinstance(answer, Lost) and "ValueError: no such tile (fleet_work.py:" in answer.reason
    after = dict(fleet.run(["c"]))
    assert after["c"][0] in {answer[0] for answer in before.values()}


def test_a_task_that_does_not_end_is_stopped():
    with LocalFleet(MAKE, 1, seconds=1.5) as fleet:
        start = time.monotonic()
        found = list(fleet.run([("sleep", 60.0), "a"]))
        assert time.monotonic() - start < 30
    (task, lost), (_, answer) = found
    assert task == ("sleep", 60.0) and lost == Lost("it took more than 1.5 s", is_timeout=True) and answer[2] == "a"


def test_tasks_are_drawn_when_there_is_somebody_for_them(fleet):
    drawn, answered = [], []

    def tasks():
        for number in range(8):
            drawn.append(number)
            assert len(drawn) - len(answered) <= fleet.size
            yield ("time", float(number))

    for task, _ in fleet.run(tasks()):
        answered.append(task)
    assert len(answered) == 8


def test_whoever_stops_listening_gets_no_old_answers(fleet):
    for _ in fleet.run([("sleep", 0.01), ("sleep", 5.0), "x"]):
        break
    assert [task for task, _ in fleet.run(["new"])] == ["new"]


def test_ratios_are_those_of_each_devices_own_baseline(fleet):
    found = [answer for _, answer in fleet.run([("time", 50.0), ("time", 50.0), ("time", 50.0), ("time", 50.0)])]
    assert {round(one["baseline_us"] / one["us"], 6) for one in found} == {2.0}


def test_workers_that_always_die_are_given_up():
    with LocalFleet(MAKE, 1) as fleet, pytest.raises(FleetError, match="3 workers died one after the other"):
        list(fleet.run([("die", "killed")] * 9))


def test_a_worker_that_cannot_be_made_says_why():
    with LocalFleet(Maker("tests.unit.tune.fleet_work:make_nothing"), 1) as fleet:
        [(_, answer)] = fleet.run(["a"])
    assert isinstance(answer, Lost) and "there is no such device" in answer.reason


def test_names(monkeypatch):
    with pytest.raises(UsageError, match="no workers 'slurm'; there are local, ray"):
        make_fleet("slurm", MAKE)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"--workers ray.*eyas\[fleet\]"):
        make_fleet("ray", MAKE)


@pytest.mark.long
def test_a_ray_cluster_of_which_a_worker_is_killed(tmp_path):
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed: pip install 'eyas[fleet]'")
    # In a process of its own: Ray leaves threads and signal handlers behind.
    script = "import sys; from tests.unit.tune.test_fleet import on_ray; on_ray(sys.argv[1])"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, timeout=300, text=True)
    assert done.returncode == 0


def on_ray(folder: str) -> None:
    """Four workers on a local cluster; one is killed from outside in the middle of a task, one kills itself."""
    import os
    import signal

    import ray

    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    options = {"include_dashboard": False, "log_to_driver": False, "_temp_dir": folder}
    ray.init(num_cpus=4, runtime_env={"env_vars": environment}, **options)
    fleet: Fleet
    with make_fleet("ray", MAKE, 4, seconds=60.0) as fleet:
        workers = {answer[0] for _, answer in fleet.run([("sleep", 1.0)] * 8)}
        print("workers", sorted(workers))
        assert len(workers) == 4
        victim = min(workers)

        def tasks():
            for number in range(24):
                if number == 8:
                    os.kill(victim, signal.SIGKILL)
                yield ("sleep", 0.5) if number != 15 else ("die", "exits")

        found = list(fleet.run(tasks()))
        lost = [(task, answer) for task, answer in found if isinstance(answer, Lost)]
        print("lost", lost)
        assert len(found) == 24 and len(lost) <= 2 and all("died" in one.reason for _, one in lost)
        assert [task for task, _ in lost].count(("die", "exits")) == 1 and len(lost) == 2
        after = {answer[0] for _, answer in fleet.run([("sleep", 1.0)] * 8)}
        assert victim not in after and len(after) == 4, "others took their places"
        [(_, stopped)] = make_fleet("ray", MAKE, 1, seconds=2.0).run([("sleep", 60.0)])
        assert stopped == Lost("it took more than 2 s", is_timeout=True)
    ray.shutdown()
