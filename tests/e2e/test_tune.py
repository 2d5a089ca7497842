"""The tuner as a whole: sessions on three targets, wrong candidates, deaths, and models that become faster."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.tools import faults, tune_session, tuning, vulkan

import eyas
from eyas.cli.common import make_inputs
from eyas.pipelines.request import Request
from eyas.specs import SpecSource
from eyas.targets import Target
from eyas.tune.bench import PLAIN, Bench, Setting
from eyas.tune.compile import Compilers, Failed
from eyas.tune.database import Database
from eyas.tune.making import Maker
from eyas.tune.runner import RunnerProcess
from eyas.tune.search import Search
from eyas.tune.spec import Entry, Spec, match_of, name_of
from eyas.tune.trials import Status
from eyas.tune.tuning import Wish, tune
from eyas.tune.whole import Whole

ROOT = Path(__file__).parents[2]


def inputs(signature):
    return make_inputs([], signature)


def in_order(candidates, tried):
    return list(range(len(candidates)))


class InProcess:
    """Compiles here, where faults are planted."""

    def __init__(self) -> None:
        self.maker = Maker()

    def compile(self, small, schedules):
        for number, schedule in enumerate(schedules):
            yield number, self.maker.make(small, schedule)

    def compile_one(self, small, schedule=None):
        return self.maker.make(small, schedule)


# --- whole models -----------------------------------------------------------------------------------------------------


def test_a_model_becomes_faster(tmp_path):
    """Its spec before it was tuned says plain loops, so that there is something to gain on any machine."""
    model = tuning.product(96, 256, 256)
    product = tuning.opened(model).find("matmul")
    match = match_of(product.function, product.target)
    slow = SpecSource("slow.mlir", Spec((Entry(name_of(match), match, PLAIN),)).text())
    request = Request(model, targets=(Target.parse("llvm-cpu"),), tuning_specs=(slow,))
    wish = Wish(300.0, trials=6, order="random", graph=False, dispatches=("matmul",), threads=1)
    with Database(tmp_path / "trials.db", compiler="a test") as database:
        tuned = tune(request, inputs, wish, database)
        (row,) = tuned.rows
        assert row["trials"] == 6 == len([one for one in database.trials() if one.order == "random"])
    (entry,) = tuned.spec.entries
    assert entry.schedule.startswith('#codegen.strategy<"') and "loops" not in entry.schedule
    assert tuned.kept.ratio.estimate > 1.3 and row["gain"] > 1.3
    plain, fast = eyas.compile(model), eyas.compile(model, tuning_spec=tuned.spec.text())
    x = np.random.default_rng(0).standard_normal((96, 256)).astype(np.float32)
    np.testing.assert_allclose(fast(x), plain(x), rtol=1e-4, atol=1e-6)
    assert fast.manifest["provenance"]["tuning"][0]["used"]


def test_graph_choices_are_compared_in_the_model():
    request = Request(tuning.product(), targets=(Target.parse("vmvx"),))
    x = np.random.default_rng(0).standard_normal((12, 37)).astype(np.float32)
    whole = Whole(request, (x,), "local-task", 1)
    best, dropped = whole.graph_choices(float("inf"), ("winograd", "form-dispatches"))
    assert dropped[0] == "without winograd: it changes nothing"  # there is no convolution
    assert "form-dispatches" in best.disable or "inside of the model" in dropped[1]
    assert whole.graph_choices(0.0, ("winograd",)) == (whole.base, ["winograd: not tried, the time was over"])


# --- sessions on devices ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx", "vulkan"])
def test_candidates_are_right_and_timed(target, tmp_path):
    device = "local-task"
    if target == "vulkan":
        target, device = vulkan.target(), "vulkan"
    dispatch = tuning.opened(tuning.product(), target, device=device if device == "vulkan" else "").find("matmul")
    search = Search(dispatch, tuning.drawn, in_order, seed=3)
    with Compilers(1) as compilers, RunnerProcess(device, 1 if device == "local-task" else None) as runner:
        bench = Bench(dispatch, compilers, [runner], Setting(seconds=0.2, reproducers=tmp_path))
        bench.open()
        assert bench.check_baseline() is None
        bench.baseline_us()
        candidates = search.batch(3, [])
        trials = list(bench.try_all([*candidates, candidates[0]]))
    assert len(trials) == 4 and trials[-1].status in (Status.SAME_CODE, Status.REFUSED)
    for trial in trials:
        assert trial.status.has_time or trial.status is Status.REFUSED, trial
    assert any(trial.us and trial.ratio for trial in trials)


def test_wrong_candidates_are_refused_and_kept(tmp_path, monkeypatch):
    dispatch = tuning.opened(tuning.product()).find("matmul")
    search = Search(dispatch, tuning.drawn, in_order, seed=3)
    candidates = [one for one in search.batch(12, []) if one.strategy == "contraction"][:1]
    compilers = InProcess()
    with RunnerProcess("local-task", 1) as runner:
        bench = Bench(dispatch, compilers, [runner], Setting(seconds=0.1, reproducers=tmp_path))
        bench.open()
        faults.short_contraction(monkeypatch)
        (trial,) = bench.try_all(candidates)
    assert trial.status is Status.WRONG and "plain loops give" in trial.reason and trial.ratio is None
    folder = Path(trial.reproducer)
    assert {"dispatch.mlir", "parameters.safetensors", "input_0.npy", "expected_0.npy", "README.md"} <= {
        one.name for one in folder.iterdir()
    }
    assert json.loads((folder / "report.json").read_text())["schedule"] == candidates[0].schedule
    # What it says can be compiled and run, and where nothing is wrong any more it gives what was expected.
    monkeypatch.undo()
    from eyas.pipelines import driver
    from eyas.pipelines.dumps import read_dump_file
    from eyas.pipelines.request import Phase

    program = read_dump_file(folder / "dispatch.mlir")
    module = driver.compile(Request(program, after=Phase.SCHEDULE)).load(threads=1)
    got = module.functions["main"](np.load(folder / "input_0.npy"))
    np.testing.assert_allclose(got, np.load(folder / "expected_0.npy"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("death, status", [("abort", Status.CRASHED), ("loop", Status.TIMEOUT)])
def test_a_compiler_that_dies_costs_its_candidate(death, status, tmp_path, monkeypatch):
    dispatch = tuning.opened(tuning.product()).find("matmul")
    search = Search(dispatch, tuning.drawn, in_order, seed=3)
    candidates = [one for one in search.batch(12, []) if one.strategy == "contraction"][:2]
    planted = candidates[0].schedule.replace(" : i64", "")
    monkeypatch.setenv("EYAS_PLANTED_DEATH", f"{death}:{planted}:0")
    from eyas.tune.making import Small

    with Compilers(2, seconds=3.0) as compilers:
        small = Small.of(dispatch)
        outcomes = dict(compilers.compile(small, [planted, candidates[1].schedule]))
    assert isinstance(outcomes[0], Failed) and outcomes[0].status is status
    assert not isinstance(outcomes[1], Failed)


def test_code_that_kills_its_process(tmp_path):
    """The runner starts again, with what it knew, and goes on."""
    dispatch = tuning.opened(tuning.product()).find("matmul")
    with Compilers(1) as compilers, RunnerProcess("local-task", 1) as runner:
        bench = Bench(dispatch, compilers, [runner], Setting(seconds=0.1, reproducers=tmp_path))
        bench.open()
        runner._child.process.kill()
        runner._child.process.wait()
        with pytest.raises(Exception, match="running it"):
            runner.check("baseline")
        assert runner.check("baseline") is None


# --- kills ------------------------------------------------------------------------------------------------------------


def killed_and_resumed(folder: Path, moments: int, seed: int) -> None:
    model = tuning.opened(tuning.product())
    with Database(folder / "whole.db", compiler="a test") as database:
        expected = json.loads(json.dumps(tune_session.result_of(tune_session.run(database, model.dispatches))))
    chance, killed = random.Random(seed), 0
    path, result = folder / "killed.db", folder / "result.json"
    command = [sys.executable, "-m", "tests.tools.tune_session", str(path), str(result)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    recorded: list = []
    while killed < moments:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        time.sleep(chance.uniform(0.0, 1.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += 1
        with Database(path, compiler="a test") as database:
            trials = database.trials()
        assert trials[: len(recorded)] == recorded  # nothing that was recorded is lost
        recorded = trials
        if result.exists():
            break
    with Database(path, compiler="a test") as database:
        got = json.loads(json.dumps(tune_session.result_of(tune_session.run(database, model.dispatches))))
        schedules = [(one.candidate.dispatch, one.candidate.schedule) for one in database.trials()]
    assert got == expected
    assert len(schedules) == len(set(schedules))  # and nothing is tried again


def test_a_session_that_was_killed_goes_on(tmp_path):
    killed_and_resumed(tmp_path, 2, 1)


@pytest.mark.long
def test_a_session_that_was_killed_twenty_times_goes_on(tmp_path):
    for seed in range(10):
        (tmp_path / str(seed)).mkdir()
        killed_and_resumed(tmp_path / str(seed), 2, seed)


# --- the command ------------------------------------------------------------------------------------------------------


def eyas_command(*arguments, fails: bool = False) -> str:
    done = subprocess.run([sys.executable, "-m", "eyas", *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def test_the_command_tunes_resumes_and_merges(tmp_path):
    import onnx

    path, spec, database = tmp_path / "m.onnx", tmp_path / "m.spec.mlir", tmp_path / "trials.db"
    onnx.save(tuning.product(), path)
    options = ("--database", database, "-o", spec, "--json")
    few = (
        "--budget",
        "60s",
        "--trials",
        2,
        "--dispatches",
        "matmul",
        "--threads",
        1,
        "--no-graph",
        "--order",
        "random",
    )
    first = json.loads(eyas_command("tune", path, *few, *options))
    assert first["dispatches"][0]["trials"] == 2 and spec.exists()
    again = json.loads(eyas_command("tune", "--resume", "--budget", "60s", *options))
    assert again["session"] == first["session"] and again["dispatches"][0]["trials"] == 2
    eyas_command("tune", "--merge", spec, spec, "-o", tmp_path / "both.mlir")
    eyas_command("compile", path, "--tuning-spec", tmp_path / "both.mlir", "-o", tmp_path / "m.eyas")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("--budget", "soon", "m.onnx"), "give a time such as 90s, 20m or 2h"),
        ((), "give one model to tune, got 0"),
        (("--merge", "a.mlir"), "--merge needs two specs or more"),
        (("none.onnx",), "no such file: 'none.onnx'"),
    ],
)
def test_the_command_teaches(arguments, said, capsys, monkeypatch, tmp_path):
    from eyas.cli.app import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EYAS_TUNE_DATABASE", str(tmp_path / "trials.db"))
    with pytest.raises(SystemExit) as ended:
        main(["tune", *arguments])
    assert ended.value.code in (1, 2) and said in capsys.readouterr().err


def test_passes_that_are_left_out_are_in_the_header():
    from eyas.tune.timing import Noise, Ratio
    from eyas.tune.tuning import header_of
    from eyas.tune.whole import Choice, Kept

    model, asked = tuning.opened(tuning.product()), Choice(("winograd",))
    kept = Kept(Choice(("winograd", "fuse-attention")), Ratio(1.1, 1.2, 1.3), Noise(0.01))
    assert header_of(model, kept, asked)["disable"] == "fuse-attention"
    assert "disable" not in header_of(model, Kept(asked, Ratio(1.0, 1.0, 1.0), Noise(0.0)), asked)
