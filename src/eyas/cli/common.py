"""What several commands share: models and modules by path, input specs, plain tables, JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyas.errors import EyasError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from eyas.module.signature import Signature
    from eyas.runtime import Module

MODEL_ENDINGS = (".onnx", ".pt2", ".mlir", ".mlirbc", ".stablehlo")
_SPEC = re.compile(r"(?P<dims>(?:\d+x)*)(?P<dtype>[a-z]+\d*[a-z0-9]*)")

INPUT_HELP = (
    "@x.npy, or a shape with what to fill it: 1x3x224x224xf32=random, 4xi64=7. NAME=... gives one by name,"
    " @all.npz several."
)


TARGET_HELP = "What a model is compiled for; see `eyas targets`. [default: this machine]"
DEVICE_HELP = (
    "vulkan:1 or the like; see `eyas devices`. [default: the CPU; for what is compiled for GPUs alone the first]"
)
PRECISION_HELP = (
    "f16 or bf16: what a model in f32 multiplies and remembers in; sums stay in f32. [default: the model's]"
)
TUNING_HELP = "A tuning spec; of several that match a dispatch the first decides."
VARIANT_HELP = "Of a module with several: a target, or a part of it. [default: the best that runs here]"


def describe_tuning(specs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What became of tuning specs, a line for each; of those that come with the package only what they did."""
    for one in specs:
        used, unused = one["used"], one["unused"]
        if one["default"] and not used and not one["refused"]:
            continue
        count = len(used) + len(unused) + len(one["refused"])
        kernels = sum(map(len, used.values()))
        parts = [f"{len(used)} of {count} entries decide {kernels} kernel{'s' if kernels != 1 else ''}"]
        if unused and not one["default"]:
            parts.append(f"nothing here matches {', '.join('@' + name for name in unused)}")
        parts += [f"@{name} does not fit {reason}" for name, reasons in one["refused"].items() for reason in reasons]
        if one["other_targets"]:
            parts.append(f"{len(one['other_targets'])} more for other targets")
        yield f"{'default spec ' if one['default'] else ''}{one['spec']}: {'; '.join(parts)}"


def open_module(
    path: Path,
    device: str | None,
    threads: int | None,
    quiet: bool = False,
    target: str = "",
    variant: str | None = None,
    precision: str | None = None,
    tuning_spec: Sequence[Path] | None = None,
) -> Module:
    """A `.eyas` file, or a model that is compiled first."""
    if not path.is_file():
        raise EyasError(f"no such file: '{path}'")
    if path.suffix.lower() not in MODEL_ENDINGS:
        if target or precision or tuning_spec:
            given = {"--target": target, "--precision": precision, "--tuning-spec": (tuning_spec or [""])[0]}
            asked = next(f"{name} {value}" for name, value in given.items() if value)
            raise UsageError(f"{asked}: '{path}' is compiled already; give the model that it was made from")
        from eyas.runtime import load

        return load(path, device=device, threads=threads, variant=variant)
    if variant is not None:
        raise UsageError(f"--variant {variant}: '{path}' is a model, which is compiled for one target")
    from eyas.api import compile

    options: dict[str, Any] = {"device": device, "threads": threads, "precision": precision, "tuning_spec": tuning_spec}
    return compile(str(path), target=target or "llvm-cpu", progress=False if quiet else None, **options)


ENTRY_HELP = "Which entry point to call. [default: main, or the only one]"


def choose_entry(module: Module, entry: str) -> str:
    """The name of the function that --entry means."""
    names = list(module.functions)
    if not entry and len(names) == 1:
        return names[0]
    if (entry or "main") not in names:
        asked = f"--entry {entry}" if entry else "give --entry"
        raise UsageError(f"{asked}: the module has {', '.join(names)}")
    return entry or "main"


def parse_shape(text: str) -> tuple[tuple[int, ...], np.dtype]:
    """`1x3x224x224xf32` as a shape and a NumPy dtype."""
    from eyas.program.dtypes import TABLE, numpy_dtype

    match = _SPEC.fullmatch(text.strip())
    dtype = "bool" if match and match["dtype"] == "i1" else match["dtype"] if match else ""
    if match is None or dtype not in TABLE:
        raise UsageError(f"'{text}' is not a shape and type such as 1x3x224x224xf32; types: {', '.join(TABLE)}")
    return tuple(int(size) for size in match["dims"].split("x")[:-1]), numpy_dtype(dtype)


def _is_shape(text: str) -> bool:
    """Whether text is a shape and type; `arg1` and `x` are names."""
    from eyas.program.dtypes import TABLE

    match = _SPEC.fullmatch(text.strip())
    return match is not None and (bool(match["dims"]) or match["dtype"] in (*TABLE, "i1"))


