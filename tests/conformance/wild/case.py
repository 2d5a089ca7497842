"""A model file of a stranger: where it is, what it is given, and what it is compared with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.conformance.packages import File

Call = Mapping[str, np.ndarray]
DIGESTS = Path(__file__).with_name("digests.json")


@dataclass(frozen=True)
class Wild:
    """`calls` makes the arguments of two calls or more, by name, the first of which is timed; sizes that the file
    leaves open differ between them. `engine` is what it is compared with: onnxruntime, litert, tfjs or torch.

    `rtol` bounds the largest difference relative to the largest magnitude of each result, or to `scale` where that is
    larger: what a result is when there is something to see. `ties` is the share of integers that may differ; `steps`
    allows integers of quantised results to differ by so much. `exact` judges a quantised ONNX file by its own
    arithmetic in exact integers and doubles (`doubles.py`) and takes only the time from the engine: where roundings to
    bytes follow each other, an engine is as far from the file as what would be compared with it. `build` makes a
    PyTorch model of the files, or an ONNX model of none.
    """

    name: str
    files: tuple[File, ...]
    calls: Callable[[], Sequence[Call]]
    engine: str = "onnxruntime"
    rtol: float = 1e-4
    scale: float = 1e-30
    ties: float = 0.0
    steps: int = 0
    exact: bool = False
    build: Callable[..., Any] | None = None
    about: str = ""


def file(package: str, member: str) -> File:
    """A file whose digest is in digests.json, which `python -m tests.conformance.wild --digests` completes."""
    return File(package, member, json.loads(DIGESTS.read_text()).get(package, {}).get(member, ""))
