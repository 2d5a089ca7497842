"""Loaded modules: what `eyas.load` returns. The work is done in `_core` (runtime/bindings)."""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from eyas.errors import CallError, ModuleError, UsageError
from eyas.module.signature import RANDOM_STATE, Signature, Symbol, TensorSpec
from eyas.runtime import _core, safetensors
from eyas.runtime.calls import Calls, EntryPoint, Function
from eyas.runtime.device import Device, as_device, device_for
from eyas.runtime.profile import Event
from eyas.runtime.state import State

if TYPE_CHECKING:
    from eyas.runtime.futures import Future


_Source = Path | bytes | IO[bytes]
"""What a module is read from: a file by its path, its bytes, or an open file that may have no name any more."""


class Module:
    """A module on a device. Calling it calls its entry point `main` (or its only one); `module.name(...)` and
    `module["name"](...)` call the others.

    The call and its results nest as the model's own did: dicts, keyword arguments, objects of the framework where it
    is loaded. `functions` have the flat form: arrays in, one array or a tuple of them out. NumPy gives NumPy, torch
    gives torch, and a tensor that is on the device (`on_device`, `Device.put`) gives one that stays there. Results own
    their memory. Calls, from any thread, run one after the other; those of a `clone()`, or of other modules, overlap
    with them.
    """

    def __init__(self, file: _File, loaded: _core.Loaded, device: Device) -> None:
        self._file, self._loaded, self.device = file, loaded, device
        self._context = _core.Context(loaded)
        calls = Calls(self._context)
        self.functions: dict[str, Function] = {
            name: Function(calls, name, signature) for name, signature in file.signatures.items()
        }
        self.entries: dict[str, EntryPoint] = {
            name: EntryPoint(function, file.call_trees.get(name)) for name, function in self.functions.items()
        }
        only = next(iter(self.entries.values())) if len(self.entries) == 1 else None
        self._main = self.entries.get("main", only)
        self._call: Callable[..., Any] = self._main.call if self._main else self._no_main
        self._call_named: Callable[..., Any] = self._main.call_named if self._main else self._no_main

    @property
    def _core(self) -> _core.Module:
        return self._file.core

    def clone(self, device: Device | str | None = None) -> Module:
        """The same module with a state and memory of its own, whose calls overlap with ours: one for each thread.

        Code and weights are shared. State starts with its first values. On another `device` those of that device's own
        are loaded, of a module with several variants the best that it can run.
        """
        if device is None:
            return Module(self._file, self._loaded, self.device)
        chosen = as_device(device)
        if self.variants:
            return _on_device(self._file.source, chosen, False, None)
        return Module(self._file, _core.Loaded(self._file.core, chosen), chosen)

    def submit(self, *args: Any, **named: Any) -> Future:
        """Starts a call of `main` and returns its future, which can be awaited too.

            futures = [module.submit(x) for x in batches]
            results = [future.result() for future in futures]
            result = await module.submit(x)

        Calls of one module run in the order in which they were made, submitted or not; those of a `clone()` overlap.
        Errors arrive in the future. Arguments are read while the call runs: do not write to them before it is done.
        """
        return (self._main or self._no_main()).submit(*args, **named)

    @property
    def on_device(self) -> EntryPoint:
        """`main` with results that stay on the device, for the next call: `DeviceTensor`s instead of arrays."""
        return (self._main or self._no_main()).on_device

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

    @property
    def manifest(self) -> dict[str, Any]:
        """Provenance: compiler version, target, flags, source digest, statistics."""
        return self._file.manifest

    @property
    def variants(self) -> tuple[str, ...]:
        """The targets that the file has variants for, best first; empty if it was compiled for one."""
        return tuple(self._core.variants())

    @property
    def variant(self) -> str | None:
        """The target of the variant that runs here, of a file that has several."""
        return self._core.variant()

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

    def seed(self, seed: int) -> None:
        """Sets what random numbers are drawn from: the calls that follow give the same numbers after the same seed.

        A module starts with the seed 0. Its seed and the number of calls since are the state 'eyas.random'.
        """
        if RANDOM_STATE not in self.state:
            raise UsageError("the module draws no random numbers, so it has no seed to set")
        self.state[RANDOM_STATE] = np.array([(int(seed) + 2**63) % 2**64 - 2**63, 0], np.int64)

    @property
    def transient_bytes(self) -> int:
        """Memory that the module keeps between calls for intermediate values."""
        return self._context.transient_bytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the module's file. External weights stay where they are."""
        source = self._file.source
        if isinstance(source, Path) and os.path.exists(path) and os.path.samefile(source, path):
            return
        part = Path(f"{os.fspath(path)}.{os.getpid()}.part")
        try:
            with open(part, "wb") as out:
                if isinstance(source, bytes):
                    out.write(source)
                elif isinstance(source, Path):
                    with open(source, "rb") as file:
                        shutil.copyfileobj(file, out, 1 << 22)
                else:
                    source.seek(0)
                    shutil.copyfileobj(source, out, 1 << 22)
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
        context = _core.Context(self._loaded, 0, True)
        name = entry or (self._main.name if self._main else self._no_main())
        call = _core.Function(context, name).keep  # nobody reads the results: they stay where they are
        call(*args)
        context.profile()
        while True:
            call(*args)
            yield [Event.of(event) for event in context.profile()]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UsageError(
            "a loaded module belongs to this process and cannot be pickled or copied: module.save(path) and"
            " eyas.load(path) move it, module.clone() gives another one here"
        )

    def __repr__(self) -> str:
        return f"<eyas module {', '.join(f'{n}{f.signature}' for n, f in self.functions.items())}>"


