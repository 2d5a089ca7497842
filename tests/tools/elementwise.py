# ruff: noqa: E501 - lines of IR are as long as they are
"""Elementwise kernels with many results, each of one op or a few, against what is expected of each element."""

from __future__ import annotations

import numpy as np
import programs as p

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def edges(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of values at the ends of a type and around zero."""
    if dtype == "i1":
        values = np.array([False, True])
    else:
        half = 1 << (WIDTHS[dtype] - 1)
        values = np.array([-half, -half + 1, -7, -2, -1, 0, 1, 2, 3, 7, half - 2, half - 1], p.NUMPY[dtype])
    return tuple(np.ascontiguousarray(one.reshape(-1)) for one in np.meshgrid(values, values))


def unsigned(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}") if array.dtype != bool else array


def check(types: list[str], inputs: list[np.ndarray], cases: list[tuple[str, str, np.ndarray]], **tolerance) -> None:
    """One elementwise kernel over vectors with a result for each case: its type, a body that sees %i0, %i1, ... and
    makes %r, and what is expected."""
    size, line = inputs[0].size, p.affine(1, [0])
    arguments = [(f"x{n}", p.tensor_type([size], type_)) for n, type_ in enumerate(types)]
    made = [p.tensor_type([size], result) for result, _, _ in cases]
    lines = "".join(f"%e{n} = tensor.empty() : {type_}\n" for n, type_ in enumerate(made))
    block = [f"%i{n}: {type_}" for n, type_ in enumerate(types)] + [f"%o{n}: {case[0]}" for n, case in enumerate(cases)]
    body = "\n".join(case[1].replace("%r", f"%r{n}").replace("%low", f"%low{n}") for n, case in enumerate(cases))
    results, outs = (", ".join(f"%{letter}{n}" for n in range(len(cases))) for letter in "re")
    lines += (
        f"%z:{len(cases)} = linalg.generic {{indexing_maps = [{', '.join([line] * len(block))}],"
        f' iterator_types = ["parallel"]}} ins({", ".join(f"%{name}" for name, _ in arguments)} :'
        f" {', '.join(type_ for _, type_ in arguments)}) outs({outs} : {', '.join(made)}) {{\n^bb0({', '.join(block)}):"
        f"\n{body}\nlinalg.yield {results} : {', '.join(case[0] for case in cases)}\n}} -> ({', '.join(made)})"
    )
    text = p.main(arguments, lines, [(f"z#{n}", type_) for n, type_ in enumerate(made)])
    p.assert_both(text, inputs, [case[2] for case in cases], **tolerance)
