"""Small programs loaded side by side on one device: their operands, their numbers, their times."""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from eyas.codegen.common.panels import pack
from eyas.runtime import Device, _core
from eyas.runtime.profile import Event
from eyas.targets.others import OtherPrograms
from eyas.tune import gate
from eyas.tune.dispatches import Dispatch
from eyas.tune.gate import CHECKS, Check, Tolerance, length_of
from eyas.tune.making import Made
from eyas.tune.operands import Kind, Range, array_of, ranges_of
from eyas.tune.program import CANVAS, Operand, Tensor, entry_name, weight_name

_PACKED_BYTES = 512 << 20
"""Weights that are kept in panels, for the next candidate with the same."""
_MOST_COPIES, _COPIED_BYTES = 24, 256 << 20
_TURN_US, _MOST_CALLS = 3000.0, 40
_REPEATS, _REPEATED_S = 4, 0.5


@dataclass(frozen=True)
class Operands:
    """What a dispatch is run on, without anything of MLIR, so that it can be sent to another process."""

    name: str
    inputs: tuple[Operand, ...]
    results: tuple[Tensor, ...]
    ranges: tuple[Range, ...]
    weights: Mapping[int, np.ndarray] = field(repr=False)
    """The model's own values, by binding."""
    tolerance: Tolerance
    copies: int = 1
    """How many sets of operands take turns: more than one, so that none is in a cache when its turn comes."""
    works_in_order: bool = True
    """Whether equal calls give equal bits, as they do on CPUs."""

    @staticmethod
    def of(dispatch: Dispatch, cold: bool = False) -> Operands:
        with dispatch.function.operation.context:
            ranges = ranges_of(dispatch.function)
            length = length_of(dispatch.flops, [one.tensor for one in dispatch.operands], dispatch.results)
            tolerance = Tolerance.of(dispatch.function, length)
        weights = {
            binding: np.ascontiguousarray(dispatch.weights[one.weight].array()).reshape(one.tensor.shape)
            for binding, one in enumerate(dispatch.operands)
            if one.weight is not None
        }
        read = sum(one.tensor.nbytes for one in dispatch.operands) or 1
        copies = max(2, min(_MOST_COPIES, _COPIED_BYTES // read, -(-2 * last_cache_bytes() // read))) if cold else 1
        in_order = not str(dispatch.target).startswith(("vulkan", "cuda"))
        call = dispatch.operands, dispatch.results, tuple(ranges)
        return Operands(dispatch.name, *call, weights, tolerance, copies, in_order)

    def arguments(self, kind: Kind, seed: int) -> list[np.ndarray]:
        """Of a call, in order: what is not constant."""
        return [
            array_of(one.tensor, known, kind, (seed, binding))
            for binding, (one, known) in enumerate(zip(self.inputs, self.ranges, strict=True))
            if one.weight is None
        ]

    def parameter(self, binding: int, for_canvas: bool) -> np.ndarray:
        """A weight: the model's own, or small integers."""
        if for_canvas:
            return array_of(self.inputs[binding].tensor, self.ranges[binding], Kind.EXACT, (0, binding))
        return self.weights[binding]

    def call(self, check: Check) -> list[np.ndarray]:
        """The arguments of a call that is compared."""
        arguments = self.arguments(check.kind, check.seed)
        return arguments + ([gate.draw_canvas(one) for one in self.results] if check.entry == CANVAS else [])


def last_cache_bytes() -> int:
    """Of the last cache that Linux knows of CPU 0; 32 MiB where it says nothing."""
    found = 0
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        if text[:-1].isdigit() and text[-1:] in "KM":
            found = max(found, int(text[:-1]) << (10 if text[-1] == "K" else 20))
    return found or 32 << 20


@dataclass
class _Loaded:
    """A module on the device: its entry points, each with the arguments that stay there."""

    context: Any
    functions: dict[str, Any]
    kernel: str
    next_copy: int = 0
    last_us: float = 0.0

    def note_time(self) -> float:
        """What the dispatch took in the call that was just made."""
        events = [Event.of(one) for one in self.context.profile()]
        self.last_us = sum(event.duration_us for event in events if event.name == self.kernel)
        return self.last_us


class Runner:
    """One dispatch on one device: modules by name, numbers that they must have, and times."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._operands: Operands | None = None
        self._modules: dict[str, _Loaded] = {}
        self._packed: OrderedDict[tuple[str, int], np.ndarray] = OrderedDict()
        self._expected: list[list[np.ndarray] | None] = []
        self._sets: list[list[Any]] = []
        self._others: list[tuple[float, float]] = []
        self._calls: dict[Check, list[np.ndarray]] = {}

    @property
    def operands(self) -> Operands:
        assert self._operands is not None, "`open` comes first"
        return self._operands

    def open(self, operands: Operands) -> None:
        """What all modules that follow are run on."""
        self._operands = operands
        self._modules.clear()
        self._packed.clear()
        self._calls.clear()
        self._expected = [None] * len(CHECKS)
        sets = [operands.arguments(Kind.NORMAL, 100 + copy) for copy in range(operands.copies)]
        self._sets = [[self._placed(array) for array in one] for one in sets]

    def load(self, name: str, made: Made) -> None:
        """Loads a module, with the weights that it wants."""
        self._modules[name] = self._load(made, self.device)

    def drop(self, name: str) -> None:
        self._modules.pop(name, None)

    def learn(self, made: Made) -> list[float]:
        """Runs the module of plain loops, on the CPU: its results are the right ones. Returns each check's seconds."""
        reference, seconds = self._load(made, Device("local-task", threads=1)), []
        for number, check in enumerate(CHECKS):
            begin = time.perf_counter()
            self._expected[number] = [np.array(one) for one in self._call(reference, check)[0]]
            seconds.append(time.perf_counter() - begin)
        return seconds

    def check(self, name: str, most_us: float = float("inf")) -> tuple[int, str] | float | None:
        """The number of the check that a module fails, and how; None when it is right. One whose calls take more than
        `most_us` is not worth the other checks once it passed one call of the first: then that time."""
        loaded = self._modules[name]
        if np.isfinite(most_us):
            if (problem := self._fails(loaded, CHECKS[0], self._expected[0], 1)) is not None:
                return 0, f"on {CHECKS[0].kind.value} data: {problem}"
            us = loaded.last_us
            if us > most_us and (us := min(us, self._timed(loaded))) > most_us:
                return us
        for number, check in enumerate(CHECKS):
            if (problem := self._fails(loaded, check, self._expected[number])) is not None:
                return number, f"on {check.kind.value} data: {problem}"
        return None

    def evidence(self, number: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The arguments of a check, and the results that it should have."""
        return self.operands.call(CHECKS[number]), list(self._expected[number] or [])

    def sample(self, names: Sequence[str], turns: int, seconds: float = 10.0) -> dict[str, list[float]]:
        """Each module in turns, in random order; of each turn the time of its fastest calls, in us. After `seconds`
        there is no further turn."""
        found: dict[str, list[float]] = {name: [] for name in names}
        calls = {name: self._calls_of_a_turn(name) for name in names}
        begin, watch = time.monotonic(), OtherPrograms()
        for turn in range(turns):
            for name in random.sample(list(names), len(names)):
                times = sorted(self._timed(self._modules[name]) for _ in range(calls[name]))
                found[name].append(float(np.mean(times[: max(len(times) // 3, 1)])))
            if turn and time.monotonic() - begin > seconds:
                break
        self._others.append((watch.share(), time.monotonic() - begin))
        return found

    def others(self) -> float:
        """The part of the machine's CPUs that other programs had while modules were timed, since this was asked."""
        seen, self._others = self._others, []
        total = sum(seconds for _, seconds in seen)
        return sum(share * seconds for share, seconds in seen) / total if total else 0.0

    def calls(self, name: str, count: int) -> list[float]:
        """The times of so many calls of one module, in us."""
        return [self._timed(self._modules[name]) for _ in range(count)]

    # --- parts ---------------------------------------------------------------------------------------------------

    def _load(self, made: Made, device: Device) -> _Loaded:
        core = _core.Module.from_bytes(made.module, device=device)
        for ordinal, (name, _, _, _, external, _) in enumerate(core.parameters()):
            if external:
                core.bind_parameter(ordinal, self._weight(name, made))
        context = _core.Context(_core.Loaded(core, device), 0, True)
        functions = {name: _core.Function(context, name) for name, *_ in core.functions()}
        return _Loaded(context, functions, self.operands.name)

    def _weight(self, name: str, made: Made) -> np.ndarray:
        base, lanes = made.panels.get(name, (name, 0))
        key = base, lanes
        if key in self._packed:
            self._packed.move_to_end(key)
            return self._packed[key]
        binding, for_canvas = _binding_of(base)
        array = self.operands.parameter(binding, for_canvas)
        array = _aligned(pack(array, lanes) if lanes else array)
        self._packed[key] = array
        while sum(one.nbytes for one in self._packed.values()) > _PACKED_BYTES and len(self._packed) > 1:
            self._packed.popitem(last=False)
        return array

    def _placed(self, array: np.ndarray) -> Any:
        return _aligned(array) if self.device.host_visible else self.device.put(array)

    def _call(self, loaded: _Loaded, check: Check) -> tuple[list[np.ndarray], str | None]:
        """The results of a check's call, and what was written beside them."""
        if check not in self._calls:
            self._calls[check] = self.operands.call(check)
        results = loaded.functions[check.entry](*self._calls[check])
        loaded.note_time()
        results = list(results) if isinstance(results, tuple | list) else [results]
        if check.entry != CANVAS:
            return results, None
        cut = [
            gate.cut_canvas(np.asarray(one), tensor) for one, tensor in zip(results, self.operands.results, strict=True)
        ]
        return [one for one, _ in cut], next((problem for _, problem in cut if problem), None)

    def _fails(
        self, loaded: _Loaded, check: Check, expected: Sequence[np.ndarray] | None, repeats: int = _REPEATS
    ) -> str | None:
        assert expected is not None, "`learn` comes first"
        begin, first = time.perf_counter(), []
        for repeat in range(repeats):
            results, problem = self._call(loaded, check)
            if problem is not None:
                return problem
            if repeat and self.operands.works_in_order and not all(map(_same_bits, first, results)):
                return f"call {repeat + 1} on the same data gives other bits than the first: a race"
            if not repeat or not self.operands.works_in_order:
                for got, right, tensor in zip(results, expected, self.operands.results, strict=True):
                    said = gate.compare(np.asarray(got), right, tensor.dtype, self.operands.tolerance, check.kind)
                    if said is not None:
                        return said
            first = first or [np.array(one) for one in results]
            if time.perf_counter() - begin > _REPEATED_S:
                break
        return None

    def _calls_of_a_turn(self, name: str) -> int:
        us = self._timed(self._modules[name])
        # A few of what is short; of what takes longer than a turn one call is enough.
        return 1 if us > 3 * _TURN_US else max(2, min(_MOST_CALLS, int(_TURN_US / max(us, 1.0))))

    def _timed(self, loaded: _Loaded) -> float:
        copy = loaded.next_copy
        loaded.next_copy = (copy + 1) % self.operands.copies
        loaded.functions[entry_name(copy)].keep(*self._sets[copy])
        return loaded.note_time()


def _binding_of(parameter: str) -> tuple[int, bool]:
    """The operand that a parameter of the small program is, and whether for the canvas."""
    number = parameter[1:].partition(".")[0]
    binding = int(number)
    for_canvas = parameter == weight_name(binding, None)
    return binding, for_canvas


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(_bytes(one), _bytes(other))


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins where weights begin in a module."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    placed = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed
