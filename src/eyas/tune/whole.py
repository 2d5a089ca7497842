"""Winners inside of the model: what is faster by itself may not be there, since caches, layouts and neighbours differ.

The model as it is and the model with choices run in turns, each loaded afresh several times, and only what is faster
beyond noise is kept. Choices of the graph (passes that can be left out) are tried first, because dispatches depend on
them; then all winners of dispatches together, then without those that lose inside of the model, and, where that gains
nothing, one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eyas.errors import EyasError
from eyas.pipelines import driver
from eyas.pipelines.request import Request, Services
from eyas.runtime import Module
from eyas.specs import SpecSource
from eyas.tune.spec import Entry, Spec
from eyas.tune.timing import Confirmed, Noise, Ratio, confirm, noise_of, ratio_of

GRAPH_CHOICES = (
    "winograd",
    "fuse-attention",
    "convert-conv-layout",
    "propagate-transposes",
    "propagate-reshapes",
    "split-reductions",
    "fuse-gathers",
    "form-dispatches",
    "pack-weights",
)
"""Passes that decide what dispatches there are, and how data lies between them; each may be better left out."""
_TURNS, _TURN_S, _MOST_CALLS = 8, 0.02, 20
_RTOL = 2e-3
"""Of the largest element: other fusions round in other places, and Winograd's tiles err by a few units more."""


@dataclass(frozen=True)
class Choice:
    """How a model is compiled: passes left out, and entries of a spec."""

    disable: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()

    @property
    def spec(self) -> Spec:
        return Spec(self.entries).renamed()


