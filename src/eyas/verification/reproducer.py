"""The smallest piece of a program that is still wrong by itself: a few ops in the input contract, and their inputs.

The piece starts as the op that makes the first wrong layer, fed with the reference's values. If it is right alone, what
feeds it is added, twice as far back each time, until it is wrong as it is in the whole program; then the shortest way
back is searched by halves.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eyas.errors import EyasError
from eyas.frontends.mlir.importer import import_text
from eyas.pipelines.request import Phase
from eyas.program.program import ImportedProgram
from eyas.verification.build import Build
from eyas.verification.compare import Difference, compare
from eyas.verification.cut import Piece, as_stored, cut
from eyas.verification.layers import Tracer
from eyas.verification.mlir_source import MlirSource
from eyas.verification.source import Source, Tapped

# Weights beyond this are not written into a program's text.
_MAX_INLINE_BYTES = 16 << 20


@dataclass(frozen=True)
class Reproducer:
    """A program whose one result is wrong, its inputs, what the result should be, and by how much it is not."""

    layer: str
    piece: Piece
    expected: np.ndarray
    difference: Difference

    def dispatches(self, build: Build) -> int:
        """How many dispatches it takes to run."""
        return sum(kernel["dispatches"] for kernel in build.compile(self.program()).manifest["kernels"])

    def program(self) -> ImportedProgram:
        return import_text(self.piece.text, "repro.mlir")

    def write(self, folder: Path, build: Build, note: str = "") -> str:
        """Writes the folder; returns the command that runs it."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in [*folder.glob("input_*.npy"), *folder.glob("expected_*.npy")]:
            old.unlink()
        (folder / "repro.mlir").write_text(self.piece.text)
        for index, array in enumerate(self.piece.inputs):
            np.save(folder / f"input_{index}.npy", array)
        np.save(folder / "expected_0.npy", self.expected)
        flags = [f"--input @{shlex.quote(str(folder / f'input_{i}.npy'))}" for i in range(len(self.piece.inputs))]
        command = " ".join(["eyas run", shlex.quote(str(folder / "repro.mlir")), *flags, *build.flags])
        (folder / "README.md").write_text(
            f"The result of `repro.mlir` on these inputs is not `expected_0.npy`: {self.difference.reason}.\n"
            f"It is the layer `{self.layer}`.{' ' + note if note else ''}\n\n"
            f"    {command}\n    {command.replace('eyas run', 'eyas verify', 1)} --bisect\n"
        )
        (folder / "repro.json").write_text(json.dumps({"layer": self.layer, **self.difference.to_json()}, indent=2))
        return command


def find(tracer: Tracer, bad: str, tapped: Tapped | None, refine: bool = True) -> Reproducer | None:
    """The smallest wrong piece that ends at the layer `bad`; None when not even the whole way to it is wrong alone."""
    levels = _levels(tracer.source, bad)

    def attempt(depth: int) -> Reproducer | None:
        boundary = _boundary(tracer.source, levels[:depth])
        tracer.progress(f"a piece behind {bad}, {len(boundary)} values from the reference")
        return _try(tracer, bad, boundary, tapped)

    right, wrong, found = 0, 1, attempt(1)
    while found is None and wrong < len(levels):
        right, wrong = wrong, min(2 * wrong, len(levels))
        found = attempt(wrong)
    while found is not None and wrong - right > 1:
        middle = (right + wrong) // 2
        nearer = attempt(middle)
        right, wrong = (right, middle) if nearer is not None else (middle, wrong)
        found = nearer or found
    return _refine(tracer, found) if found is not None and refine else found


def is_wrong(tracer: Tracer, piece: Piece, expected: np.ndarray, disable: Sequence[str] = ()) -> Difference | None:
    """How a piece, compiled and run by itself, misses what is expected; None when it does not."""
    try:
        (value,) = tracer.build.call(import_text(piece.text, "repro.mlir"), piece.inputs, disable)
    except EyasError as error:
        return Difference(np.inf, np.inf, 0.0, (), f"{type(error).__name__}: {error}")
    difference = compare(value, expected, tracer.tolerance)
    return None if difference.ok else difference


def _levels(source: Source, bad: str) -> list[set[str]]:
    """The layer itself, what it reads, what those read that is not among them, and so on to the program's inputs."""
    by_name = {layer.name: layer for layer in source.layers}
    levels, seen = [{bad}], {bad}
    while following := {name for one in levels[-1] for name in by_name[one].reads if name in by_name} - seen:
        levels.append(following)
        seen |= following
    return levels


def _boundary(source: Source, levels: Sequence[set[str]]) -> list[str]:
    """The layers that a piece of these levels reads and does not make."""
    inside = set().union(*levels)
    by_name = {layer.name: layer for layer in source.layers}
    return sorted({name for one in inside for name in by_name[one].reads if name in by_name} - inside)


def _try(tracer: Tracer, bad: str, boundary: Sequence[str], tapped: Tapped | None) -> Reproducer | None:
    source, reference = tracer.source, tracer.reference
    if not boundary:
        tapped = None  # the whole way from the inputs: as it was imported without other results
    if tapped is None:
        try:
            tapped = source.program([name for name in (*boundary, bad) if name not in source.results])
        except EyasError:
            return None
    given = {tapped.positions[name]: reference.layers[name] for name in boundary}
    expected = as_stored(reference.layers[bad])
    weights = sum(parameter.nbytes for parameter in tapped.program.parameters.values())
    for inline in (False, True):
        if inline and weights > _MAX_INLINE_BYTES:
            break
        piece = cut(tapped.program, [tapped.positions[bad]], given, tracer.inputs, inline)
        if piece is None:
            return None
        if (difference := is_wrong(tracer, piece, expected)) is not None:
            return Reproducer(bad, piece, expected, difference)
        if not weights:
            break  # the same again
    return None


def _refine(tracer: Tracer, found: Reproducer) -> Reproducer:
    """Smaller pieces of a piece that is more than one dispatch, op by op: of the program as it was imported, and then
    as the optimize phase leaves it, where what that phase adds around an op is apart from it."""
    for prepare in (lambda program: program, lambda program: _optimized(program, tracer.build)):
        if found.piece.ops <= 1:
            break
        found = _smaller(tracer, found, prepare) or found
    return found


def _smaller(
    tracer: Tracer, found: Reproducer, prepare: Callable[[ImportedProgram], ImportedProgram]
) -> Reproducer | None:
    """A piece of a piece, by comparison with plain loops, where those agree with the framework."""
    try:
        if found.dispatches(tracer.build) <= 1:
            return None
        source = MlirSource(prepare(found.program()), tracer.build)
        reference = source.reference(found.piece.inputs)
        if not compare(reference.results[0], found.expected, tracer.tolerance).ok:
            return None
        inner = Tracer(source, tracer.build, found.piece.inputs, reference, tracer.tolerance, tracer.progress)
        trace = inner.trace()
        if trace.first is None or not trace.first.layer.op:
            return None
        smaller = find(inner, trace.first.layer.name, trace.tapped, refine=False)
        if smaller is None or smaller.dispatches(tracer.build) >= found.dispatches(tracer.build):
            return None
    except EyasError:
        return None
    return Reproducer(found.layer, smaller.piece, smaller.expected, smaller.difference)


def _optimized(program: ImportedProgram, build: Build) -> ImportedProgram:
    compilation = build.run(program, Phase.OPTIMIZE)
    trees = program.in_tree, program.out_tree
    return ImportedProgram(compilation.module, compilation.parameters, program.signature, *trees, program.source)
