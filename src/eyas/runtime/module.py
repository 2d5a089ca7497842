"""Loaded modules: what `eyas.load` returns. The work is done in `_core` (runtime/bindings)."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from eyas.errors import CallError, ModuleError, UsageError
from eyas.module.program import Signature, Symbol, TensorSpec
from eyas.runtime import _core, safetensors
from eyas.runtime.narrow import narrowing
from eyas.runtime.profile import Event
from eyas.runtime.state import State


@dataclass(frozen=True)
class Device:
    """One device that modules can run on."""

    driver: str  # what `load(device=...)` takes
    index: int
    name: str
    workers: int
    kernels: str  # microkernels that bytecode (the target vmvx) runs with
    width: int  # unit tiles that one of its instructions issues


@functools.cache
def _device(driver: str, threads: int) -> _core.Device:
    """One thread pool for each setting, shared by all modules."""
    known = [name for name, _ in _core.drivers()]
    if driver not in known:
        raise UsageError(f"no device driver {driver!r}; this runtime has: {', '.join(known)}")
    return _core.Device(driver, threads)


def devices() -> list[Device]:
    """Every device of every driver on this machine."""
    found = []
    kernels, width = _core.vmvx()
    for driver, count in _core.drivers():
        for index in range(count):
            info = _device(driver, 0).info()
            found.append(Device(driver, index, info["name"], info["workers"], kernels, width))
    return found


class Function:
    """One function of a module. Call it with arrays, by position or by name."""

    def __init__(self, context: _core.Context, name: str, signature: Signature) -> None:
        self.name, self.signature = name, signature
        self._call: Callable[..., Any] = _core.Function(context, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call(*args) if not named else self._call(*self._order(args, named))

    def _order(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        names = [spec.name for spec in self.signature.args]
        unknown = [name for name in named if name not in names[len(args) :]]
        missing = [name for name in names[len(args) :] if name not in named]
        if unknown or missing:
            parts = [f"unknown or given twice: {', '.join(unknown)}"] if unknown else []
            parts += [f"missing: {', '.join(missing)}"] if missing else []
            raise CallError(f"{self.name}{self.signature}: arguments {'; '.join(parts)}")
        return [*args, *(named[name] for name in names[len(args) :])]

    def __repr__(self) -> str:
        return f"<eyas function {self.name}{self.signature}>"


class EntryPoint:
    """One entry point of a module; the call and its results nest as the model's own did."""

    def __init__(self, function: Function, trees: Any = None) -> None:
        self.name, self.signature = function.name, function.signature
        self.call: Callable[..., Any] = function._call
        self.call_named: Callable[..., Any] = function
        if isinstance(trees, dict) and trees.get("narrows") is True:
            self.call = function._call = narrowing(function._call, function.signature)
        if trees is not None and (not isinstance(trees, dict) or trees.keys() != {"narrows"}):
            self.call = self.call_named = _nested_call(function._call, trees)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.call_named(*args, **named) if named else self.call(*args)

    def __repr__(self) -> str:
        return f"<eyas entry point {self.name}{self.signature}>"


