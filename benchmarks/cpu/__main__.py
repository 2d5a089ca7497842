"""`python -m benchmarks.cpu`: every engine on every model, 2 threads and 1, as a table, JSON and a chart."""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import report
from benchmarks.cpu.chart import draw
from benchmarks.cpu.engines import ENGINES
from benchmarks.cpu.measure import Result, measure
from benchmarks.cpu.models import MODELS, write


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated")
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated")
    parser.add_argument("--threads", default="2,1", help="thread counts, comma-separated")
    parser.add_argument("--rounds", type=int, default=5, help="how often each engine's turn comes")
    parser.add_argument("--json", metavar="FILE", help="write all times there")
    parser.add_argument("--chart", metavar="FILE", help="write a chart there (.svg or .png)")
    parser.add_argument("--keep", metavar="DIR", help="keep models and what engines compiled there")
    options = parser.parse_args()
    models, engines = options.models.split(","), options.engines.split(",")
    for chosen, known in ((models, MODELS), (engines, ENGINES)):
        if unknown := [name for name in chosen if name not in known]:
            parser.error(f"no {unknown[0]!r}; there are {', '.join(known)}")
    facts = report.machine()
    report.print_machine(facts)
    results, titles = [], {}
    with tempfile.TemporaryDirectory(prefix="eyas-bench-") as scratch:
        for model in models:
            folder = Path(options.keep or scratch) / model
            folder.mkdir(parents=True, exist_ok=True)
            titles[model] = write(model, folder)
            for threads in map(int, options.threads.split(",")):
                results += (rows := measure(model, engines, folder, threads, options.rounds))
                print_rows(titles[model], threads, rows)
                if options.json:
                    save(Path(options.json), facts, results)
    print_summary(results)
    if options.chart:
        draw(Path(options.chart), results, titles, facts)


def print_rows(title: str, threads: int, rows: Sequence[Result]) -> None:
    print(f"\n{title}, {threads} thread{'s' * (threads > 1)}")
    best = fastest_peer(rows)
    for row in sorted(rows, key=lambda row: row.median_ms or math.inf):
        if row.median_ms is None:
            print(f"  {ENGINES[row.engine].title:<18} {row.version:<12} {row.reason}")
            continue
        ratio = f"{row.median_ms / best.median_ms:5.2f} x" if best and best.median_ms else ""
        print(
            f"  {ENGINES[row.engine].title:<18} {row.version:<12} {row.median_ms:9.3f} ms"
            f"  {ratio}  rounds within {row.spread:.0%}, error {row.error:.1e}",
            flush=True,
        )


def fastest_peer(rows: Sequence[Result]) -> Result | None:
    """The engine to beat: the fastest that is not Eyas."""
    peers = [row for row in rows if row.engine != "eyas" and row.median_ms is not None]
    return min(peers, key=lambda row: row.median_ms or math.inf, default=None)


def speedups(results: Sequence[Result]) -> dict[tuple[str, int], float]:
    """The fastest peer's time over ours, per model and thread count."""
    found = {}
    for mine in results:
        rows = [row for row in results if (row.model, row.threads) == (mine.model, mine.threads)]
        best = fastest_peer(rows)
        if mine.engine == "eyas" and mine.median_ms and best and best.median_ms:
            found[mine.model, mine.threads] = best.median_ms / mine.median_ms
    return found


def print_summary(results: Sequence[Result]) -> None:
    if found := speedups(results):
        mean = math.exp(sum(map(math.log, found.values())) / len(found))
        ahead = sum(value >= 1 for value in found.values())
        print(f"\nEyas against the fastest peer: {mean:.2f} x in the geometric mean, ahead in {ahead} of {len(found)}")


def save(path: Path, facts: dict, results: Sequence[Result]) -> None:
    rows = [{**asdict(row), "median_ms": row.median_ms, "spread": row.spread} for row in results]
    path.write_text(json.dumps({"machine": facts, "results": rows}, indent=1))


if __name__ == "__main__":
    main()
