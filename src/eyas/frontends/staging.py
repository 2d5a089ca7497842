"""The cheap half of an import: a model's digest, by which a module that was compiled before is found, and the way on.

For PyTorch that half ends with `torch.export`, for an ONNX file with its bytes. Other models have a digest only once
they are imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eyas.cache.digest import attempt
from eyas.errors import UsageError
from eyas.frontends import frontend_of
from eyas.libraries import keep_apart

if TYPE_CHECKING:
    from eyas.program.program import ImportedProgram

# Models of more than this take long enough that it pays to start workers at once.
_LARGE_BYTES = 1 << 20


@dataclass(frozen=True)
class Staged:
    """A model that may have been compiled before. `finish` imports it."""

    finish: Callable[[], ImportedProgram]
    fingerprint: str | None = None
    weight_bytes: int = 0

    @property
    def is_large(self) -> bool:
        return self.weight_bytes > _LARGE_BYTES


def stage(
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    carry: Mapping[int, int] | None,
    most_bytes: int,
) -> Staged:
    """Takes a model, or a mapping of entry points, as far as its digest; those of more than `most_bytes` of weights get
    none."""
    keep_apart()
    if isinstance(model, Mapping):
        if args or kwargs or dynamic_shapes is not None or carry:
            raise UsageError("entry points have inputs of their own: {'name': eyas.Entry(model, inputs, ...)}")
        from eyas.frontends.entries import import_entries

        return Staged(lambda: import_entries(model))
    if carry:
        from eyas.frontends.entries import Entry, import_entry

        return Staged(lambda: import_entry(Entry(model, args, kwargs, dynamic_shapes, carry)))
    frontend = frontend_of(model, (args, kwargs))
    if frontend == "torch":
        return _stage_torch(model, args, kwargs, dynamic_shapes, most_bytes)
    if frontend == "onnx" and isinstance(model, (str, os.PathLike)) and os.path.isfile(model):
        from eyas.frontends.onnx.fingerprint import fingerprint

        path, size = os.fspath(model), os.path.getsize(model)
        digest = attempt(lambda: fingerprint(path, args, kwargs, dynamic_shapes)) if size <= most_bytes else None
        return Staged(lambda: _import(model, args, kwargs, dynamic_shapes), digest, size)
    return Staged(lambda: _import(model, args, kwargs, dynamic_shapes))


def _stage_torch(
    model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any, most_bytes: int
) -> Staged:
    from eyas.frontends.torch.exported import export_model

    exported = export_model(model, args, kwargs, dynamic_shapes)
    # After the export, which loads the parts of torch that this needs.
    from eyas.frontends.torch.fingerprint import fingerprint, weight_bytes

    def finish() -> ImportedProgram:
        from eyas.frontends.torch.importer import import_exported

        return import_exported(*exported)

    size = weight_bytes(exported[0])
    return Staged(finish, attempt(lambda: fingerprint(*exported)) if size <= most_bytes else None, size)


def _import(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic_shapes: Any) -> ImportedProgram:
    from eyas.frontends import import_model

    return import_model(model, *args, dynamic_shapes=dynamic_shapes, **kwargs)
