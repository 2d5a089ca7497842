"""`python -m benchmarks [NAME ...] [--json FILE]`: runs all benchmarks, or those named."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import traceback

from benchmarks import report

NAMES = (
    "outputs", "dynamic_sizes", "call_overhead", "overlap", "load_time", "arena", "compile_cost", "runtime_library",
    "speed",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", metavar="FILE", help="write all rows there too")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in NAMES]:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    facts = report.machine()
    report.print_machine(facts)
    kept, missed = [], 0
    for name in options.names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{(module.__doc__ or name).strip().splitlines()[0]}")
        try:
            for row in module.rows():
                report.print_row(row)
                kept.append(report.as_json(name, row))
                missed += row.passed is False
        except Exception:
            traceback.print_exc()
            missed += 1
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": facts, "rows": kept}, file, indent=2)
    print(f"\n{len(kept)} rows, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
