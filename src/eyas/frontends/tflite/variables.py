"""Variables: tensors that stay between calls. They become state of the module.

A variable is read and written as an argument and a result of the graph; the importer binds the two. What CALL_ONCE
assigns is its first value, which must be known at compile time; a tensor that is marked as a variable starts as zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from eyas.errors import UnsupportedOpError
from eyas.frontends.tensorflow.graph import Graph, Value

if TYPE_CHECKING:
    from eyas.frontends.tflite.file import TensorRecord
    from eyas.frontends.tflite.translate import Call, Translation


@dataclass(frozen=True)
class Handle:
    """What stands for a variable in the graph."""

    name: str


@dataclass
class Variables:
    """The variables of one entry point: their first values, what they hold now, and the arguments that bring them."""

    first: dict[str, np.ndarray] = field(default_factory=dict)
    now: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Value] = field(default_factory=dict)
    _tensors: dict[int, tuple[TensorRecord, str]] = field(default_factory=dict)  # names, which a file may give twice
    _initializing: bool = False

    def handle(self, name: str) -> Handle:
        return Handle(name)

    def of_tensor(self, translation: Translation, record: TensorRecord) -> Any:
        """A tensor that operators change in place: zeros at first."""
        name = self._name_of(record)
        if name not in self.now:
            zero = record.quantization.zero.reshape(-1)[0] if record.quantization is not None else 0
            self.first[name] = np.full(record.shape, zero, record.dtype)
            self._open(translation.g, name)
        return self.now[name]

    def update(self, record: TensorRecord, value: Any) -> None:
        """What a variable tensor holds from here on."""
        self.now[self._name_of(record)] = value

    def _name_of(self, record: TensorRecord) -> str:
        if id(record) not in self._tensors:
            taken = {name for _, name in self._tensors.values()}
            name = record.name or "state"
            unique = name if name not in taken else f"{name}_{len(taken)}"
            self._tensors[id(record)] = (record, unique)  # held, so that no other record gets its id
        return self._tensors[id(record)][1]

    def initialize(self, translation: Translation, index: int) -> None:
        """Runs the graph of a CALL_ONCE, which assigns constants."""
        self._initializing = True
        try:
            translation.run(index, [])
        finally:
            self._initializing = False

    def read(self, call: Call, handle: Handle, record: TensorRecord) -> Any:
        if handle.name not in self.now:
            if handle.name not in self.first:
                self.first[handle.name] = np.zeros(record.shape, record.dtype)
            self._open(call.g, handle.name)
        return self.now[handle.name]

    def assign(self, call: Call, handle: Handle, value: Any) -> None:
        if self._initializing:
            if not isinstance(value, np.ndarray):
                raise UnsupportedOpError(
                    f"{call.g.description}: {call.g.where} is not supported: the first value of variable"
                    f" '{handle.name}' is computed when the model runs"
                )
            self.first[handle.name] = value
            return
        if handle.name not in self.now:
            self.first.setdefault(
                handle.name, np.zeros([call.g.size(value, i) for i in range(value.ndim)], value.dtype)
            )
            self._open(call.g, handle.name)
        self.now[handle.name] = value

    def _open(self, g: Graph, name: str) -> None:
        start = self.first[name]
        self.arguments[name] = self.now[name] = g.input(f"state:{name}", start.dtype, start.shape)
