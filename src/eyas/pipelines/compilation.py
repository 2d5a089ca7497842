"""One program on its way through the phases, for one target."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch_mlir import ir as mlir

from eyas.ir import Pass, Upstream, raise_as_compile_error
from eyas.pipelines import dumps, weights_file
from eyas.pipelines.constants import evaluate_with
from eyas.pipelines.phases import pipeline
from eyas.pipelines.request import Options, Phase, Services
from eyas.program.parameters import ParameterStore
from eyas.program.program import ImportedProgram


@dataclass
class Compilation:
    """A compilation under way: the module, which changes, the weights, which become more, and each phase's seconds."""

    program: ImportedProgram
    options: Options
    services: Services
    parameters: ParameterStore
    analyses: dict[str, object] = field(default_factory=dict)
    """Loop nests of dispatch functions by their text: passes read each function once."""
    seconds: dict[str, float] = field(default_factory=dict)
    last_good: tuple[Phase | None, bytes] = (None, b"")
    """The last phase that was completed and its module as bytecode: what a reproducer starts from."""

    @staticmethod
    def of(program: ImportedProgram, options: Options, services: Services | None = None) -> Compilation:
        """Takes the program's module over."""
        dumps.note_attributes(program)
        return Compilation(program, options, services or Services(), ParameterStore(program.parameters))

    @property
    def module(self) -> mlir.Module:
        return self.program.module

    def run(self, phases: Sequence[Phase] = tuple(Phase)) -> None:
        """Runs phases, in order; where the services have a folder for dumps, writes the module after each into it, and
        the weights beside them."""
        weights = dict(self.parameters)
        folder = self.services.dump
        for phase in phases:
            self.services.on_phase(phase, self)
            self._keep_last_good(phase)
            begin = time.perf_counter()
            pipeline(phase, self.options).equipped(**self._tools()).run(self.module, self._on_pass)
            try:
                self.module.operation.verify()
            except mlir.MLIRError as error:
                raise_as_compile_error(error, f"phase '{phase.value}' left invalid IR:")
            self.seconds[phase.value] = time.perf_counter() - begin
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / dumps.file_name(phase)).write_text(self.as_text())
                weights |= self.parameters
        if folder is not None and weights:
            weights_file.write(folder / dumps.PARAMETERS_FILE, weights)

    def as_text(self) -> str:
        """The module as text that `dumps.read_dump` takes: constants in full, since only weights live elsewhere."""
        return self.module.operation.get_asm()

    def _tools(self) -> dict[str, object]:
        """What passes are given beside their options, by the names of their fields."""
        services = self.services
        return {
            "parameters": self.parameters,
            "analyses": self.analyses,
            "evaluate": evaluate_with(self.options.disable, services),
            "store": services.store,
            "specs": self.options.specs,
            "workers": services.workers,
            "on_done": services.on_kernel,
            "on_warning": services.on_warning,
        }

    def _on_pass(self, step: Pass | Upstream, _: mlir.Module, seconds: float) -> None:
        self.services.on_pass(getattr(step, "name", str(step)), seconds)

    def _keep_last_good(self, next_phase: Phase) -> None:
        buffer = io.BytesIO()
        self.module.operation.write_bytecode(buffer)
        done = list(Phase)[next_phase.ordinal - 1] if next_phase.ordinal else None
        self.last_good = (done, buffer.getvalue())
