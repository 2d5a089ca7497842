"""`python -m benchmarks.gpu_products`: products of f16, bf16 and bytes on a Vulkan device, beside cuBLAS.

    python -m benchmarks.gpu_products --shapes 1024,4096x4096x1024 --types f16,bf16
    python -m benchmarks.gpu_products --try 2x4:4x4:32:1:1:8 --try 2x2:4x4:32:2:1:8      # other knobs than those chosen

A shape is rows x columns x steps; `t` behind it means that the second factor is columns x steps, as weights of linear
layers are. Times are those of the device's own clock, the fastest of several runs, and every result is compared with a
product in f32.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SHAPES = "1024,2048,4096,4096t,1000x1111x999"
_RUNS = 8
CHOSEN = "chosen"
_SUMS = {"f16": ("f32", "0.0", "f16"), "bf16": ("f32", "0.0", "bf16"), "i8": ("i32", "0", "i32")}


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
    def text(self) -> str:
        """The program: a product, its sums rounded to the type of its factors."""
        sum_, zero, result = _SUMS[self.element]
        b_sizes = f"{self.columns}x{self.steps}" if self.turned else f"{self.steps}x{self.columns}"
        a, b = f"tensor<{self.rows}x{self.steps}x{self.element}>", f"tensor<{b_sizes}x{self.element}>"
        c, r = (f"tensor<{self.rows}x{self.columns}x{type_}>" for type_ in (sum_, result))
        b_map = "(n, k)" if self.turned else "(k, n)"
        extend, multiply, add = ("extsi", "muli", "addi") if self.element == "i8" else ("extf", "mulf", "addf")
        rounded = f"""
  %r = tensor.empty() : {r}
  %g = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}} ins(%p : {c}) outs(%r : {r}) {{
  ^bb0(%x: {sum_}, %y: {result}):
    %t = arith.truncf %x : {sum_} to {result}
    linalg.yield %t : {result}
  }} -> {r}
  return %g : {r}"""
        return f"""
func.func @main(%a: {a}, %b: {b}) -> {r} {{
  %zero = arith.constant {zero} : {sum_}
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%zero : {sum_}) outs(%e : {c}) -> {c}
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {b_map}>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%f : {c}) {{
  ^bb0(%x: {self.element}, %y: {self.element}, %z: {sum_}):
    %u = arith.{extend} %x : {self.element} to {sum_}
    %v = arith.{extend} %y : {self.element} to {sum_}
    %w = arith.{multiply} %u, %v : {sum_}
    %s = arith.{add} %z, %w : {sum_}
    linalg.yield %s : {sum_}
  }} -> {c}{rounded if result != sum_ else f"  return %p : {c}"}
}}"""


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
        subgroups, fragments, depth, buffers, in_flight, band, *shape = self.text.split(":")
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
                in_flight=int(in_flight), band=int(band),
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
        return str(path.with_suffix(".eyas")), f"{kernel['strategy']}"
    except Exception as error:  # what one variant does must not end the others
        return f"{type(error).__name__}: {str(error)[:200]}"


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
        kind = torch.float16 if case.element == "f16" else torch.bfloat16
        factors = [torch.randn(shape, device=device).to(kind) for shape in shapes]
        wide = [one.float() for one in factors]
    return factors, wide[0] @ (wide[1].T if case.turned else wide[1])


def error_of(got: Any, want: Any) -> float:
    """The largest difference as a part of the largest value."""
    return float((got.to(want.device).to(want.dtype) - want).abs().max() / want.abs().max())


def time_us(path: str, inputs: Sequence[Any]) -> float:
    import eyas

    module = eyas.load(path, device="vulkan")
    best = [max(one.duration_us for one in events) for events in module.profile(*inputs, runs=_RUNS)]
    return min(best)


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
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    import eyas

    target = str(eyas.Target.parse("vulkan"))
    cases = [Case.parse(one, kind) for kind in options.types.split(",") for one in options.shapes.split(",")]
    variants = [Variant(one) for one in options.variants or [CHOSEN]]
    print(target)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(options.jobs, max_tasks_per_child=1) as pool:
        built = {
            (case, variant): pool.submit(build, case, variant, target, folder)
            for case, variant in itertools.product(cases, variants)
        }
        for case in cases:
            factors, want = inputs_of(case)
            library = library_us(case, factors)
            against = "" if library is None else f"  torch {library:8.1f} us {case.flops / library / 1e6:6.1f} TFLOP/s"
            print(f"{case}{against}", flush=True)
            host = [one.cpu() for one in factors]
            for variant in variants:
                print(
                    f"  {variant.text:26}", _row(case, built[case, variant].result(), host, want, library), flush=True
                )
    return 0


def _row(case: Case, made: tuple[str, str] | str, inputs: Sequence[Any], want: Any, library: float | None) -> str:
    import torch

    import eyas

    if isinstance(made, str):
        return made
    path, strategy = made
    try:
        got = torch.as_tensor(eyas.load(path, device="vulkan")(*inputs))
        taken = time_us(path, inputs)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    ratio = "" if library is None else f" {library / taken:5.2f} x"
    return f"{taken:8.1f} us {case.flops / taken / 1e6:6.1f}{ratio} error {error_of(got, want):.0e} {strategy}"


if __name__ == "__main__":
    raise SystemExit(main())
