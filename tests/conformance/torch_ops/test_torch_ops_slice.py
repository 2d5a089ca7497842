"""A seeded part of PyTorch's operator database that takes seconds; `make conformance-torch-ops` runs it whole."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.conformance.torch_ops import __main__ as main  # noqa: E402
from tests.conformance.torch_ops import check, compare, report, runners  # noqa: E402
from tests.conformance.torch_ops.ops import DTYPES, copies, database, ineligible, names_of, samples_of  # noqa: E402

SEED = 1
COUNTS = dict.fromkeys(DTYPES, 2) | {"f32": 4, "dynamic": 3}


@pytest.mark.parametrize("pass_", DTYPES)
def test_part(pass_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong and nothing fails but with a reason."""
    monkeypatch.setenv(check.SAMPLES, "2")
    names = random.Random(f"{SEED} {pass_}").sample(names_of(pass_), COUNTS[pass_])
    parts = [
        [name, *verdict]
        for name in names
        for verdict in check.check_samples(name, pass_, check.chosen(name, len(samples_of(name, pass_, check.seed()))))
    ]
    assert not [part for part in parts if part[1] in ("wrong", "bug")]
    assert [part for part in parts if part[1] == "passed"]


def test_nearly_all_ops_are_eligible() -> None:
    left_out = [name for name in database() if ineligible(name)]
    assert len(left_out) < 60 and len(names_of("f32")) > 600


def test_a_group_with_one_bad_sample_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = samples_of("add", "f32", 0)

    def run(group):
        if samples[2] in group:
            raise check.Refusal("unsupported", "no")
        return [[(one.tensors, *[_off(one, one is samples[4])], one.function(*one.tensors), None)] for one in group]

    monkeypatch.setattr(check, "run_forward", run)
    kinds = [kind for kind, _ in check.check_samples("add", "f32", range(6))]
    assert kinds == ["passed", "passed", "unsupported", "passed", "wrong", "passed"]


def _off(sample, wrong):
    return sample.function(*sample.tensors) + (1 if wrong else 0)


def test_wrong_answers_are_seen() -> None:
    right = torch.tensor([1.0, -4.0])
    assert compare.difference([right], [right]) == ""
    assert "differs in 1 of 2" in compare.difference([right + torch.tensor([1e-3, 0])], [right])
    assert "instead of" in compare.difference([right.double()], [right])
    assert "instead of torch.float32[2]" in compare.difference([right[:1]], [right])
    assert "1 results instead of 2" in compare.difference([right], [right, right])
    assert "differs" in compare.difference([torch.tensor([True])], [torch.tensor([False])])


def test_factors_are_compared_by_what_is_unique() -> None:
    u, s, vh = torch.linalg.svd(torch.randn(3, 3))
    sign = torch.tensor([1.0, -1.0, 1.0])
    args = [torch.zeros(0)]
    one, other, wrong = (
        compare.unique("linalg.svd", each, args)
        for each in ([u, s, vh], [u * sign, s, sign[:, None] * vh], [u, s, -vh])
    )
    assert compare.difference(other, one) == ""
    assert compare.difference(wrong, one)


def test_places_of_equal_elements_are_any_of_them() -> None:
    x = torch.tensor([[3, 1, 3, 2], [5, 5, 5, 5]])
    kept = ((2,), {"dim": 1})

    def made(places):
        values = [torch.tensor([[3, 3], [5, 5]]), torch.tensor(places)]
        return compare.unique("topk", values, [x], kept)

    assert compare.difference(made([[2, 0], [3, 1]]), made([[0, 2], [0, 1]])) == ""
    assert compare.difference(made([[2, 1], [3, 1]]), made([[0, 2], [0, 1]]))
    assert compare.difference(made([[2, 0], [3, 3]]), made([[0, 2], [0, 1]]))
    assert compare.difference(made([[2, 0], [3, 4]]), made([[0, 2], [0, 1]]))


