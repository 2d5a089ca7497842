"""The public verbs: `compile` and `export`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from eyas.cache.store import open_store
from eyas.errors import CallError, EyasError, ModuleError, UsageError
from eyas.frontends.staging import stage
from eyas.module import container
from eyas.pipelines import driver
from eyas.pipelines.request import Request, Services, Watcher
from eyas.runtime import Device, Module
from eyas.runtime.device import as_device
from eyas.runtime.module import load_open_file
from eyas.specs import as_sources
from eyas.targets import Target, parse_targets

if TYPE_CHECKING:
    from eyas.program.program import ImportedProgram, Signature


def compile(
    model: Any,
    example_inputs: Sequence[Any] = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    target: str | Target | Sequence[str | Target] = "llvm-cpu",
    dynamic_shapes: Any = None,
    carry: Mapping[int, int] | None = None,
    device: Device | str | None = None,
    threads: int | None = None,
    disable: Sequence[str] = (),
    dump_phases: str | Path | None = None,
    max_arena_bytes: int = 0,
    precision: str | None = None,
    tuning_spec: Any = None,
    default_specs: bool = True,
    progress: bool | None = None,
    cache: bool = True,
) -> Module:
    """Compiles a model for this machine and loads it; the result is called as the model is.

    `model` is an nn.Module, an ExportedProgram, a JAX function, an onnx.ModelProto, what `eyas.export` returned, or the
    path of a .pt2, .onnx or .mlir file. `example_inputs` and `kwargs` are one call's arguments; `dynamic_shapes` says
    which of their sizes may change (`torch.export.Dim`s, or names for ONNX). `carry` keeps arguments inside: {0: 0}
    means that argument 0 starts as its example and is replaced by result 0 after each call. `disable` leaves passes or
    strategies out, `dump_phases` is a folder for the program after each phase, `max_arena_bytes` a cap on the memory
    for intermediate values. `precision="f16"` (or "bf16") has a model in f32 multiply and remember in f16 and add up in
    f32, with arguments and results as they were; `eyas.verify` says what that does to it. `tuning_spec` is the path
    of a tuning spec, its text, or a list of them, of which the first decides where several match; without
    `default_specs` those that come with the package are not used. `progress` shows it on
    stderr: None means when that is a terminal. Without `cache` nothing that was compiled before is used or kept.
    Several targets give one module with a variant for each, of which the best that a machine can run is chosen when it
    is loaded. A module for another machine can only be saved. Without `device` a module for CPUs is loaded on this
    one's, a module for GPUs on the first.

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
    if device is not None or threads is not None:
        device = as_device(device, threads)
    request = Request(
        model.program if isinstance(model, Exported) else model,
        example_inputs,
        kwargs or {},
        dynamic_shapes,
        carry,
        parse_targets(target),
        tuple(disable),
        max_arena_bytes,
        precision,
        tuning_specs=as_sources(tuning_spec),
        default_specs=default_specs,
    )
    shown = _progress(sys.stderr.isatty() if progress is None else progress)
    services = Services(open_store() if cache else None, dump=Path(dump_phases) if dump_phases else None)
    services = replace(services, watchers=(*services.watchers, *shown))
    return _load(driver.compile(request, services).open(), request.targets, device)


def _progress(wanted: bool) -> tuple[Watcher, ...]:
    if not wanted:
        return ()
    from eyas.pipelines.progress import CompileProgress

    return (CompileProgress(),)


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
    from eyas.frontends.torch.training import TrainingStep

    return compile(TrainingStep(model, loss, optimizer), example_batch, **options)


def _load(file: IO[bytes], targets: Sequence[Target], device: Device | None) -> Module:
    try:
        return load_open_file(file, device)
    except (ModuleError, UsageError) as error:
        if any(target.runs_here for target in targets):
            raise
        return ForeignModule(file, error)


class ForeignModule(Module):
    """A module for another machine: it can be saved and looked at, and running it is an error."""

    def __init__(self, file: IO[bytes], reason: EyasError) -> None:
        self._file, self._reason = _ForeignFile(file), reason

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise CallError(f"this module cannot run here, only be saved: {self._reason}")

    submit = clone = __call__

    def __repr__(self) -> str:
        return f"<eyas module for {self.manifest['provenance']['target']}>"


@dataclass
class _ForeignFile:
    """What is known of a file that the runtime refuses."""

    source: IO[bytes]

    @functools.cached_property
    def manifest(self) -> dict[str, Any]:
        return container.read(f"/proc/self/fd/{self.source.fileno()}", verify=False).manifest


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

    def __str__(self) -> str:
        return self.mlir

    def __repr__(self) -> str:
        return f"<eyas exported {self.program}>"


def export(model: Any, *args: Any, dynamic_shapes: Any = None, **kwargs: Any) -> Exported:
    """Imports a model without compiling it; print the result to read the program.

    exported = eyas.export(model, *example_inputs)
    print(exported); module = exported.compile()
    """
    return Exported(stage(model, args, kwargs, dynamic_shapes, None, most_bytes=-1).finish())
