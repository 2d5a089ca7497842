"""Tile instructions go where they change, once, with the shape that they work on."""

from __future__ import annotations

from eyas.codegen.vmvx.builder import Builder
from eyas.codegen.vmvx.writer import write
from eyas.module.vmvx_assembler import Assembler
from eyas.module.vmvx_executable import disassemble
from eyas.module.vmvx_isa import Extent, Memory, Type, modes


def written(builder: Builder) -> list[str]:
    """Instructions as text, without offsets."""
    assembler = Assembler("f", 2, 0, [1])
    write(builder, assembler)
    lines = disassemble([assembler.finish()]).splitlines()[1:]
    return ["label" if line.strip().startswith("L") else line.split(None, 1)[1] for line in lines if line.strip()]


def test_constants_fold_and_are_kept_once():
    builder = Builder()
    four = builder.add(builder.const(1), builder.const(3))
    assert four is builder.const(4) and builder.mul(four, builder.const(0)) is builder.const(0)
    assert builder.div(builder.const(-7), builder.const(2)).constant == -3
    assert builder.ceil_div(builder.const(-7), 2).constant == -3 and builder.ceil_div(builder.const(7), 2).constant == 4
    width = builder.scalar("width")
    assert builder.scalar("width") is width and builder.min(width, width) is width
    assert builder.add(width, builder.const(0)) is width


def test_what_a_loop_does_not_change_is_written_before_it():
    builder = Builder()
    source, width, eight = builder.scalar("binding", 0), builder.scalar("width"), builder.const(8)
    with builder.loop(builder.const(0), builder.mul(width, eight), builder.const(1)) as index:
        row = builder.add(source, builder.mul(width, builder.const(24)))
        tile = builder.pure(
            "tload", Type.F32, None, eight,
            (row, builder.const(0), builder.const(4), int(Memory.F32), modes(Extent.ROW)),
        )  # fmt: skip
        target = builder.add(builder.scalar("binding", 1), index)
        builder.effect(
            "tstore",
            (tile, target, builder.const(0), builder.const(4), int(Memory.F32), modes(Extent.ROW, Extent.ROW), 1),
            (None, eight),
        )
    text = written(builder)
    label = text.index("label")
    assert any("tload" in line for line in text[:label]) and not any("tload" in line for line in text[label:])
    assert sum("shape" in line for line in text) == 1, "one shape serves load and stores"
    inside = text[label + 1 : next(n for n, line in enumerate(text) if " loop " in f" {line} ")]
    assert [line.split("= ")[-1].split()[0] for line in inside] == ["add", "tstore"]


def test_a_loop_that_runs_once_is_none():
    builder = Builder()
    with builder.loop(builder.const(3), builder.const(10), builder.const(8)) as index:
        assert index.constant == 3
    assert not builder.root.items


def test_what_reads_a_variable_stays_behind_what_changes_it():
    builder = Builder()
    total = builder.variable(Type.F32, None, None)
    builder.assign(total, builder.fill(builder.const(0), Type.F32))
    before = builder.tile("tfneg_f32", Type.F32, total)
    builder.change(total, "tfadd_f32", (total, total, modes(Extent.ONE, Extent.ONE, Extent.ONE)))
    assert builder.tile("tfneg_f32", Type.F32, total) is not before


def test_results_have_every_dimension_of_their_operands():
    builder = Builder()
    rows, columns = builder.scalar("width"), builder.const(16)
    column = builder.fill(builder.const(0), Type.F32, rows, None)
    row = builder.fill(builder.const(0), Type.F32, None, columns)
    total = builder.tile("tfadd_f32", Type.F32, column, row)
    assert (column.extent, row.extent, total.extent) == (Extent.COLUMN, Extent.ROW, Extent.FULL)
