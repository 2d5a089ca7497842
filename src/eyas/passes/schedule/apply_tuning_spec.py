"""`apply-tuning-spec`: dispatches that a tuning spec matches are told their schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.dialects import codegen, flow
from eyas.errors import CompileError
from eyas.passes.schedule.op_match import match_of, root_op
from eyas.passes.schedule.spec_program import SpecEntry, SpecProgram
from eyas.passes.targeted import TargetedPass
from eyas.specs import SpecSource


@dataclass(frozen=True)
class ApplyTuningSpec(TargetedPass):
    """Has MLIR's transform interpreter match each executable with the specs in order; the first entry that matches
    notes its strategy, which `select-strategies` keeps.

    Before anybody asks for strategies: results in place and packed weights follow from them. A schedule that the
    dispatch does not allow is an error where a user gave the spec; one of a spec that came with the package is left
    out, because there is a default. Executables that have a strategy already keep it.

        func.func private @main_dispatch_0_matmul(...) attributes {flow.executable}
      becomes
        ... attributes {flow.executable, codegen.strategy = #codegen.strategy<"contraction", {...}>,
                        codegen.tuned = "model.spec.mlir @matmul_64x768"}
    """

    name: ClassVar[str] = "apply-tuning-spec"
    spec: tuple[str, ...] = ()
    """Paths."""
    disable: tuple[str, ...] = ()
    specs: tuple[SpecSource, ...] = field(default=(), compare=False, repr=False)
    analyses: dict[str, Analysis] = field(default_factory=dict, compare=False, repr=False)
    on_warning: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    def run(self, module: mlir.Module) -> None:
        sources = [*map(SpecSource.read, self.spec), *self.specs]
        if not sources:
            return
        executables = [op for op in module.body.operations if flow.is_executable(op)]
        roots = {op: root_op(op) for op in executables if codegen.STRATEGY not in op.attributes}
        names = {root.name for root in roots.values()}
        records = [_Record(SpecProgram.read(source, self.target, module.context, names)) for source in sources]
        for function, root in roots.items():
            self._tune(function, root, records)
        module.operation.attributes[codegen.TUNING] = mlir.ArrayAttr.get([one.attribute() for one in records])

    def _tune(self, function: mlir.OpView, root: mlir.Operation, records: list[_Record]) -> None:
        from eyas.dialects.tuning import FACTS

        found = analysis_of(function, self.analyses, self.target.near_bytes)
        root.attributes[FACTS] = match_of(function, self.target, found).attribute()
        try:
            for record in records:
                entry = record.spec.apply(function, root)
                if entry is not None:
                    self._keep(function, found, record, entry)
                    return
        finally:
            del root.attributes[FACTS]

    def _keep(self, function: mlir.OpView, found: Analysis, record: _Record, entry: SpecEntry) -> None:
        """Keeps what an entry has noted, if the dispatch can run so and nobody switched it off."""
        name = function.attributes["sym_name"].value
        backend = backend_of(self.target)
        try:
            strategy = backend.noted_strategy(function)
            if {strategy.name, strategy.part_of} & {*self.disable}:
                del function.attributes[codegen.STRATEGY]
                record.refuse(entry, f"{name}: {strategy.name} is switched off")
                return
            backend.select(function, self.target, frozenset(self.disable), found)
        except CompileError as error:
            problem = f"{record.spec.say(entry)}: {error}"
            if not record.spec.source.shipped:
                raise CompileError(f"{problem}. Change the entry, or what it matches") from None
            del function.attributes[codegen.STRATEGY]
            record.refuse(entry, f"{name}: {error}")
            return
        function.attributes[codegen.TUNED] = mlir.StringAttr.get(f"{record.spec.source.name} @{entry.name}")
        record.used.setdefault(entry.name, []).append(name)


@dataclass(frozen=True)
class _Record:
    """What became of a spec: which of its entries decided what, for people."""

    spec: SpecProgram
    used: dict[str, list[str]] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)

    def refuse(self, entry: SpecEntry, reason: str) -> None:
        self.refused.setdefault(entry.name, []).append(reason)

    def attribute(self) -> mlir.DictAttr:
        tried = {*self.used, *self.refused}
        unused = [one.name for one in self.spec.entries if one.name not in tried]
        facts: dict[str, mlir.Attribute] = {
            "spec": mlir.StringAttr.get(self.spec.source.name),
            "digest": mlir.StringAttr.get(self.spec.source.digest),
            "default": mlir.BoolAttr.get(self.spec.source.shipped),
            "used": _lists(self.used),
            "refused": _lists(self.refused),
            "unused": _texts(unused),
            "other_targets": _texts([one.name for one in self.spec.others]),
        }
        return mlir.DictAttr.get(facts)


def _lists(lists: dict[str, list[str]]) -> mlir.DictAttr:
    return mlir.DictAttr.get({name: _texts(texts) for name, texts in lists.items()})


def _texts(texts: list[str]) -> mlir.ArrayAttr:
    return mlir.ArrayAttr.get([mlir.StringAttr.get(text) for text in texts])
