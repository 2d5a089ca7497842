"""`convert-hal-to-vm`: the host program as VM instructions."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import cf, func

from eyas.dialects import vm
from eyas.errors import CompileError
from eyas.ir import Pass, describe_location
from eyas.ir.walk import entry_block, find_ops, functions
from eyas.module.isa import Alloc, Element, Float
from eyas.passes.vm.host_calls import HostCalls

_ARITH = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.divsi": "divs",
    "arith.divui": "divu",
    "arith.remsi": "rems",
    "arith.remui": "remu",
    "arith.ceildivsi": "ceildivs",
    "arith.floordivsi": "floordivs",
    "arith.minsi": "mins",
    "arith.maxsi": "maxs",
    "arith.minui": "minu",
    "arith.maxui": "maxu",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.shli": "shl",
    "arith.shrsi": "shrs",
    "arith.shrui": "shru",
}
# Floats are f64 in registers; those of a narrower type are rounded after each operation.
_FLOAT = {
    "arith.addf": "fadd",
    "arith.subf": "fsub",
    "arith.mulf": "fmul",
    "arith.divf": "fdiv",
    "arith.remf": "frem",
    "arith.minimumf": "fmin",
    "arith.maximumf": "fmax",
    "arith.negf": "fneg",
    "arith.sitofp": "itof",
    "arith.uitofp": "utof",
    "arith.extf": "mov",
    "arith.truncf": "mov",
    "math.powf": "fpow",
    "math.floor": "ffloor",
    "math.ceil": "fceil",
    "math.trunc": "ftrunc",
    "math.roundeven": "fnearest",
    "math.round": "faway",
    "math.sqrt": "fsqrt",
    "math.absf": "fabs",
    "math.exp": "fexp",
    "math.log": "flog",
    "math.log2": "flog2",
}
_FLOAT_TYPES = {"f64": Float.F64, "f32": Float.F32, "f16": Float.F16, "bf16": Float.BF16}
# arith.cmpf predicates from "false" to "true": how the ordered ones are computed; the others are their opposites.
_ORDERED = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "ord": 7}
_UNORDERED = {"ueq": "one", "ugt": "ole", "uge": "olt", "ult": "oge", "ule": "ogt", "une": "oeq", "uno": "ord"}
_PREDICATES = ["false", *_ORDERED, *_UNORDERED, "true"]
# arith.cmpi predicates: instruction, and whether the operands change places.
_COMPARE = [
    ("eq", False),
    ("ne", False),
    ("lts", False),
    ("les", False),
    ("lts", True),
    ("les", True),
    ("ltu", False),
    ("leu", False),
    ("ltu", True),
    ("leu", True),
]
_ELEMENTS = {"i1": Element.I1, "i8": Element.I8, "i16": Element.I16, "i32": Element.I32, "i64": Element.I64}


@dataclass(frozen=True)
class ConvertHalToVm(Pass):
    """One instruction for each op; the workgroup counts follow from the exports' grids.

    A recording with a memo is guarded: `global_load`, and only when that is null record and `global_store`.
    """

    name: ClassVar[str] = "convert-hal-to-vm"

    def run(self, module: mlir.Module) -> None:
        exports = {}
        for executable_index, executable in enumerate(find_ops(module, "hal.executable")):
            for export_index, attribute in enumerate(executable.exports):
                exports[attribute["name"].value] = (executable_index, export_index, attribute["grid"])
        bodies = {op.body.value for op in find_ops(module, "hal.loop", "hal.while")}
        bodies |= {one.value for op in find_ops(module, "hal.branch") for one in (op.then, op.otherwise)}
        by_name = {mlir.StringAttr(one.attributes["sym_name"]).value: one for one in functions(module)}
        for name, function in by_name.items():
            if name not in bodies:
                _Conversion(module, function, exports, by_name).run()
        for name in bodies:
            by_name[name].operation.erase()
        for declared in list(module.body.operations):
            if declared.operation.name == "func.func" and not len(declared.operation.regions[0].blocks):
                declared.operation.erase()  # what calls of loops and branches were made with


class _Conversion:
    def __init__(self, module: mlir.Module, function: mlir.OpView, exports: dict, by_name: Mapping[str, mlir.OpView]):
        self.module, self.old, self.exports, self.by_name = module, function, exports, by_name
        self.values: dict[mlir.Value, mlir.Value] = {}
        self.i64, self.ref = mlir.IntegerType.get_signless(64), vm.RefType.get()
        self.keys: dict[str, int] = {}
        self.command: mlir.Value | None = None

    def run(self) -> None:
        name = self.old.attributes["sym_name"].value
        attributes = {key: self.old.attributes[key] for key in self.old.attributes if "." in key}
        with mlir.InsertionPoint(self.module.body), self.old.operation.location:
            new = func.FuncOp(f"{name}.vm", ([], []))
        for key, value in attributes.items():
            new.attributes[key] = value
        self.new = new
        self.block = new.add_entry_block()
        for op in list(entry_block(self.old).operations):
            with mlir.InsertionPoint(self.block), op.operation.location:
                self.convert(op)
        self.old.operation.erase()
        new.attributes["sym_name"] = mlir.StringAttr.get(name)

    def emit(self, name: str, *operands: object) -> mlir.Value:
        """Emits an instruction; its results' types follow from the table."""
        op = vm.OPS[name]
        results = [self.i64 if "IntegerType" in str(f.constraint) else self.ref for f in op._fields if _is_result(f)]
        made = op(*operands, *results)
        return made.operation.results[0] if len(made.operation.results) else None

    def constant(self, value: int) -> mlir.Value:
        return self.emit("const_i64", mlir.IntegerAttr.get(self.i64, value))

    def integer(self, value: int) -> mlir.IntegerAttr:
        return mlir.IntegerAttr.get(self.i64, value)

    def registers(self, values) -> list[mlir.Value]:
        return [self.values[value] for value in values]

    def convert(self, op: mlir.OpView) -> None:
        name = op.operation.name
        handler = getattr(self, "_" + name.replace(".", "_"), None)
        if handler is not None:
            made = handler(op)
        elif name in _ARITH:
            made = self.emit(_ARITH[name], *self.registers(op.operands))
        elif name in _FLOAT:
            made = self._rounded(op, self.emit(_FLOAT[name], *self.registers(op.operands)))
        else:
            where = describe_location(op.operation.location)
            raise CompileError(
                f"a size is computed with {name} (at {where}), which the host program cannot run; give the model fixed"
                " sizes"
            )
        if made is not None:
            self.values[op.operation.results[0]] = made

    def _arith_constant(self, op):
        value = op.attributes["value"]
        if isinstance(value, mlir.FloatAttr):
            (bits,) = struct.unpack("<q", struct.pack("<d", value.value))
            return self.constant(bits)
        return self.constant(value.value)

    def _rounded(self, op, value: mlir.Value) -> mlir.Value:
        """A float as its type has it."""
        kind = _FLOAT_TYPES[str(op.results[0].type)]
        return value if kind == Float.F64 else self.emit("fround", value, self.integer(kind))

    def _arith_fptosi(self, op):
        return self._narrowed(op, self.emit("ftoi", self.values[op.operands[0]]), "sext")

    def _arith_fptoui(self, op):
        return self._narrowed(op, self.emit("ftou", self.values[op.operands[0]]), "zext")

    def _narrowed(self, op, value: mlir.Value, kind: str) -> mlir.Value:
        width = op.results[0].type.width
        return value if width >= 64 else self.emit(kind, value, self.integer(width))

    def _arith_bitcast(self, op):
        source, target, value = op.operands[0].type, op.results[0].type, self.values[op.operands[0]]
        if isinstance(source, mlir.FloatType):
            value = self.emit("fpack", value, self.integer(_FLOAT_TYPES[str(source)]))
        if isinstance(target, mlir.FloatType):
            return self.emit("funpack", value, self.integer(_FLOAT_TYPES[str(target)]))
        return self._narrowed(op, value, "sext")

    def _arith_minnumf(self, op):
        return self._preferring_numbers("fmin", *self.registers(op.operands))

    def _arith_maxnumf(self, op):
        return self._preferring_numbers("fmax", *self.registers(op.operands))

    def _preferring_numbers(self, name: str, left: mlir.Value, right: mlir.Value) -> mlir.Value:
        both = self.emit(name, left, right)
        either = self.emit("select", self.emit("feq", left, left), left, right)
        is_number = self.emit("and", self.emit("feq", left, left), self.emit("feq", right, right))
        return self.emit("select", is_number, both, either)

    def _math_rsqrt(self, op):
        (one,) = struct.unpack("<q", struct.pack("<d", 1.0))
        root = self.emit("fsqrt", self.values[op.operands[0]])
        return self._rounded(op, self.emit("fdiv", self.constant(one), root))

    def _math_fpowi(self, op):
        base, power = self.registers(op.operands)
        return self._rounded(op, self.emit("fpow", base, self.emit("itof", power)))

    def _arith_cmpf(self, op):
        name = _PREDICATES[op.attributes["predicate"].value]
        if name in ("false", "true"):
            return self.constant(int(name == "true"))
        left, right = self.registers(op.operands)
        if name in _ORDERED:
            return self._ordered(name, left, right)
        return self.emit("xor", self._ordered(_UNORDERED[name], left, right), self.constant(1))

    def _ordered(self, name: str, a: mlir.Value, b: mlir.Value) -> mlir.Value:
        if name == "one":
            return self.emit("or", self.emit("flt", a, b), self.emit("flt", b, a))
        if name == "ord":
            return self.emit("and", self.emit("feq", a, a), self.emit("feq", b, b))
        if name in ("ogt", "oge"):
            a, b = b, a
        return self.emit({"oeq": "feq", "ogt": "flt", "oge": "fle", "olt": "flt", "ole": "fle"}[name], a, b)

    def _arith_index_cast(self, op):
        return self._resize(op, "sext")

    def _arith_index_castui(self, op):
        return self._resize(op, "zext")

    def _arith_trunci(self, op):
        # A truth value is 0 or 1 in a register, as comparisons give it.
        return self._resize(op, "zext" if op.results[0].type.width == 1 else "sext")

    _arith_extsi = _arith_index_cast
    _arith_extui = _arith_index_castui

    def _resize(self, op, kind: str):
        """Registers hold integers sign- or zero-extended from the narrower of both types."""
        widths = [t.width if isinstance(t, mlir.IntegerType) else 64 for t in (op.operands[0].type, op.results[0].type)]
        value = self.values[op.operands[0]]
        if min(widths) >= 64:
            return value
        return self.emit(kind, value, self.integer(min(widths)))

    def _arith_cmpi(self, op):
        name, is_swapped = _COMPARE[op.attributes["predicate"].value]
        left, right = self.registers(op.operands)
        return self.emit(name, right, left) if is_swapped else self.emit(name, left, right)

    def _arith_select(self, op):
        return self.emit("select", *self.registers(op.operands))

    def _cf_assert(self, op):
        vm.OPS["check"](self.values[op.operands[0]], op.attributes["msg"], [])

    def _hal_argument(self, op):
        return self.emit("arg", op.attributes["index"])

    def _hal_argument_dim(self, op):
        return self.emit("arg_dim", op.attributes["index"], op.dim)

    def _hal_parameter(self, op):
        return self.emit("param", op.key)

    def _hal_state(self, op):
        return self.emit("state", op.key)

    def _hal_allocate(self, op):
        kind = Alloc.RESULT if op.kind.value == "result" else Alloc.TRANSIENT
        return self.emit("buffer_alloc", self.values[op.bytes], self.integer(kind))

    def _hal_pack(self, op):
        count = len(list(op.sizes))
        made = vm.OPS["arena_pack"](self.registers(op.sizes), op.lifetimes, self.i64, [self.i64] * count)
        for old, new in zip(op.operation.results, made.operation.results, strict=True):
            self.values[old] = new
        if op.max_bytes.value:
            total, cap = made.operation.results[0], self.constant(op.max_bytes.value)
            message = mlir.StringAttr.get("intermediate tensors need {} bytes, more than the cap of {}")
            vm.OPS["check"](self.emit("les", total, cap), message, [total, cap])

    def _hal_load(self, op):
        element = self.integer(_ELEMENTS[op.element.value])
        return self.emit("buffer_load", self.values[op.source], self.values[op.offset], element)

    def _hal_result(self, op):
        vm.OPS["set_result"](op.attributes["index"], self.values[op.source], self.registers(op.dims))

    def _hal_submit(self, op):
        vm.OPS["submit"](self.values[op.command_buffer], self.registers(op.table))

    def _hal_loop(self, op):
        HostCalls(self).loop(op)

    def _hal_branch(self, op):
        HostCalls(self).branch(op)

    def _hal_while(self, op):
        HostCalls(self).while_(op)

    def _func_return(self, op):
        vm.OPS["return"]()
        func.ReturnOp([])

    def _hal_record(self, op):
        memo = op.memo.value
        if memo < 0:
            return self._record(op)
        loaded = self.emit("global_load", self.integer(memo))
        recording = mlir.Block.create_after(self.block)
        done = mlir.Block.create_after(recording)
        is_null = vm.IsNullOp(loaded, mlir.IntegerType.get_signless(1)).result
        cf.CondBranchOp(is_null, [], [], recording, done)
        with mlir.InsertionPoint(recording):
            vm.OPS["global_store"](self.integer(memo), self._record(op))
            cf.BranchOp([], done)
        self.block = done
        with mlir.InsertionPoint(done):
            self.values[op.result] = self.emit("global_load", self.integer(memo))
        return None

    def _record(self, op) -> mlir.Value:
        self.command = self.emit("cmd_create", op.slots)
        for inner in op.body.blocks[0].operations:
            with inner.operation.location:
                self._convert_command(inner)
        vm.OPS["cmd_end"](self.command)
        return self.command

    def _convert_command(self, op: mlir.OpView) -> None:
        name = op.operation.name
        if name == "hal.barrier":
            vm.OPS["cmd_barrier"](self.command)
        elif name == "hal.dispatch":
            executable, export, grid = self.exports[op.callee.value]
            constants = self.registers(op.constants)
            counts = [self._workgroups(axis, constants) for axis in grid]
            counts += [self.constant(1)] * (3 - len(counts))
            refs, ranges = self._binding_operands(op)
            vm.OPS["cmd_dispatch"](
                self.command, self.integer(executable), self.integer(export), *counts, constants, refs, ranges,
                op.slots, op.access,
            )  # fmt: skip
        elif name == "hal.copy":
            refs, ranges = self._binding_operands(op)
            slots = list(op.slots)
            directs = slots[0] == -1
            read, write = mlir.DenseI64ArrayAttr.get([1]), mlir.DenseI64ArrayAttr.get([2])
            vm.OPS["cmd_copy"](
                self.command, refs[: int(directs)], ranges[:2], mlir.DenseI64ArrayAttr.get(slots[:1]), read,
                refs[int(directs) :], ranges[2:], mlir.DenseI64ArrayAttr.get(slots[1:]), write,
            )  # fmt: skip

    def _binding_operands(self, op: mlir.OpView) -> tuple[list[mlir.Value], list[mlir.Value]]:
        ranges = []
        for offset, length in zip(op.offsets, op.lengths, strict=True):
            ranges += [self.values[offset], self.values[length]]
        return self.registers(op.buffers), ranges

    def _workgroups(self, axis: mlir.Attribute, constants: list[mlir.Value]) -> mlir.Value:
        """ceil(extent / piece), the extent being a product of push constants."""
        piece, factor, *symbols = list(axis)
        if not symbols:
            return self.constant(-(-factor // piece))
        extent = self.constant(factor)
        for symbol in symbols:
            extent = self.emit("mul", extent, constants[symbol])
        return self.emit("ceildivs", extent, self.constant(piece))


def _is_result(field: object) -> bool:
    return type(field).__name__ == "ResultDef"
