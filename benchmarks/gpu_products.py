"""`python -m benchmarks.gpu_products`: products of f16, bf16 and bytes on a Vulkan device, beside cuBLAS.

    python -m benchmarks.gpu_products --shapes 1024,4096x4096x1024 --types f16,bf16
    python -m benchmarks.gpu_products --try 2x4:4x4:32:1:1:8 --try 2x2:4x4:32:2:1:8      # other knobs than those chosen

A shape is rows x columns x steps; `t` behind it means that the second factor is columns x steps, as weights of linear
layers are. Times are those of the device's own clock, the fastest of several runs, and every result is compared with a
product in f32.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu_kernels import wake
from benchmarks.gpu_product_sweep import knobs_for

_SHAPES = "1024,2048,4096,4096t,1000x1111x999"
_RUNS, _TURNS = 8, 2
_CHAIN = 21
CHOSEN = "chosen"
_SUMS = {
    "f16": ("f32", "0.0", "f16"),
    "bf16": ("f32", "0.0", "bf16"),
    "i8": ("i32", "0", "i32"),
    "f32": ("f32", "0.0", "f32"),
}


@dataclass(frozen=True)
class Case:
    rows: int
    columns: int
    steps: int
    turned: bool
    element: str

    @staticmethod
    def parse(shape: str, element: str) -> Case:
        sizes = [int(size) for size in shape.removesuffix("t").split("x")]
        m, n, k = sizes if len(sizes) == 3 else sizes * 3
        return Case(m, n, k, shape.endswith("t"), element)

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.steps}{'t' if self.turned else ''} {self.element}"

    @property
    def flops(self) -> int:
        return 2 * self.rows * self.columns * self.steps

    @property
    def has_chain(self) -> bool:
        """Whether a product can be a factor of the next."""
        return self.rows == self.columns == self.steps and self.element != "i8"

    @property
    def text(self) -> str:
        """The program: a product, its sums rounded to the type of its factors."""
        a, b, r = self._types
        return f"""
func.func @main(%a: {a}, %b: {b}) -> {r} {{{self._product("%a", "%b", "0")}
  return %g0 : {r}
}}"""

    def chain(self, count: int) -> str:
        """The program that multiplies again and again, so that a product starts where another ends."""
        a, b, r = self._types
        factors = ["%b", *(f"%g{number}" for number in range(count))]
        products = "".join(self._product("%a", factors[number], str(number)) for number in range(count))
        return f"""
