"""Rows of both instruction tables, as they are written and as they are printed, and the headers made from them."""

import runpy
from pathlib import Path

import pytest

from eyas.module import isa, vmvx_isa
from eyas.module.isa_table import Operand, parse_operands

TOOL = Path(__file__).parents[3] / "runtime" / "tools" / "make_isa_headers.py"


@pytest.mark.parametrize("table", [isa, vmvx_isa], ids=["vm", "vmvx"])
def test_operands_print_as_they_were_written(table):
    for op in table.OPS:
        assert parse_operands(op.text, table.Kind) == op.operands, op.name
        assert op.format == "".join(text.split(":")[1] for text in op.text.split())
        assert {o.name for o in op.operands if o.is_dst} == {o.name for o in op.operands if "written" in _doc(table, o)}


def _doc(table, operand):
    return table.KIND_DOC[operand.kind]


def test_lists_and_destinations_are_told_from_the_letter():
    total, offsets = parse_operands("total:I offsets:I*", isa.Kind)
    assert total == Operand("total", isa.Kind.I64_DST) and total.is_dst
    assert offsets.is_list and str(offsets) == "offsets:I*"
    with pytest.raises(ValueError):
        parse_operands("x:?", isa.Kind)


def test_both_headers_have_every_instruction(tmp_path):
    main = runpy.run_path(str(TOOL))["main"]
    assert main([]) == 2 and main([str(tmp_path)]) == 0
    for name, prefix, table in (("eyas_isa.h", "VM", isa), ("eyas_vmvx_isa.h", "VMVX", vmvx_isa)):
        text = (tmp_path / name).read_text()
        assert all(f"EYAS_{prefix}_OP_{op.name.upper()} = {op.code}," in text for op in table.OPS)
