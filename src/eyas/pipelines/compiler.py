"""The driver: an imported program in, a module's bytes out, through all phases."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch_mlir import ir as mlir

import eyas
from eyas.errors import CompileError
from eyas.frontends.program import ImportedProgram
from eyas.frontends.program import Signature as ImportedSignature
from eyas.ir import raise_as_compile_error
from eyas.ir.walk import find_ops, functions
from eyas.module import container
from eyas.module.program import Program, Signature, Symbol, TensorSpec
from eyas.passes.schedule.plan_memory import ARENA_BYTES, LOWER_BOUND_BYTES
from eyas.pipelines.encode import encode_program
from eyas.pipelines.phases import Options, Phase, pipeline
from eyas.targets import Target

Observer = Callable[[Phase, str, float], None]


@dataclass
class Compilation:
    """A compilation under way: the module, its parameters, and how long each phase took."""

    module: mlir.Module
    parameters: dict[str, Any]
    signature: ImportedSignature
    options: Options
    source: str = ""
    source_digest: str = ""
    call_tree: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def of(imported: ImportedProgram, options: Options) -> Compilation:
        parameters = dict(imported.parameters)
        return Compilation(
            imported.module,
            parameters,
            imported.signature,
            replace(options, parameters=parameters),
            f"{imported.source.kind}: {imported.source.description}",
        )

    def run(
        self,
        first: Phase = Phase.INPUT,
        last: Phase = Phase.VM,
        dump: Path | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Runs the phases from `first` to `last`; writes the module after each into `dump`."""
        for phase in list(Phase)[first.ordinal : last.ordinal + 1]:
            begin = time.perf_counter()
            steps = pipeline(phase, self.options)
            steps.run(
                self.module, lambda step, _, took: observer(phase, str(step), took) if observer is not None else None
            )
            try:
                self.module.operation.verify()
            except mlir.MLIRError as error:
                raise_as_compile_error(error, f"phase '{phase.value}' left invalid IR:")
            self.seconds[phase.value] = time.perf_counter() - begin
            if dump is not None:
                dump.mkdir(parents=True, exist_ok=True)
                path = dump / f"{phase.ordinal + 1}.{phase.value}.mlir"
                path.write_text(self.module.operation.get_asm(large_elements_limit=16))

    def finish(self) -> CompiledProgram:
        """Encodes the program after the last phase."""
        used = {op.attributes["index"].value for op in find_ops(self.module, "vm.param")}
        missing = used - set(self.parameters)
        if missing:
            raise CompileError(
                f"the program needs the values of {len(missing)} parameters that were not given, such as"
                f" '{min(missing)}'; pass the file that holds them"
            )
        arrays = {key: self.parameters[key].array() for key in self.parameters if key in used}
        arrays = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
        records, data = container.layout_parameters(arrays)
        by_name = {record.name: record for record in records}
        signature = to_program_signature(self.signature)
        names = [function.attributes["sym_name"].value for function in functions(self.module)]
        program, images = encode_program(self.module, {name: signature for name in names}, by_name)
        return CompiledProgram(program, images, data, self.manifest())

    def manifest(self) -> dict[str, Any]:
        """Provenance and statistics."""
        main = functions(self.module)[0]
        memory = {}
        for key, name in ((ARENA_BYTES, "arena_bytes"), (LOWER_BOUND_BYTES, "arena_lower_bound_bytes")):
            if key in main.attributes:
                memory[name] = main.attributes[key].value
        executables = [
            {
                "name": one["name"].value,
                "strategy": one["strategy"].value,
                "knobs": one["knobs"].value,
                "rejected": [mlir.StringAttr(reason).value for reason in one["rejected"]],
            }
            for executable in find_ops(self.module, "hal.executable")
            for one in executable.exports
        ]
        return {
            "provenance": {
                "compiler": f"eyas {eyas.__version__}",
                "target": str(Target.parse(self.options.target)),
                "disabled": list(self.options.disable),
                "source": self.source,
                "source_digest": self.source_digest,
            },
            "memory": memory,
            "kernels": executables,
            "compile_seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            **({"call": self.call_tree} if self.call_tree else {}),
        }


@dataclass(frozen=True)
class CompiledProgram:
    """All parts of a module, ready to be written."""

    program: Program
    images: Mapping[str, bytes]
    parameters: list
    manifest: Mapping[str, Any]

    def save(self, path: str | Path) -> None:
        container.write(path, self.program, self.images, self.parameters, self.manifest)

    def to_bytes(self) -> bytes:
        return container.to_bytes(self.program, self.images, self.parameters, self.manifest)


def to_program_signature(signature: ImportedSignature) -> Signature:
    """The signature that the runtime checks; dimensions it cannot express are left open."""

    def dims(values: tuple[int | str, ...]) -> tuple[int | str, ...]:
        return tuple(d if isinstance(d, int) or str(d).isidentifier() else "?" for d in values)

    symbols = {
        name: Symbol(low, high) if high is not None else Symbol(low) for name, (low, high) in signature.symbols.items()
    }
    return Signature(
        tuple(TensorSpec(a.name, a.dtype, dims(a.dims)) for a in signature.arguments),
        tuple(TensorSpec(r.name, r.dtype, dims(r.dims)) for r in signature.results),
        symbols,
    )


def signature_to_json(signature: ImportedSignature) -> str:
    """The signature as text, kept in dumps so that a later phase can be resumed."""
    return json.dumps(
        {
            "arguments": [[a.name, a.dtype, list(a.dims)] for a in signature.arguments],
            "results": [[r.name, r.dtype, list(r.dims)] for r in signature.results],
            "symbols": {name: list(bounds) for name, bounds in signature.symbols.items()},
        }
    )