class Module:
    """A module on a device. Calling it calls its entry point `main` (or its only one); `module.name(...)` and
    `module["name"](...)` call the others.

    The call and its results nest as the model's own did: dicts, keyword arguments, objects of the framework where it
    is loaded. `functions` have the flat form: arrays in, one array or a tuple of them out. NumPy gives NumPy, torch
    gives torch. Results own their memory. Calls, from any thread, run one after the other; load the module again to run
    side by side, with another state.
    """

    def __init__(self, core: _core.Module, device: _core.Device, source: Path | bytes | IO[bytes]) -> None:
        self._core, self._device, self._source = core, device, source
        self._context = _core.Context(core, device)
        signatures = {name: _signature(args, results, symbols) for name, args, results, symbols in core.functions()}
        self.functions: dict[str, Function] = {
            name: Function(self._context, name, signature) for name, signature in signatures.items()
        }
        calls = self.manifest.get("calls", {})
        if not isinstance(calls, dict):
            raise ModuleError(f"manifest.json: 'calls' must be an object, it is a {type(calls).__name__}")
        self.entries: dict[str, EntryPoint] = {
            name: EntryPoint(function, calls.get(name)) for name, function in self.functions.items()
        }
        only = next(iter(self.entries.values())) if len(self.entries) == 1 else None
        self._main = self.entries.get("main", only)
        self._call: Callable[..., Any] = self._main.call if self._main else self._no_main
        self._call_named: Callable[..., Any] = self._main.call_named if self._main else self._no_main

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call_named(*args, **named) if named else self._call(*args)

    def __getitem__(self, name: str) -> EntryPoint:
        if name not in self.entries:
            raise CallError(f"the module has no entry point {name!r}; it has: {', '.join(self.entries)}")
        return self.entries[name]

    def __getattr__(self, name: str) -> EntryPoint:
        # Reached only for names that the class does not have; an entry with such a name is module["name"].
        entries = self.__dict__.get("entries", {})
        if name in entries:
            return entries[name]
        known = f"; its entry points: {', '.join(entries)}" if entries else ""
        raise AttributeError(f"a module has no attribute {name!r}{known}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__dict__.get("entries", ())]

    def _no_main(self, *args: Any, **named: Any) -> Any:
        raise CallError(f"the module has no entry point 'main'; call one of these: {', '.join(self.entries)}")

    @property
    def signature(self) -> Signature:
        """What calling the module takes and gives."""
        if not self._main:
            self._no_main()
        assert self._main
        return self._main.signature

    @functools.cached_property
    def manifest(self) -> dict[str, Any]:
        """Provenance: compiler version, target, flags, source digest, statistics."""
        try:
            manifest = json.loads(self._core.manifest())
        except ValueError as error:
            raise ModuleError(f"manifest.json is not JSON: {error}") from error
        if not isinstance(manifest, dict):
            raise ModuleError(f"manifest.json must hold an object, it holds a {type(manifest).__name__}")
        return manifest

    @functools.cached_property
    def state(self) -> State:
        """The variables that stay between calls, which all entry points share: name -> array.

        A call that is refused for its arguments leaves them as they were. One that fails later, on bad data, leaves
        them undefined if it had begun to write them: calls and reads then fail until `reset()` or an assignment.
        """
        return State(self._core, self._context)

    def reset(self) -> None:
        """Gives all state its first values again."""
        self._context.reset_state()

    @property
    def device(self) -> dict[str, Any]:
        """The device that the module runs on."""
        return self._device.info()

    @property
    def transient_bytes(self) -> int:
        """Memory that the module keeps between calls for intermediate values."""
        return self._context.transient_bytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the module's file. External weights stay where they are."""
        if isinstance(self._source, Path) and os.path.exists(path) and os.path.samefile(self._source, path):
            return
        part = Path(f"{os.fspath(path)}.{os.getpid()}.part")
        try:
            with open(part, "wb") as out:
                if isinstance(self._source, bytes):
                    out.write(self._source)
                elif isinstance(self._source, Path):
                    with open(self._source, "rb") as source:
                        shutil.copyfileobj(source, out, 1 << 22)
                else:
                    self._source.seek(0)
                    shutil.copyfileobj(self._source, out, 1 << 22)
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def profile(self, *args: Any, runs: int = 1, entry: str | None = None) -> list[list[Event]]:
        """Calls the module `runs` times, after one call to warm up, and times every command: one list for each run.

        Runs in a context of its own, so that ordinary calls stay free of timers, and with a state of its own.
        """
        return list(itertools.islice(self.profiled_calls(*args, entry=entry), runs))

    def profiled_calls(self, *args: Any, entry: str | None = None) -> Iterator[list[Event]]:
        """The same without an end: each step calls the module once."""
        context = _core.Context(self._core, self._device, 0, True)
        name = entry or (self._main.name if self._main else self._no_main())
        call = _core.Function(context, name)
        call(*args)
        context.profile()
        while True:
            call(*args)
            yield [Event.of(event) for event in context.profile()]

    def __repr__(self) -> str:
        return f"<eyas module {', '.join(f'{n}{f.signature}' for n, f in self.functions.items())}>"


def _nested_call(call: Callable[..., Any], trees: Any) -> Callable[..., Any]:
    """A call with the model's own nesting around the flat one."""
    from eyas.module.trees import CallTree, Tree

    try:
        arguments, count = CallTree.from_json(trees["in"]), Tree.from_json(trees["out"]).leaf_count
        written = [(int(result), int(argument)) for result, argument in trees.get("mutates", ())]
        inputs = len(arguments.paths())
        if not all(count <= result < count + len(written) and 0 <= argument < inputs for result, argument in written):
            raise ValueError(f"'mutates' names results or arguments that do not exist: {written}")
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration, RecursionError) as error:
        raise ModuleError(f"manifest.json: 'calls' cannot be read: {type(error).__name__}: {error}") from error

    @functools.cache
    def results() -> Tree:  # at the first call, when the framework of the results is loaded if it ever is
        return Tree.from_json(_known_types(trees["out"]))

    def nested(*args: Any, **named: Any) -> Any:
        given = arguments.flatten(args, named)
        flat = call(*given)
        flat = () if flat is None else flat if isinstance(flat, tuple) else (flat,)
        for result, argument in written:
            _write_back(given[argument], flat[result], argument)
        return results().unflatten(flat[:count])

    return nested


