"""The report from made-up events: numbers that can be computed by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from made import MACHINE, event

from eyas.explain.report import make_report

MB = 1 << 20
MANIFEST = {
    "provenance": {"target": "llvm-cpu:test"},
    "kernels": [
        {"name": "main_dispatch_0_matmul_8x8_f32", "flops": 1_000_000, "bytes": 30 * MB, "ops": ["matmul 8x8xf32"],
         "strategy": "rows", "knobs": "width=16", "rejected": ["contraction: no contiguous loop"]},
        {"name": "main_dispatch_1_softmax_8_f32", "flops": 0, "bytes": None, "strategy": "loops", "knobs": "",
         "rejected": ["loop nests: too odd"]},
        {"name": "dense", "flops": 8_000_000, "bytes": 4096, "strategy": "contraction", "knobs": "", "rejected": []},
        {"name": "zeros", "flops": 80_000_000, "bytes": 4096, "strategy": "contraction", "knobs": "", "rejected": []},
    ],
    "sources": {"main": [["fc", "relu"], ["softmax"], ["last"], ["none"]]},
}  # fmt: skip


@pytest.fixture
def report():
    weights = (0, 30 * MB)
    events = [
        event("main_dispatch_0_matmul_8x8_f32", 0, (0 + 1, 4001), (1, 4001), reads=(weights,), writes=((40 * MB, 64),)),
        event("main_dispatch_1_softmax_8_f32", 1, (4010, 4110), reads=((40 * MB, 64),), grid=(1, 1, 1)),
        event("copy", 1, (4110, 4120), reads=((40 * MB, 64),), writes=((41 * MB, 64),)),
        event("dense", 2, (4121, 4171), (4121, 4171), reads=((41 * MB, 4096),)),
        event("zeros", 3, (4172, 4222), (4172, 4222), reads=((41 * MB, 4096),)),
    ]
    return make_report(MANIFEST, "main", [events], [5000.0, 4300.0, 4400.0], MACHINE, module="m.eyas")


def test_speeds_and_limits(report):
    matmul, _, _, dense, zeros = report.dispatches
    assert matmul.us == 4000
    assert matmul.gflop_per_s == pytest.approx(0.25) and matmul.of_peak == pytest.approx(0.25 / 200)
    assert matmul.bytes == 30 * MB and matmul.gb_per_s == pytest.approx(30 * MB / 4e-3 / 1e9)
    # The 64 bytes that it writes were touched a moment before.
    assert matmul.bytes_from == {"L2": 64, "memory": 30 * MB - 64}
    assert matmul.memory_us == pytest.approx(30 * MB / 10e9 * 1e6, rel=1e-5) and matmul.bound == "memory"
    assert matmul.of_limit == pytest.approx(matmul.memory_us / 4000)
    assert dense.compute_us == 40 and dense.bound == "compute" and dense.of_limit == pytest.approx(0.8)
    assert zeros.of_peak == 8 and zeros.compute_us == 0 and "leaves out" in " ".join(zeros.why)
    assert [(kind, n) for kind, n, _, _ in report.kinds()] == [
        ("matmul", 1),
        ("softmax", 1),
        ("dense", 1),
        ("zeros", 1),
        ("copy", 1),
    ]
    assert report.kinds()[0][2:] == (4000, matmul.of_limit)
    assert report.fastest_us == 4300 and report.call_us == 4400 and report.dispatch_us == pytest.approx(4210)
    assert report.gap_us == pytest.approx(9 + 1 + 1)
    assert report.totals()["flops"] == 89_000_000


def test_names_sources_and_data(report):
    matmul, softmax, copy, dense, _ = report.dispatches
    assert matmul.sources == ["fc", "relu"] and matmul.short_name == "matmul_8x8_f32"
    assert softmax.producers == [0] and copy.producers == [0] and dense.producers == [2]
    assert (copy.kernel, copy.strategy, copy.sources, copy.flops) == ("copy", "", [], 0)


def test_why_not_better(report):
    matmul, softmax, _, dense, _ = (" / ".join(one.why) for one in report.dispatches)
    assert "bound by memory: 31.5 MB from memory at 10 GB/s need at least 3.15 ms, takes 4.00 ms" in matmul
    assert "not contraction: no contiguous loop" in matmul and "waiting" not in matmul
    assert "plain loops" in softmax and "not loop nests: too odd" in softmax
    assert "one workgroup, so one worker does all of it" in softmax and "started 9.0 us after" not in softmax
    assert dense.startswith("bound by arithmetic: 8 MFLOP need at least 40.0 us, takes 50.0 us")


def test_flops_follow_from_sizes_of_the_call():
    kernel = {"name": "k", "flops": None, "bytes": None, "flop_terms": [[10, 0, 1], [7]], "strategy": "rows"}
    run = [replace(event("k", 0, (1, 2)), constants=(3, 4)), replace(event("k", 1, (3, 4)), constants=(3,))]
    known, unknown = make_report({"kernels": [kernel]}, "main", [run], [], MACHINE).dispatches
    assert known.flops == 127 and unknown.flops is None


def test_sources_that_do_not_fit_are_left_out():
    events = [event("dense", 0, (1, 2))]
    report = make_report(MANIFEST, "main", [events], [], MACHINE)
    assert report.dispatches[0].sources == [] and report.call_us == 0
    empty = make_report({}, "main", [[]], [1.0], MACHINE)
    assert empty.dispatches == [] and empty.dispatch_us == 0 and empty.target == ""


def test_json_has_everything_and_can_be_read(report):
    data = json.loads(json.dumps(report.to_json()))
    assert data["format"] == 1 and data["machine"]["levels"][-1]["name"] == "memory"
    assert data["totals"]["dispatches"] == len(data["dispatches"]) == 5
    assert data["dispatches"][0]["why"] and data["dispatches"][0]["bytes_from"]["memory"] > 29 * MB
