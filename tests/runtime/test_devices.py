"""Devices as objects, modules on them, and calls that overlap."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
from functools import partial
from pathlib import Path

import kernels
import numpy as np
import pytest
import waiting

import eyas
from eyas.errors import CallError, UsageError
from eyas.module.assembler import ProgramBuilder
from eyas.module.isa import Element
from eyas.module.program import State
from eyas.module.signature import Signature
from eyas.runtime import _core

NAMES = kernels.DEVICES


def in_threads(*calls) -> list:
    """What calls give that are made at the same time."""
    results: list = [None] * len(calls)

    def run(index: int) -> None:
        try:
            results[index] = calls[index]()
        except BaseException as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_every_listed_device_opens_and_is_what_the_list_says():
    found = eyas.devices()
    assert {one.name for one in found} >= {"local-task", "local-sync"}
    for one in found:
        device = eyas.Device(one.name, index=one.index)
        assert (device.name, device.index, device.threads) == (one.name, one.index, one.threads)
        assert (device.description, device.formats) == (one.description, one.formats) and one.formats
        assert (device.host_visible, device.asynchronous) == (one.host_visible, one.asynchronous)
        assert set(eyas.Device.options_of(one.name)) == {option for option, *_ in _core.driver_options(one.name)}
    local = found[0]
    assert local.name == "local-task" and local.host_visible and local.threads == len(os.sched_getaffinity(0))
    assert kernels.FORMAT in local.formats and "vmvx" in local.formats


def test_a_device_prints_well_and_is_equal_to_itself_alone():
    one, other = eyas.Device("local-task", threads=3), eyas.Device("local-task", threads=3)
    assert repr(one) == f"<eyas.Device local-task, 3 threads, {one.description}>"
    assert "1 thread," in repr(eyas.Device("local-sync"))
    assert one.threads == 3 and one.options["threads"] == 3
    assert one == one and one != other and len({one, other}) == 2
    with pytest.raises(UsageError, match=r"belongs to this process; open one there: eyas.Device\('local-task'"):
        pickle.dumps(one)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eyas.Device("gpu"), "no device 'gpu'; this runtime has: local-task, local-sync"),
        (lambda: eyas.Device.options_of("gpu"), "no device 'gpu'"),
        (lambda: eyas.Device("local-task", thread=2), "has no option 'thread'; it has: threads, "),
        (lambda: eyas.Device("local-task", threads=0), "threads=0: give a whole number from 1 to 1024, or None"),
        (lambda: eyas.Device("local-task", threads=-1), "threads=-1: give"),
        (lambda: eyas.Device("local-task", threads=5000), "threads=5000: give a whole number from 1 to 1024"),
        (lambda: eyas.Device("local-task", threads=2.0), "threads=2.0: give a whole number"),
        (lambda: eyas.Device("local-task", threads=True), "threads=True: give a whole number"),
        (lambda: eyas.Device("local-task", index=7), "there is no index 7"),
        (lambda: eyas.Device("local-task", vmvx_width=3), "allowed are 1, 2, 4 and 8"),
        (lambda: eyas.Device("local-task", vmvx_kernels=3), "vmvx_kernels=3: give a text"),
        (lambda: eyas.Device("local-task", vmvx_kernels="none"), "no VMVX microkernels 'none'; it has: .*portable"),
        (lambda: eyas.load(b"", device=3), "device=3: give an eyas.Device, or a name: local-task"),
        (lambda: eyas.load(b"", device=eyas.Device("local-sync"), threads=2), "threads=2: .* has its threads already"),
    ],
)
def test_errors_say_what_is_allowed(make, message: str):
    with pytest.raises(UsageError, match=message):
        make()


def test_a_name_means_one_device_for_all_who_ask_for_the_same(monkeypatch):
    data = kernels.add_module()
    first, second, other = eyas.load(data), eyas.load(data), eyas.load(data, threads=1)
    assert first.device is second.device and other.device is not first.device and other.device.threads == 1
    assert eyas.load(data, "local-sync").device.name == "local-sync"
    own = eyas.Device("local-task", threads=1)
    assert eyas.load(data, device=own).device is own is eyas.load(data, device=own).device is not other.device
    monkeypatch.setenv("EYAS_VMVX_WIDTH", "2")
    monkeypatch.setenv("EYAS_VMVX_KERNELS", "portable")
    assert eyas.load(data).device.vmvx == ("portable", 2) != first.device.vmvx
    assert eyas.Device("local-sync", vmvx_width=4).vmvx == ("portable", 4)
    monkeypatch.setenv("EYAS_VMVX_WIDTH", "3")
    with pytest.raises(UsageError, match="EYAS_VMVX_WIDTH is '3'; allowed are 1, 2, 4 and 8"):
        eyas.load(data)


def workers() -> int:
    """Threads of this process that devices have started."""
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum(name.startswith("eyas-") and "calls" not in name for name in names)


def test_a_device_is_closed_when_nothing_refers_to_it():
    before = workers()
    device = eyas.Device("local-task", threads=4)
    assert workers() == before + 3
    module = eyas.load(kernels.add_module((1000,)), device=device)
    x = np.ones(1000, np.float32)
    kept = module.on_device(x, x)
    del device
    gc.collect()
    assert workers() == before + 3 and module(x, x)[0] == 2
    del module
    gc.collect()
    assert workers() == before + 3 and kept.numpy()[0] == 2, "what lies on a device keeps it open"
    del kept
    gc.collect()
    assert workers() == before


@pytest.mark.parametrize(
    "make",
    [
        lambda data: [eyas.load(data, device=eyas.Device("local-task", threads=1)) for _ in range(2)],
        lambda data: [eyas.load(data, device=eyas.Device("local-sync")) for _ in range(2)],
        lambda data: [eyas.load(data, threads=1) for _ in range(2)],
        lambda data: [eyas.load(data, threads=2) for _ in range(3)],
        lambda data: [one := eyas.load(data, "local-sync"), one.clone()],
        lambda data: [one := eyas.load(data, threads=2), one.clone(), one.clone(eyas.Device("local-task", threads=3))],
    ],
    ids=["two devices", "two synchronous devices", "one device by name", "three on a pool", "clones", "clones on two"],
)
def test_calls_overlap(make):
    """Each call ends only when all have begun. One that waited for another would give up and say 0."""
    modules = make(waiting.module())
    for _ in range(3):
        where = waiting.place(len(modules))
        assert in_threads(*(partial(module, where) for module in modules)) == [1] * len(modules)


def test_calls_of_one_module_do_not_overlap():
    module = eyas.load(waiting.module(), "local-sync")
    where, calls = waiting.place(2), []
    threads = [threading.Thread(target=lambda: calls.append(int(module(where)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    waiting.wait_until_there(where)
    threads[0].join(0.05)
    assert where[0] == 1, "the second has not begun"
    waiting.arrive(where)
    for thread in threads:
        thread.join()
    assert calls == [1, 1]


@pytest.mark.parametrize("name", NAMES)
def test_many_threads_on_many_contexts_give_right_numbers(name: str):
    module = eyas.load(kernels.add_module((3000,)), device=eyas.Device(name))

    def work(seed: int, mine: eyas.Module) -> int:
        x, wrong = np.random.default_rng(seed).random(3000, np.float32), 0
        for i in range(100):
            y = np.full(3000, i, np.float32)
            wrong += not np.array_equal(mine(x, y), x + np.float32(i))
            wrong += not np.array_equal(mine.on_device(mine.on_device(x, y), y).numpy(), x + y + y)
        return wrong

    mine = [module, module, *(module.clone() for _ in range(4))]
    assert in_threads(*(lambda i=i, one=one: work(i, one) for i, one in enumerate(mine))) == [0] * len(mine)


def counter() -> bytes:
    """Adds 1 to its state, gives nothing."""
    builder = ProgramBuilder()
    asm = builder.function("main", Signature())
    ref, zero = asm.state(None, builder.state(State("calls", "i64", ()))), asm.const(0)
    value = asm.buffer_load(None, ref, zero, Element.I64)
    asm.buffer_store(asm.add(None, value, asm.const(1)), ref, zero, Element.I64)
    asm.return_()
    return kernels.pack(builder)


@pytest.mark.parametrize("name", NAMES)
def test_a_clone_has_a_state_of_its_own_and_shares_the_rest(name: str):
    module = eyas.load(counter(), device=eyas.Device(name))
    module(), module()
    clone = module.clone()
    clone()
    assert (module.state["calls"], clone.state["calls"]) == (2, 1)
    assert clone._loaded is module._loaded and clone.device is module.device and clone.manifest is module.manifest
    elsewhere = module.clone("local-sync")
    assert elsewhere.device.name == "local-sync" and elsewhere.state["calls"] == 0
    del module
    gc.collect()
    clone()
    assert clone.state["calls"] == 2


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_module_that_is_pickled_or_copied_says_what_to_do(copied):
    with pytest.raises(UsageError, match=r"module.save\(path\) and eyas.load\(path\) move it, module.clone\(\)"):
        copied(eyas.load(kernels.add_module()))


def in_child(work) -> int:
    """The exit code of a forked process: 0 when `work` gives True, none when it hangs."""
    pid = os.fork()
    if pid == 0:
        try:
            import signal

            signal.alarm(30)
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_calls_on_its_own_thread():
    module = eyas.load(kernels.add_module((5000,)), device=eyas.Device("local-task", threads=4))
    x = np.ones(5000, np.float32)
    module.submit(x, x).result()
    assert in_child(lambda: bool((module(x, x) == 2).all() and (module.submit(x, x).result() == 2).all())) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_during_a_call_has_clones():
    device = eyas.Device("local-task", threads=2)
    busy, module = eyas.load(waiting.module(), device=device), eyas.load(kernels.add_module((5000,)), device=device)
    x, where = np.ones(5000, np.float32), waiting.place(2)
    future = busy.submit(where)
    waiting.wait_until_there(where)
    assert in_child(lambda: bool((module(x, x) == 2).all() and (module.clone()(x, x) == 2).all())) == 0
    waiting.arrive(where)
    assert future.result() == 1


def test_a_module_for_another_machine_cannot_be_cloned():
    add = "%0 = arith.addf %a, %a : tensor<4xf32> return %0 : tensor<4xf32>"
    text = f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ {add} }}"
    foreign = eyas.compile(text, target="llvm-cpu:riscv64")
    for call in (foreign.clone, foreign.submit, foreign):
        with pytest.raises(CallError, match="cannot run here, only be saved"):
            call()


def test_devices_of_a_kind_are_told_apart_by_index_or_name():
    assert eyas.Device("local-task:0").index == 0 and eyas.Device("far:TESTS").name == "far"
    module = eyas.load(kernels.add_module(), device="far:0")
    assert module.device is eyas.load(kernels.add_module(), device="far:for tests").device
    with pytest.raises(UsageError, match=r"device='far:radeon': none is called so; there are: far:0 \(far, a device"):
        eyas.load(kernels.add_module(), device="far:radeon")
    with pytest.raises(UsageError, match="no device 'toaster'"):
        eyas.Device("toaster:0")
    with pytest.raises(UsageError):
        eyas.Device("far:7")
