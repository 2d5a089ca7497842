"""What a framework offers for verification: its values, layer by layer, and its program with layers as results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eyas.program.program import ImportedProgram
from eyas.verification.build import Build


@dataclass(frozen=True)
class Layer:
    """A value inside the source program: its name there, the op that makes it, where that is, and what it reads."""

    name: str
    op: str
    place: str = ""
    reads: tuple[str, ...] = ()
    """Names of other layers; arguments and weights are not among them."""


@dataclass(frozen=True)
class Tapped:
    """A program that also returns layers: `positions` says which of its flat results each one is."""

    program: ImportedProgram
    positions: Mapping[str, int]


@dataclass(frozen=True)
class Reference:
    """What the framework computes: the flat results in order, and every layer by name."""

    results: Sequence[np.ndarray]
    layers: Mapping[str, np.ndarray]


class Source(ABC):
    """One model in its framework. `layers` are in program order; results of the program are among them by name."""

    framework: str = ""
    layers: Sequence[Layer] = ()

    @abstractmethod
    def program(self, taps: Sequence[str] = ()) -> Tapped:
        """The program as Eyas imports it, with some layers as further results; fresh at each call."""

    @abstractmethod
    def reference(self, inputs: Sequence[np.ndarray]) -> Reference:
        """Runs the framework on the flat inputs of the imported program."""

    def flatten(self, program: ImportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The tensors of a call of the model, in the order of the imported program's arguments."""
        return program.in_tree.flatten(args, kwargs)

    def recompute(
        self, layer: Layer, values: Mapping[str, np.ndarray], inputs: Sequence[np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        """One layer from given values of the layers that it reads, by whoever can: the name of each, the most exact
        first, and its result. Nobody, where a framework has no ops that run by themselves."""
        del layer, values, inputs
        yield from ()

    @property
    def results(self) -> Sequence[str]:
        """The names of the layers that the program returns, in order; '' where a result is no layer."""
        return ()

    def layer(self, name: str) -> Layer:
        return next(layer for layer in self.layers if layer.name == name)


def open_source(
    model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any, build: Build
) -> Source:
    """The source of a model of any kind that `eyas.compile` takes."""
    from eyas.frontends import frontend_of

    kind = frontend_of(model, (args, kwargs))
    if kind == "torch":
        from eyas.verification.torch_source import TorchSource

        return TorchSource(model, args, kwargs, dynamic_shapes)
    if kind == "onnx":
        from eyas.verification.onnx_source import OnnxSource

        return OnnxSource(model, dynamic_shapes)
    if kind == "jax":
        from eyas.verification.jax_source import JaxSource

        return JaxSource(model, args, kwargs)
    from eyas.verification.mlir_source import MlirSource

    return MlirSource(model, build)
