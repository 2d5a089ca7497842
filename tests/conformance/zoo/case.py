"""One program of the zoo: how it is built, what it is called with, and how near the answer must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """`model` is what `eyas.compile` takes: an nn.Module in the mode in which it is to run, or the path of a file.

    `inputs(sample)` are the arguments of one call; sample 0 is compiled with, 0 and 1 are compared. The runner seeds
    torch before each. `reference` answers for models that are not callable, such as files; it takes the same arguments.
    `judge(run)` is told how to call the compiled model and says what is wrong with its answers, "" if nothing is: for
    trained models, whose answers have a meaning.
    """

    model: Any
    inputs: Callable[[int], tuple[Any, ...]]
    reference: Callable[..., Any] | None = None
    judge: Callable[[Callable[..., Any]], str] | None = None


@dataclass(frozen=True)
class Case:
    """Each float result differs from the reference by at most `rtol` times its largest magnitude; others are equal.

    `make` is called with torch seeded. `group/name` is how tables sort it. `batched` says that the first dimension of
    every argument is the batch, so that two samples can be joined to a call of another shape.
    """

    name: str
    make: Callable[[], Program]
    rtol: float = 1e-4
    batched: bool = True
