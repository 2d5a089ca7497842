"""What the user is told of a dispatch whose compilation died, and what is saved so that it can be repeated."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import eyas
from eyas.codegen.jobs import Caution, Job
from eyas.errors import InternalError

DISPATCH, LISTING, SAID, REPORT, COMMAND = "dispatch.mlir", "dispatch.ll", "stderr.txt", "report.json", "command.txt"


@dataclass(frozen=True)
class Death:
    """How a compilation ended: the cause in words, and the last that its process said."""

    cause: str
    said: str


def contained(job: Job, result: Any, on_warning: Callable[[str], None] | None) -> Any:
    """The result of a job; warns when it took more caution than was asked for, and raises an error."""
    if isinstance(result, tuple):
        made, deaths, listing = result
        if isinstance(made, BaseException):
            raise made
        folder = save(job, deaths, listing)
        given_up = f"{_tell(deaths)}; compiled {Caution(made.caution).description}"
        message = (
            f"dispatch '{job.name}': its compilation did not succeed as it should have ({_tell(deaths)}), so it was"
            f" compiled {Caution(made.caution).description}. Its results are right; it may be slow. This is a bug in"
            f" Eyas or LLVM: what is needed to repeat it was saved in {folder}; please send it."
        )
        if on_warning is not None:
            on_warning(message)
        return replace(made, given_up=given_up)
    if isinstance(result, BaseException):
        raise result
    return result


def died_each_time(job: Job, deaths: Sequence[tuple[Caution, Death]]) -> InternalError:
    """Not even plain loops could be compiled."""
    return InternalError(
        f"dispatch '{job.name}' cannot be compiled in any way: {_tell(deaths)}. What is needed to repeat it was saved"
        f" in {save(job, deaths, '')}"
    )


def save(job: Job, deaths: Sequence[tuple[Caution, Death]], listing: str) -> Path:
    """Writes a folder from which `python -m eyas.codegen.repeat` compiles the dispatch again as it was first tried."""
    folder = Path(tempfile.mkdtemp(prefix="eyas-dispatch-"))
    (folder / DISPATCH).write_text(job.text or _text(job))
    if listing:
        (folder / LISTING).write_text(listing)
    (folder / SAID).write_text("\n".join(f"--- {caution.description}\n{death.said}" for caution, death in deaths))
    report = {
        "eyas": eyas.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "name": job.name,
        "target": job.target,
        "disabled": list(job.disabled),
        "deaths": [{"caution": int(caution), "cause": death.cause} for caution, death in deaths],
    }
    (folder / REPORT).write_text(json.dumps(report, indent=2) + "\n")
    (folder / COMMAND).write_text(f"{sys.executable} -m eyas.codegen.repeat {folder}\n")
    return folder


def load(folder: Path) -> Job:
    """The job of a saved folder, as it was first tried."""
    from eyas.ir import make_context, parse_module

    report = json.loads((folder / REPORT).read_text())
    text = (folder / DISPATCH).read_text()
    parse_module(text, make_context(), DISPATCH)  # an error here is one of the file
    first = Caution(report["deaths"][0]["caution"])
    return Job(report["name"], text.encode(), report["target"], tuple(report["disabled"]), text, first)


def _tell(deaths: Sequence[tuple[Caution, Death]]) -> str:
    return "; ".join(f"{caution.description}: {death.cause}{_assertion(death)}" for caution, death in deaths)


def _assertion(death: Death) -> str:
    """The line in which LLVM says what it did not like."""
    for line in death.said.splitlines():
        if "Assertion" in line or "LLVM ERROR" in line or "UNREACHABLE" in line:
            return f", {' '.join(line.split())[:300]}"
    return ""


def _text(job: Job) -> str:
    from eyas.ir import make_context, parse_module

    return parse_module(job.bytecode, make_context(), job.name).operation.get_asm(enable_debug_info=False)
