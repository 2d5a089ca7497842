"""Compiles one dispatch function to bytecode: analyse, choose a strategy, write instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch_mlir import ir as mlir

from eyas.codegen.common.backend import Backend, CompiledDispatch, generalize
from eyas.codegen.common.bufferize import in_place_results
from eyas.codegen.common.passes.guard_powers import GuardPowers
from eyas.codegen.vmvx.strategies import STRATEGIES
from eyas.module.vmvx_assembler import Assembler
from eyas.module.vmvx_executable import read_function, write_executable
from eyas.targets import Target

FORMAT = "vmvx"


class Vmvx(Backend):
    """Bytecode that the runtime interprets. A dispatch's object is the record of one function."""

    strategies = STRATEGIES

    def compile(self, module: mlir.Module, target: Target, disabled: frozenset[str]) -> CompiledDispatch:
        with module.context, mlir.Location.unknown():
            generalize(module)
            GuardPowers().run(module)
            function = next(op for op in module.body.operations if op.operation.name == "func.func")
            strategy, rejected = self.select(function, target, disabled)
            asm = assembler_for(function)
            strategy.lower(function, asm)
        return CompiledDispatch.of(asm.finish().encode(), strategy, rejected)

    def link(self, objects: Sequence[bytes], names: Sequence[str], target: Target, entry: str) -> bytes:
        functions = [read_function(one) for one in objects]
        assert all(one.name == entry for one in functions)
        return write_executable([replace(one, name=name) for one, name in zip(functions, names, strict=True)])

    def format(self, target: Target) -> str:
        return FORMAT


BACKEND = Vmvx()


def assembler_for(function: mlir.OpView) -> Assembler:
    """The assembler of a dispatch function: results are written, and arguments that results lie in."""
    types = mlir.FunctionType(function.attributes["function_type"].value)
    tensors = sum(isinstance(type_, mlir.RankedTensorType) for type_ in types.inputs)
    bindings = tensors + len(types.results)
    name = mlir.StringAttr(function.attributes["sym_name"]).value
    writes = [*range(tensors, bindings), *in_place_results(function).values()]
    return Assembler(name, bindings, len(types.inputs) - tensors, writes)
