"""Training by Eyas: forward, backward and AdamW are one compiled module that keeps weights, statistics and moments.

The folder of a run holds the compiled step, and the state with the losses so far, kept every 100 steps. A run that was
stopped goes on from there and ends with the same losses, because the batch of a step depends on nothing but its number.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from examples.mnist_resnet50 import data
from examples.mnist_resnet50.model import resnet50
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import eyas

MODULE_FILE, STATE_FILE, SETTINGS_FILE = "step.eyas", "state.npz", "settings.json"
KEEP_EVERY = 100
APART = ("optimizer", "run")
"""What the kept state has beside the network's own."""


@dataclass(frozen=True)
class Settings:
    """What the result of a run depends on."""

    steps: int = 2000
    batch: int = 64
    peak_rate: float = 1e-3
    warm_up: int = 100
    weight_decay: float = 0.05
    width: int = 64
    blocks: tuple[int, ...] = (3, 4, 6, 3)

    def rate(self, step: int) -> float:
        """The learning rate of a step: up in a line, then down along half a cosine to nothing."""
        if step < self.warm_up:
            return self.peak_rate * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(self.steps - self.warm_up, 1)
        return self.peak_rate * 0.5 * (1 + math.cos(math.pi * done))


def optimiser(model: Any, settings: Settings, **options: Any) -> Any:
    """AdamW whose rate is a tensor, so that the compiled step has it as state; vectors do not decay."""
    import torch

    matrices = [one for one in model.parameters() if one.ndim > 1]
    vectors = [one for one in model.parameters() if one.ndim <= 1]
    rate = torch.tensor(settings.rate(0))
    groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, weight_decay=settings.weight_decay, **options)


def compile_step(settings: Settings, **options: Any) -> eyas.Module:
    """The training step as a module: called with images and labels it returns the loss."""
    import torch

    model = resnet50(settings.width, settings.blocks)
    images, labels = torch.zeros(settings.batch, 1, 28, 28), torch.zeros(settings.batch, dtype=torch.int64)
    loss = torch.nn.CrossEntropyLoss()
    return eyas.training_step(model, loss, optimiser(model, settings), (images, labels), **options)


def set_rate(module: eyas.Module, settings: Settings, step: int) -> None:
    for name in ("optimizer.lr", "optimizer.lr.1"):
        module.state[name] = np.float32(settings.rate(step))


class Run:
    """A training run in a folder: what was trained so far, and how to go on."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self.losses: list[float] = []
        self.seconds: list[float] = []
        """Of each step, batch and all."""
        folder.mkdir(parents=True, exist_ok=True)
        described, path = json.dumps(asdict(settings)), folder / SETTINGS_FILE
        if not path.exists() or path.read_text() != described:
            for name in (MODULE_FILE, STATE_FILE):
                (folder / name).unlink(missing_ok=True)
            path.write_text(described)
        if (folder / STATE_FILE).exists():
            with np.load(folder / STATE_FILE) as kept:
                self.losses, self.seconds = kept["run.losses"].tolist(), kept["run.seconds"].tolist()

    @property
    def finished(self) -> bool:
        return len(self.losses) >= self.settings.steps

    def train(self, digits: data.Digits, say: Callable[[str], None] = print) -> None:
        """Runs the steps that are missing, with a progress bar."""
        if self.finished:
            return
        module = self._open(say)
        columns = ("training", BarColumn(), MofNCompleteColumn(), TextColumn("loss {task.fields[loss]:.4f}"))
        with Progress(*columns, TimeRemainingColumn()) as progress:
            loss = self.losses[-1] if self.losses else math.nan
            shown = progress.add_task("", total=self.settings.steps, completed=len(self.losses), loss=loss)
            for step in range(len(self.losses), self.settings.steps):
                begin = time.perf_counter()
                set_rate(module, self.settings, step)
                loss = float(module(*data.batch(digits, step, self.settings.batch)))
                if not math.isfinite(loss):
                    raise RuntimeError(f"the loss of step {step} is {loss}")
                self.losses.append(loss)
                self.seconds.append(time.perf_counter() - begin)
                progress.update(shown, advance=1, loss=loss)
                if len(self.losses) % KEEP_EVERY == 0 or self.finished:
                    self._keep(module)
                    say(f"step {step + 1}: loss {np.mean(self.losses[-KEEP_EVERY:]):.4f}")

    def trained(self) -> Any:
        """The network with the weights and statistics that the run ended with, for evaluation."""
        import torch

        model = resnet50(self.settings.width, self.settings.blocks)
        with np.load(self.folder / STATE_FILE) as kept:
            state = {name: torch.from_numpy(kept[name]) for name in kept.files if name.partition(".")[0] not in APART}
        model.load_state_dict(state)
        return model.eval()

    def _open(self, say: Callable[[str], None]) -> eyas.Module:
        path = self.folder / MODULE_FILE
        if not path.exists():
            say("compiling the training step (some minutes)")
            module = compile_step(self.settings)
            module.save(path)
        module = eyas.load(path)
        if self.losses:
            say(f"going on after step {len(self.losses)}")
            with np.load(self.folder / STATE_FILE) as kept:
                for name in module.state:
                    module.state[name] = kept[name]
        return module

    def _keep(self, module: eyas.Module) -> None:
        """The file appears whole or not at all, whenever the process is killed."""
        part = self.folder / f"{STATE_FILE}.part"
        with open(part, "wb") as file:
            run = {"run.losses": np.array(self.losses), "run.seconds": np.array(self.seconds)}
            np.savez(file, **dict(module.state), **run)
        os.replace(part, self.folder / STATE_FILE)


def accuracy(module: eyas.Module, digits: data.Digits) -> tuple[float, np.ndarray]:
    """The part of the digits that a module of batch 1 names right, and what it said of each."""
    images = data.normalise(digits.images)
    said = np.array([int(np.argmax(module(image[None]))) for image in images])
    return float(np.mean(said == digits.labels)), said
