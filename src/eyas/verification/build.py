"""Compiles an imported program, as often as asked and each time from a copy, and calls it with flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eyas.ir import clone_into
from eyas.pipelines.compiler import Compilation, CompiledProgram
from eyas.pipelines.phases import Options
from eyas.program.program import ImportedProgram


@dataclass(frozen=True)
class Build:
    """How programs are compiled and run. `workers` is the number of processes that compile kernels, 0 one per CPU;
    `runs` is how often each is called, because a race between dispatches does not show every time."""

    device: str = "local-task"
    threads: int | None = None
    disable: tuple[str, ...] = ()
    workers: int = 0
    runs: int = 1

    def compile(self, program: ImportedProgram, disable: Sequence[str] = ()) -> CompiledProgram:
        """The program, compiled without what is in `disable`."""
        copy = replace(program, module=clone_into(program.module.operation, program.module.context))
        options = Options(disable=tuple(dict.fromkeys((*self.disable, *disable))), workers=self.workers)
        compilation = Compilation.of(copy, options)
        compilation.run()
        return compilation.finish()

    def call(
        self, program: ImportedProgram, inputs: Sequence[np.ndarray], disable: Sequence[str] = ()
    ) -> list[np.ndarray]:
        """The flat results of the program, compiled without what is in `disable`; of several runs that disagree, those
        of the first that differs."""
        compiled = self.compile(program, disable)
        first = self._run(compiled, inputs)
        for _ in range(self.runs - 1):
            again = self._run(compiled, inputs)
            if any(one.tobytes() != other.tobytes() for one, other in zip(first, again, strict=True)):
                return again
        return first

    def _run(self, compiled: CompiledProgram, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One call of a module that was just loaded: state that a program keeps is as it was."""
        results = compiled.load(self.device, self.threads).functions["main"](*inputs)
        return [np.asarray(one) for one in (results if isinstance(results, (tuple, list)) else (results,))]
