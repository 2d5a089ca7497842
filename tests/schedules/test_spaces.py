"""The spaces of all strategies, on all programs and for several targets: the default is a point of its own space, and
a point is in a space just if the compiler takes the schedule that it stands for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import pytest

pytest.importorskip("torch")

from tests.schedules.programs import PROGRAMS
from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.codegen.common.space import Space
from eyas.codegen.common.strategies.base import Strategy
from eyas.codegen.common.strategies.nests import NestStrategy
from eyas.dialects import flow
from eyas.ir import make_context, parse_module
from eyas.targets import Target

CPUS = ("llvm-cpu:x86_64", "llvm-cpu:x86_64:x86-64-v3", "llvm-cpu:x86_64:x86-64-v4", "llvm-cpu:aarch64", "vmvx")
GPUS = ("vulkan:baseline", "vulkan:lavapipe", "vulkan:rdna3", "vulkan:hopper")


@cache
def dispatches(name: str) -> tuple[mlir.Module, list[mlir.OpView]]:
    """A program's dispatch functions."""
    from eyas.pipelines import driver
    from eyas.pipelines.request import Phase, Request

    program = PROGRAMS[name]()
    target = (Target.parse(CPUS[1]),)
    request = Request(
        program.model, program.call, dynamic_shapes=program.dynamic, targets=target, last=Phase.DISPATCH
    )  # fmt: skip
    module = parse_module(driver.run(request).as_text(), make_context())
    return module, [op for op in module.body.operations if flow.is_executable(op)]


def spaces(name: str, target: Target) -> Iterator[tuple[mlir.OpView, Analysis, type[Strategy], Space]]:
    """Each dispatch of a program, with what is known of it, and the strategies that it has."""
    module, functions = dispatches(name)
    backend = backend_of(target)
    with module.context, mlir.Location.unknown():
        for function in functions:
            found = analysis_of(function, {}, target.near_bytes)
            there, _ = backend.spaces(function, target, frozenset(), found)
            for strategy in backend.strategies:
                if strategy.name in there:
                    yield function, found, strategy, there[strategy.name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_is_a_point_of_its_space(name):
    for text in (*CPUS, *GPUS):
        target, count = Target.parse(text), 0
        for function, found, strategy, space in spaces(name, target):
            default, where = strategy.choose(found, target), f"{text} {strategy.name}"
            if isinstance(default, str):
                continue
            assert space.problem(default.point) is None, where
            again = backend_of(target).choice_at(function, target, strategy.name, default.point, found)
            assert not isinstance(again, str), f"{where}: {again}"
            assert str(again.schedule_attribute()) == str(default.schedule_attribute()), where
            count += 1
        assert count > 1, text


@pytest.mark.parametrize("name", ["linear", "image", "winograd", "one head", "norm", "dynamic softmax", "padded"])
def test_a_point_is_in_the_space_just_if_its_schedule_is_taken(name):
    draws = random.Random(name)
    for text in (CPUS[1], GPUS[3]):
        target = Target.parse(text)
        for _, found, strategy, space in spaces(name, target):
            for _ in range(60):
                point = {knob.name: draws.choice(knob.domain) for knob in space.knobs}
                said, taken = space.problem(point, laws_only=True), strategy.at(found, target, point)
                same = (said is None) == isinstance(taken, Strategy)
                assert same, f"{text} {strategy.name} {point}: {said}, {str(taken)[:200]}"
                if isinstance(taken, NestStrategy):
                    assert taken.problem() is None


def test_strategies_that_apply_are_all_offered():
    """Also those that come after the one that is chosen by default."""
    module, (function,) = dispatches("staged")
    with module.context, mlir.Location.unknown():
        target = Target.parse("vulkan:hopper")
        there, rejected = backend_of(target).spaces(function, target, frozenset())
        assert {"products", "contraction", "points", "loops"} <= set(there)
        assert any(one.startswith("matrices: ") for one in rejected)
        there, rejected = backend_of(target).spaces(function, target, frozenset({"products"}))
        assert "products" not in there and "products: switched off" in rejected
        wrong = backend_of(target).choice_at(function, target, "prodcuts", {})
        assert isinstance(wrong, str) and "there is no strategy 'prodcuts'" in wrong
        point = {name: 64 for name in ("threads", "columns")}
        assert "row_points is missing" in str(backend_of(target).choice_at(function, target, "products", point))
