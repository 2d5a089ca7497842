"""A tuning spec that was read for one target: a transform program whose entries are checked and numbered."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.dialects import codegen, load_on_demand
from eyas.errors import CompileError, TargetError
from eyas.ir import describe_location
from eyas.ir.diagnostics import first_diagnostic
from eyas.passes.schedule.op_match import check_match
from eyas.specs import SpecSource
from eyas.targets import Target
from eyas.targets.pattern import check_pattern, matches

MATCH = "tuning.match"
_CONSTANT, _CHOICE = "transform.param.constant", "transform.foreach_match"


@dataclass(frozen=True)
class SpecEntry:
    """A pair of matcher and action, by the matcher's name, and where it stands."""

    name: str
    action: str
    where: str
    target: str | None
    strategies: tuple[str, ...]
    """Of the schedules in its text."""
    asks: tuple[Mapping[str, mlir.Attribute], ...]
    """What each of its `tuning.match` says."""


@dataclass(frozen=True)
class SpecProgram:
    """What a source says for one target. `program` has only entries for it, each of which notes its number; `others`
    are those for other targets."""

    source: SpecSource
    program: mlir.OpView | None
    entries: tuple[SpecEntry, ...]
    others: tuple[SpecEntry, ...]

    @staticmethod
    def read(source: SpecSource, target: Target, context: mlir.Context, names: Collection[str]) -> SpecProgram:
        """Reads a spec for ops of some names; raises CompileError that names the line, what is wrong with it and what
        is allowed."""
        from eyas.ir.matching import note_number, outline_matchers, pairs_of, set_pairs

        program = parse_spec(source, context)
        every = list(entries_of(source, program))
        mine = [one for one in every if one.target is None or matches(one.target, target)]
        others = tuple(one for one in every if one not in mine)
        if not mine:
            return SpecProgram(source, None, (), others)
        for one in mine:
            _check_strategies(one, target)
        with context, mlir.Location.unknown():
            choice = _choice(source, program)
            assert choice is not None
            pairs = [(matcher, action) for matcher, action in pairs_of(choice) if matcher in {one.name for one in mine}]
            numbered = [
                (matcher, note_number(program, action, number, "tuning.entry"))
                for number, (matcher, action) in enumerate(pairs)
            ]
            set_pairs(choice, numbered)
            outline_matchers(program, MATCH, "tuning.test", sorted(names))
        return SpecProgram(source, program, tuple(mine), others)

    def apply(self, function: mlir.OpView, root: mlir.Operation) -> SpecEntry | None:
        """Has the interpreter match an executable by its root op, and moves what the first entry that does notes from
        there to the function; None when no entry matches."""
        from eyas.dialects.tuning import ENTRY, FACTS, true_of
        from eyas.ir.matching import interpret

        facts = mlir.DictAttr(root.attributes[FACTS])
        # Most dispatches match nothing, and the interpreter takes a while to find out.
        if self.program is None or not any(all(true_of(asked, facts) for asked in one.asks) for one in self.entries):
            return None
        try:
            interpret(self.program, root)
        except ValueError as error:
            raise CompileError(f"tuning spec '{self.source.name}': {_last_line(error)}") from None
        noted = {name: root.attributes[name] for name in (ENTRY, codegen.STRATEGY) if name in root.attributes}
        for name in noted:
            del root.attributes[name]
        if ENTRY not in noted:
            return None
        entry = self.entries[mlir.IntegerAttr(noted[ENTRY]).value]
        strategy = noted.get(codegen.STRATEGY)
        if strategy is None:
            raise CompileError(f"{self.say(entry)}: its action @{entry.action} noted no {codegen.STRATEGY}")
        function.attributes[codegen.STRATEGY] = strategy
        return entry

    def say(self, entry: SpecEntry) -> str:
        """What errors call an entry."""
        return f"tuning spec {entry.where}, entry @{entry.name}"


