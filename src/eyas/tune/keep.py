"""What is kept of a candidate that is wrong or ended a process: a folder to compile and run it from."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch_mlir import ir as mlir

import eyas
from eyas.dialects import codegen, flow
from eyas.ir import make_context, parse_module
from eyas.pipelines import weights_file
from eyas.pipelines.dumps import PARAMETERS_FILE
from eyas.program.parameters import Parameter
from eyas.tune.dispatches import Dispatch
from eyas.tune.gate import CHECKS
from eyas.tune.operands import Kind
from eyas.tune.program import weight_name
from eyas.tune.running import Operands
from eyas.tune.trials import Candidate, Status

PROGRAM = "dispatch.mlir"


def keep(
    root: Path,
    dispatch: Dispatch,
    candidate: Candidate,
    status: Status,
    reason: str,
    said: str = "",
    check: int | None = None,
    evidence: tuple[Sequence[np.ndarray], Sequence[np.ndarray]] = ((), ()),
) -> Path:
    """Writes the folder: the program with the schedule on it, its weights, and what it was called with."""
    folder = _free_folder(root, f"{_plain(dispatch.name)}-{status.value}")
    folder.mkdir(parents=True)
    (folder / PROGRAM).write_text(noted(dispatch.text(), candidate.schedule))
    weights_file.write(folder / PARAMETERS_FILE, _weights(dispatch))
    entry = CHECKS[check].entry if check is not None else "main"
    arguments, expected = evidence if check is not None else (Operands.of(dispatch).arguments(Kind.NORMAL, 0), ())
    for index, array in enumerate(arguments):
        np.save(folder / f"input_{index}.npy", array)
    for index, array in enumerate(expected):
        np.save(folder / f"expected_{index}.npy", array)
    inputs = " ".join(f"--input @{folder / f'input_{index}.npy'}" for index in range(len(arguments)))
    compile_ = f"eyas compile {folder / PROGRAM} --from schedule --target {candidate.target} -o {folder / 'it.eyas'}"
    run = f"eyas run {folder / 'it.eyas'} --entry {entry} {inputs}".rstrip()
    facts = {
        "eyas": eyas.__version__,
        "dispatch": dispatch.name,
        "target": candidate.target,
        "strategy": candidate.strategy,
        "point": dict(candidate.point),
        "schedule": candidate.schedule,
        "status": status.value,
        "reason": reason,
        "entry": entry,
    }
    (folder / "report.json").write_text(json.dumps(facts, indent=2) + "\n")
    if said:
        (folder / "stderr.txt").write_text(said)
    (folder / "README.md").write_text(
        f"`{dispatch.name}` with another schedule: {status.value}, {reason}.\n\n    {compile_}\n    {run}\n"
    )
    return folder


def noted(text: str, schedule: str) -> str:
    """A small program whose executable has this strategy."""
    module = parse_module(text, make_context(), PROGRAM)
    with module.context, mlir.Location.unknown():
        for op in module.body.operations:
            if flow.is_executable(op):
                op.attributes[codegen.STRATEGY] = mlir.Attribute.parse(schedule)
        return module.operation.get_asm(enable_debug_info=False)


def _weights(dispatch: Dispatch) -> dict[str, Parameter]:
    operands = Operands.of(dispatch)
    arrays = {
        weight_name(binding, copy): operands.parameter(binding, copy is None)
        for binding, one in enumerate(dispatch.operands)
        if one.weight is not None
        for copy in (0, None)
    }
    return {name: Parameter.of_array(name, array) for name, array in arrays.items()}


def _free_folder(root: Path, name: str) -> Path:
    number = 1
    while (root / f"{name}-{number}").exists():
        number += 1
    return root / f"{name}-{number}"


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
