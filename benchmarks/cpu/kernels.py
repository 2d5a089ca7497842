"""`python -m benchmarks.cpu.kernels`: f32 products against this machine's measured limits, 1 and 2 threads.

Square ones are limited by multiply-adds, those of few rows by how fast weights are read from memory. Both limits are
measured here, by loops of the runtime's own on the same workers; every product is checked against NumPy. Weights that
the last-level cache would hold are read in turns from so many copies that it cannot.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path

import numpy as np

from benchmarks import report

SQUARE = (512, 768, 1024, 1536, 2048)
ROWS = (1, 2, 3, 4, 5, 6, 7, 8)
WEIGHTS = ((768, 3072), (4096, 4096), (1024, 50257))
BAR = 0.9
TOLERANCE = 1e-5
"""Largest difference from NumPy over its largest value."""
NOISY = 0.1
"""Rounds that are further apart say that other programs ran."""
_MEASURE_MS, _MEMORY_BYTES = 300, 256 << 20
_ROUNDS, _ROUND_SECONDS = 5, 0.1


@dataclass(frozen=True)
class Limits:
    """What all workers together can do at best."""

    threads: int
    flops_per_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class Product:
    """An m x k by k x n product; with `constant`, the second operand is a weight."""

    m: int
    k: int
    n: int
    constant: bool

    @property
    def name(self) -> str:
        return f"{self.m}x{self.k}x{self.n} {'weights' if self.constant else 'inputs'}"

    @property
    def flops(self) -> int:
        return 2 * self.m * self.k * self.n

    @property
    def bytes(self) -> int:
        """What must move: operands once, the result once."""
        return 4 * (self.m * self.k + self.k * self.n + self.m * self.n)

    @property
    def reads_weights(self) -> bool:
        """Whether it is there to show how fast weights are read."""
        return self.constant and self.m <= max(ROWS)


@dataclass(frozen=True)
class Result:
    """One product with one thread count. `spread` is how far the rounds are apart."""

    product: Product
    threads: int
    error: float
    milliseconds: float
    spread: float
    of_peak: float
    of_bandwidth: float
    bytes_per_s: float
    """The bandwidth that was measured beside it."""
    copies: int

    @property
    def reached(self) -> float:
        return self.of_bandwidth if self.product.reads_weights else self.of_peak

    @property
    def verdict(self) -> str:
        if not self.error <= TOLERANCE:
            return "WRONG"
        if self.reached >= BAR:
            return "ok"
        return "noisy" if self.spread > NOISY else f"under {BAR:.0%}"


def products(only: str) -> list[Product]:
    square = [Product(size, size, size, constant) for size in SQUARE for constant in (True, False)]
    narrow = [Product(rows, k, n, True) for k, n in WEIGHTS for rows in ROWS]
    return {"all": [*square, *narrow], "square": square, "narrow": narrow}[only]


def measure_limits(threads: int) -> Limits:
    from eyas.runtime import _core

    device = _core.Device("local-task", threads)
    flops = max(device.measure_fma(_MEASURE_MS) for _ in range(3))
    return Limits(threads, flops, max(measure_read(threads) for _ in range(3)))


def measure_read(threads: int) -> float:
    """Bytes a second from memory, which other guests of a machine share: measure again beside what is compared."""
    from eyas.runtime import _core

    return _core.Device("local-task", threads).measure_read(_MEMORY_BYTES, True, _MEASURE_MS // 3)


def compile_product(product: Product, weight: np.ndarray, path: Path) -> None:
    """Writes a module for `x @ weight`, or for `x @ y`."""
    import torch

    import eyas

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            if product.constant:
                self.register_buffer("weight", torch.from_numpy(weight))

        def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            return x @ (self.weight if y is None else y)

    inputs = [torch.zeros(product.m, product.k)]
    if not product.constant:
        inputs.append(torch.zeros(product.k, product.n))
    eyas.compile(Model().eval(), inputs, progress=False).save(path)


def run(product: Product, limits: Sequence[Limits], cache_bytes: int, folder: Path) -> Iterator[Result]:
    import eyas

    generator = np.random.default_rng(0)
    x = generator.standard_normal((product.m, product.k), np.float32)
    weight = generator.standard_normal((product.k, product.n), np.float32)
    expected = x @ weight
    paths = [folder / "0.eyas"]
    compile_product(product, weight, paths[0])
    inputs = (x,) if product.constant else (x, weight)
    if product.reads_weights:
        # Files of their own, so that their pages are.
        copies = max(1, -(-4 * cache_bytes // weight.nbytes))
        paths += [folder / f"{number}.eyas" for number in range(1, copies)]
        for path in paths[1:]:
            shutil.copyfile(paths[0], path)
    for limit in limits:
        modules = [eyas.load(path, threads=limit.threads) for path in paths]
        answers = [np.asarray(module(*inputs)) for module in modules]
        error = max(float(np.abs(answer - expected).max()) for answer in answers) / float(np.abs(expected).max())
        turns, before = cycle(modules), measure_read(limit.threads)
        seconds, spread = timed(lambda turns=turns: next(turns)(*inputs), len(modules))
        bytes_per_s = max(before, measure_read(limit.threads))
        yield Result(
            product,
            limit.threads,
            error,
            1e3 * seconds,
            spread,
            product.flops / seconds / limit.flops_per_s,
            product.bytes / seconds / bytes_per_s,
            bytes_per_s,
            len(modules),
        )


def timed(call: Callable[[], object], at_once: int) -> tuple[float, float]:
    """Seconds of a call, the median of rounds, and how far these are apart. `at_once` calls belong together."""

    def turn() -> float:
        begin = time.perf_counter()
        for _ in range(at_once):
            call()
        return (time.perf_counter() - begin) / at_once

    turn()
    repeats = max(1, round(_ROUND_SECONDS / (turn() * at_once)))
    rounds = [statistics.median(turn() for _ in range(repeats)) for _ in range(_ROUNDS)]
    median = statistics.median(rounds)
    return median, (max(rounds) - min(rounds)) / median


def print_result(result: Result) -> None:
    product, seconds = result.product, result.milliseconds / 1e3
    print(
        f"  {product.name:<22} {result.threads:>2}  {result.milliseconds:>9.3f} ms  +-{result.spread:>4.0%}"
        f"  {product.flops / seconds / 1e9:>7.1f} GFLOP/s {result.of_peak:>5.0%}"
        f"  {product.bytes / seconds / 1e9:>6.1f} GB/s {result.of_bandwidth:>5.0%}"
        f"  {result.error:.0e}  {result.verdict}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu.kernels", description=__doc__)
    parser.add_argument("--only", choices=("all", "square", "narrow"), default="all")
    parser.add_argument("--match", default="", help="only products whose name contains this, such as 4096x4096")
    parser.add_argument("--threads", default="1,2", help="thread counts, comma-separated")
    parser.add_argument("--json", metavar="FILE", help="write all rows there")
    options = parser.parse_args()

    from eyas.targets import Target

    facts = report.machine()
    report.print_machine(facts)
    limits = [measure_limits(threads) for threads in map(int, options.threads.split(","))]
    for limit in limits:
        speed = f"{limit.flops_per_s / 1e9:.1f} GFLOP/s of multiply-adds, reads of {limit.bytes_per_s / 1e9:.1f} GB/s"
        print(f"  {limit.threads} thread{'s' * (limit.threads > 1)}: {speed}")
    results = []
    for product in products(options.only):
        if options.match in product.name:
            with tempfile.TemporaryDirectory(prefix="eyas-bench-") as folder:
                for result in run(product, limits, Target.host().caches.l3_bytes, Path(folder)):
                    print_result(result)
                    results.append(result)
    if options.json:
        rows = [
            {**asdict(one), "name": one.product.name, "reached": one.reached, "verdict": one.verdict} for one in results
        ]
        text = json.dumps({"machine": facts, "limits": [asdict(limit) for limit in limits], "rows": rows}, indent=2)
        Path(options.json).write_text(text)
    counts = {verdict: sum(one.verdict == verdict for one in results) for verdict in ("ok", "noisy")}
    print(f"\n{len(results)} rows, {counts['ok']} at {BAR:.0%} of what limits them or more, {counts['noisy']} noisy")
    return 1 if any(one.verdict == "WRONG" for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
