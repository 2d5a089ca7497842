"""`python -m examples.mnist_resnet50`: trains ResNet-50 on MNIST with Eyas, then times it on every engine.

What was done stays in the folder, so a second run goes on where the first one stopped, and `--write` only adds to it.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from benchmarks import report
from examples.mnist_resnet50 import bench, charts, data, page
from examples.mnist_resnet50.engines import ENGINES, module_path
from examples.mnist_resnet50.train import Run, Settings, accuracy

import eyas

QUICK = Settings(steps=150, batch=32, warm_up=20, width=16, blocks=(1, 1, 1, 1))
"""A small network for a minute of training: shows that everything runs, not what it is good for."""
QUICK_ENGINES = ("vmvx_1", "vmvx", "llvm", "eager", "onnxruntime")
TARGETS = ("llvm-cpu", "vmvx")


def main() -> None:
    options = _parser().parse_args()
    settings = QUICK if options.quick else Settings()
    settings = replace(settings, steps=options.steps) if options.steps else settings
    folder = Path(options.folder) / f"{'quick' if options.quick else 'full'}-{settings.steps}"
    training, held_out = data.load()
    print(f"MNIST: {len(training)} digits to train with, {len(held_out)} held out (the official test set)")

    run = Run(folder / "run", settings)
    run.train(training)
    charts.draw_losses(folder / "loss.png", run.losses)
    results = {"machine": report.machine(), "settings": asdict(settings), "losses": run.losses}
    results["train_batch"] = options.train_batch
    results["step_s"] = statistics.median(run.seconds)
    print(f"trained for {settings.steps} steps of {settings.batch} images, {results['step_s']:.2f} s each (median)")

    bench.prepare_cases(folder, settings, run.trained(), training, options.train_batch)
    if not options.keep_modules:
        for case in options.cases.split(","):
            for old in (folder / case).glob("*.eyas"):
                old.unlink()
    results["accuracy"] = {target: _held_out(folder, target, held_out) for target in TARGETS}
    results["rows"] = _before(folder) if options.no_bench else _measure(options, folder)
    (folder / "results.json").write_text(json.dumps(results, indent=1))
    charts.draw_latencies(folder / "latency.png", page.rows_of(results), results["machine"]["cpu"])
    print(f"\nloss.png, predictions.png, latency.png and results.json are in {folder}")
    for line in page.bars(results):
        print(line)
    if options.write:
        page.write(Path(options.write), folder, results)


def _measure(options: argparse.Namespace, folder: Path) -> list[dict]:
    """The rows of all cases; of those that are not measured now, as they were."""
    engines = options.engines.split(",") if options.engines else QUICK_ENGINES if options.quick else tuple(ENGINES)
    counts, cases = [int(count) for count in options.threads.split(",")], options.cases.split(",")
    rows = bench.run(folder, cases, engines, counts, min(options.rounds, 1) if options.quick else options.rounds)
    if not options.rounds:
        return _before(folder)
    rows += [row for row in page.rows_of({"rows": _before(folder)}) if row.model not in cases]
    return [{**asdict(row), "median_ms": row.median_ms, "spread": row.spread} for row in rows]


def _before(folder: Path) -> list[dict]:
    path = folder / "results.json"
    return json.loads(path.read_text()).get("rows", []) if path.exists() else []


def _held_out(folder: Path, target: str, digits: data.Digits) -> float:
    """Runs the very module that is timed over all held-out digits."""
    module = eyas.load(module_path("inference", folder / "inference", target))
    right, said = accuracy(module, digits)
    print(f"held-out accuracy, {target}: {right:.2%} ({np.sum(said != digits.labels)} of {len(digits)} wrong)")
    if target == TARGETS[0]:
        charts.draw_predictions(folder / "predictions.png", digits, said)
    return right


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.mnist_resnet50", description=__doc__)
    parser.add_argument("--steps", type=int, help=f"training steps, {Settings().steps} if not given")
    parser.add_argument("--quick", action="store_true", help="a small network, few steps, few engines")
    parser.add_argument("--folder", default="build/mnist_resnet50", help="where everything is kept")
    parser.add_argument("--no-bench", action="store_true", help="train and evaluate only")
    parser.add_argument("--engines", help=f"comma-separated, of {', '.join(ENGINES)}")
    parser.add_argument("--cases", default=",".join(bench.CASES), help="comma-separated; others stay as they were")
    parser.add_argument("--threads", default="1,2", help="thread counts, comma-separated")
    parser.add_argument("--rounds", type=int, default=5, help="how often each engine's turn comes; 0 only compiles")
    parser.add_argument("--train-batch", type=int, default=8, help="images of a timed training step")
    parser.add_argument("--keep-modules", action="store_true", help="time what an earlier run compiled")
    parser.add_argument("--write", metavar="PAGE", help="rewrite the tables of this page, and the pictures beside it")
    return parser


if __name__ == "__main__":
    main()