func.func @main(%a: {a}, %b: {b}) -> {r} {{{products}
  return {factors[-1]} : {r}
}}"""

    @property
    def _types(self) -> tuple[str, str, str]:
        """Of both factors and the result."""
        b_sizes = f"{self.columns}x{self.steps}" if self.turned else f"{self.steps}x{self.columns}"
        sizes = f"{self.rows}x{self.steps}", b_sizes, f"{self.rows}x{self.columns}"
        a, b, r = (
            f"tensor<{one}x{type_}>"
            for one, type_ in zip(sizes, (self.element, self.element, _SUMS[self.element][2]), strict=True)
        )
        return a, b, r

    def _product(self, left: str, right: str, name: str) -> str:
        """The text of %g`name`, a product."""
        sum_, zero, result = _SUMS[self.element]
        a, b, r = self._types
        c = f"tensor<{self.rows}x{self.columns}x{sum_}>"
        b_map = "(n, k)" if self.turned else "(k, n)"
        extend, multiply, add = ("extsi", "muli", "addi") if self.element == "i8" else ("extf", "mulf", "addf")
        widened = (
            ""
            if self.element == sum_
            else f"""
    %u = arith.{extend} %x : {self.element} to {sum_}
    %v = arith.{extend} %y : {self.element} to {sum_}"""
        )
        u, v = ("%x", "%y") if self.element == sum_ else ("%u", "%v")
        made = "g" if result == sum_ else "p"
        rounded = (
            ""
            if result == sum_
            else f"""
  %r{name} = tensor.empty() : {r}
  %g{name} = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}} ins(%p{name} : {c}) outs(%r{name} : {r}) {{
  ^bb0(%x: {sum_}, %y: {result}):
    %t = arith.truncf %x : {sum_} to {result}
    linalg.yield %t : {result}
  }} -> {r}"""
        )
        return f"""
  %zero{name} = arith.constant {zero} : {sum_}
  %e{name} = tensor.empty() : {c}
  %f{name} = linalg.fill ins(%zero{name} : {sum_}) outs(%e{name} : {c}) -> {c}
  %{made}{name} = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {b_map}>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({left}, {right} : {a}, {b}) outs(%f{name} : {c}) {{
  ^bb0(%x: {self.element}, %y: {self.element}, %z: {sum_}):{widened}
    %w = arith.{multiply} {u}, {v} : {sum_}
    %s = arith.{add} %z, %w : {sum_}
    linalg.yield %s : {sum_}
  }} -> {c}{rounded}"""


@dataclass(frozen=True)
class Variant:
    """Subgroups and fragments of each along rows and columns, depth, buffers, steps in flight and
    band; `chosen`: what the strategy takes."""

    text: str = CHOSEN

    def apply(self) -> None:
        """Makes the strategy choose these knobs, in this process."""
        from dataclasses import replace

        from eyas.codegen.gpu.strategies.matrices import Matrices

        if self.text == CHOSEN:
            return
        main, *changed = self.text.split(",")
        more = {name: int(value) for name, _, value in (one.partition("=") for one in changed)}
        subgroups, fragments, depth, buffers, in_flight, band, *shape = main.split(":")
        (down, across, *parts), (rows, columns) = (list(map(int, one.split("x"))) for one in (subgroups, fragments))
        part = parts[0] if parts else 1
        m, n, k = map(int, shape[0].split("x")) if shape else (0, 0, 0)
        chosen = Matrices.choose.__func__

        def choose(cls: Any, found: Any, target: Any) -> Any:
            one = chosen(cls, found, target)
            if isinstance(one, str):
                return one
            knobs = replace(
                one.knobs, threads=part * down * across * target.subgroup, parts=part, columns=across,
                row_fragments=rows, column_fragments=columns, depth=int(depth), buffers=int(buffers),
                in_flight=int(in_flight), band=int(band), **more,
            )  # fmt: skip
            if m:
                knobs = replace(knobs, fragment_rows=m, fragment_columns=n, fragment_depth=k)
            return replace(one, knobs=knobs)

        Matrices.choose = classmethod(choose)  # type: ignore[method-assign]


def build(case: Case, variant: Variant, target: str, folder: str) -> tuple[str, str] | str:
    """The path of the compiled product and what its kernel is, or what went wrong."""
    import eyas

    path = Path(folder) / f"{abs(hash((case, variant)))}.mlir"
    path.write_text(case.text)
    try:
        variant.apply()
        module = eyas.compile(path, target=target, cache=False)
        (kernel,) = module.manifest["kernels"]
        module.save(path.with_suffix(".eyas"))
        if case.has_chain:
            chain = path.with_suffix(".chain.mlir")
            chain.write_text(case.chain(_CHAIN))
            eyas.compile(chain, target=target, cache=False).save(_chain_of(path))
        knobs = " ".join(part.partition("=")[2] for part in kernel.get("knobs", "").split())
        return str(path.with_suffix(".eyas")), f"{kernel['strategy']} {knobs}"
    except Exception as error:  # what one variant does must not end the others
        return f"{type(error).__name__}: {str(error)[:200]}"


def _chain_of(path: Path) -> Path:
    return path.with_name(f"{path.name.partition('.')[0]}.chain.eyas")


def inputs_of(case: Case) -> tuple[list[Any], Any]:
    """Both factors, and their product in f32 or i32, on the GPU that torch has, if any."""
    import torch

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shapes = (case.rows, case.steps), (case.columns, case.steps) if case.turned else (case.steps, case.columns)
    if case.element == "i8":
        factors = [torch.randint(-128, 128, shape, dtype=torch.int8, device=device) for shape in shapes]
        wide = [one.double() for one in factors]
    else:
        kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[case.element]
        scales = case.steps**-0.5, 1.0  # so that products of products do not grow
        factors = [(torch.randn(shape, device=device) * by).to(kind) for shape, by in zip(shapes, scales, strict=True)]
        wide = [one.float() for one in factors]
    return factors, wide[0] @ (wide[1].T if case.turned else wide[1])


def error_of(got: Any, want: Any) -> float:
    """The largest difference as a part of the largest value."""
    return float((got.to(want.device).to(want.dtype) - want).abs().max() / want.abs().max())


@dataclass(frozen=True)
class Times:
    """Of one product in us: between two time stamps, and in a row of them, where each starts as another ends."""

    alone: float
    in_a_row: float | None

    @property
    def best(self) -> float:
        return self.alone if self.in_a_row is None else self.in_a_row


def times_of(case: Case, module: Any, path: str, inputs: Sequence[Any]) -> Times:
    import eyas

    wake()
    alone = min(max(one.duration_us for one in events) for events in module.profile(*inputs, runs=_RUNS))
    if not case.has_chain:
        return Times(alone, None)
    chain = eyas.load(_chain_of(Path(path)), device="vulkan")
    there = [module.device.put(one) for one in inputs]
    calls = {1: module.on_device, _CHAIN: chain.on_device}
    taken: dict[int, list[float]] = {1: [], _CHAIN: []}
    for turn in range(_TURNS + 1):
        wake()
        for count, call in calls.items():
            for _ in range(_RUNS):
                begin = time.perf_counter()
                call(*there)
                if turn:
                    taken[count].append(1e6 * (time.perf_counter() - begin))
    return Times(alone, (min(taken[_CHAIN]) - min(taken[1])) / (_CHAIN - 1))


def library_us(case: Case, factors: Sequence[Any]) -> float | None:
    """What torch takes for the same product (cuBLAS)."""
    import torch

    if not torch.cuda.is_available():
        return None
    a, b = factors[0], factors[1].T if case.turned else factors[1]
    if case.element == "i8" and (case.steps % 8 or case.columns % 8):
        return None
    multiply = torch._int_mm if case.element == "i8" else torch.matmul
    for _ in range(3):
        multiply(a, b)
    torch.cuda.synchronize()
    graph, count = torch.cuda.CUDAGraph(), 10  # launches must not be what is measured
    with torch.cuda.graph(graph):
        for _ in range(count):
            multiply(a, b)
    times = []
    for _ in range(20):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        times.append(1e3 * first.elapsed_time(last) / count)
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_products", description=__doc__)
    parser.add_argument("--shapes", default=_SHAPES, help="comma-separated")
    parser.add_argument("--types", default="f16,bf16", help="comma-separated")
    parser.add_argument("--try", dest="variants", action="append", default=[], metavar="KNOBS")
    parser.add_argument("--sweep", action="store_true", help="the knobs of gpu_product_sweep.py beside those chosen")
    parser.add_argument("--best", type=int, default=1000, metavar="N", help="print only the fastest")
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    import eyas

    target = str(eyas.Target.parse("vulkan"))
    cases = [Case.parse(one, kind) for kind in options.types.split(",") for one in options.shapes.split(",")]
    asked = [CHOSEN, *options.variants] if options.sweep else options.variants or [CHOSEN]
    tried = {case: [*asked, *(knobs_for(case.steps) if options.sweep else [])] for case in cases}
    print(target)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(options.jobs, max_tasks_per_child=1) as pool:
        built = {
            (case, text): pool.submit(build, case, Variant(text), target, folder)
            for case in cases
            for text in tried[case]
        }
        for case in cases:
            factors, want = inputs_of(case)
            library = library_us(case, factors)
            against = "" if library is None else f"  torch {library:8.1f} us {case.flops / library / 1e6:6.1f} TFLOP/s"
            print(f"{case}{against}", flush=True)
            host = [one.cpu() for one in factors]
            rows = [_row(case, text, built[case, text].result(), host, want, library) for text in tried[case]]
            chosen = [row for row, text in zip(rows, tried[case], strict=True) if text == CHOSEN]
            for _, text in [*sorted(rows)[: options.best], *(chosen if options.sweep else [])]:
                print(f"  {text}", flush=True)
    return 0


def _row(
    case: Case, variant: str, made: tuple[str, str] | str, inputs: Sequence[Any], want: Any, library: float | None
) -> tuple[float, str]:
    """The time of a variant, and what is said of it."""
    import torch

    import eyas

    if isinstance(made, str):
        return math.inf, f"{variant:30} {made}"
    path, strategy = made
    try:
        module = eyas.load(path, device="vulkan")
        got = torch.as_tensor(module(*inputs))
        taken = times_of(case, module, path, inputs)
    except Exception as error:
        return math.inf, f"{variant:30} {type(error).__name__}: {str(error)[:200]}"
    ratio = "" if library is None else f" {library / taken.best:5.2f} x"
    alone, rate = f"({taken.alone:.1f} alone)", case.flops / taken.best / 1e6
    right = f"error {error_of(got, want):.0e}"
    return taken.best, f"{taken.best:8.1f} us {alone:15} {rate:6.1f}{ratio} {right} {variant:26} {strategy}"


if __name__ == "__main__":
    raise SystemExit(main())
