"""A slice of the zoo that takes about a minute; `make conformance-zoo` runs it whole."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.conformance.zoo import check  # noqa: E402
from tests.conformance.zoo.case import Case, Program  # noqa: E402

SLICE = (
    "timm/vit_tiny_patch16_224",
    "timm/mobilenetv4_conv_small",
    "hf/bert",
    "hf/llama",
    "hf/swin",
    "tv/squeezenet1_1",
    "torch/topk-sort",
    "torch/gat-softmax",
    "torch/experts",
)
THROUGH_TORCH_COMPILE = ("torch/gcn-scatter", "hf/bert-nomask")


@pytest.mark.parametrize("name", SLICE)
def test_compiled(name: str) -> None:
    outcome = check.check_compile(name)
    assert outcome.kind == "passed", outcome.reason


@pytest.mark.parametrize("name", THROUGH_TORCH_COMPILE)
def test_through_torch_compile(name: str) -> None:
    outcome = check.check_torch_compile(name)
    assert outcome.kind == "passed", outcome.reason


def test_the_zoo_is_large_and_has_the_hard_ones() -> None:
    names = check.all_cases().keys()
    assert len(names) >= 159
    assert {"hf/mixtral", "hf/fnet", "hf/rwkv", "hf/rt-detr", "hf/llama-static-kv", "torch/cond"} <= names


def test_wrong_answers_are_seen() -> None:
    right = np.float32([1, -4])
    assert check.difference([right], [right], 1e-4) == ""
    assert "relative error of 2.5e-04" in check.difference([right + np.float32([1e-3, 0])], [right], 1e-4)
    assert "instead of" in check.difference([right.astype(np.float64)], [right], 1e-4)
    assert "infinities" in check.difference([right * np.nan], [right], 1e-4)
    assert "differs in 1 of 2" in check.difference([np.int64([1, 2])], [np.int64([1, 3])], 1e-4)


def test_a_model_that_ignores_its_input_shows_nothing() -> None:
    case = Case("torch/constant", lambda: Program(torch.nn.Threshold(1e9, 1.0), lambda sample: (torch.randn(3),)))
    with pytest.raises(AssertionError, match="hardly depends"):
        check._check(case, check._compiled)


def test_magnified_rounding_is_measured_against_f64() -> None:
    class Chaos(torch.nn.Module):
        """Each step magnifies differences."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(15):
                x = 3.9 * x * (1 - x)
            return x

    program, call = Program(Chaos(), lambda sample: ()), (torch.rand(64),)
    eager = program.model(*call).numpy()
    assert "against f64" in check._as_near_as_eager(program, call, [eager], [eager])
    assert not check._as_near_as_eager(program, call, [eager + np.float32(0.01)], [eager])
