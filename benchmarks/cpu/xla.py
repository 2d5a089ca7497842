"""XLA as JAX runs it on CPUs, on the very models of the other engines: torch.export, StableHLO, jaxlib's compiler.

These models have no JAX source here (transformers has dropped its own). Weights are arguments that stay on the device,
as those of a JAX model are, so XLA cannot fold what depends on them alone. Convolutional networks are left out: torch's
filters would be transposed in every call, where a JAX model has them the other way round from the start.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import models as cases
from benchmarks.cpu.engines import Session
from benchmarks.cpu.models import MODELS

COMPARABLE = ("minilm", "mobilebert", "gpt2", "gpt2_decode", "vit_small")


def open_xla(name: str, folder: Path, threads: int) -> Session:
    if name not in COMPARABLE:
        raise RuntimeError("no JAX model to compare with")
    # XLA has as many threads as the process has CPUs.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax

    jax.config.update("jax_enable_x64", True)
    one = MODELS[name]()
    text, weights = _stablehlo(one)
    from jax._src.lib import xla_client

    device = jax.devices("cpu")[0]
    program = device.client.compile_and_load(text, xla_client.DeviceList((device,)), xla_client.CompileOptions())
    inputs = [array for value in (one.args, one.kwargs) for array in cases.flat(value)]
    placed = [jax.device_put(np.asarray(array)) for array in [*weights, *inputs]]

    def call() -> list[Any]:
        results = program.execute(placed)
        for result in results:
            result.block_until_ready()
        return results

    return Session(jax.__version__, call)


def _stablehlo(one: cases.Case) -> tuple[str, list[np.ndarray]]:
    """The model as a function of its weights and then its inputs, and the weights."""
    import torch
    from torch_mlir import fx

    model = one.model.eval()
    # Tied weights have several names and are one argument.
    tensors = dict([*model.named_parameters(), *model.named_buffers()])

    class Function(torch.nn.Module):
        def forward(self, weights: list[torch.Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return torch.func.functional_call(model, dict(zip(tensors, weights, strict=True)), args, kwargs)

    values = [value.detach() for value in tensors.values()]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        module = fx.export_and_import(Function(), values, one.args, dict(one.kwargs), output_type="stablehlo")
    return module.operation.get_asm(), [value.numpy() for value in values]
