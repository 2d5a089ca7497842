"""`python -m benchmarks.vulkan`: the eight models of the GPU bars on a Vulkan device, beside IREE on the same one.

VK_ICD_FILENAMES names another driver than the loader would choose. What was measured is kept after each model, in
`results.json` of the folder that `--keep` names; with `--go-on` models that are there are not run again, and what IREE
compiled for them neither. Models are opened one after the other, so that a run can be stopped at any time.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from benchmarks import report
from benchmarks.cpu.engines import Engine, Session
from benchmarks.cpu.measure import Result, measure
from benchmarks.cpu.models import INPUTS_FILE, ONNX_FILE, load_arrays, write_case
from benchmarks.gpu_models import MODELS

SUITE = "benchmarks.vulkan"
LIMIT_S = 300.0
RESULTS_FILE = "results.json"
MEAN_LIMIT, LIMIT = 4.0, 1.0
"""IREE's time over ours: geometric mean, and any model."""

_IREE_TARGETS = {"lavapipe": "llvmpipe", "ampere": "ampere", "hopper": "ada", "rdna3": "rdna3", "mali": "valhall"}
"""What IREE calls our profiles; it has no name for others and takes what every device has."""


def _eyas(name: str, folder: Path, threads: int) -> Session:
    import eyas

    path = folder / "vulkan.eyas"
    if not path.exists():
        one = MODELS[name]()
        eyas.compile(one.model, one.args, kwargs=one.kwargs, target="vulkan").save(path)
    inputs, main = load_arrays(folder / INPUTS_FILE), eyas.load(path).functions["main"]
    return Session(eyas.__version__, lambda: main(*inputs))


def _iree(name: str, folder: Path, threads: int) -> Session:
    from benchmarks.cpu.iree import compile_module, import_onnx, open_module, results, version
    from eyas.targets import GpuTarget, Target

    here = Target.parse("vulkan")
    assert isinstance(here, GpuTarget)
    known = _IREE_TARGETS.get(here.profile)
    path = compile_module(import_onnx(folder / ONNX_FILE), "vulkan", [known] if known else [])
    entry, inputs = open_module(path, threads, "vulkan"), load_arrays(folder / INPUTS_FILE)
    return Session(version(), lambda: entry(*inputs), results)


ENGINES: Mapping[str, Engine] = {"eyas": Engine("Eyas", _eyas), "iree": Engine("IREE", _iree)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vulkan", description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated")
    parser.add_argument("--engines", default=",".join(ENGINES), help="comma-separated")
    parser.add_argument("--rounds", type=int, default=3, help="how often each engine's turn comes")
    parser.add_argument("--json", metavar="FILE", help="write all times there")
    parser.add_argument("--keep", metavar="DIR", help="keep models, what IREE compiled, and times there")
    parser.add_argument("--go-on", action="store_true", help="do not measure again what DIR has times of")
    options = parser.parse_args()
    if options.go_on and not options.keep:
        parser.error("--go-on needs --keep DIR, where the times of the models before are")
    facts = report.machine() | {"device": _device()}
    report.print_machine(facts)
    print(facts["device"])
    kept = Path(options.keep) / RESULTS_FILE if options.keep else None
    results = read_results(kept) if kept is not None and options.go_on else []
    for model in dict.fromkeys(row.model for row in results):
        print_rows([row for row in results if row.model == model])
    with tempfile.TemporaryDirectory(prefix="eyas-bench-") as scratch:
        for model in options.models.split(","):
            if any(row.model == model for row in results):
                continue
            folder = Path(options.keep or scratch) / model
            if not (folder / INPUTS_FILE).exists():
                folder.mkdir(parents=True, exist_ok=True)
                write_case(MODELS[model](), folder)
            (folder / "vulkan.eyas").unlink(missing_ok=True)  # of another version of the compiler, perhaps
            rows = measure(model, options.engines.split(","), folder, facts["threads"], options.rounds, SUITE, LIMIT_S)
            print_rows(rows)
            results += rows
            for path in filter(None, (options.json, kept)):
                write_results(Path(path), facts, results)
    return print_summary(results)


def write_results(path: Path, facts: Mapping[str, object], results: Sequence[Result]) -> None:
    rows = [{**asdict(row), "median_ms": row.median_ms, "spread": row.spread} for row in results]
    path.write_text(json.dumps({"machine": facts, "results": rows}, indent=1))


def read_results(path: Path) -> list[Result]:
    """What `write_results` wrote, less what can be computed from it; nothing where there is no file."""
    names = [field.name for field in fields(Result)]
    rows = json.loads(path.read_text())["results"] if path.exists() else []
    return [Result(**{name: row[name] for name in names}) for row in rows]


def _device() -> str:
    import eyas

    device = eyas.Device("vulkan")
    return f"{device.description}, {device.properties['driver']}, target {eyas.Target.parse('vulkan')}"


def print_rows(rows: Sequence[Result]) -> None:
    print(f"\n{rows[0].model}")
    for row in rows:
        title = f"{ENGINES[row.engine].title} {row.version}"
        if row.median_ms is None:
            print(f"  {title:<14} {row.reason}", flush=True)
        else:
            print(f"  {title:<14} {row.median_ms:10.1f} ms  rounds within {row.spread:.0%}, error {row.error:.1e}")


def speedups(results: Sequence[Result]) -> dict[str, float]:
    """IREE's time over ours, by model."""
    times = {(row.engine, row.model): row.median_ms for row in results if row.median_ms}
    models = [model for engine, model in times if engine == "eyas" and ("iree", model) in times]
    return {model: times["iree", model] / times["eyas", model] for model in models}


def print_summary(results: Sequence[Result]) -> int:
    """The bars; the number of them that were missed, models that did not run among them."""
    missed = sum(row.engine == "eyas" and row.median_ms is None for row in results)
    if found := speedups(results):
        mean = math.exp(sum(map(math.log, found.values())) / len(found))
        least = min(found, key=lambda model: found[model])
        missed += (mean < MEAN_LIMIT) + (found[least] < LIMIT)
        print(f"\nIREE's time over ours: {mean:.2f} x in the geometric mean (bar {MEAN_LIMIT:g} x),", end=" ")
        print(f"at least {found[least]:.2f} x, {least} (bar {LIMIT:g} x)")
        print("  " + ", ".join(f"{model} {ratio:.2f} x" for model, ratio in found.items()))
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
