"""Models in the wild: one that is made here, how results are judged, and the page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.conformance.outcome import Outcome
from tests.conformance.wild.case import Wild

pytest.importorskip("onnxruntime")
pytest.importorskip("torch")

from tests.conformance.wild.check import Wrong, all_cases, check, difference  # noqa: E402
from tests.conformance.wild.report import summary, write_page  # noqa: E402

CASE = Wild("one/case", (), list)


def test_the_list_is_as_large_as_it_is_said_to_be():
    packages = {file.package for case in all_cases().values() for file in case.files}
    assert len(all_cases()) >= 60 and len(packages) >= 35


@pytest.mark.parametrize("name", ["classical/ridge", "classical/neighbours"])
def test_a_file_is_right(name):
    pytest.importorskip("skl2onnx")
    outcome = check(name)
    assert outcome.kind == "passed", outcome.reason
    assert json.loads(outcome.reason)["eyas_ms"] > 0


def test_differences_are_relative_to_the_largest_magnitude():
    want = np.float32([0, 10, -100])
    assert difference(CASE, [want + np.float32(1e-3)], [want]) == pytest.approx(1e-5, rel=1e-2)
    with pytest.raises(Wrong, match="differs by 1.0e-02"):
        difference(CASE, [want + 1], [want])
    with pytest.raises(Wrong, match=r"float32\(3,\) instead of float64\(3,\)"):
        difference(CASE, [want], [want.astype(np.float64)])
    with pytest.raises(Wrong, match="not finite"):
        difference(CASE, [want], [np.float32([0, 10, np.inf])])
    with pytest.raises(Wrong, match="2 results instead of 1"):
        difference(CASE, [want, want], [want])


def test_page(tmp_path):
    times = {"compile_s": 2.0, "eyas_ms": 0.004, "theirs_ms": 0.008, "error": 1e-6}
    outcomes = [
        Outcome("one/case", "passed", json.dumps(times), 3.0),
        Outcome("other/case", "unsupported", "no | such op", 1.0),
    ]
    cases = {"one/case": CASE, "other/case": Wild("other/case", (), list)}
    assert summary(outcomes, cases)[0] == "1 of 2 are right."
    assert "geometric mean 2.00 x" in summary(outcomes, cases)[2]
    write_page(tmp_path / "wild.md", outcomes, cases)
    page = (tmp_path / "wild.md").read_text()
    assert "| one/case | right | 2.0 | 0.004 | 0.008 | 2.00 | 1e-06 |" in page
    assert "| other/case | unsupported | no / such op |" in page