def example_inputs(specs: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Inputs that only tell shapes: `1x3x8xf32` by position, `ids=1x16xi64` by name."""
    import numpy as np

    positional, named = [], {}
    for spec in specs:
        name, separator, text = spec.rpartition("=")
        shape, dtype = parse_shape(text)
        array = np.zeros(shape, dtype)
        if separator:
            named[name] = array
        else:
            positional.append(array)
    return positional, named


def make_inputs(specs: Sequence[str], signature: Signature, seed: int = 0) -> list[np.ndarray]:
    """The arrays of a call in the order of the signature; without any spec, random ones of its shapes."""
    names = [argument.name for argument in signature.args]
    if not specs:
        return [_from_signature(argument, seed + index) for index, argument in enumerate(signature.args)]
    given: dict[str, np.ndarray] = {}
    for spec, name, array in _made_inputs(specs, seed):
        free = [one for one in names if one not in given]
        if name is None and free:
            name = free[0]
        if name not in free:
            what = "one more input than the function has" if name is None else f"'{name}' is unknown or given twice"
            raise UsageError(f"--input {spec}: {what}; it takes {signature}")
        given[name] = array
    if missing := [name for name in names if name not in given]:
        raise UsageError(f"no --input for {', '.join(missing)}; the function takes {signature}")
    return [_in_type(given[argument.name], argument.dtype) for argument in signature.args]


def _made_inputs(specs: Sequence[str], seed: int) -> Iterator[tuple[str, str | None, np.ndarray]]:
    """Each array with the spec that it comes from, and its name where that says one."""
    count = 0
    for spec in specs:
        if spec.startswith("@") and spec.endswith(".npz"):
            arrays = [(spec, name, array) for name, array in _load_arrays(spec[1:]).items()]
        else:
            arrays = [(spec, *_make_input(spec, seed + count))]
        yield from arrays
        count += len(arrays)


def _in_type(array: np.ndarray, dtype: str) -> np.ndarray:
    """NumPy's files know bf16 as two bytes of anything."""
    from eyas.program.dtypes import numpy_dtype

    return array.view(numpy_dtype("bf16")) if dtype == "bf16" and array.dtype.kind == "V" else array


def _make_input(spec: str, seed: int) -> tuple[str | None, np.ndarray]:
    import numpy as np

    left, separator, value = spec.partition("=")
    if spec.startswith("@"):
        return None, _load_array(spec[1:])
    if not separator:
        raise UsageError(f"--input {spec}: expected {INPUT_HELP}")
    if not _is_shape(left):
        _, array = _make_input(value, seed)
        return left, array
    shape, dtype = parse_shape(left)
    if value == "random":
        from eyas.program.examples import random_array

        return None, random_array(shape, dtype, seed)
    try:
        values = np.array([float(item) for item in value.split(",")])
        filled = np.full(shape, values[0]) if values.size == 1 else values.reshape(shape)
        return None, filled.astype(dtype)
    except ValueError:
        raise UsageError(
            f"--input {spec}: '{value}' must be 'random', a number, or as many numbers as {left} has, with commas"
        ) from None


def _load_array(path: str) -> np.ndarray:
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--input @{path}: not a NumPy .npy file: {error}") from error


def _load_arrays(path: str) -> dict[str, np.ndarray]:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--input @{path}: not a NumPy .npz file: {error}") from error


def _from_signature(argument: Any, seed: int) -> np.ndarray:
    from eyas.program.dtypes import numpy_dtype
    from eyas.program.examples import random_array

    if not all(isinstance(dim, int) for dim in argument.dims):
        sizes = "x".join("N" if isinstance(dim, str) else str(dim) for dim in argument.dims)
        raise UsageError(f"'{argument}' has no fixed size; give one: --input {sizes}x{argument.dtype}=random")
    return random_array(argument.dims, numpy_dtype("bool" if argument.dtype == "i1" else argument.dtype), seed)


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2))


def print_table(rows: Sequence[Sequence[Any]], numbers: Sequence[int] = ()) -> None:
    """Columns aligned with spaces, so that it reads the same on a terminal and in a pipe. `numbers` align right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))] if texts else []
    for row in texts:
        cells = [
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def show_bytes(count: int) -> str:
    """1536 as '1.5 KiB'."""
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def show_grid(grid: Sequence[int]) -> str:
    """(2, 14, 1) as '2x14'."""
    sizes = list(grid)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return "x".join(map(str, sizes))


def show_time(microseconds: float) -> str:
    """1234.5 as '1.234 ms'."""
    if microseconds < 1e3:
        return f"{microseconds:.2f} us"
    return f"{microseconds / 1e3:.3f} ms" if microseconds < 1e6 else f"{microseconds / 1e6:.3f} s"


def note(message: str) -> None:
    """A remark that is no result."""
    print(message, file=sys.stderr)
