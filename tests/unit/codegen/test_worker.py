"""Children that compile are kept, replaced when they are worn out or dead, and never used by another process."""

from __future__ import annotations

import os

from eyas.codegen import worker
from eyas.codegen.worker import Job, _Child, _Children, compile_jobs
from eyas.ir import make_context, parse_module
from eyas.targets import Target

KERNEL = """
func.func private @kernel(%x: tensor<8xf32>) -> tensor<8xf32> attributes {flow.executable} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
"""


def jobs(count: int) -> list[Job]:
    import io

    buffer = io.BytesIO()
    parse_module(KERNEL, make_context()).operation.write_bytecode(buffer)
    return [Job("kernel", buffer.getvalue(), str(Target.host())) for _ in range(count)]


def test_children_are_kept(monkeypatch):
    children = _Children()
    monkeypatch.setattr(worker, "_children", children)
    seen = []
    for _ in range(2):
        assert all(one.object for one in compile_jobs(jobs(4), 2))
        (child,) = children._idle
        seen.append(child.process.pid)
    assert seen[0] == seen[1]
    child.process.kill()
    child.process.wait()
    assert all(one.object for one in compile_jobs(jobs(4), 2))
    assert [other.process.pid for other in children._idle] != seen[:1]
    children.close()


def test_worn_out_and_foreign_children_are_left(monkeypatch):
    children = _Children()
    worn, foreign = _Child(), _Child()
    worn.jobs, pid = children.MOST_JOBS, worn.process.pid
    children.give_back(worn)
    assert worn.process.poll() is not None and children._idle == []
    foreign.owner = os.getpid() + 1
    children.give_back(foreign)
    fresh = children.take()
    assert fresh.process.pid not in (pid, foreign.process.pid)
    foreign.owner = os.getpid()
    for child in (foreign, fresh):
        child.close()
