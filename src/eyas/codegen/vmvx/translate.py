"""Writes scalar instructions for loops on addresses: control flow, memory, and what `arithmetic` computes.

A value of the IR is a register, an address that is still to be computed (`Place`), or a tuple of these: descriptors of
memrefs and complex numbers are taken apart here, so that nothing of them is left in the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch_mlir import ir as mlir

from eyas.codegen.vmvx import places
from eyas.codegen.vmvx.arithmetic import Arithmetic, bits_of, float_bits, integer_bits
from eyas.codegen.vmvx.places import Place
from eyas.errors import InternalError
from eyas.frontends.literals import array_of
from eyas.ir.diagnostics import describe_location
from eyas.module.vmvx_assembler import Assembler, Label, Scalar
from eyas.module.vmvx_isa import Memory

_ALLOCATE = ("malloc", "aligned_alloc")
_ADDS, _MULTIPLIES = ("llvm.add", "arith.addi"), ("llvm.mul", "arith.muli")
_PASSED_ON = ("builtin.unrealized_conversion_cast", "llvm.ptrtoint", "llvm.inttoptr", "llvm.bitcast", "llvm.freeze")
_NOTHING = ("llvm.intr.assume", "memref.assume_alignment", "llvm.intr.lifetime.start", "llvm.intr.lifetime.end")


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
        self._region(function.operation.regions[0])

    # Values.

    def _get(self, value: mlir.Value) -> Any:
        """What a value is; addresses may be to be computed."""
        return self.values[value]

    def _scalar(self, value: mlir.Value) -> Scalar:
        """A value in a register."""
        found = self.values[value]
        if isinstance(found, tuple) and len(found) == 1:
            found = found[0]
        assert not isinstance(found, tuple), value
        return self.asm.const(0) if found is None else places.address_of(self.asm, found)

    def _flat(self, value: Any) -> list[Scalar]:
        """All registers of a value. What was never set is 0."""
        if isinstance(value, tuple):
            return [leaf for part in value for leaf in self._flat(part)]
        return [self.asm.const(0) if value is None else places.address_of(self.asm, value)]

    def _fresh(self, like: Any) -> Any:
        """New registers for a value of the same parts."""
        return tuple(self._fresh(part) for part in like) if isinstance(like, tuple) else self.asm.scalar()

    def _move(self, targets: Sequence[Any], sources: Sequence[Any]) -> None:
        """Sets registers all at once: a source may be one of the targets."""
        pairs = [
            (target, source)
            for one, other in zip(targets, sources, strict=True)
            for target, source in zip(self._flat(one), self._flat(other), strict=True)
            if target != source
        ]
        written = {target for target, _ in pairs}
        if any(source in written for _, source in pairs):
            pairs = [(target, self.asm.mov(None, source)) for target, source in pairs]
        for target, source in pairs:
            self.asm.mov(target, source)

    # Structure.

    def _region(self, region: mlir.Region, end: Label | None = None, results: Sequence[Any] | None = None) -> list[Any]:
        """Writes a region. One block's terminator gives the values that it ends with; several blocks branch, and set
        `results` where they leave."""
        blocks = list(region.blocks)
        if len(blocks) == 1:
            return self._block(blocks[0])
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
        left = self._block(block)
        last = list(block.operations)[-1].operation

        def go(successor: mlir.Block, sources: Sequence[Any]) -> None:
            self._move([self.values[argument] for argument in successor.arguments], sources)
            self.asm.br(labels[successor])

        if last.name in ("cf.br", "llvm.br"):
            go(last.successors[0], left)
        elif last.name in ("cf.cond_br", "llvm.cond_br"):
            count = len(list(last.successors[0].arguments))
            otherwise = self.asm.label()
            self.asm.br_ifnot(self._flat(left[0])[0], otherwise)
            go(last.successors[0], left[1 : 1 + count])
            self.asm.bind(otherwise)
            go(last.successors[1], left[1 + count :])
        elif end is not None:
            self._move(results or [], left)
            self.asm.br(end)
        else:
            self.asm.return_()

    def _block(self, block: mlir.Block) -> list[Any]:
        """Writes the ops of a block and returns what its terminator is given."""
        operations = [view.operation for view in block.operations]
        for op in operations[:-1]:
            self._op(op)
        last = operations[-1]
        return [self._get(operand) for operand in last.operands]

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
        made = self.arithmetic.run(op, [self._scalar(operand) for operand in op.operands])
        if made is None:
            raise InternalError(
                f"op '{op.name}' at {describe_location(op.location)} has no bytecode: {str(op).splitlines()[0]}"
            )
        results = made if isinstance(made, tuple) else (made,)
        self.values.update(zip(op.results, results, strict=True))

    def _is_converted_in_memory(self, op: mlir.Operation) -> bool:
        """Whether a conversion between f32 and a narrower type is a part of the load before it or the stores after."""
        if op.name == "arith.extf" and op.operands[0] in self.widened and isinstance(op.results[0].type, mlir.F32Type):
            self.values[op.results[0]] = self._get(op.operands[0])
            return True
        if op.name != "arith.truncf" or not isinstance(op.operands[0].type, mlir.F32Type):
            return False
        if not all(use.owner.operation.name == "llvm.store" for use in op.results[0].uses):
            return False
        self.values[op.results[0]] = self._get(op.operands[0])
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
                return self.asm.madd(None, self._scalar(a), self._scalar(b), self._scalar(other))
        return None

    def _pass_on(self, op: mlir.Operation) -> None:
        made = self._get(op.operands[0]) if len(op.operands) == 1 else tuple(map(self._get, op.operands))
        assert len(op.results) == 1, op
        self.values[op.results[0]] = made

    # Control flow.

    def _for(self, op: mlir.Operation) -> None:
        low, high, step = (self._scalar(operand) for operand in list(op.operands)[:3])
        inits = [self._get(operand) for operand in list(op.operands)[3:]]
        block = op.regions[0].blocks[0]
        carried = [self._fresh(init) for init in inits]
        self._move(carried, inits)
        self.values.update(zip(list(block.arguments)[1:], carried, strict=True))
        bounds = [_constant(operand) for operand in list(op.operands)[:2]]
        runs = bounds[0] is not None and bounds[1] is not None and bounds[0] < bounds[1]
        with self.asm.loop_over(low, high, step, at_least_once=runs) as index:
            self.values[block.arguments[0]] = index
            self._move(carried, self._block(block))
        self.values.update(zip(op.results, carried, strict=True))

    def _while(self, op: mlir.Operation) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        inits = [self._get(operand) for operand in op.operands]
        carried = [self._fresh(init) for init in inits]
        self._move(carried, inits)
        self.values.update(zip(before.arguments, carried, strict=True))
        top, end = self.asm.bind(self.asm.label()), self.asm.label()
        condition, *passed = self._block(before)
        # Results have registers of their own: those of the loop may be set again before they are read.
        results = [self._fresh(one) for one in passed]
        self._move(results, passed)
        self.asm.br_ifnot(self._flat(condition)[0], end)
        self.values.update(zip(after.arguments, results, strict=True))
        self._move(carried, self._block(after))
        self.asm.br(top)
        self.asm.bind(end)
        self.values.update(zip(op.results, results, strict=True))

    def _if(self, op: mlir.Operation) -> None:
        otherwise, end = self.asm.label(), self.asm.label()
        self.asm.br_ifnot(self._scalar(op.operands[0]), otherwise)
        yielded = self._block(op.regions[0].blocks[0])
        results = [self._fresh(one) for one in yielded]
        self._move(results, yielded)
        if list(op.regions[1].blocks):
            self.asm.br(end)
            self.asm.bind(otherwise)
            self._move(results, self._block(op.regions[1].blocks[0]))
        else:
            self.asm.bind(otherwise)
        self.asm.bind(end)
        self.values.update(zip(op.results, results, strict=True))

    def _switch(self, op: mlir.Operation) -> None:
        """The first region is the default, the others are for one value each."""
        end, chosen = self.asm.label(), self._scalar(op.operands[0])
        results: list[Any] | None = None
        cases = list(mlir.DenseI64ArrayAttr(op.attributes["cases"]))
        for number, region in [*zip(cases, list(op.regions)[1:], strict=True), (None, op.regions[0])]:
            following = self.asm.label()
            if number is not None:
                self.asm.br_ifnot(self.asm.eq(None, chosen, self.asm.const(number)), following)
            yielded = self._block(region.blocks[0])
            results = [self._fresh(one) for one in yielded] if results is None else results
            self._move(results, yielded)
            self.asm.br(end)
            self.asm.bind(following)
        self.asm.bind(end)
        self.values.update(zip(op.results, results or [], strict=True))

    def _inlined(self, op: mlir.Operation, region: mlir.Region) -> None:
        """A region that is entered here and left behind it."""
        end, results = self.asm.label(), [self.asm.scalar() for _ in op.results]
        left = self._region(region, end, results)
        if len(list(region.blocks)) == 1:
            results = left
        self.asm.bind(end)
        self.values.update(zip(op.results, results, strict=True))

    def _execute(self, op: mlir.Operation) -> None:
        self._inlined(op, op.regions[0])

    def _call(self, op: mlir.Operation) -> None:
        name = mlir.FlatSymbolRefAttr(op.attributes["callee"]).value
        if name in _ALLOCATE:
            self.values[op.results[0]] = self.asm.local(None, self._scalar(list(op.operands)[-1]))
        elif name == "free":
            self.asm.release(self._scalar(op.operands[0]))
        else:
            callee = self.symbols[name]
            arguments = callee.regions[0].blocks[0].arguments
            self.values.update(zip(arguments, [self._get(one) for one in op.operands], strict=True))
            self._inlined(op, callee.regions[0])

    def _check(self, op: mlir.Operation) -> None:
        self.asm.check(self._scalar(op.operands[0]))

    # Constants, and values of several parts.

    def _constant(self, op: mlir.Operation) -> None:
        self.values[op.results[0]] = self._number(op.attributes["value"], op.results[0].type)

    def _number(self, attribute: mlir.Attribute, type_: mlir.Type) -> Scalar:
        if isinstance(attribute, mlir.FloatAttr):
            return self.asm.const(float_bits(attribute.value, type_))
        if not isinstance(attribute, mlir.IntegerAttr | mlir.BoolAttr):
            raise InternalError(f"a constant of type {type_} has no bytecode: {attribute}")
        return self.asm.const(integer_bits(int(attribute.value), bits_of(type_)))

    def _complex_constant(self, op: mlir.Operation) -> None:
        type_ = mlir.ComplexType(op.results[0].type).element_type
        self.values[op.results[0]] = tuple(self._number(part, type_) for part in mlir.ArrayAttr(op.attributes["value"]))

    def _unset(self, op: mlir.Operation) -> None:
        self.values[op.results[0]] = None

    def _create(self, op: mlir.Operation) -> None:
        self.values[op.results[0]] = tuple(self._get(operand) for operand in op.operands)

    def _part(self, op: mlir.Operation) -> None:
        whole = self._get(op.operands[0])
        self.values[op.results[0]] = None if whole is None else whole[op.name == "complex.im"]

    def _extract(self, op: mlir.Operation) -> None:
        value = self._get(op.operands[0])
        for position in mlir.DenseI64ArrayAttr(op.attributes["position"]):
            value = value[position] if isinstance(value, tuple) and position < len(value) else None
        self.values[op.results[0]] = value

    def _insert(self, op: mlir.Operation) -> None:
        path = list(mlir.DenseI64ArrayAttr(op.attributes["position"]))
        self.values[op.results[0]] = _with(self._get(op.operands[0]), path, self._get(op.operands[1]))

    def _select(self, op: mlir.Operation) -> None:
        condition = self._scalar(op.operands[0])
        a, b = (self._get(operand) for operand in list(op.operands)[1:])

        def select(one: Any, other: Any) -> Any:
            if isinstance(one, tuple) or isinstance(other, tuple):
                parts = len(one) if isinstance(one, tuple) else len(other)
                pairs = zip(one or (None,) * parts, other or (None,) * parts, strict=True)
                return tuple(select(left, right) for left, right in pairs)
            return self.asm.select(None, condition, self._flat(one)[0], self._flat(other)[0])

        self.values[op.results[0]] = select(a, b)

    # Memory.

    def _address(self, op: mlir.Operation) -> None:
        """An address and steps from it; one step of elements is left to the instruction that goes there."""
        base, *dynamic = [self._scalar(operand) for operand in op.operands]
        indices = list(mlir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"]))
        sizes = places.steps(mlir.TypeAttr(op.attributes["elem_type"]).value, len(indices))
        offset = sum(index * size for index, size in zip(indices, sizes, strict=True) if index != places.DYNAMIC)
        steps = [size for index, size in zip(indices, sizes, strict=True) if index == places.DYNAMIC]
        if len(steps) == 1 and not offset and places.is_read_whole(op, steps[0]):
            self.values[op.results[0]] = Place(base, dynamic[0], steps[0])
            return
        for step, index in zip(steps, dynamic, strict=True):
            base = places.address_of(self.asm, Place(base, index, step))
        self.values[op.results[0]] = Place(base, None, 1, offset)

    def _load(self, op: mlir.Operation) -> None:
        place, type_ = self._get(op.operands[0]), op.results[0].type
        if isinstance(type_, places.NARROW) and all(_is_to_f32(use.owner.operation) for use in op.results[0].uses):
            self.widened.add(op.results[0])
            self.values[op.results[0]] = places.load(self.asm, place, places.narrow_memory(type_))
            return
        made = [
            places.load(self.asm, place, places.memory_of(field), offset) for field, offset in places.fields_of(type_)
        ]
        self.values[op.results[0]] = made[0] if len(made) == 1 else tuple(made)

    def _store(self, op: mlir.Operation) -> None:
        place, type_ = self._get(op.operands[1]), op.operands[0].type
        if op.operands[0] in self.widened:
            places.store(self.asm, self._scalar(op.operands[0]), place, places.narrow_memory(type_))
            return
        parts = self._flat(self._get(op.operands[0]))
        if len(parts) == 1 and len(places.fields_of(type_)) > 1:
            parts *= len(places.fields_of(type_))  # never set
        for part, (field, offset) in zip(parts, places.fields_of(type_), strict=True):
            places.store(self.asm, part, place, places.memory_of(field), offset)

    def _alloca(self, op: mlir.Operation) -> None:
        size = places.size_of(mlir.TypeAttr(op.attributes["elem_type"]).value)
        count = _constant(op.operands[0])
        if count is not None:
            self.values[op.results[0]] = self.asm.local_at_entry(count * size)
            return
        number = self.asm.mul(None, self._scalar(op.operands[0]), self.asm.const(size))
        self.values[op.results[0]] = self.asm.local(None, number)

    def _copy(self, op: mlir.Operation) -> None:
        self.asm.copy(*(self._scalar(operand) for operand in list(op.operands)[:3]))

    def _fill(self, op: mlir.Operation) -> None:
        self.asm.fill(*(self._scalar(operand) for operand in list(op.operands)[:3]), Memory.I8)

    def _global(self, op: mlir.Operation) -> None:
        symbol = self.symbols[mlir.FlatSymbolRefAttr(op.attributes["global_name"]).value]
        self.values[op.results[0]] = self.asm.data_address(_bytes_of(symbol), 64)


def _bytes_of(symbol: mlir.Operation) -> bytes:
    """The contents of a constant global."""
    value = symbol.attributes["value"]
    if isinstance(value, mlir.DenseElementsAttr | mlir.DenseResourceElementsAttr):
        return np.ascontiguousarray(array_of(value)).tobytes()
    type_ = mlir.TypeAttr(symbol.attributes["global_type"]).value
    size = places.size_of(type_)
    bits = float_bits(value.value, type_) if isinstance(value, mlir.FloatAttr) else int(value.value)  # type: ignore
    return (bits % (1 << 8 * size)).to_bytes(size, "little")


def _with(value: Any, path: Sequence[int], part: Any) -> Any:
    """A value with one part replaced."""
    if not path:
        return part
    parts = list(value) if isinstance(value, tuple) else []
    parts += [None] * (path[0] + 1 - len(parts))
    parts[path[0]] = _with(parts[path[0]], path[1:], part)
    return tuple(parts)


def _is_to_f32(op: mlir.Operation) -> bool:
    return op.name == "arith.extf" and isinstance(op.results[0].type, mlir.F32Type)


def _constant(value: mlir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, mlir.Block):
        return None
    if owner.name == "builtin.unrealized_conversion_cast":
        return _constant(owner.operands[0])
    if owner.name not in ("arith.constant", "llvm.mlir.constant"):
        return None
    attribute = owner.attributes["value"]
    return int(attribute.value) if isinstance(attribute, mlir.IntegerAttr) else None


_HANDLERS: dict[str, Callable[[Translator, mlir.Operation], None]] = {
    "scf.for": Translator._for,
    "scf.while": Translator._while,
    "scf.if": Translator._if,
    "scf.index_switch": Translator._switch,
    "scf.execute_region": Translator._execute,
    "func.call": Translator._call,
    "llvm.call": Translator._call,
    "cf.assert": Translator._check,
    "arith.constant": Translator._constant,
    "llvm.mlir.constant": Translator._constant,
    "complex.constant": Translator._complex_constant,
    "llvm.mlir.poison": Translator._unset,
    "llvm.mlir.undef": Translator._unset,
    "llvm.mlir.zero": Translator._unset,
    "ub.poison": Translator._unset,
    "complex.create": Translator._create,
    "complex.re": Translator._part,
    "complex.im": Translator._part,
    "llvm.extractvalue": Translator._extract,
    "llvm.insertvalue": Translator._insert,
    "arith.select": Translator._select,
    "llvm.select": Translator._select,
    "llvm.getelementptr": Translator._address,
    "llvm.load": Translator._load,
    "llvm.store": Translator._store,
    "llvm.alloca": Translator._alloca,
    "llvm.intr.memcpy": Translator._copy,
    "llvm.intr.memmove": Translator._copy,
    "llvm.intr.memset": Translator._fill,
    "llvm.mlir.addressof": Translator._global,
}
