"""Compiles an imported program, as often as asked and each time from a copy, and calls it with flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eyas.frontends.program import ImportedProgram
from eyas.ir import clone_into
from eyas.pipelines.compiler import Compilation
from eyas.pipelines.phases import Options
from eyas.runtime import Module


@dataclass(frozen=True)
class Build:
    """How programs are compiled and run. `workers` is the number of processes that compile kernels, 0 one per CPU."""

    device: str = "local-task"
    threads: int | None = None
    disable: tuple[str, ...] = ()
    workers: int = 0

    def compile(self, program: ImportedProgram, disable: Sequence[str] = ()) -> Module:
        """The program, compiled without what is in `disable`."""
        copy = replace(program, module=clone_into(program.module.operation, program.module.context))
        options = Options(disable=tuple(dict.fromkeys((*self.disable, *disable))), workers=self.workers)
        compilation = Compilation.of(copy, options)
        compilation.run()
        return compilation.finish().load(self.device, self.threads)

    def call(self, program: ImportedProgram, inputs: Sequence[np.ndarray], disable: Sequence[str] = ()) -> list:
        """The flat results of the program, compiled without what is in `disable`."""
        results = self.compile(program, disable).functions["main"](*inputs)
        return [np.asarray(one) for one in (results if isinstance(results, (tuple, list)) else (results,))]
