"""Which threads share rows and columns, and how much of a row they keep: chosen by numbers of the target."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402

HOPPER, LAVAPIPE = "vulkan:hopper", "vulkan:lavapipe:cores=2"


def kernels(target: str, function, *shape: int) -> list[tuple[str, dict[str, int]]]:
    """Strategies and knobs, in order."""
    found = eyas.compile(function, (torch.zeros(shape),), target=target).manifest["kernels"]
    return [
        (one["strategy"], {k: int(v) for k, v in (knob.split("=") for knob in one["knobs"].split())}) for one in found
    ]


def softmax(x):
    return torch.softmax(x, -1)


@pytest.mark.parametrize("columns, team", [(64, 8), (1024, 32), (1023, 32), (4096, 128), (30_000, 1024)])
def test_a_row_has_as_few_threads_as_can_keep_it(columns: int, team: int) -> None:
    ((strategy, knobs),) = kernels(HOPPER, softmax, 8192, columns)
    points = 4 if columns % 4 == 0 else 1
    assert strategy == "rows" and knobs["team"] == team
    assert knobs["held"] * knobs["team"] * points >= columns
    assert knobs["held"] * points <= 32  # words of a thread


def test_few_rows_have_more_threads_each() -> None:
    ((_, many),) = kernels(HOPPER, softmax, 8192, 1024)
    ((_, few),) = kernels(HOPPER, softmax, 64, 1024)
    assert few["team"] > many["team"]


def test_rows_that_do_not_fit_are_kept_in_part() -> None:
    ((strategy, knobs),) = kernels(HOPPER, softmax, 512, 100_000)
    assert strategy == "rows" and 0 < knobs["held"] * knobs["team"] * 4 < 100_000


def test_threads_of_a_cpu_do_not_wait_for_each_other() -> None:
    ((strategy, knobs),) = kernels(LAVAPIPE, softmax, 512, 4096)
    assert strategy == "rows" and knobs["team"] == knobs["lanes"] == 8 and not knobs["held"]


def test_columns_are_shared_where_they_are_few() -> None:
    (first, *_), (many,) = (kernels(HOPPER, lambda x: x.sum(0), *shape) for shape in ((65_536, 64), (64, 1 << 20)))
    assert first[0] == many[0] == "columns"
    assert first[1]["threads"] > first[1]["across"] and many[1]["threads"] == many[1]["across"]


def test_sums_of_rows_that_are_read_again_are_not_split() -> None:
    assert len(kernels(HOPPER, lambda x: x.sum(-1), 32, 1 << 18)) == 2
    assert len(kernels(HOPPER, softmax, 32, 1 << 18)) == 1
