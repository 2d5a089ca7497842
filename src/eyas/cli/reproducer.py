"""What is needed to repeat a failure of the compiler: the command line, and the last phase that was fine."""

from __future__ import annotations

import platform
import shlex
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import eyas
from eyas.cli.common import note
from eyas.pipelines.request import Watcher

if TYPE_CHECKING:
    from eyas.pipelines.compilation import Compilation

_watched: list[Compilation] = []


class CommandWatcher(Watcher):
    """Remembers what is compiled, so that a failure can be repeated, and prints warnings as remarks."""

    def on_start(self, compilation: Compilation) -> None:
        _watched[:] = [compilation]

    def on_warning(self, message: str) -> None:
        note(f"warning: {message}")


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


def _save_last_good(folder: Path, compilation: Compilation) -> str:
    from eyas.ir import make_context, parse_module
    from eyas.pipelines.dumps import file_name

    phase, bytecode = compilation.last_good
    text = parse_module(bytecode, make_context()).operation.get_asm()
    name = file_name(phase) if phase else "0.imported.mlir"
    (folder / name).write_text(text)
    target = shlex.quote(str(compilation.options.target))
    return f"{name} --target {target}" + (f" --from {phase.value}" if phase else "")
