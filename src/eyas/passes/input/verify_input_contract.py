"""`verify-input-contract`: nothing enters the compiler that it does not know."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.ir import Pass, mlir
from eyas.ir.locations import UNKNOWN, describe_location
from eyas.program.dtypes import ELEMENT_TYPES

DIALECTS = frozenset({"func", "linalg", "tensor", "arith", "math", "scf", "complex", "tm_tensor", "builtin"})
OPS = frozenset({"flow.parameter", "flow.state", "flow.set_state", "cf.assert"})

# Ops of those dialects that have no meaning on immutable tensors or no place in an inlined program.
_EXCLUDED = {
    "func.call": "calls must be inlined before this point",
    "func.call_indirect": "a function value cannot be compiled",
    "builtin.unrealized_conversion_cast": "a conversion left two types unreconciled",
    "scf.parallel": "it writes to memory; use scf.forall or linalg",
}

# Ends of regions whose op is reported itself.
_TERMINATORS = frozenset({"stablehlo.return", "tosa.yield", "torch.operator_terminator"})

# What a residual op of a framework's dialect means.
_REASONS = {
    "torch": "the torch importer has no lowering for it",
    "torch_c": "a torch value could not be turned into a tensor",
    "onnx": "the ONNX importer has no lowering for it",
    "stablehlo": "StableHLO's lowering to linalg does not cover it",
    "chlo": "StableHLO's lowering to linalg does not cover it",
    "tosa": "TOSA's lowering to linalg does not cover it",
    "ml_program": "random numbers and other global state are not supported; pass them as arguments",
    "cf": "unstructured control flow is not supported; use scf",
    "memref": "programs arrive on tensors, not on memory",
}


@dataclass(frozen=True)
class VerifyInputContract(Pass):
    """Checks that a module has public functions only, on ranked tensors with known ops and element types.

    The first offence is an `UnsupportedOpError` that names the op, the user's node or line, and the reason; further
    ops of other kinds are counted, so that one run tells all that is missing.
    """

    name: ClassVar[str] = "verify-input-contract"

    def run(self, module: mlir.Module) -> None:
        _check_functions(module)
        unknown: dict[str, mlir.Operation] = {}
        counts: Counter[str] = Counter()
        badly_typed: list[tuple[mlir.Operation, str]] = []

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            name = op.name
            if name in _TERMINATORS:
                pass
            elif not _is_known(name):
                label = op_label(op)
                unknown.setdefault(label, op)
                counts[label] += 1
            elif not badly_typed:
                if name == "tensor.pad" and _cuts(op):
                    badly_typed.append((op, "pads by a negative amount; take a slice first"))
                for value in [*op.results, *_block_arguments(op)]:
                    if problem := _type_problem(value.type):
                        badly_typed.append((op, problem))
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit)
        if unknown:
            raise UnsupportedOpError(_describe_unknown(unknown, counts))
        if badly_typed:
            op, problem = badly_typed[0]
            raise FrontendError(f"'{op.name}' at {describe_location(op.location)} {problem}")
        module.operation.verify()


def op_label(op: mlir.Operation) -> str:
    """The op's name as its framework says it: `aten.fft_fft`, `onnx.Unique`, `stablehlo.sort`."""
    if op.name == "torch.operator":
        return str(mlir.StringAttr(op.attributes["name"]).value).removeprefix("torch.")
    return op.name.removeprefix("torch.")


def _is_known(name: str) -> bool:
    return name in OPS or (name.partition(".")[0] in DIALECTS and name not in _EXCLUDED)


def _describe_unknown(unknown: dict[str, mlir.Operation], counts: Counter[str]) -> str:
    # An op that tells where it came from says more than a global of the module.
    label = next(
        (name for name, op in unknown.items() if describe_location(op.location) != UNKNOWN), next(iter(unknown))
    )
    op = unknown[label]
    name = op.name
    dialect = "onnx" if label.startswith("onnx.") else name.partition(".")[0]
    reason = _EXCLUDED.get(name) or _REASONS.get(dialect, f"the '{dialect}' dialect is outside the input contract")
    times = f" ({counts[label]} times)" if counts[label] > 1 else ""
    rest = [f"{other} ({counts[other]})" for other in unknown if other != label]
    also = f"; also unsupported: {', '.join(rest[:8])}" + (", ..." if len(rest) > 8 else "") if rest else ""
    return f"'{label}'{times} at {describe_location(op.location)} is not supported: {reason}{also}"


def _check_functions(module: mlir.Module) -> None:
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    others = sorted({op.operation.name for op in module.body.operations} - {"func.func"})
    names = [mlir.StringAttr(op.attributes["sym_name"]).value for op in functions]
    if others and _is_known(others[0]):
        raise FrontendError(f"the module must hold functions only; it also has '{others[0]}' at top level")
    if not others and not functions:
        raise FrontendError("the module must hold a function for each entry point; it has none")
    for name, op in zip(names, functions, strict=True):
        if "sym_visibility" in op.attributes and "private" in str(op.attributes["sym_visibility"]):
            raise FrontendError(f"@{name} must be public")
        type_ = mlir.FunctionType(mlir.TypeAttr(op.attributes["function_type"]).value)
        for position, kind in [*((t, "argument") for t in type_.inputs), *((t, "result") for t in type_.results)]:
            if not isinstance(position, mlir.RankedTensorType):
                raise FrontendError(f"every {kind} of @{name} must be a ranked tensor, got {position}")
        if not op.regions[0].blocks:
            raise FrontendError(f"@{name} has no body")


def _block_arguments(op: mlir.Operation) -> list[mlir.Value]:
    return [argument for region in op.regions for block in region.blocks for argument in block.arguments]


def _cuts(pad: mlir.Operation) -> bool:
    """Upstream does not refuse negative amounts, but its folds and lowerings take them for none or for sizes."""
    amounts = [*pad.attributes["static_low"], *pad.attributes["static_high"]]
    return any(amount < 0 for amount in amounts if amount != mlir.ShapedType.get_dynamic_size())


def _type_problem(type_: mlir.Type) -> str | None:
    if isinstance(type_, mlir.UnrankedTensorType):
        return f"has the unranked type {type_}; ranks must be known when a model is compiled"
    if isinstance(type_, mlir.RankedTensorType):
        if type_.encoding is not None:
            return f"has a tensor with an encoding, {type_}; only dense tensors are supported"
        type_ = type_.element_type
    text = str(type_)
    if text in ELEMENT_TYPES or re.fullmatch(r"\(.*\) -> .*", text):
        return None
    return f"has element type {text}; supported: {', '.join(sorted(ELEMENT_TYPES))}"
