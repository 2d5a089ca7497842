"""`python -m eyas.codegen.repeat FOLDER`: compiles a saved dispatch again, in this process, which may die of it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from eyas.codegen.containment import load
from eyas.codegen.jobs import Caution
from eyas.codegen.planted import die_if_planted
from eyas.codegen.worker import compile_job


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eyas.codegen.repeat", description=__doc__)
    parser.add_argument("folder", type=Path, help="what a warning of the compiler named")
    parser.add_argument("--caution", type=int, choices=[int(one) for one in Caution], help="more than was first tried")
    given = parser.parse_args()
    job = load(given.folder)
    if given.caution is not None:
        job = replace(job, caution=Caution(given.caution))
    print(f"{job.name} for {job.target}, {job.caution.description}", flush=True)
    die_if_planted(job)
    made = compile_job(job)
    print(f"compiled: {made.strategy} {made.knobs}, {len(made.object)} bytes")


if __name__ == "__main__":
    main()
