"""From the `vm` dialect to a Program: one instruction for each op, one register for each value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch_mlir import ir as mlir

from eyas.dialects import hal, vm
from eyas.errors import CompileError
from eyas.ir.walk import find_ops, functions
from eyas.module import isa
from eyas.module.assembler import I64, Assembler, Direct, Label, ProgramBuilder, Slot
from eyas.module.isa import Access, Alloc, Element, Kind
from eyas.module.program import ExecutableRef, Export, Parameter, Program, State
from eyas.module.signature import Signature


def encode_program(
    module: mlir.Module,
    signatures: Mapping[str, Signature],
    parameters: Mapping[str, Parameter],
    states: Mapping[str, State] | None = None,
) -> tuple[Program, dict[str, bytes]]:
    """The program, and the images of its executables by name."""
    builder = ProgramBuilder()
    images: dict[str, bytes] = {}
    for executable in find_ops(module, "hal.executable"):
        exports = tuple(
            Export(one["name"].value, one["bindings"].value, one["constants"].value) for one in executable.exports
        )
        features = tuple(filter(None, executable.features.value.split(",")))
        name = executable.sym_name.value
        builder.executable(ExecutableRef(name, executable.format.value, exports, features))
        images[name] = _image(executable)
    ordinals = {key: builder.parameter(parameter) for key, parameter in parameters.items()}
    state_ordinals = {key: builder.state(state) for key, state in (states or {}).items()}
    for function in functions(module):
        name = function.attributes["sym_name"].value
        _FunctionEncoder(builder.function(name, signatures[name]), ordinals, state_ordinals).run(function)
    return builder.finish(), images


def _image(executable: mlir.OpView) -> bytes:
    if hal.IMAGE not in executable.attributes:
        raise CompileError(f"executable '{executable.sym_name.value}' has no attribute '{hal.IMAGE}' with its code")
    return np.asarray(mlir.DenseIntElementsAttr(executable.attributes[hal.IMAGE])).tobytes()


class _FunctionEncoder:
    def __init__(self, assembler: Assembler, parameters: Mapping[str, int], states: Mapping[str, int]):
        self.asm, self.parameters, self.states = assembler, parameters, states
        self.registers: dict[mlir.Value, Any] = {}
        self.labels: dict[mlir.Block, Label] = {}

    def run(self, function: mlir.OpView) -> None:
        blocks = list(function.regions[0].blocks)
        self.labels = {block: self.asm.label() for block in blocks}
        for argument in (argument for block in blocks for argument in block.arguments):
            is_integer = isinstance(argument.type, mlir.IntegerType)
            self.registers[argument] = self.asm.i64() if is_integer else self.asm.ref()
        for position, block in enumerate(blocks):
            self.asm.bind(self.labels[block])
            following = blocks[position + 1] if position + 1 < len(blocks) else None
            for op in block.operations:
                self._encode(op, following)

    def _encode(self, op: mlir.OpView, following: mlir.Block | None) -> None:
        name = op.operation.name
        if name == "func.return" or isinstance(op, (vm.IsNullOp, vm.IsNonzeroOp)):
            return
        if name == "cf.br":
            self._move(list(op.operation.operands), op.operation.successors[0])
            self._jump(op.operation.successors[0], following)
        elif name == "cf.cond_br":
            self._branch(op)
        elif name == "vm.const_i64":
            # Constants live in registers of their own that are set at the entry, so any block may read them.
            self.registers[op.operation.results[0]] = self.asm.const(op.attributes["value"].value)
        else:
            self._encode_instruction(op, isa.BY_NAME[name.removeprefix("vm.")])

    def _branch(self, op: mlir.OpView) -> None:
        taken, other = op.operation.successors
        count = len(taken.arguments)
        arguments = list(op.operation.operands)[1:]
        condition = op.operands[0].owner.opview
        # Moves belong to one way only.
        there = self.asm.label()
        if isinstance(condition, vm.IsNullOp):
            self.asm.br_null(self.registers[condition.ref], there)
        else:
            self.asm.br_if(self.registers[condition.value], there)
        self._move(arguments[count:], other)
        self.asm.br(self.labels[other])
        self.asm.bind(there)
        self._move(arguments[:count], taken)
        self.asm.br(self.labels[taken])

    def _move(self, values: list[mlir.Value], block: mlir.Block) -> None:
        """Gives a block its arguments, all at once: what is overwritten but still needed is set aside first."""
        targets = [self.registers[argument] for argument in block.arguments]
        sources = [self.registers[value] for value in values]
        moves = [(t, s) for t, s in zip(targets, sources, strict=True) if t is not s]
        kept = {(type(s), int(s)): self._copy(s) for _, s in moves if any(s is t for t, _ in moves)}
        for target, source in moves:
            self._copy(kept.get((type(source), int(source)), source), target)

    def _copy(self, source: Any, target: Any = None) -> Any:
        return self.asm.mov(target, source) if isinstance(source, I64) else self.asm.mov_ref(target, source)

    def _jump(self, target: mlir.Block, following: mlir.Block | None) -> None:
        if target != following:
            self.asm.br(self.labels[target])

    def _encode_instruction(self, op: mlir.OpView, row: isa.Op) -> None:
        operands = [self._operand(op, operand) for operand in row.operands]
        made = self.asm.emit(row, operands)
        written = [] if made is None else list(made) if isinstance(made, tuple) else [made]
        flat = [register for one in written for register in (one if isinstance(one, tuple) else (one,))]
        self.registers.update(zip(op.operation.results, flat, strict=True))

    def _operand(self, op: mlir.OpView, operand: isa.Operand) -> Any:
        if operand.is_dst:
            if not operand.is_list:
                return None
            singles = sum(1 for o in isa.BY_NAME[op.operation.name[3:]].operands if o.is_dst and not o.is_list)
            return len(op.operation.results) - singles
        if operand.kind is Kind.BINDING:
            bindings = self._bindings(op, operand)
            return bindings if operand.is_list else bindings[0]
        if operand.kind in (Kind.I64, Kind.REF, Kind.I64_OPTIONAL):
            values = getattr(op, operand.name)
            if operand.is_list:
                return [self.registers[value] for value in values]
            return self.registers[values]
        value = op.operation.attributes[operand.name]
        if operand.kind is Kind.PARAMETER:
            return self.parameters[value.value]
        if operand.kind is Kind.STATE:
            return self.states[value.value]
        if operand.kind is Kind.TABLE:
            return list(value)
        if operand.kind is Kind.ALLOC:
            return Alloc(value.value)
        if operand.kind is Kind.ELEMENT:
            return Element(value.value)
        return value.value

    def _bindings(self, op: mlir.OpView, operand: isa.Operand) -> list[Direct | Slot]:
        refs = iter(getattr(op, f"{operand.name}_refs"))
        ranges = list(getattr(op, f"{operand.name}_ranges"))
        slots = list(op.operation.attributes[f"{operand.name}_slots"])
        access = list(op.operation.attributes[f"{operand.name}_access"])
        made: list[Direct | Slot] = []
        for position, slot in enumerate(slots):
            offset = self.registers[ranges[2 * position]]
            length = self._length(ranges[2 * position + 1])
            mode = Access(access[position])
            if slot < 0:
                made.append(Direct(self.registers[next(refs)], offset, length, mode))
            else:
                made.append(Slot(slot, offset, length, mode))
        return made

    def _length(self, value: mlir.Value) -> Any:
        """A constant of -1 means up to the end of the buffer."""
        owner = value.owner
        if owner.name == "vm.const_i64" and owner.attributes["value"].value == -1:
            return None
        return self.registers[value]
