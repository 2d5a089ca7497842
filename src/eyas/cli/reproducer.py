"""What is needed to repeat a failure of the compiler: the command line, and the last phase that was fine."""

from __future__ import annotations

import platform
import shlex
import tempfile
import traceback
from pathlib import Path
from typing import Any

import eyas

_watched: list[Any] = []


def watch(compilation: Any) -> None:
    """From now on a failure is one of this compilation."""
    _watched[:] = [compilation]


def save(error: BaseException, arguments: list[str]) -> Path:
    """Writes a folder and returns it; never fails itself."""
    folder = Path(tempfile.mkdtemp(prefix="eyas-bug-"))
    command = f"eyas {shlex.join(arguments)}"
    lines = [f"eyas {eyas.__version__}, Python {platform.python_version()}, {platform.platform()}", "", f"$ {command}"]
    for compilation in _watched:
        try:
            name = _save_last_good(folder, compilation)
        except Exception as failure:
            lines += ["", f"the program could not be saved: {failure}"]
        else:
            lines += ["", "Repeat it without the model:", f"$ eyas --debug compile {name}"]
    lines += ["", "".join(traceback.format_exception(error))]
    (folder / "report.txt").write_text("\n".join(lines))
    return folder


def _save_last_good(folder: Path, compilation: Any) -> str:
    from eyas.ir import make_context, parse_module

    phase, bytecode = compilation.last_good
    text = parse_module(bytecode, make_context()).operation.get_asm()
    name = f"{phase.ordinal + 1}.{phase.value}.mlir" if phase else "0.imported.mlir"
    (folder / name).write_text(text)
    target = compilation.options.target
    return f"{name} --target {shlex.quote(target)}" + (f" --from {phase.value}" if phase else "")
