"""Calls that are submitted: their order, their futures, asyncio, and what ends before they do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path

import kernels
import numpy as np
import pytest
import waiting
from test_devices import counter

import eyas
from eyas.errors import CallError

NAMES = kernels.DEVICES


@pytest.mark.parametrize("name", NAMES)
def test_results_errors_and_callbacks(name: str):
    module = eyas.load(kernels.add_module((300,)), device=eyas.Device(name))
    x, seen = np.arange(300, dtype=np.float32), []
    futures = [module.submit(x, np.full(300, i, np.float32)) for i in range(20)]
    futures[3].add_done_callback(lambda future: seen.append(future.result()[0]))
    assert all(np.array_equal(future.result(30), x + i) for i, future in enumerate(futures))
    assert all(future.done() for future in futures) and isinstance(futures[0], concurrent.futures.Future)
    assert seen == [3.0]
    assert np.array_equal(module["main"].submit(x, y=x).result(), x + x)
    assert np.array_equal(module.functions["main"].submit(x, x).result(), x + x)
    bad = module.submit(x)
    assert isinstance(bad.exception(30), CallError)
    with pytest.raises(CallError, match="takes 2 arguments|arguments"):
        bad.result()
    with pytest.raises(CallError, match="unknown or given twice: z"):
        module.submit(x, z=x).result()
    assert np.array_equal(module(x, x), x + x), "an error is of its own call"


@pytest.mark.parametrize("name", NAMES)
def test_calls_keep_their_order_submitted_or_not(name: str):
    module = eyas.load(counter(), device=eyas.Device(name))
    for expected in range(0, 60, 3):
        futures = [module.submit(), module.submit()]
        assert module.state["calls"] == expected + 2, "a read comes after what was submitted before it"
        module()
        assert all(future.done() for future in futures)
    futures = [module.submit() for _ in range(10)]
    module.reset()
    assert module.state["calls"] == 0 and all(future.done() for future in futures)


def test_a_call_waits_for_what_was_submitted_before_it():
    module = eyas.load(waiting.module(), "local-sync")
    first, second = waiting.place(2), waiting.place(1)
    future = module.submit(first)
    ended = []
    thread = threading.Thread(target=lambda: ended.append(module(second)))
    thread.start()
    waiting.wait_until_there(first)
    thread.join(0.05)
    assert second[0] == 0 and not ended and not future.done()
    waiting.arrive(first)
    thread.join()
    assert ended == [1] and future.done()


def test_timeout_and_cancel():
    module = eyas.load(waiting.module(), "local-sync")
    first, second, third = waiting.place(2), waiting.place(1), waiting.place(1)
    running, waits, last = module.submit(first), module.submit(second), module.submit(third)
    waiting.wait_until_there(first)
    with pytest.raises(TimeoutError):
        running.result(0.01)
    assert not running.cancel() and waits.cancel() and not last.done()
    waiting.arrive(first)
    assert running.result() == 1 and last.result() == 1
    assert second[0] == 0, "a cancelled call does not run"
    assert module(waiting.place(1)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_futures_are_awaited(name: str):
    device = eyas.Device(name)
    module = eyas.load(kernels.add_module((300,)), device=device)
    clones = [module, module.clone(), module.clone()]
    x = np.arange(300, dtype=np.float32)

    async def serve(request: int) -> bool:
        first = await clones[request % 3].submit(device.put(x), np.full(300, request, np.float32))
        second = await clones[request % 2].submit(first, x)
        with pytest.raises(CallError):
            await module.submit(x)
        return np.array_equal(second.numpy(), x + request + x)

    async def main() -> list[bool]:
        ticks = 0
        tasks = [asyncio.create_task(serve(request)) for request in range(30)]
        while not all(task.done() for task in tasks):
            ticks += 1
            await asyncio.sleep(0)
        assert ticks > 1, "the loop goes on while calls run"
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [True] * 30


def test_a_cancelled_task_does_not_start_its_call():
    module = eyas.load(waiting.module(), "local-sync")
    first, second = waiting.place(2), waiting.place(1)

    async def main() -> None:
        running = module.submit(first)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(module.submit(second), 0.05)
        waiting.arrive(first)
        assert await running == 1

    asyncio.run(main())
    assert module(waiting.place(1)) == 1 and second[0] == 0


def test_submitted_calls_of_clones_overlap():
    module = eyas.load(waiting.module(), threads=1)
    where = waiting.place(3)
    futures = [one.submit(where) for one in (module, module.clone(), module.clone())]
    assert [future.result(30) for future in futures] == [1, 1, 1]


def test_a_callback_may_call_the_module():
    module = eyas.load(kernels.add_module())
    x, seen = np.ones(4, np.float32), []
    for future in [module.submit(x, x) for _ in range(3)]:
        future.add_done_callback(lambda done: seen.append(module(done.result(), x)[0]))
        future.result()
    module(x, x)
    assert len(seen) <= 3 and all(value == 3 for value in seen)


def call_threads() -> int:
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum(name.startswith("eyas-calls") for name in names)


def test_a_module_may_go_before_its_calls_have_ended():
    module = eyas.load(waiting.module(), device=eyas.Device("local-sync"))
    gone, where, late = weakref.ref(module.device), waiting.place(2), waiting.place(1)
    futures = [module.submit(where), module.submit(late)]
    queue = weakref.ref(module.functions["main"]._calls.queue)
    del module
    gc.collect()
    waiting.arrive(where)
    assert [future.result(30) for future in futures] == [1, 1]
    del futures
    for _ in range(200):
        gc.collect()
        if queue() is None and gone() is None:
            break
        threading.Event().wait(0.01)
    assert queue() is None and gone() is None, "neither the thread nor the device stays"


def test_errors_leave_no_cycles():
    module = eyas.load(kernels.add_module())
    gc.collect()
    gc.disable()
    try:
        future = module.submit(1)
        assert future.exception() is not None
        gone = weakref.ref(future)
        module.submit(1).exception()  # the thread's own variables are those of the next call now
        del future
        assert gone() is None
    finally:
        gc.enable()


def test_the_interpreter_exits_with_calls_in_flight():
    """Calls that were submitted are finished; nothing hangs and nothing crashes."""
    script = textwrap.dedent("""
        import sys
        sys.path.insert(0, sys.argv[1])
        import kernels, numpy as np, eyas
        module = eyas.load(kernels.add_module((100_000,)))
        x = np.ones(100_000, np.float32)
        for one in (module, module.clone()):
            for _ in range(50):
                one.submit(x, x)
            one.submit(x, x).add_done_callback(lambda future: sys.stdout.write(f"done {future.result()[0]}\\n"))
    """)
    done = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout.count("done 2.0") == 2, done.stderr
