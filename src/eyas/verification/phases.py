"""Where a program goes wrong that is wrong with everything optional switched off: in its import, or in which phase."""

from __future__ import annotations

import numpy as np

from eyas.errors import EyasError
from eyas.ir import mlir
from eyas.pipelines.request import Phase
from eyas.program.dtypes import numpy_dtype
from eyas.program.program import ImportedProgram
from eyas.verification import oracle
from eyas.verification.build import Build
from eyas.verification.compare import Tolerance, compare
from eyas.verification.reproducer import Reproducer


def explain(build: Build, found: Reproducer, tolerance: Tolerance) -> str:
    """Evaluates the reproducer after its import and after the optimize phase by upstream's own lowering."""
    stages = ((None, "the import"), (Phase.INPUT, "phase 'input'"), (Phase.OPTIMIZE, "phase 'optimize'"))
    for phase, name in stages:
        try:
            program = found.program()
            results = _after(program, phase, build, found.piece.inputs)
        except (EyasError, mlir.MLIRError, RuntimeError, KeyError, TypeError, AssertionError) as error:
            return f"what {name} left cannot be evaluated on its own: {str(error).splitlines()[0]}"
        if not compare(results[0], found.expected, tolerance).ok:
            if phase is None:
                return "the imported program is wrong already, so the frontend's lowering of this op is to blame"
            return f"{name} makes it wrong, in a pass that cannot be switched off"
    return "what phase 'optimize' leaves is right, so a later pass that cannot be switched off is to blame"


def _after(program: ImportedProgram, phase: Phase | None, build: Build, inputs: tuple) -> list[np.ndarray]:
    results = [(numpy_dtype(result.dtype), len(result.dims)) for result in program.signature.results]
    if phase is None:
        return oracle.evaluate(program, *inputs)
    compilation = build.run(program, phase, build.switches)
    return oracle.evaluate_text(str(compilation.module), compilation.parameters, results, inputs)
