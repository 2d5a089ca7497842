"""From a model to a tuning spec: graph-level choices, then each dispatch by itself, then winners in the model."""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch_mlir import ir as mlir

import eyas
from eyas.errors import UsageError
from eyas.passes.schedule.op_match import match_of
from eyas.pipelines import driver
from eyas.pipelines.request import Request, Services
from eyas.runtime import Device
from eyas.runtime.device import DEFAULT, as_device, place_of
from eyas.targets import CpuTarget, GpuTarget, Target
from eyas.tune.bench import Setting
from eyas.tune.compile import Compilers
from eyas.tune.database import Database, SessionInfo, new_session_id
from eyas.tune.dispatches import Dispatch, Model, open_model
from eyas.tune.order import make_order
from eyas.tune.runner import RunnerProcess
from eyas.tune.running import last_cache_bytes
from eyas.tune.search import Draw
from eyas.tune.session import Listener, Plan, Session, State, reproducers_beside
from eyas.tune.spec import Entry, Spec, name_of
from eyas.tune.timing import Noise, Ratio
from eyas.tune.whole import Choice, Kept, Whole

_GRAPH_SHARE, _WHOLE_SHARE = 0.1, 0.15
"""Of the time, for graph-level choices and for winners inside of the model."""


@dataclass(frozen=True)
class Wish:
    """What a tuning is asked for."""

    seconds: float = 600.0
    devices: tuple[str, ...] = ()
    threads: int | None = None
    order: str = "learned"
    seed: int = 0
    trials: int | None = None
    """Of each dispatch at most; as many as time allows by default."""
    dispatches: tuple[str, ...] = ()
    """Names, or parts of names; all by default."""
    cold: bool | None = None
    """Whether operands come from memory; by default they do if the model's weights are more than the caches hold."""
    graph: bool = True
    """Whether passes are tried without."""
    session: str = ""
    """Of one to go on with."""
    workers: int = 0
    """Processes that compile; one for each CPU by default."""

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Wish:
        known: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in data.items()}
        return Wish(**{name: one for name, one in known.items() if name in Wish.__dataclass_fields__})


@dataclass(frozen=True)
class Tuned:
    """What a tuning found: the spec, the model's gain, and each dispatch."""

    spec: Spec
    kept: Kept
    states: tuple[State, ...]
    session: str
    notes: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = field(default=())
    """Of each dispatch: name, share, trials, before, after, gain by itself and inside of the model."""


class _Notes(Listener):
    """Keeps notes, and hands everything on."""

    def __init__(self, listener: Listener) -> None:
        self.listener, self.notes = listener, []
        self.on_dispatch, self.on_trial = listener.on_dispatch, listener.on_trial

    def on_note(self, text: str) -> None:
        self.notes.append(text)
        self.listener.on_note(text)


def tune(
    request: Request,
    make_inputs: Callable[[Any], Sequence[Any]],
    wish: Wish,
    database: Database,
    listener: Listener | None = None,
    services: Services | None = None,
    description: str = "",
    draw: Draw | None = None,
) -> Tuned:
    """Tunes a model for its one target. `make_inputs` gives the arrays of a call for a signature; `draw` what points
    are drawn with, by default the solver."""
    if draw is None:
        from eyas.tune.solver import points as draw
    heard = _Notes(listener or Listener())
    begin = time.monotonic()
    target = driver.only_target(request)
    devices = device_names(target, wish.devices)
    model = open_model(request, make_inputs, devices[0], wish.threads, services)
    for name, reason in model.skipped.items():
        heard.on_note(f"{name} cannot run by itself and is left as it is: {reason}")
    whole = Whole(request, model.inputs, devices[0], wish.threads, services, heard.on_note)
    base, dropped = whole.base, []
    session = wish.session or new_session_id()
    database.begin(SessionInfo(session, description, str(target), machine_of(model), wish.to_json()))
    try:
        if wish.graph:
            base, dropped = whole.graph_choices(begin + _GRAPH_SHARE * wish.seconds)
    except KeyboardInterrupt:
        heard.on_note("interrupted: graph-level choices are as they were")
    if base != whole.base:
        model = open_model(replace(request, disable=base.disable), make_inputs, devices[0], wish.threads, services)
    states = _run(model, wish, devices, database, session, heard, base, begin, draw)
    entries = [entry_of(one) for one in sorted(states, key=_saved, reverse=True) if one.winner is not None]
    try:
        kept = whole.combine(base, entries, begin + wish.seconds)
    except KeyboardInterrupt:
        heard.on_note("interrupted: winners were not compared inside of the model; the spec has all of them")
        kept = Kept(replace(base, entries=tuple(entries)), Ratio(1.0, 1.0, 1.0), Noise(0.0))
    kept = replace(kept, dropped=(*dropped, *kept.dropped))
    spec = Spec(kept.choice.entries, header_of(model, kept, whole.base)).renamed()
    rows = tuple(_row(one, kept) for one in states)
    return Tuned(spec, kept, tuple(states), session, tuple(heard.notes), rows)


def _run(
    model: Model,
    wish: Wish,
    devices: Sequence[str],
    database: Database,
    session: str,
    listener: Listener,
    base: Choice,
    begin: float,
    draw: Draw,
) -> list[State]:
    left = wish.seconds * (1 - _WHOLE_SHARE) - (time.monotonic() - begin)
    setting = Setting(
        cold=is_cold(model) if wish.cold is None else wish.cold,
        disabled=base.disable,
        reproducers=reproducers_beside(database.path),
    )
    plan = Plan(left, wish.seed, wish.trials, setting=setting)
    target = driver.only_target(model.request)
    order = make_order(wish.order, database, wish.seed, session)
    with ExitStack() as stack:
        compilers = stack.enter_context(Compilers(wish.workers))
        runners = [
            stack.enter_context(RunnerProcess(name, wish.threads, device_label(name, wish.threads))) for name in devices
        ]
        running = Session(
            session, chosen(model, wish.dispatches), plan, database, compilers, runners, order, draw, listener,
            potential_of(model, target),
        )  # fmt: skip
        return running.run()


