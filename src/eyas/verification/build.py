"""Compiles an imported program, as often as asked and each time from a copy, and calls it with flat arrays."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eyas.codegen.backends import backend_of
from eyas.pipelines import driver
from eyas.pipelines.compilation import Compilation
from eyas.pipelines.driver import Result
from eyas.pipelines.phases import switches
from eyas.pipelines.request import Phase, Request, Services
from eyas.program.program import ImportedProgram
from eyas.specs import SpecSource, shipped
from eyas.targets import Target


@dataclass(frozen=True)
class Build:
    """How programs are compiled and run. `workers` is the number of processes that compile kernels, 0 one per CPU;
    `runs` is how often each is called, because a race between dispatches does not show every time."""

    device: str | None = None
    threads: int | None = None
    disable: tuple[str, ...] = ()
    workers: int = 0
    runs: int = 1
    target: Target = field(default_factory=Target.host)
    precision: str | None = None
    tuning_specs: tuple[SpecSource, ...] = ()

    @property
    def flags(self) -> list[str]:
        """What tells a command to compile for the same target in the same precision and to run on the same device."""
        target = [] if self.target == Target.host() else [f"--target {shlex.quote(str(self.target))}"]
        precision = [] if self.precision is None else [f"--precision {self.precision}"]
        specs = [f"--tuning-spec {shlex.quote(one.name)}" for one in self.tuning_specs]
        return target + precision + specs + ([] if self.device is None else [f"--device {shlex.quote(self.device)}"])

    @property
    def plain(self) -> Build:
        """This machine, all optional left out: what a program without a framework is compared with."""
        host = Build(threads=self.threads, workers=self.workers)
        return replace(host, disable=host.switches)

    @property
    def switches(self) -> tuple[str, ...]:
        """All that a program for this target compiles without; where no tuning spec applies, nobody asks for them."""
        every = switches(self.target)
        tuned = self.tuning_specs or shipped(self.target.backend)
        return every if tuned else tuple(name for name in every if name != "apply-tuning-spec")

    @property
    def strategy_switches(self) -> tuple[str, ...]:
        """Those of them that are strategies."""
        return backend_of(self.target).strategy_switches

    def compile(self, program: ImportedProgram, disable: Sequence[str] = ()) -> Result:
        """The program, compiled without what is in `disable`."""
        return driver.compile(self._request(program, disable), Services(workers=self.workers))

    def run(self, program: ImportedProgram, last: Phase, disable: Sequence[str] = ()) -> Compilation:
        """The program after a phase."""
        return driver.run(self._request(program, disable, last), Services(workers=self.workers))

    def _request(self, program: ImportedProgram, disable: Sequence[str], last: Phase = Phase.VM) -> Request:
        off = tuple(dict.fromkeys((*self.disable, *disable)))
        applied = self.tuning_specs if Phase.SCHEDULE.ordinal <= last.ordinal else ()
        return Request(
            program,
            targets=(self.target,),
            disable=off,
            precision=self.precision,
            last=last,
            tuning_specs=applied,
        )

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

    def _run(self, compiled: Result, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One call of a module that was just loaded: state that a program keeps is as it was."""
        results = compiled.load(self.device, self.threads).functions["main"](*inputs)
        return [np.asarray(one) for one in (results if isinstance(results, (tuple, list)) else (results,))]
