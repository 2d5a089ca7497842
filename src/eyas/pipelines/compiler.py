"""The driver: an imported program in, a module's bytes out, through all phases."""

from __future__ import annotations

import ast
import functools
import io
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from torch_mlir import ir as mlir

import eyas
from eyas.dialects import flow
from eyas.errors import CompileError
from eyas.frontends.parameters import Parameter as ImportedParameter
from eyas.frontends.program import Argument, EntryPoint, ImportedProgram
from eyas.frontends.program import Signature as ImportedSignature
from eyas.ir import make_context, parse_module, raise_as_compile_error
from eyas.ir.walk import find_ops, functions
from eyas.module import container
from eyas.module.program import Program, Signature, State, Symbol, TensorSpec
from eyas.passes.dispatch.shapes import SIGNATURE
from eyas.passes.schedule.plan_memory import ARENA_BYTES, LOWER_BOUND_BYTES
from eyas.pipelines import weights_file
from eyas.pipelines.encode import encode_program
from eyas.pipelines.phases import Options, Phase, pipeline
from eyas.pipelines.work import note_work, sources_of, work_of
from eyas.runtime.module import Module, load_open_file
from eyas.targets import Target

Observer = Callable[[Phase, str, float], None]

# Attributes of functions (the first two) and of the module that make a dump complete: a later process resumes from it
# with nothing but the weights.
CALL, SOURCE, SOURCE_DIGEST = "flow.call", "flow.source", "flow.source_digest"
PARAMETERS_FILE = "parameters.safetensors"


