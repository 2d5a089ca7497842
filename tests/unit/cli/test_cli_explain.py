"""`eyas explain` in all its forms."""

from __future__ import annotations

import json

import pytest


def test_the_table_has_every_dispatch_totals_and_reasons(eyas, module):
    done = eyas("explain", module, "--runs", 3, "--threads", 1)
    assert done.code == 0 and done.err == ""
    assert "GFLOP/s of multiply-adds; reads in GB/s: L1" in done.out and "memory" in done.out
    header, *rows = done.out.split("\n\n")[1].splitlines()
    assert header.split()[:9] == ["#", "us", "share", "GFLOP/s", "peak", "GB/s", "mem", "limit", "idle"]
    assert len(rows) == 2 and any("matmul_4x3" in row for row in rows)
    times = [float(row.split()[1]) for row in rows]
    assert times == sorted(times, reverse=True)
    assert "why not better" in done.out and "at this machine's limits" in done.out
    ordered = eyas("explain", module, "--runs", 3, "--sort", "order").out.split("\n\n")[1].splitlines()[1:]
    assert [row.split()[0] for row in ordered] == ["0", "1"]
    top = eyas("explain", module, "--runs", 3, "--top", 1).out
    assert "... 1 more dispatches" in top


def test_json_page_and_trace(eyas, module, tmp_path):
    files = [tmp_path / name for name in ("r.json", "p.html", "t.json")]
    done = eyas("explain", module, "--runs", 3, "--json", files[0], "--html", files[1], "--trace", files[2])
    assert done.code == 0 and all(f"wrote {file}" in done.err for file in files)
    report = json.loads(files[0].read_text())
    assert report["module"] == str(module) and report["entry"] == "main" and len(report["dispatches"]) == 2
    product = next(one for one in report["dispatches"] if one["flops"])
    assert product["flops"] == 192 and product["bytes"] == 4 * (32 + 24 + 12) and product["ops"] == ["matmul 4x3xf32"]
    assert sum(one["share"] for one in report["dispatches"]) == pytest.approx(1, abs=1e-3)
    assert files[1].read_text().startswith("<!doctype html>")
    assert {one["ph"] for one in json.loads(files[2].read_text())["traceEvents"]} == {"M", "X"}


def test_against_an_earlier_report(eyas, module, tmp_path):
    file = tmp_path / "before.json"
    assert eyas("explain", module, "--runs", 3, "--json", file).code == 0
    done = eyas("explain", module, "--runs", 3, "--against", file)
    assert done.code == 0 and f"against {file}: a call" in done.out and "x as fast" in done.out
    assert "before  now  difference  nodes" in " ".join(done.out.split()).replace(" ", "  ")
    assert eyas("explain", module, "--against", tmp_path / "none.json").code == 2


def test_json_alone_on_stdout_and_models_are_compiled(eyas, model):
    done = eyas("explain", model, "--runs", 2, "--json", "-", "--device", "local-sync")
    assert done.code == 0 and done.err == "" and done.json["driver"] == "local-sync"
    assert done.json["machine"]["workers"] == 1


def test_mistakes_are_told_before_anything_is_measured(eyas, module, tmp_path):
    same = eyas("explain", module, "--json", tmp_path / "x", "--html", tmp_path / "x")
    assert same.code == 2 and "files of their own" in same.err
    nowhere = eyas("explain", module, "--trace", tmp_path / "no" / "t.json")
    assert nowhere.code == 2 and "no such folder" in nowhere.err
    assert "only --json" in eyas("explain", module, "--html", "-").err
    assert eyas("explain", tmp_path / "none.eyas").code == 1
    assert "the module has main" in eyas("explain", module, "--entry", "other").err
    folder = eyas("explain", module, "--runs", 1, "--json", tmp_path)
    assert folder.code == 1 and "cannot write" in folder.err
    assert not list(tmp_path.glob("cache/machines/*.part"))


def test_a_model_is_compiled_for_the_target(eyas, model, module):
    done = eyas("explain", model, "--runs", 2, "--json", "-", "--target", "vmvx", "--device", "local-sync")
    assert done.code == 0 and done.json["target"] == "vmvx" and done.json["driver"] == "local-sync"
    assert {one["strategy"] for one in done.json["dispatches"]} <= {"contraction", "rows"}
    done = eyas("explain", module, "--target", "vmvx")
    assert done.code == 2 and "is compiled already" in done.err
