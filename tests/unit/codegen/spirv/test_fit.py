"""Kernels for targets without narrow and wide types use none of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from spirv_kernels import binding, disassembly, elementwise, kernel, lower  # noqa: E402

from eyas.errors import TargetError  # noqa: E402
from eyas.targets import Target  # noqa: E402

POOR = Target.parse("vulkan:lavapipe:-f16,-i8,-i16,-i64,-f64,-storage8,-storage16,-float-controls")
INTEGER_OPS = "addi subi muli divsi divui remsi remui floordivsi shli shrsi shrui maxsi minui xori".split()


def only_words(text: str) -> str:
    listing = disassembly(text, POOR)
    assert not any(need in ("f16", "i8", "i16", "i64", "storage8", "storage16") for need in lower(text, POOR).needs)
    types = [
        line.split("=")[1].split() for line in listing.splitlines() if "OpTypeInt" in line or "OpTypeFloat" in line
    ]
    assert {type_[1] for type_ in types} == {"32"}
    return listing


@pytest.mark.parametrize("element", ["i8", "i16", "i64"])
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integer_arithmetic(op: str, element: str) -> None:
    only_words(elementwise(element, element, f"%r = arith.{op} %x, %y : {element}"))


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_half_precision(element: str) -> None:
    only_words(elementwise(element, element, f"%s = math.exp %x : {element}\n%r = arith.addf %s, %y : {element}"))


def test_parts_of_words_are_stored_so_that_others_stay() -> None:
    listing = only_words(elementwise("i8", "i8", "%r = arith.addi %x, %y : i8"))
    assert listing.count("OpAtomicAnd") == listing.count("OpAtomicOr") == 1


@pytest.mark.parametrize("element", ["i8", "i64"])
def test_values_go_around_loops_and_out_of_branches(element: str) -> None:
    text = elementwise(
        element,
        element,
        f"""%q = scf.for %k = %c0 to %i step %c1 iter_args(%s = %x) -> {element} {{
          %n = arith.muli %s, %y : {element}
          scf.yield %n : {element}
        }}
        %c = arith.cmpi ult, %q, %y : {element}
        %r = scf.if %c -> {element} {{
          scf.yield %q : {element}
        }} else {{
          scf.yield %y : {element}
        }}""",
    )
    only_words(text)


@pytest.mark.parametrize("element", ["vector<4xi8>", "vector<2xi64>", "vector<4xf16>"])
def test_vectors_in_memory(element: str) -> None:
    only_words(
        kernel(
            [binding("a", element, 0), binding("b", element, 1)],
            f"""%x = memref.load %a[%i] : memref<?x{element}>
              memref.store %x, %b[%i] : memref<?x{element}>""",
        )
    )


def test_double_precision_is_refused() -> None:
    with pytest.raises(TargetError, match="has no double precision"):
        lower(elementwise("f64", "f64", "%r = arith.addf %x, %y : f64"), POOR)
