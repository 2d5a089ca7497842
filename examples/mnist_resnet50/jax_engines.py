"""JAX's own compiler, and IREE on the StableHLO that JAX writes (its ONNX importer refuses this network)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cpu.engines import Session
from benchmarks.cpu.models import INPUTS_FILE, load_arrays
from examples.mnist_resnet50 import jax_model
from examples.mnist_resnet50.engines import RATE_STEP, load_network, load_settings, training_session


def open_jax(name: str, folder: Path, threads: int) -> Session:
    # XLA has as many threads as the process has CPUs.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax

    function, arrays = _case(name, folder)
    if name == "inference":
        # The weights are constants of the program, as they are for the other engines.
        run, image = jax.jit(function), jax.device_put(arrays[0])
        return Session(jax.__version__, lambda: run(image).block_until_ready())
    run = jax.jit(function, donate_argnums=0)
    state, images, labels = jax.device_put(arrays)

    def step() -> Any:
        nonlocal state
        state, loss = run(state, images, labels)
        return loss.block_until_ready()

    return training_session(jax.__version__, folder, step, lambda: jax_model.to_torch(state["first"]))


def open_iree(name: str, folder: Path, threads: int, backend: str, flags: Sequence[str]) -> Session:
    import jax
    from benchmarks.cpu import iree

    function, arrays = _case(name, folder, slices=True)
    text = folder / "jax.mlir"
    if not text.exists():
        part = text.with_suffix(f".{os.getpid()}")
        part.write_text(jax.jit(function).lower(*arrays).as_text())
        part.replace(text)
    entry = iree.open_module(iree.compile_module(text, backend, flags), threads)
    if name == "inference":
        return Session(iree.version(), lambda: entry(arrays[0]), iree.results)
    state, tree = jax.tree_util.tree_flatten(arrays[0])
    state, given = [np.asarray(leaf) for leaf in state], [np.asarray(one) for one in arrays[1:]]

    def step() -> Any:
        nonlocal state
        *state, loss = entry(*state, *given)
        return loss.to_host()

    def moments() -> dict[str, np.ndarray]:
        made = jax.tree_util.tree_unflatten(tree, [one.to_host() for one in state])
        return jax_model.to_torch(made["first"])

    return training_session(iree.version(), folder, step, moments)


def _case(name: str, folder: Path, slices: bool = False) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and its arguments: an image, or the state of training and a batch."""
    parameters, statistics = jax_model.from_torch(load_network(folder).state_dict())
    images, *labels = load_arrays(folder / INPUTS_FILE)
    images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    if name == "inference":
        return lambda image: jax_model.forward(parameters, statistics, image)[0], (images,)
    settings = load_settings(folder)
    rate = np.float32(settings.rate(RATE_STEP))

    def step(state: Any, images: Any, labels: Any) -> Any:
        return jax_model.training_step(state, images, labels, rate, settings.weight_decay, slices)

    return step, (jax_model.initial_state(parameters, statistics), images, labels[0].astype(np.int32))
