"""The Python face of the C core: a `.eyas` file or its bytes go in, something to call comes out.

    module = eyas.runtime.load("model.eyas")
    out = module(x)                     # NumPy in, NumPy out; torch in, torch out

Needs NumPy and nothing else: neither MLIR nor LLVM nor torch is imported here.
"""

from eyas.runtime._core import DeviceTensor
from eyas.runtime.calls import Function
from eyas.runtime.device import Device, DeviceInfo, devices
from eyas.runtime.module import Module, load
from eyas.runtime.profile import Event

__all__ = ["Device", "DeviceInfo", "DeviceTensor", "Event", "Function", "Module", "devices", "load"]
