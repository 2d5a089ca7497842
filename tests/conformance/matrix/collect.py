"""Dispatches of the zoo's models, each once, as text that names neither weights nor places."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.codegen.jobs import Job
from eyas.dialects import flow
from eyas.passes.codegen.compile_executables import job_of
from eyas.pipelines import driver
from eyas.pipelines.request import Phase, Request
from eyas.targets import Target

# Fusion and memory are decided before the CPU is asked; what is collected for one is compiled for all.
COLLECTED_FOR = Target.parse("llvm-cpu:x86_64:x86-64-v3")


@dataclass(frozen=True)
class Dispatch:
    """One dispatch function, and where it comes from."""

    model: str
    name: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def dispatches_of(model_name: str, model: Any, inputs: Sequence[Any]) -> Iterator[Dispatch]:
    """The dispatches of a model, in its order, equal ones once."""
    # Constants stay as they are: evaluating them would compile and run, and change no kernel of what is left.
    request = Request(model, inputs, targets=(COLLECTED_FOR,), disable=("evaluate-constants",), last=Phase.SCHEDULE)
    compilation = driver.run(request)
    seen: set[str] = set()
    with compilation.module.context:
        for op in filter(flow.is_executable, compilation.module.body.operations):
            job: Job = job_of(op, COLLECTED_FOR, ())
            made = Dispatch(model_name, job.name, job.text)
            if made.digest not in seen:
                seen.add(made.digest)
                yield made


def sampled(dispatches: Sequence[Dispatch], most: int, seed: int = 0) -> list[Dispatch]:
    """At most so many of them, in their order."""
    chosen = sorted(random.Random(seed).sample(range(len(dispatches)), min(most, len(dispatches))))
    return [dispatches[index] for index in chosen]
