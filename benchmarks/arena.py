"""Memory for intermediate values: ResNet-50 at most 1.15 x the planner's own lower bound."""

from __future__ import annotations

from collections.abc import Iterator

import eyas
from benchmarks import models
from benchmarks.report import Row, failure

BAR = 1.15


def rows() -> Iterator[Row]:
    for name in ("resnet50", "mobilenet_v2", "minilm"):
        try:
            memory = models.compiled(name).manifest["memory"]
        except eyas.EyasError as error:
            yield failure(models.case(name).name, "x", None, error)
            continue
        bound = memory["arena_lower_bound_bytes"]
        note = f"{memory['arena_bytes'] / 2**20:.2f} MiB"
        limit = BAR if name == "resnet50" else None
        ratio = memory["arena_bytes"] / bound
        yield Row(models.case(name).name, ratio, "x", limit, f"its lower bound, {bound / 2**20:.2f} MiB", note=note)
