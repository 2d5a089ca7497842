"""Vulkan devices from Python: what they say of themselves, options, and what is told where there is none."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.tools import vulkan

import eyas
from eyas.codegen.spirv import compile as spirv
from eyas.errors import UsageError


def test_properties_are_what_targets_are_made_of(vulkan_device: eyas.Device) -> None:
    has = vulkan_device.properties
    assert all(type(name) is str and type(value) is str for name, value in has.items())
    assert {"api", "driver", "type", "subgroup", "shared-bytes", "threads", "push-bytes", "bindings"} <= set(has)
    assert int(has["threads"]) >= 128 and int(has["offset-alignment"]) <= 256 and int(has["storage-bytes"]) >= 1 << 27
    assert vulkan_device.formats == ("spirv",) and vulkan_device.asynchronous
    assert eyas.Device("local-sync").properties == {}


def test_a_device_is_found_by_its_name() -> None:
    whole = vulkan.device().description
    assert vulkan.device(match=whole[:6].upper()).description == whole
    with pytest.raises(UsageError, match=r"no device with index 0 and 'abacus' in its name; there are: "):
        vulkan.device(match="abacus")


def test_messages_of_the_validation_layer_are_seen(messages_expected, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that declares what the device was not asked for: `tests/conftest.py` counts on hearing of it."""
    if vulkan.device() and os.environ.get(vulkan.VALIDATION) != "1":
        pytest.skip("needs the validation layer: make system-deps")
    right = spirv.lower_to_spirv
    header, geometry = 20, struct.pack("<2I", 2 << 16 | 17, 2)  # OpCapability Geometry, after five words

    def wrong(*args):
        made = right(*args)
        return replace(made, code=made.code[:header] + geometry + made.code[header:])

    monkeypatch.setenv("EYAS_COMPILE_IN_PROCESS", "1")
    monkeypatch.setattr(spirv, "lower_to_spirv", wrong)
    before, x = vulkan.messages(), np.arange(5, dtype=np.float32)
    text = """
      func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
        %y = arith.addf %x, %x : tensor<5xf32>
        return %y : tensor<5xf32>
      }"""
    np.testing.assert_array_equal(eyas.compile(text, target="vulkan")(x), x + x)
    assert vulkan.messages() > before


def test_pipelines_go_to_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vulkan.device()
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path))
    assert eyas.Device("vulkan").options["pipeline_cache"] == str(tmp_path / "pipelines")
    monkeypatch.setenv("EYAS_CACHE", "off")
    assert "pipeline_cache" not in eyas.Device("vulkan").options


def test_without_a_driver_there_is_no_device_and_the_reason_is_told() -> None:
    environment = {**os.environ, "VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json"}
    program = """
import eyas
print([one.name for one in eyas.devices()])
try:
    eyas.Device("vulkan")
except eyas.EyasError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    listed, reason = done.stdout.splitlines()
    assert "vulkan" not in listed and "local-task" in listed
    assert "install" in reason.lower() and "vulkan" in reason.lower()
