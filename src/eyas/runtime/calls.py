"""What can be called of a module: flat functions, and entry points with the model's own nesting."""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from eyas.errors import CallError, ModuleError
from eyas.module.signature import Signature
from eyas.runtime import _core
from eyas.runtime.narrow import narrowing

if TYPE_CHECKING:
    from eyas.runtime.futures import CallQueue, Future


class Calls:
    """The calls of one context: those that are made now, and those that are submitted."""

    def __init__(self, context: _core.Context) -> None:
        self.context = context
        self._queue: CallQueue | None = None
        self._lock = threading.Lock()

    @property
    def queue(self) -> CallQueue:
        if self._queue is None:
            from eyas.runtime.futures import CallQueue  # takes as long to import as all of the runtime

            with self._lock:
                self._queue = self._queue or CallQueue(self.context)
        return self._queue


class Function:
    """One function of a module. Call it with arrays, by position or by name."""

    def __init__(self, calls: Calls, name: str, signature: Signature, keep: bool = False) -> None:
        self.name, self.signature, self._calls = name, signature, calls
        self._names = tuple(spec.name for spec in signature.args)
        core = _core.Function(calls.context, name)
        self.call: Callable[..., Any] = core.keep if keep else core

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.call(*args) if not named else self.call(*self._order(args, named))

    def submit(self, *args: Any, **named: Any) -> Future:
        """Starts the call; see `Module.submit`."""
        return self._calls.queue.submit(self, args, named)

    @functools.cached_property
    def on_device(self) -> Function:
        """The same function with results that stay on the device."""
        return Function(self._calls, self.name, self.signature, keep=True)

    def _order(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        names = self._names
        if not args and len(named) == len(names):
            try:
                return [named[name] for name in names]
            except KeyError:
                pass  # which names are wrong is said below
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
        self._function, self._trees = function, trees
        self.call: Callable[..., Any] = function.call
        self.call_named: Callable[..., Any] = function
        if isinstance(trees, dict) and trees.get("narrows") is True:
            self.call = function.call = narrowing(function.call, function.signature)
        if trees is not None and (not isinstance(trees, dict) or trees.keys() != {"narrows"}):
            self.call = self.call_named = _nested_call(function.call, trees)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.call_named(*args, **named) if named else self.call(*args)

    def submit(self, *args: Any, **named: Any) -> Future:
        """Starts the call; see `Module.submit`."""
        return self._function._calls.queue.submit(self, args, named)

    @functools.cached_property
    def on_device(self) -> EntryPoint:
        """The same entry point with results that stay on the device."""
        return EntryPoint(self._function.on_device, self._trees)

    def __repr__(self) -> str:
        return f"<eyas entry point {self.name}{self.signature}>"


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
        if isinstance(value, _core.DeviceTensor):
            value = value.torch() if hasattr(target, "copy_") else value.numpy()
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
