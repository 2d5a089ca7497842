"""Functions of bytecode: what is written is read back, registers are shared, mistakes are refused."""

from __future__ import annotations

import struct

import pytest

from eyas.errors import ModuleError
from eyas.module import vmvx_isa as isa
from eyas.module.vmvx_assembler import Assembler, Scalar, Tile
from eyas.module.vmvx_executable import (
    disassemble,
    iterate,
    read_executable,
    read_function,
    write_executable,
)
from eyas.module.vmvx_isa import Extent, Kind, Memory, modes

FULL = modes(Extent.FULL, Extent.FULL)


def doubled() -> Assembler:
    """Adds each of four numbers to itself."""
    asm = Assembler("doubled", bindings=2, writes=[1])
    source, target = asm.binding_address(0), asm.binding_address(1)
    with asm.loop_over(asm.const(0), asm.const(4)) as index:
        value = asm.load_at(None, source, index, Memory.F32)
        asm.store_at(asm.fadd_f32(None, value, value), target, index, Memory.F32)
    return asm


def names(asm: Assembler) -> list[str]:
    return [op.name for _, op, _ in iterate(asm.finish().code)]


def test_what_is_written_is_read_back() -> None:
    function = doubled().finish()
    assert read_function(function.encode()) == function
    assert read_executable(write_executable([function, function])) == (function, function)


def test_text_names_labels_registers_and_types() -> None:
    text = disassemble([doubled().finish()])
    assert text.splitlines()[0] == "function doubled bindings=2 writes=1 constants=0 scalars=6 tiles=0 data=0"
    assert " = load_at s0, " in text and ", f32" in text
    label = next(line.strip(" :") for line in text.splitlines() if line.endswith(":"))
    assert text.count(label) == 2


@pytest.mark.parametrize("op", isa.OPS, ids=lambda op: op.name)
def test_each_instruction_comes_back_as_it_was_given(op: isa.Op) -> None:
    asm = Assembler("one", bindings=1)
    here = asm.bind(asm.label())
    scalars, tiles = [asm.const(5 + n) for n in range(20)], [asm.tile() for _ in range(4)]
    for tile in tiles:
        asm.tfill(tile, scalars[0], isa.Type.F32, modes(Extent.FULL))
    values = []
    for operand in op.operands:
        pools = {Kind.SCALAR: scalars, Kind.TILE: tiles, Kind.LABEL: [here], Kind.IMM64: [-7], Kind.MODES: [0]}
        if operand.kind in (Kind.SCALAR_DST, Kind.TILE_DST):
            values.append(asm.scalar() if operand.kind is Kind.SCALAR_DST else tiles[3])
        else:
            values.append(pools.get(operand.kind, [3])[len(values) % len(pools.get(operand.kind, [3]))])
    asm.emit(op, values)
    for value in (one for one in values if isinstance(one, Scalar)):
        asm.check(value)
    for value in (one for one in values if isinstance(one, Tile)):
        asm.check(asm.textract(None, value, scalars[0], isa.Type.F32))
    found = [operands for _, one, operands in iterate(asm.finish().code) if one is op]
    given = [v for o, v in zip(op.operands, values, strict=True) if o.kind in (Kind.IMM64, Kind.SMALL, Kind.MODES)]
    assert any(
        [v for o, v in zip(op.operands, operands, strict=True) if o.kind in (Kind.IMM64, Kind.SMALL, Kind.MODES)]
        == given
        for operands in found
    )


def test_instructions_that_nobody_reads_are_dropped() -> None:
    asm = Assembler("dead", bindings=1, writes=[0])
    chain = asm.mul(None, asm.add(None, asm.const(2), asm.const(3)), asm.const(4))
    asm.sub(None, chain, chain)
    asm.store(asm.const(7), asm.binding_address(0), 0, Memory.I64)
    assert names(asm) == ["const", "binding", "store", "return"]


def test_a_value_that_only_its_own_loop_reads_is_dropped() -> None:
    asm = Assembler("dead", bindings=1, writes=[0])
    total = asm.mov(None, asm.const(0))
    with asm.loop_over(asm.const(0), asm.const(4)):
        asm.add(total, total, asm.const(1))
    assert "add" not in names(asm)


def test_a_value_that_a_loop_carries_is_made_in_its_place() -> None:
    asm = Assembler("sum", bindings=1, writes=[0])
    total = asm.mov(None, asm.const(0))
    with asm.loop_over(asm.const(0), asm.const(4)) as index:
        asm.mov(total, asm.add(None, total, index))
    asm.store(total, asm.binding_address(0), 0, Memory.I64)
    assert names(asm).count("mov") == 2 and names(asm).count("add") == 1


def test_a_move_stays_where_its_target_is_read_before() -> None:
    asm = Assembler("swap", bindings=1, writes=[0])
    address = asm.binding_address(0)
    last = asm.mov(None, asm.const(0))
    with asm.loop_over(asm.const(0), asm.const(4)) as index:
        made = asm.add(None, last, index)
        asm.store_at(last, address, index, Memory.I64)
        asm.mov(last, made)
    code = [(op.name, operands) for _, op, operands in iterate(asm.finish().code)]
    assert [name for name, _ in code].count("mov") == 3
    add, store = (next(operands for name, operands in code if name == wanted) for wanted in ("add", "store_at"))
    assert add[0] != store[0]


