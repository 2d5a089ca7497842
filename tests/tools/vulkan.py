"""The Vulkan device that tests run on: whichever driver is here, in CI Mesa's on the CPU (`make system-deps`).

Without one, tests that need it are skipped with the reason. Where every package is required (EYAS_TEST_REQUIRE=all) and
Mesa's driver is installed, a device that does not open is a failure: something of ours is broken.

Where Khronos' validation layer is installed, every device that a test opens is checked by it, the order of accesses
too, and a test after which the layer has said anything fails (`tests/conftest.py`).
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.tools import frameworks

import eyas
from eyas.errors import UsageError

_LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd*.json"
_LAYER = "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json"
VALIDATION = "EYAS_VULKAN_VALIDATION"


def switch_validation_on() -> None:
    """For every device of this process and of its children, unless the variable is set or there is no layer."""
    if VALIDATION not in os.environ and os.path.exists(_LAYER):
        os.environ[VALIDATION] = "1"


def messages() -> int:
    """How often the layer has complained in this process; 0 without it, or if no test has asked for a device yet."""
    if not why_not.cache_info().currsize or why_not() or os.environ.get(VALIDATION) != "1":
        return 0
    return int(_counter().properties["validation-messages"])


@functools.cache
def _counter() -> eyas.Device:
    return eyas.Device("vulkan", validation=1)


@functools.cache
def why_not() -> str | None:
    """Why there is no device, or None where there is one."""
    try:
        eyas.Device("vulkan")
    except UsageError as error:
        return str(error)
    return None


def device(**options: object) -> eyas.Device:
    """The first Vulkan device, opened with these options; without one the test is skipped."""
    if reason := why_not():
        if frameworks.required() and glob.glob(_LAVAPIPE):
            pytest.fail(f"Mesa's Vulkan driver is installed and does not open: {reason}")
        pytest.skip(f"needs a Vulkan device: make system-deps ({reason})")
    return eyas.Device("vulkan", **options)


def target() -> str:
    """The target of that device, as text."""
    device()
    return str(eyas.Target.parse("vulkan"))


def validate(code: bytes, environment: str = "vulkan1.3") -> str:
    """What spirv-val complains about in SPIR-V code; empty where it is fine."""
    tool = shutil.which("spirv-val")
    if tool is None:
        pytest.skip("needs spirv-val: make system-deps")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code.spv"
        path.write_bytes(code)
        done = subprocess.run([tool, "--target-env", environment, str(path)], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or done.stdout