def parse_spec(source: SpecSource, context: mlir.Context) -> mlir.OpView:
    """The module of a spec, in a context that knows its ops."""
    with context:
        load_on_demand("tuning")
        try:
            program = mlir.Operation.parse(source.text, source_name=source.name).opview
        except mlir.MLIRError as error:
            where, message = first_diagnostic(error)
            raise CompileError(f"the tuning spec '{source.name}' is not valid MLIR: {message} (at {where})") from None
    if program.operation.name != "builtin.module":
        raise CompileError(
            f"the tuning spec '{source.name}' is a {program.operation.name}; it must be a module with the attribute"
            " transform.with_named_sequence"
        )
    return program


def entries_of(source: SpecSource, program: mlir.OpView) -> Iterator[SpecEntry]:
    """The entries of a spec in order, each checked as far as that can be done without a dispatch."""
    from eyas.ir.matching import body_of, pairs_of, sequences_of

    sequences, choice = sequences_of(program), _choice(source, program)
    for name, action in pairs_of(choice) if choice is not None else ():
        where = describe_location(sequences[name].operation.location)
        target, strategies, asks = None, [], []
        for op in body_of(sequences[name]).operations:
            line = describe_location(op.operation.location)
            if op.operation.name == MATCH:
                said = attributes_of(op)
                if (problem := check_match(said)) is not None:
                    raise CompileError(f"tuning spec {line}, entry @{name}: {MATCH} {problem}{_hint(said)}")
                asks.append(dict(sorted(said.items(), key=lambda one: one[0] != "sizes")))  # what differs most, first
                target = _target(said, f"tuning spec {line}, entry @{name}") or target
            elif op.operation.name == _CONSTANT and isinstance(op.attributes["value"], codegen.StrategyAttr):
                strategies.append(mlir.StringAttr(op.attributes["value"].strategy).value)
        yield SpecEntry(name, action, where, target, tuple(strategies), tuple(asks))


def attributes_of(op: mlir.OpView) -> dict[str, mlir.Attribute]:
    attributes = op.operation.attributes
    return {attributes[number].name: attributes[number].attr for number in range(len(attributes))}


def _target(said: dict[str, mlir.Attribute], where: str) -> str | None:
    if "target" not in said:
        return None
    text = mlir.StringAttr(said["target"]).value
    try:
        check_pattern(text)
    except TargetError as error:
        raise CompileError(f"{where}: {error}") from None
    return text


def _choice(source: SpecSource, program: mlir.OpView) -> mlir.OpView | None:
    """The one list of entries that a spec has, or None for one that is empty."""
    from eyas.ir.matching import ENTRANCE, body_of, sequences_of

    main = sequences_of(program).get(ENTRANCE)
    found = [] if main is None else [op for op in body_of(main).operations if op.operation.name == _CHOICE]
    if main is None or len(found) > 1:
        raise CompileError(
            f"the tuning spec '{source.name}' needs a sequence @{ENTRANCE} with one {_CHOICE}, the list of its entries;"
            f" it has {'no such sequence' if main is None else f'{len(found)} of them'}"
        )
    return found[0] if found else None


def _check_strategies(entry: SpecEntry, target: Target) -> None:
    known = [strategy.name for strategy in backend_of(target).strategies]
    for name in entry.strategies:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise CompileError(
                f"tuning spec {entry.where}, entry @{entry.name}: unknown strategy '{name}'.{hint} For"
                f" {target.backend} there are: {', '.join(known)}"
            )


def _hint(said: dict[str, mlir.Attribute]) -> str:
    known = importlib.import_module("eyas.dialects.tuning").NAMES
    near = [one for name in said if name not in known for one in difflib.get_close_matches(name, known, 1)]
    return f"; did you mean '{near[0]}'?" if near else ""


def _last_line(error: ValueError) -> str:
    return str(error).splitlines()[-1].removeprefix("Diagnostic message at ")
