"""How fast a GPU is at best: multiply-adds in registers and bytes of its memory, by two kernels compiled for it.

What is timed are the dispatches, by the device's own clock; what the host does around them does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eyas.pipelines import driver
from eyas.pipelines.request import Request
from eyas.targets.gpu_device import target_for

if TYPE_CHECKING:
    from eyas.runtime import Device, Module

_ROUNDS = 5
_CHAINS, _LENGTH = 4, 64
"""Multiply-adds of each element: chains that do not wait for each other, and how long they are."""
_MOST_ELEMENTS, _LONG_ENOUGH_NS = 1 << 24, 5_000_000
_MEMORY_BYTES = 256 << 20


def measure_gpu(device: Device) -> tuple[float, float]:
    """Operations and bytes in a second, each the best of several rounds."""
    return _flops_per_s(device), _bytes_per_s(device)


def _flops_per_s(device: Device) -> float:
    module, count = elementwise(device, *_chains()), 1 << 16
    while True:
        ns = _fastest_ns(module, device.put(np.ones(count, np.float32)), device.put(np.array([0.5], np.float32)))
        if count == _MOST_ELEMENTS or ns >= _LONG_ENOUGH_NS:
            return 2 * _CHAINS * _LENGTH * count / (ns / 1e9)
        count *= 4


def _chains() -> tuple[str, str]:
    """Multiply-adds on %x and %s whose results are all needed, and the name of their sum."""
    lines = ["%c0_0 = arith.mulf %x, %s : f32"]
    lines += [f"%c{chain}_0 = arith.addf %c{chain - 1}_0, %s : f32" for chain in range(1, _CHAINS)]
    for step in range(_LENGTH):
        lines += [f"%c{chain}_{step + 1} = math.fma %c{chain}_{step}, %s, %s : f32" for chain in range(_CHAINS)]
    lines.append(f"%t0 = arith.mulf %c0_{_LENGTH}, %s : f32")
    lines += [f"%t{chain} = arith.addf %t{chain - 1}, %c{chain}_{_LENGTH} : f32" for chain in range(1, _CHAINS)]
    return "\n".join(lines), f"%t{_CHAINS - 1}"


def _bytes_per_s(device: Device) -> float:
    module = elementwise(device, "%1 = arith.addf %x, %s : f32", "%1")
    room = min(_MEMORY_BYTES, int(device.properties["storage-bytes"]), int(device.properties["memory-bytes"]) // 8)
    array, scale = np.ones(room // 4, np.float32), np.array([0.5], np.float32)
    return 2 * array.nbytes / (_fastest_ns(module, device.put(array), device.put(scale)) / 1e9)


def elementwise(device: Device, body: str, result: str) -> Module:
    """A module of one kernel, which computes `result` of each element %x of a vector of any length and a number %s."""
    text = f"""
    #each = affine_map<(a) -> (a)>
    #first = affine_map<(a) -> (0)>
    func.func @main(%values: tensor<?xf32>, %scale: tensor<1xf32>) -> tensor<?xf32> {{
      %zero = arith.constant 0 : index
      %size = tensor.dim %values, %zero : tensor<?xf32>
      %empty = tensor.empty(%size) : tensor<?xf32>
      %made = linalg.generic {{indexing_maps = [#each, #first, #each], iterator_types = ["parallel"]}}
        ins(%values, %scale : tensor<?xf32>, tensor<1xf32>) outs(%empty : tensor<?xf32>) {{
      ^bb0(%x: f32, %s: f32, %out: f32):
        {body}
        linalg.yield {result} : f32
      }} -> tensor<?xf32>
      return %made : tensor<?xf32>
    }}"""
    return driver.compile(Request(text, targets=(target_for(device.properties),))).load(device)


def _fastest_ns(module: Module, *arguments: object) -> int:
    """The shortest time of the kernel in several calls."""
    times = [
        event.end_ns - event.start_ns
        for events in module.profile(*arguments, runs=_ROUNDS)
        for event in events
        if event.end_ns and event.name.startswith("main_")
    ]
    return max(1, min(times))