@dataclass
class Compilation:
    """A compilation under way: the module, its parameters, and how long each phase took.

    `signatures` and `call_trees` are by the names of the entry functions.
    """

    module: mlir.Module
    parameters: dict[str, Any]
    signatures: Mapping[str, ImportedSignature]
    options: Options
    source: str = ""
    source_digest: str = ""
    call_trees: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    last_good: tuple[Phase | None, bytes] = (None, b"")
    """The last phase that was completed and its module as bytecode: what a reproducer starts from."""

    @staticmethod
    def of(imported: ImportedProgram, options: Options) -> Compilation:
        parameters = dict(imported.parameters)
        made = Compilation(
            imported.module,
            parameters,
            {name: entry.signature for name, entry in imported.entries.items()},
            replace(options, parameters=parameters),
            f"{imported.source.kind}: {imported.source.description}",
            imported.digest,
            {name: tree for name, entry in imported.entries.items() if (tree := call_tree_of(entry))},
        )
        made._write_attributes()
        return made

    @staticmethod
    def resume(
        text: str | bytes, options: Options, weights: Mapping[str, ImportedParameter], source: str = "<text>"
    ) -> Compilation:
        """Takes up a dump of any phase; go on with `run` from the phase after it."""
        module = parse_module(text, make_context(), source)
        signatures, calls = {}, {}
        try:
            for function in entry_functions(module):
                name = function.attributes["sym_name"].value
                signatures[name] = signature_from_text(_text_of(function, SIGNATURE))
                if call := ast.literal_eval(_text_of(function, CALL) or "{}"):
                    calls[name] = call
        except (ValueError, KeyError, TypeError, SyntaxError) as error:
            raise CompileError(f"{source}: '{SIGNATURE}' or '{CALL}' cannot be read: {error}") from None
        if not signatures:
            raise CompileError(
                f"{source} has no '{SIGNATURE}' on a function, so it is not a dump of a phase; write one with"
                " `eyas compile --dump-phases` or `--to`, or compile the file without `--from`"
            )
        parameters = dict(weights)
        options = replace(options, parameters=parameters)
        origin, digest = (_text_of(module.operation, name) for name in (SOURCE, SOURCE_DIGEST))
        return Compilation(module, parameters, signatures, options, origin, digest, calls)

    def run(
        self,
        first: Phase = Phase.INPUT,
        last: Phase = Phase.VM,
        dump: Path | None = None,
        observer: Observer | None = None,
        on_phase: Callable[[Phase], None] | None = None,
    ) -> None:
        """Runs the phases from `first` to `last`; writes the module after each into `dump`, weights beside them."""
        weights = dict(self.parameters)
        for phase in list(Phase)[first.ordinal : last.ordinal + 1]:
            if on_phase is not None:
                on_phase(phase)
            self._keep_last_good(phase)
            begin = time.perf_counter()
            if phase is Phase.CODEGEN:
                note_work(self.module)
            steps = pipeline(phase, self.options)
            seen = None if observer is None else functools.partial(_report, observer, phase)
            steps.run(self.module, seen)
            try:
                self.module.operation.verify()
            except mlir.MLIRError as error:
                raise_as_compile_error(error, f"phase '{phase.value}' left invalid IR:")
            self.seconds[phase.value] = time.perf_counter() - begin
            if dump is not None:
                dump.mkdir(parents=True, exist_ok=True)
                (dump / f"{phase.ordinal + 1}.{phase.value}.mlir").write_text(self.as_text())
                weights |= self.parameters
        if dump is not None and weights:
            weights_file.write(dump / PARAMETERS_FILE, weights)

    def as_text(self) -> str:
        """The module as text that `resume` takes: constants in full, since only weights live elsewhere."""
        return self.module.operation.get_asm()

    def _keep_last_good(self, next_phase: Phase) -> None:
        buffer = io.BytesIO()
        self.module.operation.write_bytecode(buffer)
        done = list(Phase)[next_phase.ordinal - 1] if next_phase.ordinal else None
        self.last_good = (done, buffer.getvalue())

    def _write_attributes(self) -> None:
        values = [
            (self.module.operation, SOURCE, self.source),
            (self.module.operation, SOURCE_DIGEST, self.source_digest),
        ]
        for function in functions(self.module):
            name = function.attributes["sym_name"].value
            values.append((function.operation, SIGNATURE, signature_to_text(self.signatures[name])))
            if name in self.call_trees:
                values.append((function.operation, CALL, repr(self.call_trees[name])))
        for op, name, value in values:
            if value:
                op.attributes[name] = mlir.StringAttr.get(value, self.module.context)

    def finish(self, external_weights: Path | None = None) -> CompiledProgram:
        """Encodes the program after the last phase. `external_weights` is a safetensors file to write, which must
        then stay beside the module."""
        used = {op.attributes["index"].value for op in find_ops(self.module, "vm.param")}
        variables = {op.attributes["index"].value for op in find_ops(self.module, "vm.state")}
        # In the frontend's order, which is the model's.
        order = {key: position for position, key in enumerate(self.parameters)}
        names = sorted(variables, key=lambda name: order.get(flow.initial_key(name), 0))
        missing = (used | {flow.initial_key(name) for name in names}) - set(self.parameters)
        if missing:
            raise CompileError(
                f"the program needs the values of {len(missing)} parameters that were not given, such as"
                f" '{min(missing)}'; pass the file that holds them"
            )
        # What starts as zeros, as caches do, is not stored.
        initial = {name: self.parameters[flow.initial_key(name)] for name in names}
        used |= {flow.initial_key(name) for name, one in initial.items() if not is_zero(one.array())}
        arrays = {key: self.parameters[key].array() for key in self.parameters if key in used}
        records, data = container.layout_parameters(arrays)
        if external_weights is not None and records:
            kept = {(one.offset, one.dtype, one.shape): one.name for one in reversed(records)}
            weights_file.write(external_weights, {key: self.parameters[key] for key in kept.values()})
            records = tuple(
                replace(one, offset=0, external=external_weights.name, key=kept[one.offset, one.dtype, one.shape])
                for one in records
            )
            data = []
        by_name = {record.name: record for record in records}
        signatures = {name: to_program_signature(signature) for name, signature in self.signatures.items()}
        ordinals = {record.name: ordinal for ordinal, record in enumerate(records)}
        states = {
            name: State(name, _program_dtype(one.dtype), one.shape, ordinals.get(flow.initial_key(name)))
            for name, one in initial.items()
        }
        program, images = encode_program(self.module, signatures, by_name, states)
        return CompiledProgram(program, images, data, self.manifest())

    def manifest(self) -> dict[str, Any]:
        """Provenance and statistics. The arena is that of the entry point which needs the most."""
        memory = max(map(_arena, functions(self.module)), key=lambda one: one.get("arena_bytes", 0))
        work = work_of(self.module)
        flops = [None if one["flops"] is None else one["flops"] * one["dispatches"] for one in work.values()]
        executables = [
            {
                "name": one["name"].value,
                **work[one["name"].value],
                "strategy": one["strategy"].value,
                "knobs": one["knobs"].value,
                "rejected": [mlir.StringAttr(reason).value for reason in one["rejected"]],
                **({"given_up": mlir.StringAttr(one["given_up"]).value} if "given_up" in one else {}),
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
            "flops": None if None in flops else sum(one for one in flops if one is not None),
            "kernels": executables,
            "sources": sources_of(self.module),
            **({"calls": dict(self.call_trees)} if self.call_trees else {}),
        }


def entry_functions(module: mlir.Module) -> list[mlir.OpView]:
    """The functions that a call may name, in any phase."""
    return [function for function in functions(module) if SIGNATURE in function.attributes]


def _text_of(op: mlir.Operation | mlir.OpView, name: str) -> str:
    return mlir.StringAttr(op.attributes[name]).value if name in op.attributes else ""


def _arena(function: mlir.OpView) -> dict[str, int]:
    keys = ((ARENA_BYTES, "arena_bytes"), (LOWER_BOUND_BYTES, "arena_lower_bound_bytes"))
    return {name: function.attributes[key].value for key, name in keys if key in function.attributes}


def is_zero(array: Any) -> bool:
    """Whether all bytes are zero; minus zero is not."""
    return not np.ascontiguousarray(array).reshape(-1).view(np.uint8).any()


def _program_dtype(dtype: str) -> str:
    return "i1" if dtype == "bool" else dtype


def _report(observer: Observer, phase: Phase, step: Any, _: mlir.Module, seconds: float) -> None:
    observer(phase, str(step), seconds)


@dataclass(frozen=True)
class CompiledProgram:
    """All parts of a module, ready to be written."""

    program: Program
    images: Mapping[str, bytes]
    parameters: list
    manifest: Mapping[str, Any]

    @property
    def gave_up(self) -> bool:
        """Whether a kernel is not what it should be, so that another compilation may do better."""
        return any("given_up" in kernel for kernel in self.manifest["kernels"])

    def write(self, target: str | Path | IO[bytes]) -> None:
        """Streams the module to a path or an open file; weights are never copied as a whole."""
        container.write(target, self.program, self.images, self.parameters, self.manifest)

    def load(self, device: str = "local-task", threads: int | None = None) -> Module:
        """Loads the module through a file without a name, which is mapped: weights are not copied in memory."""
        return load_open_file(self.write_unnamed(), device, threads)

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


_DTYPES = {"bool": "i1"}


def to_program_signature(signature: ImportedSignature) -> Signature:
    """The signature that the runtime checks; dimensions it cannot express are left open."""

    def dims(values: tuple[int | str, ...]) -> tuple[int | str, ...]:
        return tuple(d if isinstance(d, int) or str(d).isidentifier() else "?" for d in values)

    def spec(argument: Argument) -> TensorSpec:
        return TensorSpec(argument.name, _program_dtype(argument.dtype), dims(argument.dims))

    symbols = {
        name: Symbol(low, high) if high is not None else Symbol(low) for name, (low, high) in signature.symbols.items()
    }
    return Signature(tuple(map(spec, signature.arguments)), tuple(map(spec, signature.results)), symbols)


def signature_to_text(signature: ImportedSignature) -> str:
    """The signature as a Python literal (whose quotes MLIR need not escape), so that a dump can be resumed."""
    return repr(
        {
            "arguments": [[a.name, a.dtype, list(a.dims)] for a in signature.arguments],
            "results": [[r.name, r.dtype, list(r.dims)] for r in signature.results],
            "symbols": {name: list(bounds) for name, bounds in signature.symbols.items()},
        }
    )


def signature_from_text(text: str) -> ImportedSignature:
    """The inverse of `signature_to_text`."""
    data = ast.literal_eval(text)

    def arguments(rows: list[list[Any]]) -> tuple[Argument, ...]:
        return tuple(Argument(name, dtype, tuple(dims)) for name, dtype, dims in rows)

    symbols = {name: (low, high) for name, (low, high) in data["symbols"].items()}
    return ImportedSignature(arguments(data["arguments"]), arguments(data["results"]), symbols)


def call_tree_of(entry: EntryPoint) -> dict[str, Any]:
    """How the model's own call nests, as plain data; empty for flat positional tensors and flat results."""
    call, out = entry.in_tree, entry.out_tree
    flat_in = not call.keywords.children and all(child.kind == "leaf" for child in call.positional.children)
    flat_out = out.kind == "leaf" or (
        out.kind == "tuple" and len(out.children) > 1 and all(child.kind == "leaf" for child in out.children)
    )
    is_flat = flat_in and flat_out and not entry.mutates
    tree: dict[str, Any] = {} if is_flat else {"in": call.to_json(), "out": out.to_json()}
    if entry.mutates:
        tree["mutates"] = [list(pair) for pair in entry.mutates]
    return tree
