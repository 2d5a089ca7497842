"""What a compilation ends with: host program, executables, weights and manifest, ready to be written."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from eyas.dialects import flow
from eyas.errors import CompileError
from eyas.ir.walk import find_ops
from eyas.module import container
from eyas.module.pool import share_parameters
from eyas.module.program import Program, State
from eyas.module.variants import Variant
from eyas.pipelines import weights_file
from eyas.pipelines.compilation import Compilation
from eyas.pipelines.encode import encode_program
from eyas.pipelines.manifest import manifest_of
from eyas.pipelines.signatures import program_dtype, to_program_signature
from eyas.program.parameters import ParameterStore


@dataclass(frozen=True)
class CompiledProgram:
    """All parts of a module, ready to be written: one variant for each target, best first, and their weights."""

    variants: tuple[Variant, ...]
    parameters: list

    @property
    def manifest(self) -> Mapping[str, Any]:
        """That of the best variant."""
        return self.variants[0].manifest

    @property
    def gave_up(self) -> bool:
        """Whether a kernel is not what it should be, so that another compilation may do better."""
        return any("given_up" in kernel for one in self.variants for kernel in one.manifest["kernels"])

    def write(self, target: str | Path | IO[bytes]) -> None:
        """Streams the module to a path or an open file; weights are never copied as a whole."""
        container.write_variants(target, self.variants, self.parameters)

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


@dataclass(frozen=True)
class Encoded:
    """One compilation's end: a variant whose weights lie as if it were alone, and where they came from."""

    variant: Variant
    data: list
    parameters: ParameterStore


def encode(compilation: Compilation) -> Encoded:
    """Encodes the program after the last phase."""
    weights = _used_weights(compilation)
    records, data = container.layout_parameters({key: weights.parameters[key].array() for key in weights.stored})
    ordinals = {record.name: ordinal for ordinal, record in enumerate(records)}
    states = {}
    for name in weights.states:
        first = weights.parameters[flow.initial_key(name)]
        states[name] = State(name, program_dtype(first.dtype), first.shape, ordinals.get(flow.initial_key(name)))
    signatures = {name: to_program_signature(one.signature) for name, one in compilation.program.entries.items()}
    by_name = {record.name: record for record in records}
    program, images = encode_program(compilation.module, signatures, by_name, states)
    variant = Variant(program, images, manifest_of(compilation), str(compilation.options.target))
    return Encoded(variant, data, weights.parameters)


def finish(parts: Sequence[Encoded], external_weights: Path | None = None) -> CompiledProgram:
    """One module of all parts, best first, with one copy of equal weights. `external_weights` is a safetensors file to
    write, which must then stay beside the module."""
    programs, data = share_parameters([(part.variant.program, part.data) for part in parts])
    if external_weights is not None and data:
        programs, data = _write_outside(programs, external_weights, [part.parameters for part in parts]), []
    variants = (replace(part.variant, program=program) for part, program in zip(parts, programs, strict=True))
    return CompiledProgram(tuple(variants), data)


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


def _write_outside(programs: Sequence[Program], path: Path, stores: Sequence[ParameterStore]) -> list[Program]:
    """Weights in a file of their own; of those that share a place, one. Other values of one name, as variants have
    them, get a number behind it."""
    keys: dict[tuple, str] = {}
    written: dict[str, Any] = {}
    moved = []
    for program, store in zip(programs, stores, strict=True):
        records = []
        for one in program.parameters:
            place = (one.offset, one.dtype, one.shape)
            if place not in keys:
                names = (one.name if number == 1 else f"{one.name}@{number}" for number in itertools.count(1))
                keys[place] = next(name for name in names if name not in written)
                written[keys[place]] = store[one.name]
            records.append(replace(one, offset=0, external=path.name, key=keys[place]))
        moved.append(replace(program, parameters=tuple(records)))
    weights_file.write(path, written)
    return moved


def is_zero(array: Any) -> bool:
    """Whether all bytes are zero; minus zero is not."""
    return not np.ascontiguousarray(array).reshape(-1).view(np.uint8).any()
