"""A call as a trace for Perfetto (https://ui.perfetto.dev) or chrome://tracing: a track for each worker, one for waves.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format). Times
are microseconds from the first dispatch on. What a worker waits for others, inside a wave or between two, is an event
of the category `idle`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from eyas.explain.report import Dispatch, Report
from eyas.runtime import Event

_PROCESS = 1


def make_trace(report: Report, events: Sequence[Event]) -> dict[str, Any]:
    """The trace of one profiled call, whose commands are those of the report."""
    if [event.name for event in events] != [one.kernel for one in report.dispatches]:
        raise ValueError("the commands are not those of the report")
    workers = report.machine.workers
    start_ns = min((event.start_ns for event in events if event.end_ns), default=0)
    tracks = {worker: f"worker {worker}" for worker in range(workers)} | {workers: "waves"}
    out: list[dict[str, Any]] = [_meta("process_name", 0, f"{report.module} {report.entry}".strip())]
    for track, name in tracks.items():
        out += [
            _meta("thread_name", track, name),
            {**_meta("thread_sort_index", track, ""), "args": {"sort_index": track}},
        ]
    ready_ns = start_ns  # when the wave before ended
    for (submission, wave), group in groupby(
        zip(events, report.dispatches, strict=True), key=lambda pair: (pair[0].submission, pair[0].wave)
    ):
        members = [(event, dispatch) for event, dispatch in group if event.end_ns]
        if not members:
            continue
        end_ns = max(event.end_ns for event, _ in members)
        begin_ns = min(event.start_ns for event, _ in members)
        name = f"wave {wave}" if submission == 0 else f"wave {submission}.{wave}"
        out.append(_span(name, "wave", workers, begin_ns - start_ns, end_ns - begin_ns, {}))
        for worker in range(workers):
            out += _of_worker(members, worker, start_ns, ready_ns, end_ns)
        ready_ns = end_ns
    return {"displayTimeUnit": "ns", "traceEvents": out, "otherData": _about(report)}


def _of_worker(
    members: Sequence[tuple[Event, Dispatch]], worker: int, start_ns: int, ready_ns: int, end_ns: int
) -> Iterator[dict[str, Any]]:
    """A worker's part of a wave, and its waiting before, between and after."""
    shares = [(share, one) for event, one in members for share in event.shares if share.worker == worker]
    at_ns = ready_ns
    for share, one in sorted(shares, key=lambda pair: pair[0].start_ns):
        if share.start_ns > at_ns:
            yield _span("wait", "idle", worker, at_ns - start_ns, share.start_ns - at_ns, {})
        took_ns = share.end_ns - share.start_ns
        yield _span(
            one.short_name, "dispatch", worker, share.start_ns - start_ns, took_ns, _args(one, share.workgroups)
        )
        at_ns = share.end_ns
    if at_ns < end_ns:
        yield _span("wait", "idle", worker, at_ns - start_ns, end_ns - at_ns, {})


def _args(one: Dispatch, workgroups: int) -> dict[str, Any]:
    return {
        "dispatch": one.index,
        "kernel": one.kernel,
        "model": ", ".join(one.sources),
        "strategy": f"{one.strategy} {one.knobs}".strip(),
        "workgroups": workgroups,
        "flops": one.flops,
        "bytes": one.bytes,
        "of limit": f"{one.of_limit:.0%}",
    }


def _about(report: Report) -> dict[str, Any]:
    return {"target": report.target, "cpu": report.machine.cpu, "driver": report.driver}


def _meta(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _span(name: str, category: str, track: int, at_ns: int, took_ns: int, args: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": at_ns / 1e3, "dur": took_ns / 1e3}
    return {"ph": "X", "name": name, "cat": category, "pid": _PROCESS, "tid": track, **times, "args": args}
