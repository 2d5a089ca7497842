"""What this machine can do at best: measured, stored, and measured again when what is stored is of no use."""

from __future__ import annotations

import json

import pytest
from made import MACHINE

from eyas.errors import UsageError
from eyas.explain import machine
from eyas.runtime import Device


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    monkeypatch.setattr(machine, "_MILLISECONDS", 2)
    monkeypatch.setattr(machine, "_ROUNDS", 1)
    monkeypatch.setattr(machine, "_MEMORY_BYTES", 8 << 20)
    monkeypatch.setattr(machine.OtherPrograms, "share", lambda self: 0.0)
    return tmp_path / "machines"


def test_measured_once_and_then_read(folder):
    device = Device("local-task", threads=2)
    first = machine.this_machine(device)
    assert first.workers == 2 and first.cpu == device.info()["name"] and first.flops_per_s > 1e6
    assert [level.name for level in first.levels][-1] == "memory" and len(first.levels) >= 3
    assert all(level.bytes_per_s > 1e6 for level in first.levels)
    (stored,) = folder.iterdir()
    assert machine.Machine.from_json(json.loads(stored.read_text())) == first == machine.this_machine(device)
    stored.write_text(json.dumps(MACHINE.to_json()))
    assert machine.this_machine(device) == MACHINE
    assert machine.this_machine(device, again=True) != MACHINE


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "levels": []}', '{"format": 99}', "null"])
def test_a_damaged_file_is_measured_anew(folder, text):
    device = Device("local-sync")
    machine.this_machine(device)
    (stored,) = folder.iterdir()
    stored.write_text(text)
    assert machine.this_machine(device).workers == 1
    assert json.loads(stored.read_text())["workers"] == 1


def test_limits_of_a_busy_machine_are_not_kept(folder, monkeypatch):
    monkeypatch.setattr(machine.OtherPrograms, "share", lambda self: 0.5)
    assert machine.this_machine(Device("local-sync")).disturbed
    assert not folder.exists()


def test_without_a_cache_folder(monkeypatch, folder):
    monkeypatch.setenv("EYAS_CACHE", "off")
    assert machine.this_machine(Device("local-sync")).flops_per_s > 0
    assert not folder.exists()
    monkeypatch.setenv("EYAS_CACHE", "/proc/nowhere")
    assert machine.this_machine(Device("local-sync")).flops_per_s > 0


def test_a_device_that_cannot_be_measured_says_which_can(folder):
    with pytest.raises(UsageError, match="device 'far' cannot be measured: .* on local-task or local-sync"):
        machine.this_machine(Device("far"))


def test_numbers_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="not positive"):
        machine.Machine.from_json({**MACHINE.to_json(), "flops_per_s": 0})
