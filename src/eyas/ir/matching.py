"""Transform-dialect programs whose matchers are written in Python, run by MLIR's own interpreter.

`transform.foreach_match` takes only ops with an interface that the bindings cannot attach. `transform.include` has it,
and may call a sequence of any transform ops; so each op of ours inside a matcher is moved into a sequence of its own
before the program runs, as an op that gives 1 or 0, which upstream's comparison then lets pass or not (the bindings
print something for each failure of an op that is written in Python). Texts do not show that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch_mlir import ir as mlir
from torch_mlir.dialects import transform
from torch_mlir.dialects.transform import interpreter

AnyOp, AnyParam = transform.AnyOpType, transform.AnyParamType

ENTRANCE = "__transform_main"
"""The sequence that a program begins with, as upstream's interpreter pass has it."""


def matcher(matches: Callable[[mlir.OpView, mlir.Operation], bool]) -> list[type]:
    """Traits of an op with one operand that says whether `matches(op, payload)` holds: with a result, which is 1 or 0
    then, or by failing."""

    class Decides(transform.TransformOpInterface):
        @staticmethod
        def apply(op: mlir.OpView, rewriter: object, results: transform.TransformResults, state: Any) -> Any:
            del rewriter
            outcome = transform.DiagnosedSilenceableFailure
            found = all(matches(op, payload.operation) for payload in state.get_payload_ops(op.operands[0]))
            for result in op.results:
                results.set_params(result, [_integer(found)])
                found = True
            return outcome.Success if found else outcome.SilenceableFailure

        @staticmethod
        def allow_repeated_handle_operands(op: mlir.OpView) -> bool:
            del op
            return False

    class ReadsOnly(mlir.MemoryEffectsOpInterface):
        @staticmethod
        def get_effects(op: mlir.OpView, effects: Any) -> None:
            transform.only_reads_handle(op.op_operands, effects)
            transform.produces_handle(op.results, effects)
            transform.only_reads_payload(effects)

    return [Decides, ReadsOnly]


def sequences_of(program: mlir.OpView) -> dict[str, mlir.OpView]:
    """The named sequences of a program."""
    ops = program.operation.regions[0].blocks[0].operations
    return {op.attributes["sym_name"].value: op for op in ops if op.operation.name == "transform.named_sequence"}


def pairs_of(choice: mlir.OpView) -> list[tuple[str, str]]:
    """The names of matcher and action, in order, of a `transform.foreach_match`."""
    names = [
        [mlir.FlatSymbolRefAttr(one).value for one in mlir.ArrayAttr(choice.attributes[key])]
        for key in ("matchers", "actions")
    ]
    return list(zip(*names, strict=True))


def set_pairs(choice: mlir.OpView, pairs: list[tuple[str, str]]) -> None:
    """Gives a choice other matchers and actions; it then looks at the op that it is given, too."""
    choice.attributes["restrict_root"] = mlir.UnitAttr.get()
    for key, names in zip(("matchers", "actions"), zip(*pairs, strict=True), strict=True):
        choice.attributes[key] = mlir.ArrayAttr.get([mlir.FlatSymbolRefAttr.get(name) for name in names])


def outline_matchers(program: mlir.OpView, name: str, test: str, payload: Sequence[str]) -> None:
    """Calls each op of a name, as an op named `test` with the same attributes, through a sequence of its own; only for
    payload of these names, because the interpreter also comes to what is inside of an op."""
    block = program.operation.regions[0].blocks[0]
    for sequence_name, sequence in sequences_of(program).items():
        own = [op.operation for op in body_of(sequence).operations if op.operation.name == name]
        for number, op in enumerate(own):
            outlined = f"{sequence_name}__match_{number}"
            with mlir.InsertionPoint.at_block_begin(block), op.location:
                made = _sequence(outlined, [op.operands[0].type], [_readonly()], [AnyParam.get()])
                with mlir.InsertionPoint(body_of(made)):
                    said = {one.name: one.attr for one in (op.attributes[i] for i in range(len(op.attributes)))}
                    operands = list(body_of(made).arguments)
                    told = mlir.Operation.create(test, [AnyParam.get()], operands, said)
                    transform.YieldOp(list(told.results))
            with mlir.InsertionPoint(op), op.location:
                names = mlir.ArrayAttr.get([mlir.StringAttr.get(one) for one in payload])
                transform.MatchOperationNameOp(op.operands[0], names)
                told = _include(outlined, [op.operands[0]], [AnyParam.get()])
                one = transform.ParamConstantOp(AnyParam.get(), _integer(1)).result
                transform.MatchParamCmpIOp(told.results[0], one, transform.MatchCmpIPredicate.eq)
            op.erase()


def note_number(program: mlir.OpView, action: str, number: int, attribute: str) -> str:
    """The name of a new action that annotates its first operand with a number, and then does what another does."""
    sequence, name = sequences_of(program)[action], f"{action}__{number}"
    types = [argument.type for argument in body_of(sequence).arguments]
    attributes = [mlir.DictAttr(one) for one in mlir.ArrayAttr(sequence.attributes["arg_attrs"])]
    block = program.operation.regions[0].blocks[0]
    with mlir.InsertionPoint.at_block_begin(block), sequence.operation.location:
        made = _sequence(name, types, attributes)
        with mlir.InsertionPoint(body_of(made)):
            arguments = list(body_of(made).arguments)
            param = transform.ParamConstantOp(AnyParam.get(), _integer(number)).result
            transform.AnnotateOp(arguments[0], attribute, param=param)
            _include(action, arguments)
            transform.YieldOp([])
    return name


def interpret(program: mlir.OpView, payload: mlir.Operation) -> None:
    """Runs a program on an op; raises ValueError with what the interpreter says when it cannot go on."""
    options = interpreter.TransformOptions()
    options.expensive_checks = False  # of handles that are used after they were consumed: matchers consume none
    interpreter.apply_named_sequence(payload, sequences_of(program)[ENTRANCE], program, options)


def body_of(sequence: mlir.OpView) -> mlir.Block:
    return sequence.operation.regions[0].blocks[0]


def _sequence(
    name: str, types: list[mlir.Type], attributes: list[mlir.DictAttr], results: Sequence[mlir.Type] = ()
) -> mlir.OpView:
    kind = mlir.TypeAttr.get(mlir.FunctionType.get(types, list(results)))
    made = mlir.Operation.create(
        "transform.named_sequence",
        attributes={
            "sym_name": mlir.StringAttr.get(name),
            "function_type": kind,
            "arg_attrs": mlir.ArrayAttr.get(attributes),
        },
        regions=1,
    )
    made.regions[0].blocks.append(*types, arg_locs=[mlir.Location.current] * len(types))
    return made.opview


def _include(name: str, operands: list[mlir.Value], results: Sequence[mlir.Type] = ()) -> mlir.Operation:
    mode = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(32), transform.FailurePropagationMode.Propagate)
    attributes = {"target": mlir.FlatSymbolRefAttr.get(name), "failure_propagation_mode": mode}
    return mlir.Operation.create("transform.include", list(results), operands, attributes)


def _readonly() -> mlir.DictAttr:
    return mlir.DictAttr.get({"transform.readonly": mlir.UnitAttr.get()})


def _integer(value: int) -> mlir.IntegerAttr:
    return mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), int(value))
