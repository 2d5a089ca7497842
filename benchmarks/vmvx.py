"""`python -m benchmarks.vmvx`: the models of `benchmarks.cpu` as bytecode, beside machine code and beside IREE's VMVX.

Bytecode and machine code come from the same compiler, so their ratio is what portability costs.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import report
from benchmarks.cpu.engines import Engine, Session, iree
from benchmarks.cpu.measure import Result, measure
from benchmarks.cpu.models import INPUTS_FILE, MODELS, load_arrays, write

SUITE = "benchmarks.vmvx"
LIMIT_S = 120.0
MEAN_LIMIT, LIMIT, PEER_LIMIT = 1.6, 2.5, 20.0
"""Bytecode over machine code: geometric mean, and any model. IREE's bytecode over ours: at least."""


def _eyas(target: str, width: int | None = None, disable: Sequence[str] = ()) -> Callable[[str, Path, int], Session]:
    def open_(name: str, folder: Path, threads: int) -> Session:
        import eyas

        path = folder / ("_".join([target, *disable]) + ".eyas")
        if not path.exists():
            one = MODELS[name]()
            eyas.compile(one.model, one.args, kwargs=one.kwargs, target=target, disable=disable).save(path)
        module = eyas.load(path, device=eyas.Device("local-task", threads=threads, vmvx_width=width))
        inputs, main = load_arrays(folder / INPUTS_FILE), module.functions["main"]
        return Session(eyas.__version__, lambda: main(*inputs))

    return open_


ENGINES: Mapping[str, Engine] = {
    "llvm": Engine("Eyas llvm-cpu", _eyas("llvm-cpu")),
    "vmvx": Engine("Eyas VMVX", _eyas("vmvx")),
    "vmvx_1": Engine("Eyas VMVX, width 1", _eyas("vmvx", 1)),
    "iree_vmvx": Engine("IREE VMVX, microkernels", iree("vmvx", "microkernels")),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vmvx", description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated")
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated")
    parser.add_argument("--threads", default="1,2", help="thread counts, comma-separated")
    parser.add_argument("--rounds", type=int, default=5, help="how often each engine's turn comes")
    parser.add_argument("--json", metavar="FILE", help="write all times there")
    parser.add_argument("--keep", metavar="DIR", help="keep models and what IREE compiled there")
    options = parser.parse_args()
    facts = report.machine()
    report.print_machine(facts)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="eyas-bench-") as scratch:
        for model in options.models.split(","):
            folder = Path(options.keep or scratch) / model
            if not (folder / INPUTS_FILE).exists():
                folder.mkdir(parents=True, exist_ok=True)
                write(model, folder)
            for old in folder.glob("*.eyas"):  # of another version of the compiler, perhaps
                old.unlink()
            for threads in map(int, options.threads.split(",")):
                engines = options.engines.split(",")
                rows = measure(model, engines, folder, threads, options.rounds, SUITE, LIMIT_S)
                print_rows(rows)
                results += rows
                if options.json:
                    kept = [{**asdict(row), "median_ms": row.median_ms, "spread": row.spread} for row in results]
                    Path(options.json).write_text(json.dumps({"machine": facts, "results": kept}, indent=1))
    return print_summary(results)


def ratios(results: Sequence[Result], slow: str, fast: str) -> dict[tuple[str, int], float]:
    """How many times longer one engine takes than another, per model and thread count."""
    times = {(row.engine, row.model, row.threads): row.median_ms for row in results if row.median_ms}
    return {
        (model, threads): time / other
        for (engine, model, threads), time in times.items()
        if engine == slow and (other := times.get((fast, model, threads)))
    }


def print_rows(rows: Sequence[Result]) -> None:
    print(f"\n{rows[0].model}, {rows[0].threads} thread{'s' * (rows[0].threads > 1)}")
    base = next((row.median_ms for row in rows if row.engine == "llvm"), None)
    for row in rows:
        title = ENGINES[row.engine].title
        if row.median_ms is None:
            print(f"  {title:<26} {row.reason}", flush=True)
            continue
        ratio = f"{row.median_ms / base:8.2f} x llvm-cpu" if base else ""
        print(f"  {title:<26} {row.median_ms:10.3f} ms {ratio}  rounds within {row.spread:.0%}, error {row.error:.1e}")


def print_summary(results: Sequence[Result]) -> int:
    """The bars; the number of them that were missed."""
    missed = 0
    if cost := ratios(results, "vmvx", "llvm"):
        mean, worst = math.exp(sum(map(math.log, cost.values())) / len(cost)), max(cost, key=lambda key: cost[key])
        missed += (mean > MEAN_LIMIT) + (cost[worst] > LIMIT)
        print(f"\nvmvx over llvm-cpu: {mean:.2f} x in the geometric mean (bar {MEAN_LIMIT} x),", end=" ")
        print(f"at most {cost[worst]:.2f} x, {worst[0]} on {worst[1]} (bar {LIMIT} x)")
    if gain := ratios(results, "vmvx_1", "vmvx"):
        mean = math.exp(sum(map(math.log, gain.values())) / len(gain))
        print(f"width 1 over multiple dispatch: {mean:.2f} x in the geometric mean")
    if peer := ratios(results, "iree_vmvx", "vmvx"):
        least = min(peer, key=lambda key: peer[key])
        missed += peer[least] < PEER_LIMIT
        print(f"IREE's VMVX over ours: at least {peer[least]:.0f} x, {least[0]} on {least[1]} (bar {PEER_LIMIT:g} x)")
    slow = [f"{row.model} on {row.threads}" for row in results if row.engine == "iree_vmvx" and "answer" in row.reason]
    if slow:
        print(f"IREE's VMVX took more than {LIMIT_S:g} s for one run of {', '.join(slow)}")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