class _File:
    """What clones of a module share: the file, where it came from, and what it says of itself."""

    def __init__(self, core: _core.Module, source: _Source) -> None:
        self.core, self.source = core, source
        self.signatures = {
            name: _signature(args, results, symbols) for name, args, results, symbols in core.functions()
        }

    @functools.cached_property
    def manifest(self) -> dict[str, Any]:
        try:
            manifest = json.loads(self.core.manifest())
        except ValueError as error:
            raise ModuleError(f"manifest.json is not JSON: {error}") from error
        if not isinstance(manifest, dict):
            raise ModuleError(f"manifest.json must hold an object, it holds a {type(manifest).__name__}")
        return manifest

    @property
    def call_trees(self) -> dict[str, Any]:
        """How the call of each entry point nests."""
        calls = self.manifest.get("calls", {})
        if not isinstance(calls, dict):
            raise ModuleError(f"manifest.json: 'calls' must be an object, it is a {type(calls).__name__}")
        return calls


def _signature(args: list[Any], results: list[Any], symbols: dict[str, tuple[int, int, int]]) -> Signature:
    return Signature(
        tuple(TensorSpec(*spec) for spec in args),
        tuple(TensorSpec(*spec) for spec in results),
        {name: Symbol(*bounds) for name, bounds in symbols.items()},
    )


def load(
    source: str | os.PathLike[str] | bytes,
    device: Device | str | None = None,
    threads: int | None = None,
    verify: bool = False,
    variant: str | None = None,
) -> Module:
    """Loads a `.eyas` file, or its bytes, onto a device.

    `device` is an `eyas.Device`, or the name of one (see `devices()`): then all modules that are loaded by the same
    name and number of `threads` (default: the CPUs of this process) share it. Without it a module that has code for a
    CPU runs there, one that was compiled for GPUs alone on the first. The file is mapped, not read; `verify`
    also checks the digest of weights over 16 MiB, which reads them. Of a module that was compiled for several targets
    the best variant that the device can run is loaded, or the one that `variant` names: a target, or a part of its
    text. Raises ModuleError for a file that is damaged or made for another machine.
    """
    source = bytes(source) if isinstance(source, (bytes, bytearray, memoryview)) else Path(source)
    return _load(source, device, threads, verify, variant)


def load_open_file(
    file: IO[bytes], device: Device | str | None = None, threads: int | None = None, variant: str | None = None
) -> Module:
    """Loads a module from an open file that may have no name any more; the module keeps it open, for `save`."""
    return _load(file, device, threads, False, variant)


def _load(
    source: _Source, device: Device | str | None, threads: int | None, verify: bool, variant: str | None
) -> Module:
    if device is not None or threads is not None:
        return _on_device(source, as_device(device, threads), verify, variant)
    core = _open(source, None, verify, variant)
    chosen = device_for(core.formats(all=variant is None))
    # Which variant is the best is for the device to say.
    return _on_device(source, chosen, False, variant, core if variant or not core.variants() else None)


def _open(source: _Source, device: Device | None, verify: bool, variant: str | None) -> _core.Module:
    if isinstance(source, bytes):
        return _core.Module.from_bytes(source, verify, device=device, variant=variant)
    path = os.fspath(source) if isinstance(source, Path) else f"/proc/self/fd/{source.fileno()}"
    return _core.Module.open(path, verify, device=device, variant=variant)


def _on_device(
    source: _Source, device: Device, verify: bool, variant: str | None, opened: _core.Module | None = None
) -> Module:
    core = opened or _open(source, device, verify, variant)
    folder = source.parent if isinstance(source, Path) else Path()
    files: dict[str, safetensors.File] = {}
    for ordinal, (name, dtype, shape, _, external, key) in enumerate(core.parameters()):
        if external:
            if external not in files:
                files[external] = safetensors.File(folder / external)
            core.bind_parameter(ordinal, files[external].tensor(key or name, dtype, shape))
    return Module(_File(core, source), _core.Loaded(core, device), device)