def test_registers_of_other_times_share_a_place() -> None:
    asm = Assembler("chain", bindings=1, writes=[0])
    value = asm.load(None, asm.binding_address(0), 0, Memory.I64)
    for _ in range(10_000):
        value = asm.add(None, value, value)
    asm.store(value, asm.binding_address(0), 0, Memory.I64)
    assert asm.finish().scalars == 2


def test_a_register_keeps_its_place_around_a_loop() -> None:
    """What is read at the loop's top and set before it must not be overwritten inside."""
    asm = Assembler("loop", bindings=1, writes=[0])
    address = asm.binding_address(0)
    kept = asm.load(None, address, 0, Memory.I64)
    with asm.loop_over(asm.const(0), asm.const(4)) as index:
        asm.store_at(kept, address, index, Memory.I64)
        other = asm.add(None, index, index)
        asm.store_at(other, address, other, Memory.I64)
    code = {op.name: operands for _, op, operands in iterate(asm.finish().code)}
    assert code["load"][0] != code["add"][0]


def test_tiles_are_reused_and_results_written_over_operands_of_their_shape() -> None:
    asm = Assembler("tiles", bindings=2, writes=[1])
    address, step = asm.binding_address(0), asm.const(4)
    asm.shape(asm.const(8), asm.const(16))
    tile = asm.tload(None, address, step, step, Memory.F32, modes(Extent.FULL))
    for _ in range(100):
        tile = asm.tfexp_f32(None, tile, FULL)
    asm.tstore(tile, asm.binding_address(1), step, step, Memory.F32, FULL, 1)
    assert asm.finish().tiles == 1


def test_a_row_is_not_written_over_by_the_tile_made_from_it() -> None:
    asm = Assembler("tiles", bindings=2, writes=[1])
    step = asm.const(4)
    row = asm.tload(None, asm.binding_address(0), step, step, Memory.F32, modes(Extent.ROW))
    tile = asm.tfexp_f32(None, row, modes(Extent.FULL, Extent.ROW))
    asm.tstore(tile, asm.binding_address(1), step, step, Memory.F32, FULL, 1)
    assert asm.finish().tiles == 2


def test_too_many_tiles_at_a_time_are_refused() -> None:
    asm = Assembler("tiles", bindings=2, writes=[1])
    step = asm.const(4)
    tiles = [
        asm.tload(None, asm.binding_address(0), step, step, Memory.F32, modes(Extent.FULL))
        for _ in range(isa.MAX_TILES + 1)
    ]
    for tile in tiles:
        asm.tstore(tile, asm.binding_address(1), step, step, Memory.F32, FULL, 1)
    with pytest.raises(ModuleError, match="needs 49 tile registers at a time; there are 48"):
        asm.finish()


def test_constants_and_data_are_kept_once() -> None:
    asm = Assembler("constants", bindings=1, writes=[0])
    assert asm.const(5) is asm.const(5) and asm.const(-1) == asm.const(2**64 - 1)
    assert asm.data_offset(b"abc") == 0 and asm.data_offset(b"defg") == 16 and asm.data_offset(b"abc") == 0
    assert asm.finish().data == b"abc" + bytes(13) + b"defg"


def test_mistakes_are_refused() -> None:
    asm = Assembler("mistakes", bindings=1)
    with pytest.raises(ModuleError, match="not a scalar register"):
        asm.add(None, 1, asm.const(2))
    with pytest.raises(ModuleError, match="not a scalar register"):
        asm.mov(None, asm.tile())
    with pytest.raises(ModuleError, match="was not made by this function's assembler"):
        asm.mov(None, Scalar(99))
    with pytest.raises(ModuleError, match="not a label"):
        asm.br(3)
    with pytest.raises(ModuleError, match="does not fit"):
        asm.load(None, asm.const(0), 0, 1 << 16)
    with pytest.raises(ModuleError, match="it is read too"):
        asm.twindow_add_f32(None, *[asm.const(0)] * 9)
    with pytest.raises(ModuleError, match="1 operands given, it takes 3"):
        asm.emit(isa.BY_NAME["add"], [None])
    label = asm.bind(asm.label())
    with pytest.raises(ModuleError, match="bound twice"):
        asm.bind(label)
    asm.br(asm.label())
    with pytest.raises(ModuleError, match="never bound"):
        asm.finish()


def test_damaged_executables_are_refused() -> None:
    whole = write_executable([doubled().finish()])
    for length in range(len(whole)):
        with pytest.raises(ModuleError):
            read_executable(whole[:length])
    with pytest.raises(ModuleError, match="bytes follow"):
        read_executable(whole + b"\0")
    with pytest.raises(ModuleError, match="begins with"):
        read_executable(b"\x7fELF" + whole[4:])
    with pytest.raises(ModuleError, match="version 99"):
        read_executable(whole[:4] + struct.pack("<I", 99) + whole[8:])
    with pytest.raises(ModuleError, match="not an instruction"):
        list(iterate(struct.pack("<H", 0xFFFF)))
    with pytest.raises(ModuleError, match="ends inside an instruction"):
        list(iterate(struct.pack("<HH", isa.BY_NAME["add"].code, 0)))
