"""What a training step is held to: the loss and every gradient of the first step, as PyTorch finds them in f64.

Losses of later steps tell little. Of the 1.4 million numbers that go into ReLUs (8 images), some lie within rounding of
zero, and each that falls to the other side changes most gradients by half a percent. AdamW's first update is the rate
times the gradient's sign, so that the next loss differs in the third digit, whoever computes it. Gradients are compared
as wholes: a parameter's may differ by `LIMIT` of its norm. `tests/e2e/test_training_gradients.py` holds single numbers
to 2e-5, in a network without kinks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 0.1
"""PyTorch in f32 is up to 0.011 from itself in f64, and f64 up to 0.06 from itself once images change by 1e-6."""
FIRST_MOMENT = 0.1
"""Of the gradient, after one step with AdamW's usual beta of 0.9."""


class WrongGradient(RuntimeError):
    """A gradient is not the one that the reference has."""


def reference(model: Any, arrays: Sequence[np.ndarray]) -> tuple[float, dict[str, np.ndarray]]:
    """(loss, gradients by name) of one step in f64, which changes the model."""
    import torch

    model = model.double().train()
    images, labels = (torch.from_numpy(array) for array in arrays)
    loss = torch.nn.CrossEntropyLoss()(model(images.double()), labels)
    loss.backward()
    return loss.item(), {name: value.grad.numpy() for name, value in model.named_parameters()}


def check(moments: Mapping[str, np.ndarray], path: Path) -> float:
    """The largest error of a gradient, over its norm; raises `WrongGradient` beyond the limit."""
    errors = {}
    with np.load(path) as known:
        for name in known.files:
            expected = known[name].astype(np.float64)
            mine = np.asarray(moments[name], np.float64) / FIRST_MOMENT
            if mine.shape != expected.shape:
                raise WrongGradient(f"the gradient of {name} has the shape {mine.shape}, not {expected.shape}")
            errors[name] = float(np.linalg.norm(mine - expected) / np.linalg.norm(expected))
    worst = max(errors, key=lambda name: (np.isnan(errors[name]), errors[name]))
    if not errors[worst] <= LIMIT:
        raise WrongGradient(f"the gradient of {worst} is {errors[worst]:.1%} from the one in f64")
    return errors[worst]
