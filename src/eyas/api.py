"""The public verbs: `compile` and `export`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eyas.frontends import import_model
from eyas.pipelines.compiler import Compilation
from eyas.pipelines.phases import Options
from eyas.runtime import Module, load


def compile(
    model: Any,
    example_inputs: Sequence[Any] = (),
    *,
    target: str = "llvm-cpu",
    dynamic_shapes: Any = None,
    device: str = "local-task",
    threads: int | None = None,
    disable: Sequence[str] = (),
    dump_phases: str | Path | None = None,
) -> Module:
    """Compiles a model for this machine (or `target`) and loads it."""
    imported = import_model(model, *example_inputs, dynamic_shapes=dynamic_shapes)
    compilation = Compilation.of(imported, Options(target=target, disable=tuple(disable)))
    compilation.run(dump=Path(dump_phases) if dump_phases else None)
    return load(compilation.finish().to_bytes(), device=device, threads=threads)


def export(model: Any, *args: Any, dynamic_shapes: Any = None, **kwargs: Any):
    """Imports a model without compiling it; print the result to read the program."""
    return import_model(model, *args, dynamic_shapes=dynamic_shapes, **kwargs)
