"""From a small program and a schedule to a module that can be loaded: what the compiling processes of the tuner do.

The program is parsed once; for each candidate a copy of it goes from the hal phase to the end. Weights are no part of
the module: who runs it binds them, packed as the schedule wants them.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torch_mlir import ir as mlir

from eyas.dialects import codegen, flow
from eyas.errors import CompileError
from eyas.ir import clone_into
from eyas.ir.walk import find_ops
from eyas.knobs import compiling_in_process
from eyas.module import container
from eyas.module.program import Parameter
from eyas.module.variants import Variant
from eyas.passes.hal.pack_weights import unpacked_key
from eyas.pipelines.compilation import Compilation
from eyas.pipelines.dumps import read_dump
from eyas.pipelines.encode import encode_program
from eyas.pipelines.manifest import manifest_of
from eyas.pipelines.request import Options, Phase, Services
from eyas.pipelines.signatures import to_program_signature
from eyas.program.program import ImportedProgram
from eyas.targets import Target
from eyas.tune.dispatches import Dispatch
from eyas.tune.program import weight_name

_UNBOUND = "bound.safetensors"
"""The file that weights would lie in, if they were not bound in memory."""


@dataclass(frozen=True)
class Small:
    """A small program to compile, as text: what a process that compiles must know."""

    key: str
    name: str
    text: str
    target: str
    disabled: tuple[str, ...]
    weights: Mapping[str, tuple[str, tuple[int, ...]]]
    """Type and shape of each parameter."""

    @staticmethod
    def of(dispatch: Dispatch, copies: int = 1, disabled: tuple[str, ...] = (), target: Target | None = None) -> Small:
        weights = {
            weight_name(binding, copy): (one.tensor.dtype, one.tensor.shape)
            for binding, one in enumerate(dispatch.operands)
            if one.weight is not None
            for copy in (*range(copies), None)
        }
        text = dispatch.text(copies)
        key = hashlib.sha256(text.encode()).hexdigest()
        return Small(key, dispatch.name, text, str(target or dispatch.target), disabled, weights)


@dataclass(frozen=True)
class Made:
    """A module without its weights. `panels` says for each parameter that is packed which weight it is, and its
    lanes; `code` is a digest: modules with equal ones run the same instructions on the same grid."""

    module: bytes = field(repr=False)
    code: str
    strategy: str
    knobs: str
    panels: Mapping[str, tuple[str, int]]
    seconds: float = 0.0


class Maker:
    """Compiles candidates of one small program after the other, in this process."""

    def __init__(self) -> None:
        self._key = ""
        self._program: ImportedProgram | None = None

    def make(self, small: Small, schedule: str | None) -> Made:
        """The module under a schedule, `#codegen.strategy<...>`, or as it is by default. Raises CompileError for a
        schedule that is refused."""
        begin = time.perf_counter()
        program = self._parsed(small)
        copy = replace(program, module=clone_into(program.module.operation, program.module.context))
        with copy.module.context, mlir.Location.unknown():
            (function,) = [op for op in copy.module.body.operations if flow.is_executable(op)]
            if schedule is not None:
                function.attributes[codegen.STRATEGY] = _parse(schedule)
            compilation = Compilation.of(copy, Options(Target.parse(small.target), small.disabled), _services())
            with compiling_in_process():
                compilation.run([Phase.HAL, Phase.CODEGEN, Phase.VM])
            return replace(_finish(compilation, small), seconds=time.perf_counter() - begin)

    def _parsed(self, small: Small) -> ImportedProgram:
        if self._program is None or self._key != small.key:
            self._program, self._key = replace(read_dump(small.text, {}, small.name), _digest=""), small.key
        return self._program


def _parse(schedule: str) -> mlir.Attribute:
    try:
        return mlir.Attribute.parse(schedule)
    except (mlir.MLIRError, ValueError) as error:
        raise CompileError(f"'{schedule}' is not a #codegen.strategy<...>: {error}") from None


def _services() -> Services:
    return Services(None, 1, None, ())


def _finish(compilation: Compilation, small: Small) -> Made:
    module = compilation.module
    names = sorted({op.attributes["index"].value for op in find_ops(module, "vm.param")})
    records, panels = {}, {}
    for name in names:
        base = unpacked_key(name)
        dtype, shape = small.weights[base]
        records[name] = Parameter(name, dtype, shape, external=_UNBOUND, key=name)
        if base != name:
            panels[name] = base, int(name.rpartition("#panels")[2])
    signatures = {name: to_program_signature(one.signature) for name, one in compilation.program.entries.items()}
    program, images = encode_program(module, signatures, records)
    (export,) = [one for op in find_ops(module, "hal.executable") for one in op.exports]
    digest = hashlib.sha256()
    for part in (*images.values(), str(export["grid"]).encode(), str(sorted(panels)).encode()):
        digest.update(part)
    file = io.BytesIO()
    container.write_variants(file, [Variant(program, images, manifest_of(compilation), small.target)], [])
    knobs, strategy = mlir.StringAttr(export["knobs"]).value, mlir.StringAttr(export["strategy"]).value
    return Made(file.getvalue(), digest.hexdigest()[:32], strategy, knobs, panels)
