"""Tuning specs as data: entries that are made, read from text, printed and merged. Needs nothing of the search.

A spec's text is a transform program; docs/tuning-specs.md shows one. What is read here are programs in the form that
`Spec.text` prints, edited or not: each entry a sequence of one `tuning.match`, a schedule, and the end. Others can be
compiled with as well, and only not be merged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch_mlir import ir as mlir

from eyas.dialects import codegen
from eyas.errors import CompileError, UsageError
from eyas.ir import describe_location, make_context
from eyas.ir.matching import ENTRANCE, body_of, sequences_of
from eyas.passes.schedule.op_match import OpMatch, match_of
from eyas.passes.schedule.spec_program import MATCH, attributes_of, entries_of, parse_spec
from eyas.specs import SpecSource

HEADER, NOTE = "tuning.spec", "tuning.note"
"""On the module: where a spec comes from. On an entry: what it gained, for people."""

_FORM = ["tuning.match", "transform.param.constant", "transform.yield"]


@dataclass(frozen=True)
class Entry:
    """What is matched, and the schedule that it gets: `#codegen.strategy<"name", {...}>`, without `packed`."""

    name: str
    match: OpMatch
    schedule: str
    note: str = ""

    def text(self) -> str:
        lines = ",\n".join(f"      {name} = {_wrapped(value)}" for name, value in self.match.items().items())
        noted = f" attributes {{{NOTE} = {_quoted(self.note)}}}" if self.note else ""
        schedule = _wrapped(self.schedule)
        return _ENTRY.format(name=_symbol(self.name), noted=noted, match=MATCH, lines=lines, schedule=schedule)


@dataclass(frozen=True)
class Spec:
    """Entries in order, the first that matches a dispatch decides; `header` says where they come from: compiler,
    target, machine, date, what was gained."""

    entries: tuple[Entry, ...] = ()
    header: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """A transform program that `eyas compile --tuning-spec` takes and people can edit."""
        names = [entry.name for entry in self.entries]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"two entries of a tuning spec are called '{repeated[0]}'")
        header = ", ".join(f"{_key(name)} = {_quoted(value)}" for name, value in self.header.items())
        noted = f", {HEADER} = {{{header}}}" if header else ""
        pairs = ",\n".join(f"        {_symbol(name)} -> @set_schedule" for name in names)
        choice = _CHOICE.format(pairs=pairs) if names else ""
        return _SPEC.format(noted=noted, entries="\n".join(map(Entry.text, self.entries)), main=ENTRANCE, choice=choice)

    @staticmethod
    def parse(text: str, where: str = "<text>") -> Spec:
        """Reads what `text` printed; raises CompileError for what is no spec, UsageError for one of another form."""
        context, source = make_context(), SpecSource(where, text)
        program = parse_spec(source, context)
        with context:
            sequences = sequences_of(program)
            entries = tuple(_entry(sequences[one.name]) for one in entries_of(source, program))
            attributes = attributes_of(program)
            header = list(mlir.DictAttr(attributes[HEADER])) if HEADER in attributes else []
            return Spec(entries, {one.name: _plain(one.attr) for one in header})

    def renamed(self) -> Spec:
        """The same with names of which no two are equal."""
        seen: dict[str, int] = {}
        entries = []
        for entry in self.entries:
            seen[entry.name] = seen.get(entry.name, 0) + 1
            number = seen[entry.name]
            entries.append(entry if number == 1 else replace(entry, name=f"{entry.name}_{number}"))
        return replace(self, entries=tuple(entries))


def merge(specs: Sequence[Spec], tell: Callable[[str], None] = lambda _: None) -> Spec:
    """One spec of several: entries in the order given. Of those that match the same the first stays, and `tell` hears
    of the others when they differ, and of entries that never have their turn."""
    kept: list[Entry] = []
    for entry in (entry for spec in specs for entry in spec.entries):
        same = next((one for one in kept if one.match == entry.match), None)
        wider = next((one for one in kept if one.match.covers(entry.match)), None)
        if same is not None:
            if same.schedule != entry.schedule:
                tell(f"'{entry.name}' matches what '{same.name}' does, whose schedule is kept: {same.schedule}")
            continue
        if wider is not None:
            tell(f"'{entry.name}' comes after '{wider.name}', which matches all that it does: it never has its turn")
        kept.append(entry)
    names = dict.fromkeys(name for spec in specs for name in spec.header)
    values = {name: dict.fromkeys(spec.header[name] for spec in specs if name in spec.header) for name in names}
    return Spec(tuple(kept), {name: "; ".join(found) for name, found in values.items()}).renamed()


def note(function: mlir.OpView, schedule: str) -> None:
    """Notes a schedule on an executable, as a spec would: `select-strategies` keeps it, or says why it cannot."""
    try:
        with function.operation.context:
            function.attributes[codegen.STRATEGY] = mlir.Attribute.parse(schedule)
    except mlir.MLIRError as error:
        raise CompileError(f"'{schedule}' is no schedule: {str(error).splitlines()[0]}") from None


def schedule_of(function: mlir.OpView) -> str:
    """The text of the schedule that is noted on an executable, less what `pack-weights` added."""
    noted = function.attributes[codegen.STRATEGY]
    with function.operation.context:
        kept = {one.name: one.attr for one in mlir.DictAttr(noted.schedule) if one.name != "packed"}
        return _schedule(codegen.StrategyAttr.get(noted.strategy, mlir.DictAttr.get(kept)))


def name_of(match: OpMatch) -> str:
    """What an entry may be called: kind, sizes and type of the result."""
    sizes = "x".join(str(size).removeprefix("multiple of ").replace("dynamic", "d") for size in match.sizes or ())
    parts = [match.kind or "op", sizes, *(match.types or ())[-1:]]
    return re.sub(r"\W+", "_", "_".join(filter(None, parts))).strip("_")


def _entry(sequence: mlir.OpView) -> Entry:
    name = sequence.attributes["sym_name"].value
    ops = list(body_of(sequence).operations)
    if [op.operation.name for op in ops] != _FORM or not isinstance(ops[1].attributes["value"], codegen.StrategyAttr):
        raise UsageError(
            f"entry @{name} ({describe_location(sequence.operation.location)}) can be compiled with and not be merged:"
            f" it has {', '.join(op.operation.name for op in ops)} where {', '.join(_FORM)} are known"
        )
    noted = attributes_of(sequence)
    match = OpMatch.of_attributes(attributes_of(ops[0]))
    return Entry(name, match, _schedule(ops[1].attributes["value"]), _plain(noted[NOTE]) if NOTE in noted else "")


def _schedule(attribute: mlir.Attribute) -> str:
    return str(attribute).replace(" : i64", "")


def _plain(attribute: mlir.Attribute) -> str:
    return attribute.value if isinstance(attribute, mlir.StringAttr) else str(attribute)


def _quoted(text: str) -> str:
    """A string as MLIR has it."""
    return json.dumps(text.replace("\n", " ").replace("\t", " "), ensure_ascii=False)


def _symbol(name: str) -> str:
    return f"@{name}" if re.fullmatch(r"[A-Za-z_][\w$.-]*", name, re.ASCII) else f"@{_quoted(name)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else _quoted(name)


_LINE = 104


def _wrapped(text: str) -> str:
    """Long lists and schedules with an element in each line."""
    if len(text) <= _LINE:
        return text
    depth, made = 0, []
    least = 2 if text.startswith("#") else 1
    for position, character in enumerate(text):
        # The arrow of a map closes nothing.
        depth += (character in "[{(<") - (character in "]})>" and text[position - 1] != "-")
        made.append(character)
        if character in "[{" and depth == least:
            made.append("\n        ")
        elif character == "," and depth == least:
            made.append("\n       ")
    return "".join(made)


_ENTRY = """\
  transform.named_sequence {name}(%op: !transform.any_op {{transform.readonly}})
      -> (!transform.any_op, !transform.any_param){noted} {{
    "{match}"(%op) {{
{lines}
    }} : (!transform.any_op) -> ()
    %schedule = transform.param.constant
      {schedule}
      -> !transform.any_param
    transform.yield %op, %schedule : !transform.any_op, !transform.any_param
  }}
"""

_SPEC = """\
// A tuning spec: `eyas compile --tuning-spec`. The first entry that matches a dispatch decides its schedule.
module attributes {{transform.with_named_sequence{noted}}} {{
{entries}
  transform.named_sequence @set_schedule(
      %op: !transform.any_op {{transform.readonly}}, %schedule: !transform.any_param {{transform.readonly}}) {{
    transform.annotate %op "codegen.strategy" = %schedule : !transform.any_op, !transform.any_param
    transform.yield
  }}

  transform.named_sequence @{main}(%op: !transform.any_op) {{
{choice}    transform.yield
  }}
}}
"""

_CHOICE = """\
    %done = transform.foreach_match restrict_root in %op
{pairs}
      : (!transform.any_op) -> !transform.any_op
"""

__all__ = ["Entry", "OpMatch", "Spec", "match_of", "merge", "name_of", "note", "schedule_of"]
