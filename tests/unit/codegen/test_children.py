"""Children that compile are kept, replaced when they are worn out or dead, and never used by another process."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eyas.codegen import children
from eyas.codegen.children import Child, ChildDied, Pool, compile_jobs
from eyas.codegen.jobs import Job
from eyas.errors import EyasError, InternalError
from eyas.ir import make_context, parse_module
from eyas.targets import Target

_PATIENCE_S = 300
"""Only a machine that hangs takes so long."""

KERNEL = """
func.func private @kernel(%x: tensor<8xf32>) -> tensor<8xf32> attributes {flow.executable} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
"""


def jobs(count: int, text: str = KERNEL) -> list[Job]:
    buffer = io.BytesIO()
    parse_module(text, make_context()).operation.write_bytecode(buffer)
    return [Job("kernel", buffer.getvalue(), str(Target.host())) for _ in range(count)]


@pytest.fixture
def pool(monkeypatch):
    made = Pool()
    monkeypatch.setattr(children, "pool", made)
    yield made
    made.close()


def test_children_are_kept(pool):
    seen = []
    for _ in range(2):
        assert all(one.object for one in compile_jobs(jobs(4), 1))
        (child,) = pool.idle
        seen.append(child.process.pid)
    assert seen[0] == seen[1]
    child.process.kill()
    child.process.wait()
    assert all(one.object for one in compile_jobs(jobs(4), 2))
    assert len(pool.idle) == 2 and seen[0] not in [other.process.pid for other in pool.idle]


def test_one_job_does_not_run_here(pool, monkeypatch):
    """LLVM is never asked in the process of the user, however few dispatches there are."""
    from eyas.codegen.llvm_cpu import compile as dispatch_compiler

    def asked(*_):
        raise AssertionError("LLVM was asked in this process")

    monkeypatch.setattr(dispatch_compiler, "emit_object", asked)
    (made,) = compile_jobs(jobs(1), 1)
    assert made.object and not made.given_up


def test_a_short_job_takes_time_too(pool):
    """Less than a tick of the system's clock of processor time, which is all that some clocks see."""
    noted = 'flow.executable, codegen.strategy = #codegen.strategy<"no-such", {}>'
    child = pool.take("eyas.codegen.llvm_cpu.compile")
    took = [child.ask(job, 100)[1] for job in jobs(8, KERNEL.replace("flow.executable", noted))]
    pool.give_back(child)
    assert all(took)


def test_worn_out_and_foreign_children_are_left():
    pool = Pool()
    worn, foreign = Child("eyas.codegen.llvm_cpu.compile"), Child("eyas.codegen.llvm_cpu.compile")
    worn.jobs, pid = pool.MOST_JOBS, worn.process.pid
    pool.give_back(worn)
    assert worn.process.poll() is not None and pool.idle == ()
    foreign.owner = os.getpid() + 1
    pool.give_back(foreign)
    fresh = pool.take("eyas.codegen.llvm_cpu.compile")
    assert fresh.process.pid not in (pid, foreign.process.pid)
    foreign.owner = os.getpid()
    for child in (foreign, fresh):
        child.close()


def test_errors_come_back_as_they_are(pool):
    noted = 'flow.executable, codegen.strategy = #codegen.strategy<"no-such", {}>'
    with pytest.raises(EyasError, match="names the unknown strategy 'no-such'") as caught:
        compile_jobs(jobs(1, KERNEL.replace("flow.executable", noted)), 1)
    assert not isinstance(caught.value, InternalError)
    assert len(pool.idle) == 1


def test_a_job_that_does_not_end_is_ended():
    """By the clock too, where it takes no processor time."""
    child = Child("eyas.codegen.llvm_cpu.compile")
    (job,) = jobs(1)
    child.ask(job, 100)
    os.kill(child.process.pid, signal.SIGSTOP)
    with pytest.raises(ChildDied, match="took more than 0.5 s"):
        child.ask(job, 0.05)
    assert child.process.returncode == -signal.SIGKILL


def test_ctrl_c_ends_the_children_quietly(tmp_path):
    # The handler is set by the script: what runs in the background of a shell inherits that Ctrl-C is ignored.
    process = _about_to_ask(tmp_path, "signal.default_int_handler", EYAS_PLANTED_DEATH="hang:dispatch:0")
    found = _children_of(process.pid)
    _go_on(process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, said = process.communicate(timeout=_PATIENCE_S)
    assert said.count("Traceback") == 1 and said.rstrip().endswith("KeyboardInterrupt")
    _wait_for(lambda: not any(_is_alive(pid) for pid in found))
    assert found and not any(_is_alive(pid) for pid in found)


def test_ctrl_c_is_ignored_where_it_was_before(tmp_path):
    """As under nohup, or in the background of a shell."""
    process = _about_to_ask(tmp_path, "signal.SIG_IGN")
    os.killpg(process.pid, signal.SIGINT)
    _go_on(process)
    assert process.communicate(timeout=_PATIENCE_S) == ("compiled\n", "") and process.returncode == 0


def _about_to_ask(folder: Path, handler: str, **variables: str) -> subprocess.Popen[str]:
    """A process that has a job for a child, and asks it when it is told to: there is nothing to wait for by the clock,
    however busy the machine is."""
    script = folder / "script.py"
    script.write_text(
        f"import signal\nsignal.signal(signal.SIGINT, {handler})\n"
        "import eyas\n"
        "from eyas.codegen.children import Child\n"
        "ask = Child.ask\n"
        "def told(self, *args):\n"
        "    print('asked', flush=True)\n"
        "    input()\n"
        "    return ask(self, *args)\n"
        "Child.ask = told\n"
        "text = 'func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {%y = math.exp %x : tensor<4xf32>"
        " return %y : tensor<4xf32>}'\n"
        "eyas.compile(text)\n"
        "print('compiled')\n"
    )
    environment = {**os.environ, **variables}
    environment.pop("EYAS_COMPILE_IN_PROCESS", None)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "asked\n"
    return process


def _go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_child_ends_with_its_parent():
    code = (
        "import os, signal\nfrom eyas.codegen.children import Child\n"
        "child = Child('eyas.codegen.llvm_cpu.compile')\nprint(child.process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    _wait_for(lambda: not _is_alive(int(said)))
    assert not _is_alive(int(said))


def _wait_for(condition) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def _children_of(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(one) for one in file.read().split()]


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
