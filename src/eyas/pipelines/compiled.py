"""What a compilation ends with: host program, executables, weights and manifest, ready to be written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from eyas.dialects import flow
from eyas.errors import CompileError
from eyas.ir.walk import find_ops
from eyas.module import container
from eyas.module.program import Parameter, Program, State
from eyas.pipelines import weights_file
from eyas.pipelines.compilation import Compilation
from eyas.pipelines.encode import encode_program
from eyas.pipelines.manifest import manifest_of
from eyas.pipelines.signatures import program_dtype, to_program_signature
from eyas.program.parameters import ParameterStore


@dataclass(frozen=True)
class CompiledProgram:
    """All parts of a module, ready to be written."""

    program: Program
    images: Mapping[str, bytes]
    parameters: list
    manifest: Mapping[str, Any]

    def write(self, target: str | Path | IO[bytes]) -> None:
        """Streams the module to a path or an open file; weights are never copied as a whole."""
        container.write(target, self.program, self.images, self.parameters, self.manifest)

    def write_unnamed(self) -> IO[bytes]:
        """Writes the module to a file that vanishes when it is closed."""
        file = tempfile.TemporaryFile(prefix="eyas-")
        try:
            self.write(file)
            file.flush()
        except OSError as error:
            file.close()
            raise CompileError(
                f"the module could not be written to '{tempfile.gettempdir()}': {error}; set TMPDIR to a folder with"
                " room"
            ) from error
        return file

    def to_bytes(self) -> bytes:
        return container.to_bytes(self.program, self.images, self.parameters, self.manifest)


def finish(compilation: Compilation, external_weights: Path | None = None) -> CompiledProgram:
    """Encodes the program after the last phase. `external_weights` is a safetensors file to write, which must then stay
    beside the module."""
    weights = _used_weights(compilation)
    records, data = container.layout_parameters({key: weights.parameters[key].array() for key in weights.stored})
    if external_weights is not None and records:
        records, data = _write_outside(records, external_weights, weights.parameters), []
    ordinals = {record.name: ordinal for ordinal, record in enumerate(records)}
    states = {}
    for name in weights.states:
        first = weights.parameters[flow.initial_key(name)]
        states[name] = State(name, program_dtype(first.dtype), first.shape, ordinals.get(flow.initial_key(name)))
    signatures = {name: to_program_signature(one.signature) for name, one in compilation.program.entries.items()}
    by_name = {record.name: record for record in records}
    program, images = encode_program(compilation.module, signatures, by_name, states)
    return CompiledProgram(program, images, data, manifest_of(compilation))


@dataclass(frozen=True)
class _Weights:
    """What a module needs of the weights: those to be stored, and its variables, both in the frontend's order."""

    parameters: ParameterStore
    stored: tuple[str, ...]
    states: tuple[str, ...]


def _used_weights(compilation: Compilation) -> _Weights:
    parameters = compilation.parameters
    used = {op.attributes["index"].value for op in find_ops(compilation.module, "vm.param")}
    variables = {op.attributes["index"].value for op in find_ops(compilation.module, "vm.state")}
    order = {key: position for position, key in enumerate(parameters)}
    states = sorted(variables, key=lambda name: order.get(flow.initial_key(name), 0))
    first_values = [flow.initial_key(name) for name in states]
    if missing := (used | set(first_values)) - set(parameters):
        raise CompileError(
            f"the program needs the values of {len(missing)} parameters that were not given, such as"
            f" '{min(missing)}'; pass the file that holds them"
        )
    # What starts as zeros, as caches do, is not stored.
    used |= {key for key in first_values if not is_zero(parameters[key].array())}
    return _Weights(parameters, tuple(key for key in parameters if key in used), tuple(states))


def _write_outside(records: tuple[Parameter, ...], path: Path, parameters: ParameterStore) -> tuple[Parameter, ...]:
    """Weights in a file of their own; of those that share a place, one."""
    kept = {(one.offset, one.dtype, one.shape): one.name for one in reversed(records)}
    weights_file.write(path, {key: parameters[key] for key in kept.values()})
    return tuple(
        replace(one, offset=0, external=path.name, key=kept[one.offset, one.dtype, one.shape]) for one in records
    )


def is_zero(array: Any) -> bool:
    """Whether all bytes are zero; minus zero is not."""
    return not np.ascontiguousarray(array).reshape(-1).view(np.uint8).any()