@dataclass(frozen=True)
class Kept:
    """What was found in the model: the choice, what it gains, and why other choices were left out."""

    choice: Choice
    ratio: Ratio
    noise: Noise
    dropped: tuple[str, ...] = ()
    before_us: float = 0.0
    after_us: float = 0.0
    kernels: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Microseconds of each kernel before and after, where both have it."""


class Whole:
    """A model that is compiled with one choice or another, and compared."""

    def __init__(
        self,
        request: Request,
        inputs: Sequence[Any],
        device: Any = None,
        threads: int | None = None,
        services: Services | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._request, self._inputs, self._services, self._tell = request, tuple(inputs), services, tell
        self._device, self._threads = device, threads
        self._results: dict[Choice, driver.Result] = {}
        self._noise: Noise | None = None
        self.base = Choice(tuple(request.disable))

    @property
    def noise(self) -> Noise:
        """What the model differs by from itself, loaded twice."""
        if self._noise is None:
            self._noise = noise_of(lambda: self._compare(self.base, self.base), 4)
        return self._noise

    def graph_choices(self, deadline: float, names: Sequence[str] = GRAPH_CHOICES) -> tuple[Choice, list[str]]:
        """Passes that the model is better without, one after the other; and what was tried and not kept."""
        best, dropped = self.base, []
        for name in names:
            if time.monotonic() > deadline:
                dropped.append(f"{name}: not tried, the time was over")
                continue
            tried = replace(best, disable=(*best.disable, name))
            if (reason := self._why_not(best, tried)) is not None:
                dropped.append(f"without {name}: {reason}")
                continue
            best = tried
            self._tell(f"the model is faster without {name}")
        return best, dropped

    def combine(self, base: Choice, entries: Sequence[Entry], deadline: float) -> Kept:
        """The entries that make the model faster than `base`, which the model was tuned with."""
        dropped: list[str] = []
        best = base
        if entries:
            everything = replace(base, entries=tuple(entries))
            kept = self._without_losers(base, everything, dropped)
            if (reason := self._why_not(base, kept)) is None:
                best = kept
            else:
                dropped.append(f"all {len(kept.entries)} entries together: {reason}")
                best = self._one_by_one(base, entries, deadline, dropped)
        if best == self.base:
            return Kept(best, Ratio(1.0, 1.0, 1.0), self.noise, tuple(dropped))
        confirmed = self._confirm(self.base, best)
        if not confirmed.is_gain:
            dropped.append(f"altogether {confirmed.ratio.estimate:.3f} x, which is not beyond noise")
            return Kept(self.base, Ratio(1.0, 1.0, 1.0), self.noise, tuple(dropped))
        kernels, before, after = self.kernels(self.base, best)
        return Kept(best, confirmed.ratio, self.noise, tuple(dropped), before, after, kernels)

    def kernels(self, one: Choice, other: Choice) -> tuple[dict[str, tuple[float, float]], float, float]:
        """The time of each kernel in both, and of a call of each, in us."""
        modules = self._load(one), self._load(other)
        times: list[dict[str, list[float]]] = [{}, {}]
        spans: list[list[float]] = [[], []]
        for _ in range(5):
            for number, module in enumerate(modules):
                for run in module.profile(*self._inputs, runs=3, entry=_entry(module)):
                    total: dict[str, float] = {}
                    for event in run:
                        total[event.name] = total.get(event.name, 0.0) + (event.duration_us if event.end_ns else 0.0)
                    for name, us in total.items():
                        times[number].setdefault(name, []).append(us)
                    spans[number].append(sum(total.values()))
        both = {name: (_low(times[0][name]), _low(times[1][name])) for name in times[0] if name in times[1]}
        return both, _low(spans[0]), _low(spans[1])

    # --- parts ---------------------------------------------------------------------------------------------------

    def _without_losers(self, base: Choice, tried: Choice, dropped: list[str]) -> Choice:
        """Less the entries whose kernels are slower inside of the model."""
        try:
            kernels, _, _ = self.kernels(base, tried)
        except EyasError as error:
            dropped.append(f"all entries together: {error}")
            return tried
        used = self._used(tried)
        losers = set()
        for entry, names in used.items():
            before = sum(kernels[name][0] for name in names if name in kernels)
            after = sum(kernels[name][1] for name in names if name in kernels)
            if names and after > before * (1 + self.noise.level):
                losers.add(entry)
                dropped.append(f"@{entry}: {before:.1f} us become {after:.1f} us inside of the model")
        return replace(tried, entries=tuple(one for one in tried.spec.entries if one.name not in losers))

    def _used(self, choice: Choice) -> dict[str, list[str]]:
        """The kernels that each entry decides."""
        manifest = self._result(choice).manifest
        return {
            name: list(kernels)
            for spec in manifest["provenance"].get("tuning", ())
            if not spec.get("default")
            for name, kernels in spec["used"].items()
        }

    def _one_by_one(self, base: Choice, entries: Sequence[Entry], deadline: float, dropped: list[str]) -> Choice:
        best = base
        for entry in entries:
            if time.monotonic() > deadline:
                dropped.append(f"@{entry.name}: not tried by itself, the time was over")
                continue
            tried = replace(best, entries=(*best.entries, entry))
            if (reason := self._why_not(best, tried)) is None:
                best = tried
            else:
                dropped.append(f"@{entry.name}: {reason}")
        return best

    def _why_not(self, best: Choice, tried: Choice) -> str | None:
        """Why the choice is not better than the best one, or None where it is."""
        try:
            if self._code(best) == self._code(tried):
                return "it changes nothing"
            if (problem := self._differs(tried)) is not None:
                return problem
            confirmed = self._confirm(best, tried)
        except EyasError as error:
            return f"{type(error).__name__}: {error}"
        if confirmed.is_gain:
            return None
        return f"{confirmed.ratio.estimate:.3f} x inside of the model, which is not beyond noise"

    def _confirm(self, one: Choice, other: Choice) -> Confirmed:
        return confirm(lambda: self._compare(one, other), self.noise, 5)

    def _compare(self, one: Choice, other: Choice) -> Ratio:
        modules = self._load(one), self._load(other)
        counts = [max(1, min(_MOST_CALLS, int(_TURN_S / max(self._call_s(module), 1e-6)))) for module in modules]
        times: list[list[float]] = [[], []]
        for turn in range(_TURNS):
            for number in (0, 1) if turn % 2 == 0 else (1, 0):
                calls = sorted(self._call_s(modules[number]) for _ in range(counts[number] + 1))
                times[number].append(float(np.mean(calls[: max(len(calls) // 3, 1)])))
        return ratio_of(*times)

    def _call_s(self, module: Module) -> float:
        call = module.functions[_entry(module)].call
        begin = time.perf_counter()
        call(*self._inputs)
        return time.perf_counter() - begin

    def _differs(self, tried: Choice) -> str | None:
        """How the numbers of the model change, where they do beyond rounding."""
        expected, got = (self._call(self._load(one)) for one in (self.base, tried))
        for number, (right, ours) in enumerate(zip(expected, got, strict=True)):
            if right.dtype.kind not in "fc" and right.dtype.name != "bfloat16":
                if not np.array_equal(right, ours):
                    return f"result {number} is not what it was"
                continue
            right, ours = right.astype(np.complex128), ours.astype(np.complex128)
            finite = np.isfinite(right)
            if not np.array_equal(finite, np.isfinite(ours)):
                return f"result {number} has other elements that are no numbers"
            scale = np.abs(right[finite]).max(initial=0.0)
            worst = np.abs(right - ours)[finite].max(initial=0.0)
            if worst > _RTOL * scale:
                return f"result {number} is off by {worst:.3g}, where its largest element is {scale:.3g}"
        return None

    def _call(self, module: Module) -> list[np.ndarray]:
        results = module.functions[_entry(module)].call(*self._inputs)
        results = list(results) if isinstance(results, tuple | list) else [results]
        return [np.asarray(one) for one in results]

    def _code(self, choice: Choice) -> Any:
        """What tells the code of two choices apart."""
        program = self._result(choice).program
        if program is None:
            return choice
        variant = program.variants[0]
        return dict(variant.executables), variant.program

    def _result(self, choice: Choice) -> driver.Result:
        if choice not in self._results:
            specs = (SpecSource("<tuned>", choice.spec.text()),) if choice.entries else ()
            request = replace(self._request, disable=choice.disable, tuning_specs=(*specs, *self._request.tuning_specs))
            self._results[choice] = driver.compile(request, replace(self._services or Services(), watchers=()))
        return self._results[choice]

    def _load(self, choice: Choice) -> Module:
        return self._result(choice).load(self._device, self._threads)


def _entry(module: Module) -> str:
    return "main" if "main" in module.functions else next(iter(module.functions))


def _low(values: Sequence[float]) -> float:
    """The lower quartile: what is above tells of other programs."""
    return float(np.percentile(values, 25))
