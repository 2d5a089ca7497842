"""What a row of the op table is, and the frameworks, imported when first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.fuzz.shadow import Shadow

if TYPE_CHECKING:
    from tests.fuzz.builder import Builder

Attrs = dict[str, Any]
Lowering = Callable[..., Any]


class Framework:
    """A module that is imported at its first attribute: drawing graphs needs none of them."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


torch, jax, jnp, lax = Framework("torch"), Framework("jax"), Framework("jax.numpy"), Framework("jax.lax")
functional = Framework("torch.nn.functional")


@dataclass(frozen=True)
class Op:
    """One op. `build` draws operands and attributes, or returns None where it does not apply.

    Lowerings take the framework's values and the attributes; ONNX's takes an emitter first. A framework without one is
    not asked. `weight` is how often it is drawn.
    """

    name: str
    build: Callable[[Builder], tuple[Sequence[int], Attrs] | None]
    evaluate: Callable[[list[Shadow], Attrs], Shadow]
    torch: Lowering | None = None
    jax: Lowering | None = None
    onnx: Lowering | None = None
    weight: int = 2
    once: Callable[[list[Shadow], Attrs], Shadow] | None = None
    """Evaluates without a bound, where that is quicker."""
    new_axes: int = 0
    """How many dimensions the result has more; axes are those of the result."""


TABLE: dict[str, Op] = {}


def add(op: Op) -> None:
    assert op.name not in TABLE, op.name
    TABLE[op.name] = op


def torch_call(name: str) -> Lowering:
    """A function of `torch` with the operands as arguments."""
    return lambda args, attrs: getattr(torch, name)(*args)


def jax_call(name: str) -> Lowering:
    return lambda args, attrs: getattr(jnp, name)(*args)


def onnx_call(name: str) -> Lowering:
    return lambda emit, args, attrs: emit(name, args)
