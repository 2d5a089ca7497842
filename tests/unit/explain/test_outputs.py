"""The trace and the page: well-formed, complete, and free of anything from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as xml
from dataclasses import replace

import pytest
from made import MACHINE, event

from eyas.explain.page import make_page
from eyas.explain.report import make_report
from eyas.explain.trace import make_trace
from eyas.pages.colors import heat

EVIL = '</script><b>"&'
MANIFEST = {
    "kernels": [{"name": name, "flops": 10**6, "bytes": 4096, "strategy": "rows", "knobs": ""} for name in ("a", "b")],
    "sources": {"main": [["first"], [EVIL], ["last"]]},
}


@pytest.fixture
def events():
    return [
        event("a", 0, (10, 20), (12, 16), writes=((0, 4096),)),
        event("b", 1, (23, 33), reads=((0, 4096),), writes=((4096, 4096),)),
        event("a", 2, (34, 40), (34, 41), reads=((0, 8192),)),
    ]


@pytest.fixture
def report(events):
    return make_report(MANIFEST, "main", [events], [45.0], MACHINE, module="model <1>.eyas")


def test_every_moment_of_every_worker_is_in_the_trace(report, events):
    trace = make_trace(report, events)
    spans = [one for one in trace["traceEvents"] if one["ph"] == "X"]
    for worker in range(2):
        mine = sorted((one["ts"], one["ts"] + one["dur"]) for one in spans if one["tid"] == worker)
        assert mine[0][0] == 0 and mine[-1][1] == 31
        assert all(a[1] == b[0] for a, b in zip(mine, mine[1:], strict=False)), "neither gaps nor overlaps"
    busy = [one for one in spans if one["cat"] == "dispatch"]
    assert sum(one["dur"] for one in busy) == 10 + 4 + 10 + 6 + 7
    assert [one["args"]["dispatch"] for one in busy if one["tid"] == 0] == [0, 1, 2]
    assert sum(one["dur"] for one in spans if one["cat"] == "idle") == 2 * 31 - 37
    waves = [one["name"] for one in spans if one["cat"] == "wave"]
    assert waves == ["wave 0", "wave 1", "wave 2"]
    names = {one["args"]["name"] for one in trace["traceEvents"] if one["name"] == "thread_name"}
    assert names == {"worker 0", "worker 1", "waves"}


def test_a_trace_of_other_commands_is_refused(report, events):
    with pytest.raises(ValueError, match="not those of the report"):
        make_trace(report, events[:2])


def test_the_page_needs_nothing_else(report, events):
    page = make_page(report, events)
    assert not re.search(r"""(?:src|href)=|url\(|@import|https?://|fetch\(|XMLHttp|import\(""", page)
    assert "{{" not in page and EVIL not in page and page.count("</script>") == 2
    assert "model &lt;1&gt;.eyas main" in page


def test_the_drawings_show_every_dispatch(report, events):
    page = make_page(report, events)
    drawings = {}
    for name in ("graph", "roofline", "timeline"):
        match = re.search(rf'<svg id="{name}".*?</svg>', page, re.DOTALL)
        assert match is not None
        drawings[name] = xml.fromstring(match[0])
    boxes = [one.get("data-dispatch") for one in drawings["graph"].iter("g")]
    assert boxes == ["0", "1", "2"]
    edges = {(one.get("data-from"), one.get("data-to")) for one in drawings["graph"].iter("path")}
    assert edges == {("0", "1"), ("0", "2"), ("1", "2")}
    dots = list(drawings["roofline"].iter("circle"))
    assert sorted(one.get("data-dispatch", "") for one in dots) == ["0", "1", "2"]
    speeds = {one.get("data-dispatch"): float(one.get("cy", 0)) for one in dots}
    assert speeds["2"] < speeds["0"] == speeds["1"], "the faster is higher"
    pieces = [one for one in drawings["timeline"].iter("rect") if one.get("class") == "piece"]
    assert len(pieces) == 5


def test_a_call_without_dispatches_has_a_page():
    page = make_page(make_report({}, "main", [[]], [1.0], MACHINE), [])
    assert page.count("<svg") == 3


def test_dispatches_without_arithmetic_are_not_on_the_roofline(report, events):
    silent = replace(report, dispatches=[replace(one, flops=None, gflop_per_s=None) for one in report.dispatches])
    assert "<circle" not in make_page(silent, events)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_script_runs(report, events, tmp_path):
    page = make_page(report, events)
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    (tmp_path / "data.json").write_text(data[1])
    (tmp_path / "page.js").write_text(NODE.replace("DATA", str(tmp_path / "data.json")) + script + NODE_END)
    done = subprocess.run(["node", tmp_path / "page.js"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    # The slowest is chosen and first in the table; its sources are text, whatever they are.
    assert first.startswith("details: #0 a") or first.startswith("details: #1 b")
    assert len(rows) == 3 and EVIL in done.stdout


# As much of a browser as the script needs.
NODE = """
const element = tag => ({ tag, children: [], dataset: {}, className: "", textContent: "",
  append(...more) { this.children.push(...more); }, replaceChildren(...more) { this.children = more; },
  classList: { add() {}, remove() {}, toggle() {} }, addEventListener() {} });
const known = { data: { textContent: require("fs").readFileSync("DATA", "utf8") }, search: element("input"),
  details: element("aside"), thead: element("thead"), tbody: element("tbody") };
const document = { createElement: element, getElementById: id => known[id], querySelector: name => known[name],
  querySelectorAll: () => [], addEventListener() {} };
"""
NODE_END = """
const flat = one => [one.textContent, ...one.children.map(flat)].join(" ").replace(/\\s+/g, " ").trim();
console.log("details: " + flat(known.details));
for (const row of known.tbody.children) console.log(flat(row));
"""


def test_heat_goes_from_cold_to_hot():
    assert heat(0)[0] == "#e2e8f0" and heat(1)[0] == "#c81e1e" == heat(7)[0] and heat(-1) == heat(0)
    assert heat(0)[1] == "#111" and heat(1)[1] == "#fff"
    assert len({heat(part / 20)[0] for part in range(21)}) == 21
