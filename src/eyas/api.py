"""The public verbs: `compile` and `export`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from eyas.cache.digest import attempt
from eyas.cache.modules import ModuleCache
from eyas.cache.store import open_store
from eyas.errors import CallError, ModuleError, UsageError
from eyas.frontends import import_model
from eyas.frontends.collection import paused_collection
from eyas.frontends.staging import Staged, stage
from eyas.module import container
from eyas.runtime import Module
from eyas.runtime.module import load_open_file
from eyas.targets import Target

# What only a compilation needs is imported by those who compile: a module from the cache is there before MLIR would be.
if TYPE_CHECKING:
    from eyas.frontends.program import ImportedProgram, Signature
    from eyas.pipelines.compiler import CompiledProgram
    from eyas.pipelines.phases import Options


def compile(
    model: Any,
    example_inputs: Sequence[Any] = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    target: str = "llvm-cpu",
    dynamic_shapes: Any = None,
    carry: Mapping[int, int] | None = None,
    device: str = "local-task",
    threads: int | None = None,
    disable: Sequence[str] = (),
    dump_phases: str | Path | None = None,
    max_arena_bytes: int = 0,
    progress: bool | None = None,
    cache: bool = True,
) -> Module:
    """Compiles a model for this machine and loads it; the result is called as the model is.

    `model` is an nn.Module, an ExportedProgram, a JAX function, an onnx.ModelProto, what `eyas.export` returned, or the
    path of a .pt2, .onnx or .mlir file. `example_inputs` and `kwargs` are one call's arguments; `dynamic_shapes` says
    which of their sizes may change (`torch.export.Dim`s, or names for ONNX). `carry` keeps arguments inside: {0: 0}
    means that argument 0 starts as its example and is replaced by result 0 after each call. `disable` leaves passes or
    strategies out, `dump_phases` is a folder for the program after each phase, `max_arena_bytes` a cap on the memory
    for intermediate values. `progress` shows it on stderr: None means when that is a terminal. Without `cache` nothing
    that was compiled before is used or kept. A module for another `target` can only be saved.

        module = eyas.compile(model, (x,))
        module(x); module.save("model.eyas")

    A mapping gives one module several entry points, which share equal weights and kernels; a value is a pair of model
    and inputs, or an `eyas.Entry` when there is more to say:

        module = eyas.compile({"encode": (encoder, (x,)), "decode": eyas.Entry(decoder, (y,), kwargs={"mask": m})})
        module.encode(x); module["decode"](y, mask=m)
    """
    if not isinstance(example_inputs, (tuple, list)):
        raise UsageError(
            f"example_inputs must be a tuple of the call's arguments, got a {type(example_inputs).__name__};"
            " for one tensor write (x,)"
        )
    if threads is not None and threads < 1:
        raise UsageError(f"threads={threads}: give 1 or more, or None for all CPUs of this process")
    given = bool(example_inputs or kwargs or dynamic_shapes is not None or carry)
    store = open_store() if cache else None
    modules = ModuleCache.of(store, target, disable, max_arena_bytes)
    with paused_collection():
        staged = _stage(model, _Call(example_inputs, kwargs or {}, dynamic_shapes, carry, given), modules)
    fingerprint = staged.fingerprint
    if modules is not None and fingerprint is not None and not dump_phases:
        if (file := modules.find(fingerprint)) is not None:
            return _load(file, target, device, threads)
    from eyas.codegen.children import prepare_children

    prepare_children(target, 0 if staged.is_large else 1)
    with paused_collection():
        imported = staged.finish()
    if modules is not None and fingerprint is None and imported.parameter_bytes <= modules.store.largest_bytes:
        fingerprint = attempt(lambda: imported.fingerprint)
        if fingerprint is not None and not dump_phases and (file := modules.find(fingerprint)) is not None:
            return _load(file, target, device, threads)
    from eyas.pipelines.phases import Options

    options = Options(target=target, disable=tuple(disable), max_arena_bytes=max_arena_bytes, store=store)
    dump = Path(dump_phases) if dump_phases else None
    with paused_collection():
        program = _compile(imported, options, dump, sys.stderr.isatty() if progress is None else progress)
    keep = modules is not None and fingerprint is not None and not program.gave_up
    file = modules.keep(fingerprint, program.write) if keep else None
    return _load(file or program.write_unnamed(), target, device, threads)


@dataclass(frozen=True)
class _Call:
    """What `compile` was told of a model's call. `given` says whether that was anything."""

    inputs: Sequence[Any]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any
    carry: Mapping[int, int] | None
    given: bool


