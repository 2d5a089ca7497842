"""`python -m benchmarks.gpu_kernels`: kernels that are limited by memory on a Vulkan device, by the device's own clock.

They are compared with a copy on the device, which reads and writes each byte. Every result is checked against torch.
Products are in `benchmarks/gpu_products.py`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from eyas.runtime import Device, Module

BAR = 0.8
"""Of a copy's bandwidth, for what is limited by memory."""
_MEGABYTES = 256
_TURNS, _ROUNDS, _SECONDS, _IN_A_ROW = 3, 4, 0.02, 10
_TOLERANCES = {4: 1e-4, 2: 2e-2}
"""Largest difference from torch over its largest value, by bytes of an element."""

Model = Callable[..., "torch.Tensor"]


@dataclass(frozen=True)
class Kernel:
    """`make` gives a model and its arguments, of about `bytes` together, in a type of elements."""

    name: str
    make: Callable[[int, torch.dtype], tuple[Model, tuple[torch.Tensor, ...]]]
    types: tuple[str, ...] = ("f32",)


@dataclass(frozen=True)
class Result:
    """The kernels of one call together: the fastest of several."""

    name: str
    type: str
    us: float
    bytes: int
    """Arguments and results, once each."""
    error: float
    of_copy: float
    kernels: str
    """Strategies and knobs."""

    tolerance: float

    @property
    def verdict(self) -> str:
        if not self.error <= self.tolerance:
            return "WRONG"
        return "under" if self.of_copy < BAR else "ok"


