"""The report: what it counts as a gain, and a page that is whole, safe and needs nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as xml
from dataclasses import replace

import pytest
from tests.unit.tune.simulated import TARGET, candidates_of, cost_us, product_facts, trial_of

from eyas.errors import UsageError
from eyas.tune.database import Database, SessionInfo
from eyas.tune.report import make_page, make_report, write_report
from eyas.tune.trials import Status

EVIL = '</script><b>"&'


@pytest.fixture
def database():
    with Database(":memory:", "compiler-1") as made:
        made.begin(SessionInfo("s", f"model {EVIL}.onnx", TARGET, {"cpu": "made up", "cores": 2}))
        for number, shape in enumerate([(96, 128, 64), (49, 160, 320)]):
            facts = product_facts(*shape)
            every = candidates_of(f"d{number}", facts)
            made.describe(f"d{number}", TARGET, f"main_dispatch_{number}_matmul_{EVIL}", facts.to_json())
            for index, one in enumerate(every[:: len(every) // 30]):
                # The second dispatch has an ideal default: nothing can be faster.
                trial = trial_of(one, facts, cost_us(every[40], facts) if number == 0 else 0.1)
                if index % 9 == 8:
                    trial = replace(trial, status=Status.WRONG, us=None, ratio=None, reason=EVIL, reproducer="/r")
                made.add("s", trial)
        yield made


def test_only_what_is_surely_faster_is_a_gain(database):
    first, second = make_report(database).tuned
    times = [one.us for one in first.trials if one.us]
    assert first.dispatch == "d0" and first.best is not None and first.best.us == min(times)
    assert first.gain == pytest.approx(first.before_us / min(times)) and first.gain > 1.2
    assert second.best is None and second.gain == 1.0 and second.after_us == second.before_us
    # The same with an interval that reaches below 1.
    with Database(":memory:", "c") as other:
        other.begin(SessionInfo("t"))
        for one in first.trials:
            other.add("t", replace(one, ratio=(0.99, one.ratio[1], 9.0)) if one.ratio else one)
        assert make_report(other).tuned[0].best is None


def test_sessions_are_chosen_by_name_and_the_last_by_default(database):
    database.begin(SessionInfo("later", "b.onnx"))
    one = candidates_of("d9", product_facts(8, 8, 8))[0]
    database.add("later", trial_of(one, product_facts(8, 8, 8), 5.0))
    assert [tuned.dispatch for tuned in make_report(database).tuned] == ["d9"]
    assert [tuned.dispatch for tuned in make_report(database, ["s"]).tuned] == ["d0", "d1"]
    with pytest.raises(UsageError, match="no session 'x'; it has: s, later"):
        make_report(database, ["x"])
    with pytest.raises(UsageError, match="no session yet"):
        make_report(Database(":memory:", "c"))


def test_a_session_shows_what_it_took_over(database):
    """Of a run that went on where another was killed, trials of both are there; of another compiler, none."""
    database.begin(SessionInfo("again", "a.onnx"))
    facts = product_facts(96, 128, 64)
    database.add("again", trial_of(candidates_of("d0", facts)[3], facts, 5.0))
    count = len(database.trials(dispatch="d0"))
    assert len(make_report(database).tuned[0].trials) == count > 2
    database.compiler = "compiler-2"
    database.begin(SessionInfo("newer", "a.onnx"))
    database.add("newer", trial_of(candidates_of("d0", facts)[3], facts, 5.0))
    assert len(make_report(database).tuned[0].trials) == 1


def test_importance_finds_the_knob_that_matters(database):
    [found] = make_report(database, ["s"]).importance
    assert found.strategy == "contraction" and found.trials > 40 and found.explained > 0.3
    by_name = {one.name: one for one in found.knobs}
    assert {"rows", "vectors"} <= set(by_name)
    assert all(0 < mean <= best <= 1.0001 for knob in found.knobs for _, mean, best, _ in knob.values)


def test_the_page_needs_nothing_else(database, tmp_path):
    page = make_page(make_report(database))
    assert not re.search(r"""(?:src|href)=|url\(|@import|https?://|fetch\(|XMLHttp|import\(""", page)
    assert "{{" not in page and EVIL not in page and page.count("</script>") == 2
    assert "compiler-1" in page and "made up" in page and "1 of 2 dispatches became faster" in page
    write_report(database, tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == page
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(database, tmp_path / "no" / "r.html")


def test_drawings_are_whole_and_show_every_trial(database):
    report = make_report(database)
    drawings = [xml.fromstring(one) for one in re.findall(r"<svg.*?</svg>", make_page(report), re.DOTALL)]
    convergence = [one for one in drawings if one.get("class") == "convergence"]
    assert len(convergence) == 2
    for drawn, tuned in zip(convergence, report.tuned, strict=True):
        timed = sum(one.status.has_time for one in tuned.trials)
        assert sum("trial" in (one.get("class") or "") for one in drawn.iter("circle")) == timed
        assert sum("fail wrong" in (one.get("class") or "") for one in drawn.iter("path")) == len(tuned.trials) - timed
    rows = next(one for one in drawings if one.get("id") == "before-after")
    assert [one.get("data-dispatch") for one in rows.iter("g")] == ["0", "1"]
    data = json.loads(re.search(r'id="data">(.*?)</script>', make_page(report), re.DOTALL)[1])
    assert len(data["trials"]) == sum(len(one.trials) for one in report.tuned)
    assert data["dispatches"][0]["best"] == report.tuned[0].trials.index(report.tuned[0].best)


def test_nothing_but_failures_is_a_report_too():
    with Database(":memory:", "c") as database:
        database.begin(SessionInfo("s"))
        one = candidates_of("d", product_facts(8, 8, 8))[0]
        trial = trial_of(one, product_facts(8, 8, 8), 1.0)
        database.add("s", replace(trial, status=Status.CRASHED, us=None, baseline_us=None, ratio=None))
        assert "no schedule of 1 dispatches is faster" in make_page(make_report(database))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_script_fills_the_table(database, tmp_path):
    page = make_page(make_report(database))
    (tmp_path / "data.json").write_text(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    (tmp_path / "page.js").write_text(NODE.replace("DATA", str(tmp_path / "data.json")) + script + NODE_END)
    done = subprocess.run(["node", tmp_path / "page.js"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    everything, wrong, opened = json.loads(done.stdout)
    trials = [one for tuned in make_report(database).tuned for one in tuned.trials]
    assert len(everything) == len(trials)
    assert len(wrong) == sum(one.status is Status.WRONG for one in trials) and all("wrong" in row for row in wrong)
    assert len(opened) == len(wrong) + 1 and EVIL in opened[1] and "#codegen.strategy" in opened[1]


# As much of a browser as the script needs.
NODE = """
const element = tag => ({ tag, children: [], dataset: {}, className: "", textContent: "", value: "",
  append(...more) { this.children.push(...more); }, replaceChildren(...more) { this.children = more; },
  classList: { add() {}, remove() {}, toggle() {} }, addEventListener() {} });
const known = { data: { textContent: require("fs").readFileSync("DATA", "utf8") } };
for (const name of ["search", "dispatch", "strategy", "status", "count", "all", "thead", "tbody"])
  known[name] = element(name);
const document = { createElement: element, getElementById: id => known[id], querySelector: name => known[name],
  querySelectorAll: () => [], addEventListener() {} };
function Option(text, value) { Object.assign(this, { text, value }); }
"""
NODE_END = """
const flat = one => [one.textContent, ...one.children.map(flat)].join(" ").replace(/\\s+/g, " ").trim();
const lines = () => known.tbody.children.map(flat);
const everything = lines();
known.status.value = "wrong";
known.status.onchange();
const wrong = lines();
known.tbody.children[0].onclick();
console.log(JSON.stringify([everything, wrong, lines()]));
"""
