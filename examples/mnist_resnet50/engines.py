"""Ways to run the network and its training step, each opened in a process of its own by the benchmark.

The model's name is `inference` (one image) or `training` (a step on a batch). Files of the folder: settings, weights,
the call's arrays, and PyTorch's answer to hold others to; for training that is the loss and the gradients, in f64.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cpu.engines import Engine, Session
from benchmarks.cpu.models import EXPECTED_FILE, INPUTS_FILE, ONNX_FILE, load_arrays
from examples.mnist_resnet50 import gradients
from examples.mnist_resnet50.model import resnet50
from examples.mnist_resnet50.train import Settings, optimiser, set_rate

WEIGHTS_FILE, SETTINGS_FILE, GRADIENTS_FILE = "weights.npz", "settings.json", "gradients.npz"
RATE_STEP = 0
"""Timed steps have the rate of the first one: small, so that a hundred of them on one batch do not end in noise."""


def load_settings(folder: Path) -> Settings:
    return Settings(**json.loads((folder / SETTINGS_FILE).read_text()))


def load_network(folder: Path) -> Any:
    import torch

    settings = load_settings(folder)
    model = resnet50(settings.width, settings.blocks)
    with np.load(folder / WEIGHTS_FILE) as kept:
        model.load_state_dict({name: torch.from_numpy(kept[name]) for name in kept.files})
    return model.eval()


def prepare(name: str, settings: Settings, model: Any, arrays: Sequence[np.ndarray], folder: Path) -> None:
    """Writes what the engines need: settings, weights, arrays, PyTorch's answer, the ONNX file. What was made of other
    weights or settings goes."""
    import torch

    weights = {key: value.numpy() for key, value in model.state_dict().items()}
    described = json.dumps(asdict(settings))
    if (folder / SETTINGS_FILE).exists() and not _is_same(folder, described, weights, arrays):
        shutil.rmtree(folder)
    answers = [EXPECTED_FILE, *([GRADIENTS_FILE] if name == "training" else [])]
    if not all((folder / file).exists() for file in answers):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SETTINGS_FILE).write_text(described)
        np.savez(folder / WEIGHTS_FILE, **weights)
        np.savez(folder / INPUTS_FILE, **{str(at): array for at, array in enumerate(arrays)})
        if name == "inference":
            example = (torch.from_numpy(arrays[0]),)
            torch.onnx.export(model, example, str(folder / ONNX_FILE), dynamo=True, external_data=False, verbose=False)
            session = _eager(name, folder, torch.get_num_threads())
            answer = session.results(session.call())
        else:
            loss, found = gradients.reference(load_network(folder), arrays)
            np.savez(folder / GRADIENTS_FILE, **{key: value.astype(np.float32) for key, value in found.items()})
            answer = [np.array([loss])]
        np.savez(folder / EXPECTED_FILE, **{str(at): array for at, array in enumerate(answer)})


def _is_same(folder: Path, described: str, weights: Mapping[str, np.ndarray], arrays: Sequence[np.ndarray]) -> bool:
    if (folder / SETTINGS_FILE).read_text() != described or not (folder / EXPECTED_FILE).exists():
        return False
    with np.load(folder / WEIGHTS_FILE) as kept:
        same = kept.files == list(weights) and all(np.array_equal(kept[name], weights[name]) for name in weights)
    known = load_arrays(folder / INPUTS_FILE)
    return same and len(known) == len(arrays) and all(map(np.array_equal, known, arrays))


def training_session(
    version: str, folder: Path, step: Callable[[], Any], moments: Callable[[], Mapping[str, np.ndarray]]
) -> Session:
    """A step as a session. What is checked is the first one: its loss, and the gradients that AdamW's first `moments`
    show, by the names and in the shapes that PyTorch has."""

    def answer(loss: Any) -> list[np.ndarray]:
        gradients.check(moments(), folder / GRADIENTS_FILE)
        return [np.array([float(loss)])]

    return Session(version, step, answer)


def module_path(name: str, folder: Path, target: str, disable: Sequence[str] = ()) -> Path:
    """The compiled network or step, compiled now if it is not there."""
    path = folder / ("_".join([target, *disable]) + ".eyas")
    if not path.exists():
        # In a process of its own, so that nothing of the compiler is left in the one that is timed.
        command = [sys.executable, "-m", __spec__.name, name, target, ",".join(disable), str(folder), str(path)]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return path


def _eyas(target: str, disable: Sequence[str] = (), width: int | None = None) -> Callable[..., Session]:
    def open_(name: str, folder: Path, threads: int) -> Session:
        import eyas

        device = eyas.Device("local-task", threads=threads, vmvx_width=width)
        module = eyas.load(module_path(name, folder, target, disable), device=device)
        call, inputs = module.functions["main"], load_arrays(folder / INPUTS_FILE)
        if name == "inference":
            return Session(eyas.__version__, lambda: call(*inputs))
        set_rate(module, load_settings(folder), RATE_STEP)

        def moments() -> dict[str, np.ndarray]:
            end = ".exp_avg"
            named = {key: key.removeprefix("optimizer.") for key in module.state if key.endswith(end)}
            return {name.removesuffix(end): module.state[key] for key, name in named.items()}

        return training_session(eyas.__version__, folder, lambda: call(*inputs), moments)

    return open_


def compile_eyas(name: str, target: str, disable: str, folder: str, path: str) -> None:
    """Compiles the network or its training step to a file."""
    import torch

    import eyas

    model, arrays = load_network(Path(folder)), load_arrays(Path(folder) / INPUTS_FILE)
    example = tuple(torch.from_numpy(array) for array in arrays)
    options: dict[str, Any] = {"target": target, "disable": [one for one in disable.split(",") if one]}
    if name == "inference":
        module = eyas.compile(model, example, **options)
    else:
        given = optimiser(model, load_settings(Path(folder)))
        module = eyas.training_step(model, torch.nn.CrossEntropyLoss(), given, example, **options)
    part = Path(f"{path}.{os.getpid()}")
    module.save(part)
    part.replace(path)


def _torch(name: str, folder: Path, threads: int, wrap: Callable[[Any], Any]) -> Session:
    import torch

    torch.set_num_threads(threads)
    model = load_network(folder)
    arrays = [torch.from_numpy(array) for array in load_arrays(folder / INPUTS_FILE)]
    network = wrap(model)
    if name == "inference":

        @torch.no_grad()
        def call() -> Any:
            return network(arrays[0])

        return Session(torch.__version__, call)
    model.train()
    given = optimiser(model, load_settings(folder), fused=True)
    loss = torch.nn.CrossEntropyLoss()

    def step() -> Any:
        given.zero_grad()
        value = loss(network(arrays[0]), arrays[1])
        value.backward()
        given.step()
        return value.detach()

    def moments() -> dict[str, np.ndarray]:
        return {name: given.state[value]["exp_avg"].numpy() for name, value in model.named_parameters()}

    return training_session(torch.__version__, folder, step, moments)


def _eager(name: str, folder: Path, threads: int) -> Session:
    return _torch(name, folder, threads, lambda model: model)


def _inductor(name: str, folder: Path, threads: int) -> Session:
    import torch
    import torch._inductor.config

    torch._inductor.config.freezing = name == "inference"
    return _torch(name, folder, threads, torch.compile)


def _onnxruntime(name: str, folder: Path, threads: int) -> Session:
    if name == "training":
        raise RuntimeError("its package does not train")
    from benchmarks.cpu.engines import ENGINES as CPU_ENGINES

    return CPU_ENGINES["onnxruntime"].open(name, folder, threads)


def _jax(name: str, folder: Path, threads: int) -> Session:
    from examples.mnist_resnet50.jax_engines import open_jax

    return open_jax(name, folder, threads)


def _iree(backend: str, *flags: str) -> Callable[[str, Path, int], Session]:
    def open_(name: str, folder: Path, threads: int) -> Session:
        from examples.mnist_resnet50.jax_engines import open_iree

        return open_iree(name, folder, threads, backend, flags)

    return open_


ENGINES: Mapping[str, Engine] = {
    "interpreter": Engine("Eyas VMVX, no microkernels", _eyas("vmvx", ("microkernels",))),
    "vmvx_1": Engine("Eyas VMVX, width 1", _eyas("vmvx", width=1)),
    "vmvx": Engine("Eyas VMVX, multiple dispatch", _eyas("vmvx")),
    "llvm": Engine("Eyas llvm-cpu", _eyas("llvm-cpu")),
    "eager": Engine("PyTorch", _eager),
    "inductor": Engine("torch.compile", _inductor),
    "onnxruntime": Engine("ONNX Runtime", _onnxruntime),
    "jax": Engine("JAX", _jax),
    "iree_vmvx_plain": Engine("IREE VMVX, no microkernels", _iree("vmvx")),
    "iree_vmvx": Engine("IREE VMVX, microkernels", _iree("vmvx", "microkernels")),
    "iree": Engine("IREE llvm-cpu", _iree("llvm-cpu")),
    "iree_tiled": Engine("IREE llvm-cpu, data tiling", _iree("llvm-cpu", "data-tiling")),
}


if __name__ == "__main__":
    compile_eyas(*sys.argv[1:])