def _stage(model: Any, call: _Call, modules: ModuleCache | None) -> Staged:
    if isinstance(model, Exported):
        if call.given:
            raise UsageError("an exported program already has its inputs; pass it alone")
        return Staged(model._copy, weight_bytes=model.program.parameter_bytes)
    if isinstance(model, Mapping):
        if call.given:
            raise UsageError("entry points have inputs of their own: {'name': eyas.Entry(model, inputs, ...)}")
        from eyas.frontends.entries import import_entries

        return Staged(lambda: import_entries(model))
    if call.carry:
        from eyas.frontends.entries import Entry, import_entry

        entry = Entry(model, call.inputs, call.kwargs, call.dynamic_shapes, call.carry)
        return Staged(lambda: import_entry(entry))
    most_bytes = -1 if modules is None else modules.store.largest_bytes
    return stage(model, call.inputs, call.kwargs, call.dynamic_shapes, most_bytes)


def _compile(imported: ImportedProgram, options: Options, dump: Path | None, progress: bool) -> CompiledProgram:
    from eyas.pipelines.compiler import Compilation

    if progress:
        from eyas.cli.progress import CompileProgress

        with CompileProgress() as shown:
            compilation = Compilation.of(imported, replace(options, on_kernel=shown.on_kernel))
            compilation.run(dump=dump, on_phase=lambda phase: shown.on_phase(phase, compilation))
    else:
        compilation = Compilation.of(imported, options)
        compilation.run(dump=dump)
    return compilation.finish()


def training_step(
    model: Any, loss: Callable[..., Any] | None, optimizer: Any, example_batch: Sequence[Any], **options: Any
) -> Module:
    """Compiles a training step of a PyTorch model: calling the module with a batch returns the loss, and updates
    parameters, buffers and the optimiser's tensors inside. Takes the keywords of `eyas.compile`.

        module = eyas.training_step(model, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters()), (x, y))
        for x, y in batches:
            loss = module(x, y)
        model.load_state_dict(module.state.torch(), strict=False)
    """
    from eyas.frontends.torch_training import TrainingStep

    return compile(TrainingStep(model, loss, optimizer), example_batch, **options)


def _load(file: IO[bytes], target: str, device: str, threads: int | None) -> Module:
    try:
        return load_open_file(file, device, threads)
    except ModuleError as error:
        if Target.parse(target).runs_here:
            raise
        return ForeignModule(file, error)


class ForeignModule(Module):
    """A module for another machine: it can be saved and looked at, and running it is an error."""

    def __init__(self, file: IO[bytes], reason: ModuleError) -> None:
        self._source, self._reason = file, reason

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise CallError(f"this module cannot run here, only be saved: {self._reason}")

    @functools.cached_property
    def manifest(self) -> dict[str, Any]:
        return container.read(f"/proc/self/fd/{self._source.fileno()}", verify=False).manifest

    def __repr__(self) -> str:
        return f"<eyas module for {self.manifest['provenance']['target']}>"


@dataclass(frozen=True)
class Exported:
    """A model as Eyas sees it before compilation. Printing it shows the program in the framework's own ops."""

    program: ImportedProgram

    @property
    def mlir(self) -> str:
        """The program as MLIR in the framework's dialect (torch, StableHLO), weights by name."""
        return self.program.as_text(level="source")

    @property
    def linalg(self) -> str:
        """The program in the input contract, as the compiler's first phase takes it."""
        return self.program.as_text(level="linalg")

    @property
    def signature(self) -> Signature:
        """What the program takes and gives, flat."""
        return self.program.signature

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The weights by name; `.array()` of one gives its values."""
        return self.program.parameters

    def print(self, level: str = "source", file: Any = None) -> None:
        """Prints the program; `level` is 'source' or 'linalg'."""
        print(self.program.as_text(level=level), file=file)

    def compile(self, **options: Any) -> Module:
        """Compiles the program; takes the keywords of `eyas.compile`."""
        return compile(self, **options)

    def _copy(self) -> ImportedProgram:
        """Compilation changes the module that it is given."""
        from eyas.ir import clone_into

        program = self.program
        return replace(program, module=clone_into(program.module.operation, program.module.context))

    def __str__(self) -> str:
        return self.mlir

    def __repr__(self) -> str:
        return f"<eyas exported {self.program}>"


def export(model: Any, *args: Any, dynamic_shapes: Any = None, **kwargs: Any) -> Exported:
    """Imports a model without compiling it; print the result to read the program.

    exported = eyas.export(model, *example_inputs)
    print(exported); module = exported.compile()
    """
    if isinstance(model, Mapping):
        if args or kwargs or dynamic_shapes is not None:
            raise UsageError("entry points have inputs of their own: {'name': eyas.Entry(model, inputs, ...)}")
        from eyas.frontends.entries import import_entries

        return Exported(import_entries(model))
    return Exported(import_model(model, *args, dynamic_shapes=dynamic_shapes, **kwargs))
