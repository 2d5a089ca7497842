"""Writes scalar instructions for loops on addresses: `control_flow`, `accesses` of memory, and `arithmetic`.

A value of the IR is a register, an address that is still to be computed (`Place`), or a tuple of these: descriptors of
memrefs and complex numbers are taken apart (`compound`), so that nothing of them is left in the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_mlir import ir as mlir

from eyas.codegen.vmvx import accesses, compound, control_flow, places
from eyas.codegen.vmvx.arithmetic import Arithmetic, bits_of
from eyas.errors import InternalError
from eyas.ir.diagnostics import describe_location
from eyas.module.vmvx_assembler import Assembler, Label, Scalar

_ADDS, _MULTIPLIES = ("llvm.add", "arith.addi"), ("llvm.mul", "arith.muli")
_PASSED_ON = ("builtin.unrealized_conversion_cast", "llvm.ptrtoint", "llvm.inttoptr", "llvm.bitcast", "llvm.freeze")
_NOTHING = ("llvm.intr.assume", "memref.assume_alignment", "llvm.intr.lifetime.start", "llvm.intr.lifetime.end")
_HANDLERS = {**control_flow.HANDLERS, **compound.HANDLERS, **accesses.HANDLERS}


class Translator:
    """Writes one entry function, with what it calls in its place."""

    def __init__(self, module: mlir.Module, asm: Assembler) -> None:
        self.asm, self.arithmetic = asm, Arithmetic(asm)
        self.values: dict[mlir.Value, Any] = {}
        # Values of f16 or bf16 that are held as f32, because loading and storing converts them on the way.
        self.widened: set[mlir.Value] = set()
        symbols = [op.operation for op in module.body.operations if "sym_name" in op.operation.attributes]
        self.symbols = {mlir.StringAttr(op.attributes["sym_name"]).value: op for op in symbols}

    def run(self, function: mlir.OpView) -> None:
        """Writes the function; its arguments are the addresses of bindings, then push constants."""
        blocks = list(function.operation.regions[0].blocks)
        for number, argument in enumerate(blocks[0].arguments):
            is_binding = number < self.asm.bindings
            made = self.asm.binding_address(number) if is_binding else None
            self.values[argument] = made if made is not None else self.asm.push_constant(number - self.asm.bindings)
        self.region(function.operation.regions[0])

    # Values.

    def get(self, value: mlir.Value) -> Any:
        """What a value is; addresses may be to be computed."""
        return self.values[value]

    def scalar(self, value: mlir.Value) -> Scalar:
        """A value in a register."""
        found = self.values[value]
        if isinstance(found, tuple) and len(found) == 1:
            found = found[0]
        assert not isinstance(found, tuple), value
        return self.asm.const(0) if found is None else places.address_of(self.asm, found)

    def flat(self, value: Any) -> list[Scalar]:
        """All registers of a value. What was never set is 0."""
        if isinstance(value, tuple):
            return [leaf for part in value for leaf in self.flat(part)]
        return [self.asm.const(0) if value is None else places.address_of(self.asm, value)]

    def fresh(self, like: Any) -> Any:
        """New registers for a value of the same parts."""
        return tuple(self.fresh(part) for part in like) if isinstance(like, tuple) else self.asm.scalar()

    def move(self, targets: Sequence[Any], sources: Sequence[Any]) -> None:
        """Sets registers all at once: a source may be one of the targets."""
        pairs = [
            (target, source)
            for one, other in zip(targets, sources, strict=True)
            for target, source in zip(self.flat(one), self.flat(other), strict=True)
            if target != source
        ]
        written = {target for target, _ in pairs}
        if any(source in written for _, source in pairs):
            pairs = [(target, self.asm.mov(None, source)) for target, source in pairs]
        for target, source in pairs:
            self.asm.mov(target, source)

    # Structure.

    def region(self, region: mlir.Region, end: Label | None = None, results: Sequence[Any] | None = None) -> list[Any]:
        """Writes a region. One block's terminator gives the values that it ends with; several blocks branch, and set
        `results` where they leave."""
        blocks = list(region.blocks)
        if len(blocks) == 1:
            return self.block(blocks[0])
        labels = {block: self.asm.label() for block in blocks}
        for block in blocks[1:]:
            for argument in block.arguments:
                self.values[argument] = self.asm.scalar()
        for block in blocks:
            self.asm.bind(labels[block])
            self._branch(block, labels, end, results)
        return []

    def _branch(
        self, block: mlir.Block, labels: dict[mlir.Block, Label], end: Label | None, results: Sequence[Any] | None
    ) -> None:
        """A block of a graph of blocks, with its terminator."""
        left = self.block(block)
        last = list(block.operations)[-1].operation

        def go(successor: mlir.Block, sources: Sequence[Any]) -> None:
            self.move([self.values[argument] for argument in successor.arguments], sources)
            self.asm.br(labels[successor])

        if last.name in ("cf.br", "llvm.br"):
            go(last.successors[0], left)
        elif last.name in ("cf.cond_br", "llvm.cond_br"):
            count = len(list(last.successors[0].arguments))
            otherwise = self.asm.label()
            self.asm.br_ifnot(self.flat(left[0])[0], otherwise)
            go(last.successors[0], left[1 : 1 + count])
            self.asm.bind(otherwise)
            go(last.successors[1], left[1 + count :])
        elif end is not None:
            self.move(results or [], left)
            self.asm.br(end)
        else:
            self.asm.return_()

    def block(self, block: mlir.Block) -> list[Any]:
        """Writes the ops of a block and returns what its terminator is given."""
        operations = [view.operation for view in block.operations]
        for op in operations[:-1]:
            self._op(op)
        last = operations[-1]
        return [self.get(operand) for operand in last.operands]

    def _op(self, op: mlir.Operation) -> None:
        handler = _HANDLERS.get(op.name)
        if handler is not None:
            handler(self, op)
        elif op.name in _PASSED_ON:
            self._pass_on(op)
        elif op.name not in _NOTHING:
            self._compute(op)

    def _compute(self, op: mlir.Operation) -> None:
        if self._is_deferred(op) or self._is_converted_in_memory(op):
            return
        if op.name in _ADDS and (product := self._product(op)) is not None:
            self.values[op.results[0]] = product
            return
        made = self.arithmetic.run(op, [self.scalar(operand) for operand in op.operands])
        if made is None:
            raise InternalError(
                f"op '{op.name}' at {describe_location(op.location)} has no bytecode: {str(op).splitlines()[0]}"
            )
        results = made if isinstance(made, tuple) else (made,)
        self.values.update(zip(op.results, results, strict=True))

    def _is_converted_in_memory(self, op: mlir.Operation) -> bool:
        """Whether a conversion between f32 and a narrower type is a part of the load before it or the stores after."""
        if op.name == "arith.extf" and op.operands[0] in self.widened and isinstance(op.results[0].type, mlir.F32Type):
            self.values[op.results[0]] = self.get(op.operands[0])
            return True
        if op.name != "arith.truncf" or not isinstance(op.operands[0].type, mlir.F32Type):
            return False
        if not all(use.owner.operation.name == "llvm.store" for use in op.results[0].uses):
            return False
        self.values[op.results[0]] = self.get(op.operands[0])
        self.widened.add(op.results[0])
        return True

    def _is_deferred(self, op: mlir.Operation) -> bool:
        """Whether a product is only added to something next: then the sum is one instruction."""
        if op.name not in _MULTIPLIES or bits_of(op.results[0].type) != 64:
            return False
        uses = list(op.results[0].uses)
        if len(uses) != 1:
            return False
        user = uses[0].owner.operation
        if user.name not in _ADDS or user.block != op.block:
            return False
        first = user.operands[0].owner
        # Of two products the second is written on its own.
        return user.operands[0] == op.results[0] or not (
            not isinstance(first, mlir.Block) and self._is_deferred(first.operation)
        )

    def _product(self, op: mlir.Operation) -> Scalar | None:
        for operand, other in ((op.operands[0], op.operands[1]), (op.operands[1], op.operands[0])):
            owner = operand.owner
            if not isinstance(owner, mlir.Block) and self._is_deferred(owner.operation):
                a, b = owner.operation.operands
                return self.asm.madd(None, self.scalar(a), self.scalar(b), self.scalar(other))
        return None

    def _pass_on(self, op: mlir.Operation) -> None:
        made = self.get(op.operands[0]) if len(op.operands) == 1 else tuple(map(self.get, op.operands))
        assert len(op.results) == 1, op
        self.values[op.results[0]] = made
