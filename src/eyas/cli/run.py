"""`eyas run`: calls a module once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.common import (
    DEVICE_HELP,
    ENTRY_HELP,
    INPUT_HELP,
    PRECISION_HELP,
    TARGET_HELP,
    TUNING_HELP,
    VARIANT_HELP,
    choose_entry,
    make_inputs,
    note,
    open_module,
    print_json,
)
from eyas.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

NAME = "run"
_SHOWN_IN_JSON = 1024


def command(
    module: Annotated[Path, typer.Argument(help="A .eyas module, or a model, which is compiled first.")],
    input: Annotated[list[str] | None, typer.Option("-i", "--input", help=INPUT_HELP)] = None,
    output: Annotated[
        list[str] | None, typer.Option("-o", "--output", help="A folder for all results, or @y.npy for each in turn.")
    ] = None,
    entry: Annotated[str, typer.Option(help=ENTRY_HELP)] = "",
    target: Annotated[str, typer.Option(help=TARGET_HELP)] = "",
    precision: Annotated[str | None, typer.Option(help=PRECISION_HELP)] = None,
    tuning_spec: Annotated[list[Path] | None, typer.Option(help=TUNING_HELP)] = None,
    device: Annotated[str | None, typer.Option(help=DEVICE_HELP)] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="[default: the CPUs of this process]")] = None,
    variant: Annotated[str | None, typer.Option(help=VARIANT_HELP)] = None,
    json: Annotated[bool, typer.Option("--json", help="Results as JSON.")] = False,
) -> None:
    """Call a module with arrays."""
    import numpy as np

    loaded = open_module(
        module,
        device,
        threads,
        quiet=json,
        target=target,
        variant=variant,
        precision=precision,
        tuning_spec=tuning_spec,
    )
    call = loaded.functions[choose_entry(loaded, entry)]
    inputs = make_inputs(input or [], call.signature)
    if not input and inputs and not json:
        note("no --input: random numbers are used")
    results = call(*inputs)
    arrays = [np.asarray(result) for result in (results if isinstance(results, tuple) else (results,))]
    named = list(zip([result.name for result in call.signature.results], arrays, strict=True))
    files = _write(output, named) if output else {}
    if json:
        print_json([_describe(name, array, files.get(name)) for name, array in named])
        return
    for name, array in named:
        saved = f" -> {files[name]}" if name in files else ""
        print(f"{name}: {array.dtype}{list(array.shape)}{saved}")
        if name not in files:
            print(np.array2string(array, threshold=64, edgeitems=3, precision=6))


def _write(outputs: list[str], named: list[tuple[str, np.ndarray]]) -> dict[str, str]:
    import numpy as np

    if len(outputs) == 1 and not outputs[0].startswith("@"):
        folder = Path(outputs[0])
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: str(folder / f"{name}.npy") for name, _ in named}
    elif len(outputs) == len(named) and all(one.startswith("@") for one in outputs):
        files = {name: one[1:] for (name, _), one in zip(named, outputs, strict=True)}
    else:
        raise UsageError(
            f"--output: give one folder, or @FILE.npy for each of the {len(named)} results, got {' '.join(outputs)}"
        )
    for name, array in named:
        with open(files[name], "wb") as file:  # by handle, because np.save appends .npy to names
            np.save(file, array)
    return files


def _describe(name: str, array: np.ndarray, file: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
    if file:
        data["file"] = file
    elif array.size <= _SHOWN_IN_JSON and array.dtype.kind != "c":
        data["values"] = array.astype(float).tolist() if array.dtype.kind not in "biu" else array.tolist()
    return data
