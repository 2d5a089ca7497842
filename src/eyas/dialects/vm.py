"""`vm`: the host program as instructions of the virtual machine.

The ops are made from the same table as the encoder, the runtime's decoder and the reference page (eyas.module.isa): one
op for each instruction, registers as values of type i64 or `!vm.ref`, immediates as attributes. Control flow is
upstream's `cf.br` and `cf.cond_br`; arguments of blocks become moves.
"""

from collections.abc import Sequence
from types import new_class
from typing import Any

from torch_mlir import ir as mlir

from eyas.ir.dialect import Dialect, IntegersAttr, Operand, Result
from eyas.module import isa
from eyas.module.isa import Kind


class Vm(Dialect, name="vm"):
    pass


class RefType(Vm.Type, name="ref"):
    """A span of a buffer, or a command buffer."""


I64 = mlir.IntegerType[64]
_BRANCHES = ("br", "br_if", "br_null")


def _annotations(op: isa.Op) -> dict[str, Any]:
    """The fields of an instruction's op: registers become operands and results, the rest attributes.

    A binding list becomes reference, offset and length operands (null references for slots) and a table of attributes.
    """
    fields: dict[str, Any] = {}
    for operand in op.operands:
        register = {
            Kind.I64: Operand[I64],
            Kind.I64_OPTIONAL: Operand[I64],
            Kind.REF: Operand[RefType],
            Kind.I64_DST: Result[I64],
            Kind.REF_DST: Result[RefType],
        }.get(operand.kind)
        if operand.kind is Kind.BINDING:
            fields[f"{operand.name}_refs"] = Sequence[Operand[RefType]]
            fields[f"{operand.name}_ranges"] = Sequence[Operand[I64]]
            fields[f"{operand.name}_slots"] = IntegersAttr
            fields[f"{operand.name}_access"] = IntegersAttr
        elif operand.kind is Kind.LABEL:
            continue  # successors of the cf terminator
        elif register is None:
            fields[operand.name] = Any
        else:
            fields[operand.name] = Sequence[register] if operand.is_list else register
    # Results come last so that builders read like the assembler's methods.
    return dict(sorted(fields.items(), key=lambda item: "OpResult" in str(item[1])))


def _make(op: isa.Op) -> type:
    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = _annotations(op)
        namespace["__doc__"] = op.doc

    name = "".join(part.capitalize() for part in op.name.split("_")) + "Op"
    return new_class(name, (Vm.Operation,), {"name": op.name}, body)


class IsNullOp(Vm.Operation, name="is_null"):
    """Whether a reference is null. Only a `cf.cond_br` may use it, and is encoded with it as `br_null`."""

    ref: Operand[RefType]
    result: Result[mlir.IntegerType[1]]  # pyright: ignore[reportGeneralTypeIssues]


class IsNonzeroOp(Vm.Operation, name="is_nonzero"):
    """Whether a register is not 0. Only a `cf.cond_br` may use it, and is encoded with it as `br_if`."""

    value: Operand[I64]
    result: Result[mlir.IntegerType[1]]  # pyright: ignore[reportGeneralTypeIssues]


OPS = {op.name: _make(op) for op in isa.OPS if op.name not in _BRANCHES}
"""Instruction name -> op class."""