def test_an_order_of_equal_elements_is_any_unless_it_is_stable() -> None:
    x = torch.tensor([2.0, 1.0, 2.0])
    first, second, wrong = (torch.tensor(places) for places in ([1, 0, 2], [1, 2, 0], [0, 1, 2]))

    def judged(name, places, stable):
        values = [places] if name == "argsort" else [x[places], places]
        return compare.unique(name, values, [x], ((), {"stable": stable}))

    for name in ("sort", "argsort"):
        assert not compare.difference(judged(name, first, False), judged(name, second, False))
        assert compare.difference(judged(name, first, True), judged(name, second, True))
        assert compare.difference(judged(name, first, False), judged(name, wrong, False))


def test_copies_keep_layouts() -> None:
    view = torch.arange(12.0).reshape(3, 4).t()[1:]
    (copy,) = copies((view,))
    assert copy.stride() == view.stride() and copy.storage_offset() == view.storage_offset()
    assert torch.equal(copy, view) and copy.data_ptr() != view.data_ptr()


def test_an_op_is_as_its_worst_sample() -> None:
    parts = [[0, "passed", ""], [1, "unsupported", "why"], [2, "skipped", "random"]]
    assert report.kind_of_op(parts) == "unsupported"
    counts = {("f32", "add"): 3, ("f32", "sub"): 9}
    lines = report.tables({("f32", "add"): parts, ("f32", "sub"): parts[:1]}, counts)
    assert "| f32 | 2 | 1 | 50.0% | 0 | 0 | 0 | 1 | 0 | 12 | 3 | 2 | 0 |" in lines
    assert "| add | f32 | unsupported | 1 of 2 | 1 | why |" in lines


def test_samples_that_torch_alone_cannot_leave_open_are_counted_by_themselves() -> None:
    parts = [[0, "passed", ""], [1, "closed", "why"]]
    results = {("dynamic", "add"): parts, ("dynamic", "sub"): parts[1:]}
    lines = report.tables(results, {key: 2 for key in results})
    assert "| dynamic | 1 | 1 | 100.0% | 0 | 0 | 0 | 0 | 0 | 4 | 1 | 1 | 2 |" in lines
    assert "| add | dynamic | closed | 1 of 2 | 1 | why |" in lines
    assert "| sub | dynamic | closed | 1 of 1 | 1 | why |" in lines


def test_what_torch_exports_without_us_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args):
        raise runners.Refusal("export", "no")

    monkeypatch.setattr(runners, "_compile", refuse)
    for name, kind in (("add", "export"), ("_chunk_cat", "closed")):
        samples = samples_of(name, "dynamic", 0)
        sample = next(one for one in samples if next(runners._plans(one), None) and _is_of(name, one))
        with pytest.raises(runners.Refusal) as refusal:
            runners.run_dynamic([sample])
        assert refusal.value.kind == kind


def _is_of(name, sample):
    """`_chunk_cat` pads what is not a multiple of the number of parts."""
    return name == "add" or sample.leaves[-2:] == (0, 3)


def test_a_run_goes_on_where_one_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    add = {"pass": "f32", "op": "add", "seconds": 1.0, "parts": [[0, "wrong", "why"], [1, "passed", ""]]}
    again = {"pass": "f32", "op": "add", "seconds": 1.0, "parts": [[0, "passed", ""]]}
    path.write_text("".join(json.dumps(line) + "\n" for line in (add, again)) + '{"pass": "f32", "op"')
    lines = main._lines(path)
    assert main._found(lines, {("f32", "add"): [0, 1]}) == {
        ("f32", "add"): {0: [0, "passed", ""], 1: [1, "passed", ""]}
    }
    assert main._origins([add | {"origin": "1, torch 2"}, again | {"origin": "3, torch 2"}], [("f32", "add")]) == {
        "f32": ["3, torch 2"]
    }
    main._add(path, add)
    assert main._lines(path) == [add, again, add]


def test_dynamo_sees_ops_without_the_seed_that_the_database_sets() -> None:
    (kind, reason), *_ = check.check_samples("nn.functional.feature_alpha_dropout/without_train", "gradients", [0])
    assert kind == "passed", reason
