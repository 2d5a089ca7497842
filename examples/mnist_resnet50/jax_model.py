"""The same network in JAX, channels last, with torch's weights: inference, and a training step with AdamW.

For XLA, and by way of StableHLO for IREE. Nested dicts follow torch's names: `layer1.0.conv1.weight`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

EPSILON, MOMENTUM = 1e-5, 0.1
BETA1, BETA2, ADAM_EPSILON = 0.9, 0.999, 1e-8

Arrays = dict[str, Any]


def from_torch(state: Mapping[str, Any]) -> tuple[Arrays, Arrays]:
    """(parameters, running statistics) copied from a torch state dict; filters become [height, width, in, out]."""
    parameters, statistics = {}, {}
    for name, tensor in state.items():
        array = tensor.detach().numpy()
        if "running" in name:
            statistics[name] = array.copy()
        elif array.ndim == 4:
            parameters[name] = array.transpose(2, 3, 1, 0).copy()
        elif "num_batches" not in name:
            parameters[name] = array.T.copy()
    return parameters, statistics


def to_torch(parameters: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What is shaped like parameters, as torch has it."""
    arrays = {name: np.asarray(value) for name, value in parameters.items()}
    return {name: array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T for name, array in arrays.items()}


def forward(
    parameters: Arrays, statistics: Arrays, images: Any, training: bool = False, slices: bool = False
) -> tuple[Any, Arrays]:
    """(logits, new running statistics) of images [batch, 28, 28, 1].

    With `slices` pooling is the maximum of nine slices, for IREE, which lacks the gradient of a window.
    """
    updated = dict(statistics)

    def convolve(x: Any, name: str, stride: int = 1) -> Any:
        weight, size = parameters[f"{name}.weight"], x.shape[1]
        kernel, edge = weight.shape[0], weight.shape[0] // 2
        # Padding that no window reaches is left out: the results are the same, and IREE 3.13 stumbles over it where
        # one window is the whole image.
        last = (size + 2 * edge - kernel) // stride * stride + kernel - edge
        padding, layout = [(edge, min(last - size, edge))] * 2, ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, weight, (stride, stride), padding, dimension_numbers=layout)

    def normalise(x: Any, name: str) -> Any:
        mean, variance = statistics[f"{name}.running_mean"], statistics[f"{name}.running_var"]
        if training:
            count = x.size // x.shape[-1]
            old_mean, old_variance = mean, variance
            mean = x.mean((0, 1, 2))
            variance = jnp.square(x - mean).mean((0, 1, 2))
            updated[f"{name}.running_mean"] = (1 - MOMENTUM) * old_mean + MOMENTUM * mean
            unbiased = variance * (count / (count - 1))
            updated[f"{name}.running_var"] = (1 - MOMENTUM) * old_variance + MOMENTUM * unbiased
        scale = parameters[f"{name}.weight"] * jax.lax.rsqrt(variance + EPSILON)
        return (x - mean) * scale + parameters[f"{name}.bias"]

    def block(x: Any, name: str, stride: int) -> Any:
        y = jax.nn.relu(normalise(convolve(x, f"{name}.conv1"), f"{name}.bn1"))
        y = jax.nn.relu(normalise(convolve(y, f"{name}.conv2", stride), f"{name}.bn2"))
        y = normalise(convolve(y, f"{name}.conv3"), f"{name}.bn3")
        if f"{name}.downsample.0.weight" in parameters:
            x = normalise(convolve(x, f"{name}.downsample.0", stride), f"{name}.downsample.1")
        return jax.nn.relu(x + y)

    x = jax.nn.relu(normalise(convolve(images, "conv1", 2), "bn1"))
    x = pool_slices(x) if slices else pool(x)
    for layer in range(1, 5):
        at = 0
        while f"layer{layer}.{at}.conv1.weight" in parameters:
            x = block(x, f"layer{layer}.{at}", 2 if layer > 1 and at == 0 else 1)
            at += 1
    return x.mean((1, 2)) @ parameters["fc.weight"] + parameters["fc.bias"], updated


def pool(x: Any) -> Any:
    """The largest of 3x3, at every other place."""
    padding = [(0, 0), (1, 1), (1, 1), (0, 0)]
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), padding)


def pool_slices(x: Any) -> Any:
    """The same for what is not negative, so that zeros may stand around it."""
    padded, half = jnp.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]), (x.shape[1] + 1) // 2
    ends = [(at, at + 2 * half - 1) for at in range(3)]
    parts = [padded[:, top:bottom:2, left:right:2] for top, bottom in ends for left, right in ends]
    return functools.reduce(jnp.maximum, parts)


def initial_state(parameters: Arrays, statistics: Arrays) -> Arrays:
    """What a step replaces. Moments have arrays of their own: JAX may use a NumPy array's memory as its own."""
    first, second = ({name: np.zeros_like(value) for name, value in parameters.items()} for _ in range(2))
    moments = {"first": first, "second": second, "count": np.float32(0)}
    return {"parameters": parameters, "statistics": statistics, **moments}


def training_step(
    state: Arrays, images: Any, labels: Any, rate: Any, weight_decay: float, slices: bool = False
) -> tuple[Arrays, Any]:
    """(new state, loss): cross-entropy and AdamW, as `torch.optim.AdamW` has it; vectors do not decay."""

    def loss_of(parameters: Arrays) -> tuple[Any, Arrays]:
        logits, statistics = forward(parameters, state["statistics"], images, True, slices)
        chosen = jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, logits.shape[1])
        return -chosen.sum() / len(labels), statistics

    (loss, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(state["parameters"])
    count = state["count"] + 1
    parameters, firsts, seconds = {}, {}, {}
    for name, gradient in gradients.items():
        value = state["parameters"][name]
        if value.ndim > 1:
            value = value * (1 - rate * weight_decay)
        firsts[name] = first = BETA1 * state["first"][name] + (1 - BETA1) * gradient
        seconds[name] = second = BETA2 * state["second"][name] + (1 - BETA2) * jnp.square(gradient)
        scale = jnp.sqrt(second / (1 - BETA2**count)) + ADAM_EPSILON
        parameters[name] = value - rate * (first / (1 - BETA1**count)) / scale
    made = {"parameters": parameters, "statistics": statistics, "first": firsts, "second": seconds, "count": count}
    return made, loss