def chosen(model: Model, names: Sequence[str]) -> list[Dispatch]:
    """The dispatches that were asked for, all by default."""
    return list(dict.fromkeys(model.find(name) for name in names)) if names else list(model.dispatches)


def device_names(target: Target, names: Sequence[str]) -> tuple[str, ...]:
    """The devices that candidates run on, all of the target's kind."""
    is_gpu = isinstance(target, GpuTarget)
    if not target.runs_here:
        raise UsageError(f"{target} does not run on this machine, so nothing can be timed; tune on one that it runs on")
    found = tuple(names) or (("vulkan" if is_gpu else DEFAULT),)
    for name in found:
        driver_name, _ = place_of(name)
        if is_gpu != (driver_name == "vulkan"):
            raise UsageError(f"--device {name}: what is compiled for {target} does not run there; see `eyas devices`")
    return found


def device_label(name: str, threads: int | None) -> str:
    """A device as the database calls it: the same on machines of the same kind."""
    device = as_device(name, threads)
    return f"{device.name}, {device.description}, {device.threads} threads"


def is_cold(model: Model) -> bool:
    """Whether weights come from memory in each call: there are more of them than caches hold."""
    weights = {key: one.nbytes for dispatch in model.dispatches for key, one in dispatch.weights.items()}
    return sum(weights.values()) > last_cache_bytes()


def potential_of(model: Model, target: Target) -> Callable[[Dispatch], float]:
    """What may be gained of a dispatch: its share of the time, less what the device needs at least. What the device
    can do is measured on CPUs; of others it is what the best dispatch does."""
    flops, bytes_ = 0.0, 0.0
    if isinstance(target, CpuTarget) and model.module.device.name != "vulkan":
        device: Device = model.module.device
        flops, bytes_ = device.measure_fma(20), device.measure_read(64 << 20, True, 20)
    seconds = {one.name: max(one.us / max(one.calls, 1), 0.1) / 1e6 for one in model.dispatches}
    for one in model.dispatches:
        flops = max(flops, (one.flops or 0) / seconds[one.name])
        bytes_ = max(bytes_, one.bytes / seconds[one.name])

    def potential(one: Dispatch) -> float:
        least = max((one.flops or 0) / max(flops, 1.0), one.bytes / max(bytes_, 1.0))
        return max(one.share, 1e-4) * max(1 - least / seconds[one.name], 0.05) if one.name in seconds else one.share

    return potential


def entry_of(state: State) -> Entry:
    """A winner as an entry of a spec."""
    assert state.winner is not None and state.winner.ratio is not None
    dispatch = state.dispatch
    with dispatch.function.operation.context, mlir.Location.unknown():
        match = match_of(dispatch.function, dispatch.target)
    note = f"{state.winner.ratio[1]:.2f} x by itself, {dispatch.share:.1%} of the model's time"
    schedule = state.winner.candidate.schedule.replace(" : i64", "")
    return Entry(name_of(match), match, schedule, note)


def header_of(model: Model, kept: Kept, asked: Choice) -> dict[str, str]:
    """Where a spec comes from; `disable` are passes that the model is better without, beside those that it was asked
    to do without."""
    added = [name for name in kept.choice.disable if name not in asked.disable]
    return {
        "compiler": f"eyas {eyas.__version__}",
        "target": str(driver.only_target(model.request)),
        "machine": f"{model.module.device.description}, {model.module.device.threads} threads",
        "date": datetime.date.today().isoformat(),
        "gain": f"{kept.ratio.estimate:.3f} x the whole model",
        **({"disable": ",".join(added)} if added else {}),
    }


def machine_of(model: Model) -> dict[str, Any]:
    device = model.module.device
    return {"device": device.name, "name": device.description, "threads": device.threads, "system": platform.platform()}


def _saved(state: State) -> float:
    """Microseconds of a call of the model that a winner would save."""
    ratio = state.winner.ratio[1] if state.winner is not None and state.winner.ratio is not None else 1.0
    return state.dispatch.us * (1 - 1 / ratio)


def _row(state: State, kept: Kept) -> dict[str, Any]:
    one, winner = state.dispatch, state.winner
    before, after = kept.kernels.get(one.name, (None, None))
    alone = winner.ratio[1] if winner is not None and winner.ratio is not None else None
    best = state.best
    return {
        "dispatch": one.name,
        "key": one.key,
        "share": one.share,
        "calls": one.calls,
        "trials": len(state.tried),
        "us": state.baseline_us or None,
        "best": best.ratio[1] if best is not None and best.ratio is not None else None,
        "gain": alone,
        "noise": state.noise.level if state.noise is not None else None,
        "in_model_before_us": before,
        "in_model_after_us": after,
        "schedule": winner.candidate.schedule if winner is not None else None,
        "wrong": sum(trial.status.value == "wrong" for trial in state.tried),
        "crashed": sum(trial.status.value in ("crashed", "timeout") for trial in state.tried),
    }


def write_spec(path: Path, spec: Spec) -> None:
    """Writes a spec so that nobody ever reads a part of one."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(spec.text())
    part.replace(path)
