"""`eyas bench --dispatch`: one dispatch of a model by itself, on operands as the model has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eyas.cli.bench import statistics
from eyas.cli.common import MODEL_ENDINGS, make_inputs
from eyas.errors import EyasError, UsageError

_SECONDS, _LEAST, _MOST = 2.0, 10, 5000


def bench_dispatch(
    path: Path,
    specs: Sequence[str],
    target: str,
    precision: str | None,
    tuning_spec: Sequence[Path],
    threads: int | None,
    device: str | None,
    name: str,
    cold: bool,
    runs: int | None,
) -> dict[str, Any]:
    """Times of one dispatch, alone on its device, and what it was compiled to."""
    if not path.is_file():
        raise EyasError(f"no such file: '{path}'")
    if path.suffix.lower() not in (*MODEL_ENDINGS, ".tflite"):
        raise UsageError(f"--dispatch: '{path}' is compiled already; give the model that it was made from")
    from eyas.pipelines.request import Request
    from eyas.specs import SpecSource
    from eyas.targets import Target
    from eyas.tune.dispatches import open_model
    from eyas.tune.making import Maker, Small
    from eyas.tune.running import Operands, Runner

    request = Request(
        str(path),
        targets=(Target.parse(target or "llvm-cpu"),),
        precision=precision,
        tuning_specs=tuple(map(SpecSource.read, tuning_spec)),
    )
    model = open_model(request, lambda signature: make_inputs(specs, signature), device, threads)
    one = model.find(name)
    operands = Operands.of(one, cold)
    made = Maker().make(Small.of(one, operands.copies), None)
    runner = Runner(model.module.device)
    runner.open(operands)
    runner.load("it", made)
    first = runner.calls("it", 3)
    count = runs or max(_LEAST, min(_MOST, int(_SECONDS * 1e6 / max(min(first), 1.0))))
    times = runner.calls("it", count)
    found = statistics(times)
    seconds = max(found["median_us"], 1e-3) / 1e6
    return {
        "dispatch": one.name,
        "model": str(path),
        "target": str(one.target),
        "device": f"{model.module.device.name}, {model.module.device.threads} threads",
        "operands": "cold" if cold else "warm",
        "copies": operands.copies,
        **found,
        "flops": one.flops,
        "gflop_per_s": round(one.flops / seconds / 1e9, 2) if one.flops else None,
        "bytes": one.bytes,
        "gb_per_s": round(one.bytes / seconds / 1e9, 2),
        "in_model_us": round(one.us / max(one.calls, 1), 2),
        "strategy": made.strategy,
        "knobs": made.knobs,
    }
