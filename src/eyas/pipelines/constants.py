"""How `evaluate-constants` evaluates: the constant part of a program is compiled for this machine, and called once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eyas.passes.optimize.evaluate_constants import ConstantPart, Evaluate
from eyas.pipelines.request import Phase, Request, Services
from eyas.program.program import ImportedProgram, Source


def evaluate_with(disable: tuple[str, ...], services: Services) -> Evaluate:
    """An evaluation that leaves out what the program's own compilation leaves out, and shows nothing."""

    def evaluate(part: ConstantPart, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        from eyas.pipelines.driver import compile  # the driver's phases evaluate constants

        program = ImportedProgram.flat(part.module, part.signature, Source("", ""), digest="")
        quiet = replace(services, dump=None, watchers=())
        request = Request(program, disable=disable, after=Phase.OPTIMIZE, default_specs=False)
        made = compile(request, quiet).load()(*arguments)
        return [made] if len(part.signature.results) == 1 else list(made)

    return evaluate
