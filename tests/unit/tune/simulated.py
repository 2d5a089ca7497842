"""Dispatches and costs that are made up, so that tests of orders and pages time nothing: a product's tile on a machine
that is bound by loads, latency, registers and tails, with a ripple that no formula foresees."""

from __future__ import annotations

import hashlib
from itertools import product
from math import ceil

from eyas.targets import Target
from eyas.tune.facts import Facts, LoopNest, Operand
from eyas.tune.features import Features, Key, features_of, key_of
from eyas.tune.trials import Candidate, Status, Trial

TARGET = "llvm-cpu:x86_64:x86-64-v4:cores=2"


def product_facts(rows: int, columns: int, depth: int, element_bytes: int = 4) -> Facts:
    operands = (
        Operand(element_bytes, (depth, 0, 1), False),
        Operand(element_bytes, (0, 1, columns), False),
        Operand(element_bytes, (columns, 1, 0), True),
    )
    nest = LoopNest((rows, columns, depth), (2,), operands)
    moved = element_bytes * (rows * depth + depth * columns + rows * columns)
    return Facts((nest,), (nest,), 2 * rows * columns * depth, moved)


def candidates_of(dispatch: str, facts: Facts, target: str = TARGET) -> list[Candidate]:
    rows, columns, _ = facts.nests[0].loops
    found = []
    for vectors, unroll, parts, width in product((1, 2, 3, 4, 6), (1, 2, 3, 4, 6, 8, 12), (1, 4, 16), (8, 16, 32)):
        piece = max(unroll, ceil(rows / parts))
        point = {"vectors": vectors, "rows": unroll, "piece": piece, "width": width}
        schedule = (
            f'#codegen.strategy<"contraction", {{grid = [{{loop = 0 : i64, tile = {piece} : i64}}], tiles = [{{loop = 1'
            f" : i64, unroll = {unroll} : i64, unroll_loop = 0 : i64, vectors = {vectors} : i64, width = {width}}}]}}>"
        )
        found.append(Candidate(dispatch, target, "contraction", point, schedule))
    return found


def cost_us(candidate: Candidate, facts: Facts) -> float:
    """The simulated time of a candidate."""
    point, (rows, columns, depth) = candidate.point, facts.nests[0].loops
    wide = ceil(point["width"] / 16)
    vectors, unroll = point["vectors"] * wide, point["rows"]
    lanes = point["vectors"] * point["width"]
    clocks = max(vectors * unroll / 2, (vectors + unroll) / 2, 4) + 0.5
    if point["width"] < 16:
        clocks *= 1.1
    spilled = max(0, vectors * unroll + vectors + 1 - 32)
    clocks += 1.5 * spilled
    tiles = ceil(columns / lanes) * sum(
        ceil(min(point["piece"], rows - start) / unroll) for start in range(0, rows, point["piece"])
    )
    ripple = int(hashlib.sha256(candidate.schedule.encode()).hexdigest()[:4], 16) / 0xFFFF
    return tiles * depth * clocks / 3000 * (1 + 0.03 * ripple) + 0.3 * ceil(rows / point["piece"])


def trial_of(candidate: Candidate, facts: Facts, baseline_us: float, **changes) -> Trial:
    us = cost_us(candidate, facts)
    ratio = baseline_us / us
    made = {"ratio": (ratio * 0.99, ratio, ratio * 1.01), "compile_s": 0.4, "order": "random"}
    return Trial(candidate, "cpu0", Status.TIMED, us, baseline_us, **(made | changes))


def features(candidates: list[Candidate], facts: Facts, target: str = TARGET) -> dict[Key, Features]:
    machine = Target.parse(target)
    return {key_of(one): features_of(one, facts, machine) for one in candidates}
