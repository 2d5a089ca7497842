"""The one way from a model to a module: behind `eyas.compile`, the commands, `verify`, constants and tests.

    Request -> import, once -> for each target: the phases -> CompiledProgram -> Result

`compile` looks into the cache before it imports, and again before it compiles. `run` stops at a phase and looks at
nothing but the request.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from eyas.cache.digest import attempt
from eyas.errors import UsageError
from eyas.frontends.collection import paused_collection
from eyas.frontends.staging import Staged, stage
from eyas.module import container
from eyas.module.variants import folder_name
from eyas.pipelines.module_cache import ModuleCache, copy_to
from eyas.pipelines.request import Phase, Request, Services
from eyas.runtime.device import Device
from eyas.runtime.module import Module, load_open_file
from eyas.targets import Target, best_first

# What only a compilation needs is imported by those who compile: a module from the cache is there before MLIR would be.
if TYPE_CHECKING:
    from eyas.pipelines.compilation import Compilation
    from eyas.pipelines.compiled import CompiledProgram
    from eyas.program.program import ImportedProgram


@dataclass(frozen=True)
class Result:
    """A module: compiled just now, in the cache, or both. `seconds` are those of each phase that was run."""

    program: CompiledProgram | None
    cached: IO[bytes] | None
    seconds: Mapping[str, float] = field(default_factory=dict)

    def open(self) -> IO[bytes]:
        """The module as an open file: in the cache, or without a name."""
        if self.cached is not None:
            return self.cached
        assert self.program is not None
        return self.program.write_unnamed()

    def load(self, device: Device | str | None = None, threads: int | None = None) -> Module:
        """Loads the module through its file, which is mapped: weights are not copied in memory."""
        return load_open_file(self.open(), device, threads)

    def save(self, path: Path) -> None:
        """Writes the module to a path."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.program is not None:
            self.program.write(path)
        else:
            copy_to(path, self.open())

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        if self.program is not None:
            return self.program.manifest
        return container.read(f"/proc/self/fd/{self.open().fileno()}", verify=False).manifest


def compile(request: Request, services: Services | None = None) -> Result:
    """Compiles a model into a module, unless it is in the cache already."""
    services = services or Services()
    assert request.last is Phase.VM, "`run` compiles to a phase"
    cache = _cache(request, services)
    with paused_collection(), ExitStack() as stack:
        staged = _stage(request, cache.store.largest_bytes if cache else -1)
        fingerprint = staged.fingerprint
        if cache and fingerprint and not services.dump and (file := cache.find(fingerprint)) is not None:
            return Result(None, file)
        for watcher in services.watchers:
            stack.enter_context(watcher)
        from eyas.codegen.children import prepare_children

        prepare_children(request.targets[0], services.workers or (0 if staged.is_large else 1))
        program = staged.finish()
        if cache and not fingerprint and program.parameter_bytes <= cache.store.largest_bytes:
            fingerprint = attempt(lambda: program.fingerprint)
            if fingerprint and not services.dump and (file := cache.find(fingerprint)) is not None:
                return Result(None, file)
        compiled, seconds = _compile(program, request, services)
        file = cache.keep(fingerprint, compiled.write) if cache and fingerprint and not compiled.gave_up else None
        return Result(compiled, file, seconds)


def run(request: Request, services: Services | None = None) -> Compilation:
    """Runs the request's phases for its one target; the result has the module as the last of them left it."""
    services = services or Services()
    with paused_collection(), ExitStack() as stack:
        for watcher in services.watchers:
            stack.enter_context(watcher)
        return run_target(_stage(request, -1).finish(), only_target(request), request, services)


def run_target(program: ImportedProgram, target: Target, request: Request, services: Services) -> Compilation:
    """The request's phases for one target. Takes the program's module over."""
    from eyas.pipelines.compilation import Compilation

    compilation = Compilation.of(program, request.options(target), services)
    services.on_start(compilation)
    compilation.run(request.phases)
    return compilation


def only_target(request: Request) -> Target:
    """The target of a request that can have but one."""
    if len(request.targets) != 1:
        names = ", ".join(map(str, request.targets))
        raise UsageError(f"give one target: the program between two phases is made for one of {names}")
    return request.targets[0]


def _compile(
    program: ImportedProgram, request: Request, services: Services
) -> tuple[CompiledProgram, Mapping[str, float]]:
    """Each target's variant from a copy of the imported program, best first."""
    from eyas.pipelines.compiled import encode, finish

    targets = best_first(request.targets)
    parts, seconds = [], Counter()
    for number, target in enumerate(targets, 1):
        own = services
        if services.dump is not None and len(targets) > 1:
            own = replace(services, dump=services.dump / folder_name(str(target)))
        copy = program if number == len(targets) else _copy(program)
        compilation = run_target(copy, target, request, own)
        parts.append(encode(compilation))
        seconds.update(compilation.seconds)
    return finish(parts, request.external_weights), seconds


def _stage(request: Request, most_bytes: int) -> Staged:
    """The model, as far as it must be known to look into the cache."""
    if _is_imported(request.model):
        if request.gives_inputs:
            raise UsageError("an exported program already has its inputs; pass it alone")
        return Staged(lambda: _copy(request.model), weight_bytes=request.model.parameter_bytes)
    call = (request.inputs, request.kwargs, request.dynamic_shapes, request.carry)
    return stage(request.model, *call, most_bytes)


def _is_imported(model: Any) -> bool:
    """Whether a model is a program already. Who has one has loaded MLIR; nobody else must for the question."""
    loaded = sys.modules.get("eyas.program.program")
    return loaded is not None and isinstance(model, loaded.ImportedProgram)


def _copy(program: ImportedProgram) -> ImportedProgram:
    """Compilation changes the module that it is given."""
    from eyas.ir import clone_into

    return replace(program, module=clone_into(program.module.operation, program.module.context))


def _cache(request: Request, services: Services) -> ModuleCache | None:
    """Where whole modules are kept: those that begin as a model, and are one file."""
    if request.after is not None or request.external_weights is not None:
        return None
    specs = [one.digest for target in request.targets for one in request.specs(target)]
    options = (request.disable, request.max_arena_bytes, request.precision, specs)
    return ModuleCache.of(services.store, request.targets, options)