def _write_back(target: Any, value: Any, position: int) -> None:
    """Gives the caller's tensor its new value, as the model does that writes to its argument."""
    try:
        if hasattr(target, "copy_"):
            target.detach().copy_(value)
        else:
            target[...] = value
    except (TypeError, ValueError, RuntimeError) as error:
        raise CallError(f"argument {position} is written to by the model, but cannot be: {error}") from error


def _known_types(data: Any) -> Any:
    """Drops the names of types that are not plain data: what a file names must not decide what gets called."""
    if isinstance(data, list):
        return [_known_types(item) for item in data]
    if not isinstance(data, dict) or "constant" in data:
        return data
    kept = {key: _known_types(value) for key, value in data.items()}
    module, _, name = str(data.get("type", "")).partition(":")
    kind = getattr(sys.modules.get(module), name, None)
    if isinstance(kind, type) and (issubclass(kind, (tuple, dict)) or dataclasses.is_dataclass(kind)):
        return kept
    return {key: value for key, value in kept.items() if key != "type"}


def _signature(args: list[Any], results: list[Any], symbols: dict[str, tuple[int, int, int]]) -> Signature:
    return Signature(
        tuple(TensorSpec(*spec) for spec in args),
        tuple(TensorSpec(*spec) for spec in results),
        {name: Symbol(*bounds) for name, bounds in symbols.items()},
    )


def load(
    source: str | os.PathLike[str] | bytes,
    device: str = "local-task",
    threads: int | None = None,
    verify: bool = False,
) -> Module:
    """Loads a `.eyas` file, or its bytes, onto a device.

    `device` is a driver's name (see `devices()`), `threads` how many workers it gets (default: the CPUs of this
    process). The file is mapped, not read; `verify` also checks the digest of weights over 16 MiB, which reads them.
    Raises ModuleError for a file that is damaged or made for another machine.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"threads={threads}: give 1 or more, or None for all CPUs of this process")
    handle = _device(device, threads or 0)
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, folder = bytes(source), Path()
        core = _core.Module.from_bytes(data, verify)
        return _finish(core, handle, data, folder)
    path = Path(source)
    return _finish(_core.Module.open(os.fspath(path), verify), handle, path, path.parent)


def load_open_file(file: IO[bytes], device: str = "local-task", threads: int | None = None) -> Module:
    """Loads a module from an open file that may have no name any more; the module keeps it open, for `save`."""
    core = _core.Module.open(f"/proc/self/fd/{file.fileno()}", False)
    return _finish(core, _device(device, threads or 0), file, Path())


def _finish(core: _core.Module, device: _core.Device, source: Path | bytes | IO[bytes], folder: Path) -> Module:
    files: dict[str, safetensors.File] = {}
    for ordinal, (name, dtype, shape, _, external, key) in enumerate(core.parameters()):
        if external:
            if external not in files:
                files[external] = safetensors.File(folder / external)
            core.bind_parameter(ordinal, files[external].tensor(key or name, dtype, shape))
    return Module(core, device, source)