def rows_of(columns: int, model: Model | type | None = None, inputs: int = 1) -> Callable:
    """A model on matrices of so many columns; a class of `torch.nn` is made for that many."""

    def make(bytes_: int, dtype: torch.dtype) -> tuple[Any, tuple[torch.Tensor, ...]]:
        import torch

        made = model
        if isinstance(model, type):
            made = model(columns).eval().to(dtype)
            for parameter in made.parameters():
                torch.nn.init.normal_(parameter)
        rows = max(1, bytes_ // (columns * dtype.itemsize * inputs))
        return made, tuple(_random(dtype, rows, columns) for _ in range(inputs))

    return make


def _random(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    import torch

    # A period that divides nothing: quicker than so many random numbers.
    count = torch.Size(shape).numel()
    return torch.randn(min(count, 999_983)).repeat(-(-count // 999_983))[:count].reshape(shape).to(dtype)


def kernels() -> Iterator[Kernel]:
    """What is measured."""
    import torch
    from torch import nn
    from torch.nn import functional

    both = ("f32", "f16", "bf16")

    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    def softmax(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    # Limited by memory: 64 MB and more of each.
    yield Kernel("add", rows_of(4096, add, 2), both)
    yield Kernel("gelu", rows_of(4096, functional.gelu), both)
    yield Kernel("transpose", rows_of(8192, lambda x: x.t().contiguous()), both)
    for columns in (64, 1024, 4096, 12_288, 50_257):
        yield Kernel(f"softmax {columns}", rows_of(columns, softmax), both if columns == 1024 else ("f32",))
    yield Kernel("softmax 1023", rows_of(1023, softmax))
    yield Kernel("log softmax 1024", rows_of(1024, lambda x: torch.log_softmax(x, -1)))
    yield Kernel("masked softmax 1024", rows_of(1024, lambda x, y: torch.softmax(x * 0.125 + y, -1), 2))
    for columns in (768, 1024, 8192):
        yield Kernel(f"layer norm {columns}", rows_of(columns, nn.LayerNorm), both if columns == 1024 else ("f32",))
    yield Kernel("RMS norm 4096", rows_of(4096, nn.RMSNorm), both)
    yield Kernel("residual layer norm 1024", rows_of(1024, _residual_norm(), 2))
    yield Kernel("norm to f16 1024", rows_of(1024, lambda x: functional.layer_norm(x, (1024,)).half()))
    for columns in (16, 1024, 50_257):
        yield Kernel(f"row sums {columns}", rows_of(columns, lambda x: x.sum(-1)))
    yield Kernel("row maxima 1024", rows_of(1024, lambda x: x.amax(-1)), ("f16",))
    yield Kernel("row arg-maxima 1024", rows_of(1024, lambda x: x.argmax(-1)))
    yield Kernel("row variances 1024", rows_of(1024, lambda x: x.var(-1)))
    for columns in (64, 1024, 16_384):
        yield Kernel(f"column sums {columns}", rows_of(columns, lambda x: x.sum(0)))
    yield Kernel("column maxima 4096", rows_of(4096, lambda x: x.amax(0)), ("f16",))
    yield Kernel("sum of everything", rows_of(4096, lambda x: x.sum()))


def _residual_norm() -> type:
    from torch import nn

    class ResidualNorm(nn.LayerNorm):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return super().forward(x + y)

    return ResidualNorm


def copy_bytes_per_s(device: Device, megabytes: int) -> float:
    """Bytes that a copy on the device reads and writes in a second: the driver's own, a kernel of one addition, or
    CUDA's, whichever is fastest."""
    import numpy as np

    from eyas.explain.gpu_machine import elementwise
    from eyas.pipelines import driver
    from eyas.pipelines.request import Request
    from eyas.targets.gpu_device import target_for

    count = megabytes << 18
    text = f"""
    func.func @main(%x: tensor<{count}xf32>) -> tensor<{count}xf32> {{
      return %x : tensor<{count}xf32>
    }}"""
    module = driver.compile(Request(text, targets=(target_for(device.properties),))).load(device)
    array = device.put(np.ones(count, np.float32))
    ns = _fastest_ns(module, (array,))
    add = _fastest_ns(
        elementwise(device, "%1 = arith.addf %x, %s : f32", "%1"), (array, device.put(np.ones(1, np.float32)))
    )
    return 2 * 4 * count / (min(ns, add, _cuda_copy_ns(4 * count)) / 1e9)


def measure(kernel: Kernel, type_: str, megabytes: int, device: Device, copy: float) -> Result:
    import torch

    import eyas

    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[type_]
    torch.manual_seed(0)
    model, args = kernel.make(megabytes << 20, dtype)
    module = eyas.compile(model, args, target="vulkan").clone(device)
    given = tuple(device.put(one) for one in args)
    want = _reference(model, args)
    found = module(*given).torch()
    ns = _fastest_ns(module, given)
    bytes_ = sum(one.nbytes for one in (*args, want))
    return Result(
        kernel.name,
        type_,
        ns / 1e3,
        bytes_,
        _error(found, want),
        bytes_ / (ns / 1e9) / copy,
        "; ".join(f"{one['strategy']} {one['knobs']}" for one in module.manifest["kernels"]),
        max(_TOLERANCES[one.dtype.itemsize] for one in (*args, want) if one.is_floating_point()),
    )


def _reference(model: Any, args: Sequence[torch.Tensor]) -> torch.Tensor:
    """What torch makes of it, where it is fastest."""
    import torch

    place = "cuda" if torch.cuda.is_available() else "cpu"
    there = model.to(place) if isinstance(model, torch.nn.Module) else model
    with torch.no_grad():
        want = there(*(one.to(place) for one in args)).cpu()
    if isinstance(model, torch.nn.Module):
        model.cpu()
    return want


def _error(found: torch.Tensor, want: torch.Tensor) -> float:
    scale = max(float(want.abs().max()), 1e-30)
    return float((found.float() - want.float()).abs().max()) / scale


def _fastest_ns(module: Module, args: Sequence[object]) -> int:
    """The shortest time that all commands of a call take together."""
    calls, times = module.profiled_calls(*args), []
    for _ in range(_TURNS):
        wake()
        times += [sum(event.end_ns - event.start_ns for event in next(calls)) for _ in range(_ROUNDS)]
    return max(1, min(times))


def wake() -> None:
    """Has a GPU compute for a while: one that was idle runs at a fraction of its clock, and single kernels of Vulkan do
    not change that on NVIDIA's driver, where CUDA does."""
    import torch

    if not torch.cuda.is_available():
        return
    matrix = torch.ones(4096, 4096, dtype=torch.float16, device="cuda")
    begin = time.perf_counter()
    while time.perf_counter() - begin < _SECONDS:
        for _ in range(10):
            matrix @ matrix
        torch.cuda.synchronize()


def _cuda_copy_ns(bytes_: int) -> float:
    """What CUDA takes for a copy, where it is the device."""
    import torch

    if not torch.cuda.is_available():
        return float("inf")
    source = torch.ones(bytes_, dtype=torch.uint8, device="cuda")
    target, times = torch.empty_like(source), []
    for _ in range(_ROUNDS):
        wake()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        target.copy_(source)
        begin.record()
        for _ in range(_IN_A_ROW):  # the start of one hides behind the one before
            target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / _IN_A_ROW)
    return 1e6 * min(times)


def clocks() -> str:
    """What NVIDIA's driver says of its clocks; nothing elsewhere."""
    if shutil.which("nvidia-smi") is None:
        return ""
    query = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader"]
    return f" at {subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()}"


def main() -> int:
    import eyas

    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_kernels", description=__doc__)
    parser.add_argument("--only", default="", help="comma-separated parts of names")
    parser.add_argument("--types", default="f32,f16,bf16", help="comma-separated")
    parser.add_argument("--megabytes", type=int, default=_MEGABYTES, help="of arguments")
    parser.add_argument("--knobs", action="store_true", help="how each kernel was compiled")
    parser.add_argument("--json", metavar="FILE", help="write all results there")
    options = parser.parse_args()
    device = eyas.Device("vulkan")
    copy = copy_bytes_per_s(device, options.megabytes)
    print(f"{device.description}{clocks()}, {options.megabytes} MB of arguments; a copy moves {copy / 1e12:.3f} TB/s")
    results: list[Result] = []
    for kernel in kernels():
        if not any(part in kernel.name for part in options.only.split(",")):
            continue
        for type_ in [one for one in kernel.types if one in options.types.split(",")]:
            result = measure(kernel, type_, options.megabytes, device, copy)
            results.append(result)
            print(_line(result, options.knobs), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(one) for one in results], indent=1))
    return sum(result.verdict != "ok" for result in results)


def _line(result: Result, knobs: bool) -> str:
    seconds = result.us / 1e6
    speed = f"{result.bytes / seconds / 1e12:7.3f} TB/s {result.of_copy:5.0%} of a copy"
    text = f"{result.name:<26} {result.type:<5}{result.us:10.1f} us {speed}, error {result.error:.0e} {result.verdict}"
    return f"{text} [{result.kernels}]" if knobs else text


if __name__ == "__main__":
    sys.exit(main())
