"""Passes: frozen dataclasses whose fields are their options, and upstream pipelines by text, in one list.

`form-dispatches{max-ops=8}` parses to `FormDispatches(max_ops=8)` and prints back the same.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.passmanager import PassManager

from eyas.errors import EyasError, UsageError
from eyas.ir.diagnostics import raise_as_compile_error


@dataclass(frozen=True)
class Pass:
    """One transformation of a module: valid IR in, valid IR out. Subclasses add fields (options) and `run`.

    A field with `compare=False` is a tool that comes with the call (see `equipped`), not an option: it is neither
    printed nor parsed.
    """

    name: ClassVar[str] = ""

    def run(self, module: mlir.Module) -> None:
        raise NotImplementedError(type(self).__name__)

    def __str__(self) -> str:
        given = [
            f"{field.name.replace('_', '-')}={_print_option(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if field.compare and getattr(self, field.name) != self.default_of(field)
        ]
        return self.name + ("{" + " ".join(given) + "}" if given else "")

    def default_of(self, field: dataclasses.Field) -> Any:
        """The value of an option that need not be said."""
        return field.default

    def equipped(self, **tools: Any) -> Pass:
        """The same pass with those of the tools (the weights, a cache, ...) that it has fields for."""
        own = {field.name for field in dataclasses.fields(self)}
        return dataclasses.replace(self, **{name: tool for name, tool in tools.items() if name in own})

    @classmethod
    def parse(cls, options: str) -> Pass:
        """Builds the pass from the text between its braces."""
        fields = {field.name: field for field in dataclasses.fields(cls) if field.compare}
        values: dict[str, Any] = {}
        for item in options.split():
            key, separator, text = item.partition("=")
            field = fields.get(key.replace("-", "_"))
            if field is None or not separator:
                allowed = ", ".join(name.replace("_", "-") for name in fields) or "none"
                raise UsageError(f"pass '{cls.name}' has no option '{item}'; its options: {allowed}")
            values[field.name] = _parse_option(text, field.default, f"{cls.name}{{{item}}}")
        return cls(**values)


@dataclass(frozen=True)
class Upstream:
    """A textual upstream pipeline that runs on `builtin.module`, such as `canonicalize,cse`."""

    passes: str

    def run(self, module: mlir.Module) -> None:
        run_upstream(module, self.passes)

    def equipped(self, **tools: Any) -> Upstream:
        """Upstream's passes need none."""
        del tools
        return self

    def __str__(self) -> str:
        return self.passes


@dataclass(frozen=True)
class PassPipeline:
    """A flat list of passes. `observer(step, module, seconds)` sees the module after each of them."""

    steps: Sequence[Pass | Upstream]

    def run(self, module: mlir.Module, observer: Callable[[Any, mlir.Module, float], None] | None = None) -> None:
        for step in self.steps:
            begin = time.perf_counter()
            try:
                with module.context, mlir.Location.unknown():
                    step.run(module)
            except mlir.MLIRError as error:
                raise_as_compile_error(error, f"pass '{step}'")
            if observer is not None:
                observer(step, module, time.perf_counter() - begin)

    def equipped(self, **tools: Any) -> PassPipeline:
        """The same passes, each with the tools that it has fields for."""
        return PassPipeline(tuple(step.equipped(**tools) for step in self.steps))

    def __str__(self) -> str:
        return ",".join(str(step) for step in self.steps)

    @staticmethod
    def parse(text: str, lookup: Callable[[str], type[Pass] | None]) -> PassPipeline:
        """Parses a comma-separated list; names that `lookup` does not know go to the upstream pass manager."""
        steps: list[Pass | Upstream] = []
        for name, options in _split_pipeline(text):
            ours = lookup(name)
            if ours is not None:
                steps.append(ours.parse(options))
            else:
                steps.append(Upstream(name + ("{" + options + "}" if options else "")))
        return PassPipeline(tuple(steps))


def run_upstream(module: mlir.Module, passes: str) -> None:
    """Runs upstream passes on a module; an unknown name is the user's error, a failing pass raises MLIRError."""
    with module.context:
        _manager(module.context, passes).run(module.operation)


_WRONG = "{anonymous}::FoldInsertPadIntoFill"
"""A pattern of `canonicalize` that adds the padding of what is inserted into zeros to its place there, also where the
elements do not lie side by side."""


def parse_upstream(passes: str) -> PassManager:
    """The manager of a pipeline in the current context; `canonicalize`, alone or inside of `inline`, leaves out what is
    wrong."""
    manager = PassManager.parse(f"builtin.module({passes})")
    without = f"canonicalize{{disable-patterns={_WRONG}"
    text, count = re.subn(
        r"(?<![\w-])canonicalize(\{| )", lambda end: without + (" " if end[1] == "{" else "} "), str(manager)
    )
    return PassManager.parse(text) if count else manager


_KEPT = frozenset(("canonicalize", "cse", "linalg-generalize-named-ops", "lower-affine", "symbol-dce"))
"""Passes that keep nothing of a module which they ran on. Others do: `convert-math-to-funcs` has its functions."""


def _manager(context: mlir.Context, passes: str) -> PassManager:
    """The pass manager of a pipeline. One of simplifications is kept with its context, because `canonicalize` collects
    the patterns of all dialects when a manager first runs, which takes longer than simplifying a small dispatch."""
    known: dict[str, PassManager] = vars(context).setdefault("eyas_pass_managers", {})
    if passes in known:
        return known[passes]
    try:
        manager = parse_upstream(passes)
    except ValueError as error:
        detail = str(error).partition("\n")[0].rpartition("error: ")[2].removeprefix("<Pass-Options-Parser>: ")
        raise UsageError(f"cannot parse the pass pipeline '{passes}': {detail}; `eyas opt --list` shows ours") from None
    # Verifying after every upstream pass would double compile time; phases verify at their ends.
    manager.enable_verifier(False)
    if all(name in _KEPT for name, _ in _split_pipeline(passes)):
        known[passes] = manager
    return manager


def _split_pipeline(text: str) -> Iterable[tuple[str, str]]:
    depth, start = 0, 0
    pieces = []
    for position, character in enumerate(text):
        depth += character in "({"
        depth -= character in ")}"
        if character == "," and depth == 0:
            pieces.append(text[start:position])
            start = position + 1
    pieces.append(text[start:])
    for piece in filter(None, (piece.strip() for piece in pieces)):
        match = re.fullmatch(r"([\w.-]+)\{(.*)\}", piece, re.DOTALL)
        yield (match.group(1), match.group(2)) if match else (piece, "")


def _print_option(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


def _parse_option(text: str, default: Any, where: str) -> Any:
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, tuple):
            return tuple(int(part) if part.lstrip("-").isdigit() else part for part in text.split(",") if part)
        return type(default)(text) if default is not None else text
    except (KeyError, ValueError):
        raise UsageError(f"{where}: expected a {type(default).__name__}, got '{text}'") from None


__all__ = ["EyasError", "Pass", "PassPipeline", "Upstream", "run_upstream"]
