"""Layer by layer: which values of the compiled program leave the reference, and which does so first.

Extra results change what is fused, and may hide a fault. So the program is first run as it is; when that is wrong but
no layer is, layers are asked for one at a time, by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eyas.errors import EyasError, TargetError, UsageError
from eyas.verification.build import Build
from eyas.verification.compare import Difference, Tolerance, compare
from eyas.verification.source import Layer, Reference, Source, Tapped

# A layer that cannot be a result costs a few compilations to find; more of them than this are not looked for.
_MAX_FAILURES = 24

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One compared value. `difference` is None where it could not be compared, and `note` says why."""

    layer: Layer
    dtype: str
    shape: tuple[int, ...]
    difference: Difference | None
    note: str = ""
    is_result: bool = False
    agrees_with: str = ""
    """Who computes the same from this program's own inputs of the layer; the reference had others, or is not exact."""

    @property
    def wrong(self) -> bool:
        return self.difference is not None and not self.difference.ok and not self.agrees_with


@dataclass
class Trace:
    """What comparing one program gave. `tapped` returns all layers, when it compiles; pieces are cut out of it."""

    results: list[Row] = field(default_factory=list)
    layers: list[Row] = field(default_factory=list)
    tapped: Tapped | None = None
    hidden: bool = False
    """The program is wrong, and right as soon as all layers are results as well."""

    @property
    def first(self) -> Row | None:
        """The first value in program order that is wrong."""
        return next((row for row in self.layers if row.wrong), next((row for row in self.results if row.wrong), None))


class Tracer:
    """Compares a source with what Eyas makes of it, on one set of inputs."""

    def __init__(
        self,
        source: Source,
        build: Build,
        inputs: Sequence[np.ndarray],
        reference: Reference,
        tolerance: Tolerance,
        progress: Progress = lambda _: None,
    ) -> None:
        self.source, self.build, self.inputs = source, build, inputs
        self.reference, self.tolerance, self.progress = reference, tolerance, progress
        self.own_results: dict[str, np.ndarray] = {}
        self.own_layers: dict[str, np.ndarray] = {}

    def trace(self) -> Trace:
        """Compares the results of the program as it is, and then all layers."""
        trace = Trace()
        self.progress("the program as it is")
        trace.results = self.results()
        returned = set(filter(None, self.source.results))
        taps = [layer.name for layer in self.source.layers if layer.name not in returned]
        found: dict[str, Row] = {}
        failures: list[str] = []
        self.progress(f"{len(taps)} layers")
        trace.tapped = self._measure(taps, found, failures)
        # A result that is also a layer counts with the layers, by its place in the program.
        trace.layers = [found[layer.name] for layer in self.source.layers if layer.name in found]
        if trace.tapped is not None:
            excused = right_for_their_inputs(self, trace.layers)
            trace.layers = [excused.get(row.layer.name, row) for row in trace.layers]
            trace.results = [self._as_tapped(row, excused) for row in trace.results]
        wrong = [row for row in trace.results if row.wrong]
        if wrong and not any(row.wrong for row in trace.layers):
            trace.hidden = trace.tapped is not None
            if (row := self._search(wrong)) is not None:
                trace.layers = [row if one.layer.name == row.layer.name else one for one in trace.layers]
        return trace

    def _as_tapped(self, row: Row, excused: Mapping[str, Row]) -> Row:
        """A result that is what the program with layers as results made of it, and right there."""
        other = excused.get(row.layer.name)
        if other is None or not row.wrong:
            return row
        ours, theirs = self.own_results[row.layer.name], self.own_layers[row.layer.name]
        return replace(row, agrees_with=other.agrees_with) if compare(ours, theirs, self.tolerance).ok else row

    def results(self, disable: Sequence[str] = ()) -> list[Row]:
        """The program's own results; a call that fails counts as wrong in all of them."""
        names = list(self.source.results)
        layers = [self.source.layer(name) if name else Layer(f"result {i}", "") for i, name in enumerate(names)]
        expected = self.reference.results
        program = self.source.program().program
        try:
            values = self.build.call(program, self.inputs, disable)
            self.own_results = dict(zip(names, values, strict=False))
        except (UsageError, TargetError):
            raise  # what was asked for does not exist; nothing is said about the program
        except EyasError as error:
            failed = Difference(np.inf, np.inf, 0.0, (), f"{type(error).__name__}: {error}")
            return [
                Row(layer, array.dtype.name, array.shape, failed, is_result=True)
                for layer, array in zip(layers, expected, strict=True)
            ]
        return [
            Row(layer, array.dtype.name, array.shape, compare(value, array, self.tolerance), is_result=True)
            # What a program writes to its arguments comes after its results.
            for layer, array, value in zip(layers, expected, values[: len(expected)], strict=True)
        ]

    def _measure(self, taps: list[str], found: dict[str, Row], failures: list[str]) -> Tapped | None:
        """Compares layers in one compilation; where that fails, in two halves."""
        if not taps and found:
            return None
        try:
            tapped = self.source.program(taps)
            values = self.build.call(tapped.program, self.inputs)
        except EyasError as error:
            if len(taps) <= 1 or len(failures) >= _MAX_FAILURES:
                failures += taps
                found.update((tap, self._not_compared(tap, str(error))) for tap in taps)
                return None
            middle = len(taps) // 2
            self._measure(taps[:middle], found, failures)
            self._measure(taps[middle:], found, failures)
            return None
        for name, position in tapped.positions.items():
            found[name] = self._row(name, values[position])
            self.own_layers[name] = values[position]
        return tapped

    def _row(self, name: str, value: np.ndarray) -> Row:
        expected = self.reference.layers[name]
        difference = compare(value, expected, self.tolerance)
        is_result = name in self.source.results
        return Row(self.source.layer(name), expected.dtype.name, expected.shape, difference, is_result=is_result)

    def _not_compared(self, name: str, reason: str) -> Row:
        expected = self.reference.layers[name]
        return Row(self.source.layer(name), expected.dtype.name, expected.shape, None, reason)

    def _search(self, wrong: Sequence[Row]) -> Row | None:
        """The earliest layer before a wrong result that is wrong when it alone is a further result."""
        returned = set(self.source.results)
        behind = ancestors(self.source, [row.layer.name for row in wrong])
        names = [layer.name for layer in self.source.layers if layer.name in behind and layer.name not in returned]
        low, high, best = 0, len(names), None
        while low < high:
            middle = (low + high) // 2
            self.progress(f"layer {names[middle]} alone")
            found: dict[str, Row] = {}
            self._measure([names[middle]], found, [])
            row = found[names[middle]]
            if row.wrong:
                best, high = row, middle
            else:
                low = middle + 1
        return best


def right_for_their_inputs(tracer: Tracer, rows: Sequence[Row]) -> dict[str, Row]:
    """Layers that leave the reference without a fault of this program: computed again from what the program itself has
    for their inputs, exactly where they are integers, they are the same.

    That happens where numbers are rounded to integers: inputs that differ within tolerance end on two sides of a tie,
    or the reference's own integers are not exact (ONNX Runtime saturates sums of u8 x s8 on CPUs with AVX2 and without
    VNNI). It is asked of whole numbers, and of what is computed from layers that were found to be such.
    """
    found: dict[str, Row] = {}
    for row in rows:
        name = row.layer.name
        if not row.wrong:
            continue
        if not _is_whole(tracer.reference.layers[name]) and not any(one in found for one in row.layer.reads):
            continue
        inputs = {one: tracer.own_layers[one] for one in row.layer.reads if one in tracer.own_layers}
        if len(inputs) < len(row.layer.reads):
            continue
        for who, value in tracer.source.recompute(row.layer, inputs, tracer.inputs):
            if compare(tracer.own_layers[name], value, tracer.tolerance).ok:
                found[name] = replace(row, agrees_with=who)
                break
    return found


def _is_whole(array: np.ndarray) -> bool:
    """Whether all are integers, in whatever type."""
    if array.dtype.kind in "iub":
        return True
    with np.errstate(all="ignore"):
        return array.dtype.kind != "c" and bool((np.floor(array.astype(np.float64)) == array).all())


def ancestors(source: Source, names: Sequence[str]) -> set[str]:
    """Layers that the named ones are computed from, and those themselves."""
    by_name = {layer.name: layer for layer in source.layers}
    found: set[str] = set()
    stack = [name for name in names if name in by_name]
    while stack:
        name = stack.pop()
        if name not in found and name in by_name:
            found.add(name)
            stack += by_name[name].reads
    return found
