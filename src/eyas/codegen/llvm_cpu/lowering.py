"""From loops, vectors and memrefs to the LLVM dialect, with no cast left over.

Entry functions `(!llvm.ptr, !llvm.ptr) -> i32` keep external linkage; a `private` function with a body becomes
internal, so that LLVM may inline and drop it.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, func, vector

from eyas.codegen.common.memrefs import expand_strided_copies
from eyas.codegen.common.passes.lanes import element_type, with_element
from eyas.codegen.llvm_cpu.outer_loops import annotate_branches
from eyas.ir.diagnostics import raise_as_compile_error
from eyas.ir.passes import run_upstream
from eyas.ir.walk import find_ops
from eyas.targets import Target

_CALLED_FROM_LIBM = {"math.expm1": "expm1"}
"""Ops that `convert-math-to-llvm` would lower with a loss of accuracy (exp(x) - 1) and that libm has."""


_EXACT_F16_BITS = 11
"""Integers of so many bits are numbers of f16, all of them."""


def pipeline(target: Target) -> tuple[str, ...]:
    """The upstream passes, in the order that leaves nothing behind."""
    narrow = ["bf16"] if target.has_f16_arith else ["bf16", "f16"]
    return (
        # Vectors: first what only makes sense while shapes are whole, then down to one dimension.
        "func.func(lower-vector-multi-reduction,lower-vector-mask)",
        "convert-linalg-to-loops",
        "scf-forall-to-for",
        "convert-vector-to-scf{full-unroll}",
        "lower-affine",
        # Narrow floats compute in f32: one rounding per op, the same on every machine, and no library calls.
        "math-extend-to-supported-types{target-type=f32}",
        f"arith-emulate-unsupported-floats{{source-types={','.join(narrow)} target-type=f32}}",
        # Math: integer and mixed powers as loops, complex as pairs, the rest as intrinsics, and libm for what has none.
        "convert-math-to-funcs{min-width-of-fpowi-exponent=1}",
        "convert-complex-to-standard",
        "convert-math-to-llvm{approximate-log1p=false}",
        "convert-math-to-libm",
        # Control flow, then addresses: expand-strided-metadata makes affine.apply, hence the second lower-affine.
        "convert-scf-to-cf",
        "memref-expand",
        "expand-strided-metadata",
        "lower-affine",
        f"arith-expand{{include-bf16={'false' if target.has_bf16_dot else 'true'}}}",
        # Reassociation lets a reduction be a tree; an outer product keeps a contraction in registers.
        "convert-vector-to-llvm{reassociate-fp-reductions vector-contract-lowering=outerproduct}",
        "convert-complex-to-llvm",
        "convert-index-to-llvm",
        "finalize-memref-to-llvm{use-aligned-alloc}",
        "convert-arith-to-llvm",
        "convert-func-to-llvm",
        "convert-cf-to-llvm",
        "convert-ub-to-llvm",
        "reconcile-unrealized-casts",
        "canonicalize",
        "cse",
    )


def lower_to_llvm(module: mlir.Module, target: Target) -> None:
    """Lowers a module in place to the LLVM dialect. Fails with a CompileError that names the op's place."""
    try:
        with module.context, mlir.Location.unknown():
            _call_libm(module)
            _round_integers(module)
            expand_strided_copies(module)
            run_upstream(module, ",".join(pipeline(target)))
            annotate_branches(module)
            _make_private_internal(module)
            _hoist_static_allocas(module)
    except mlir.MLIRError as error:
        raise_as_compile_error(error, "lowering to LLVM")


def _operations(module: mlir.Module, *names: str) -> list[mlir.Operation]:
    return [view.operation for view in find_ops(module, *names)]


def _call_libm(module: mlir.Module) -> None:
    """Replaces the ops of `_CALLED_FROM_LIBM` on f32, f64 and 1-D vectors of them by calls, element by element."""
    declared: set[str] = set()
    for op in _operations(module, *_CALLED_FROM_LIBM):
        operand = op.operands[0]
        is_vector = isinstance(operand.type, mlir.VectorType)
        element = mlir.VectorType(operand.type).element_type if is_vector else operand.type
        if str(element) not in ("f32", "f64") or (is_vector and mlir.VectorType(operand.type).rank != 1):
            continue
        symbol = _CALLED_FROM_LIBM[op.name] + ("f" if str(element) == "f32" else "")
        if symbol not in declared:
            declared.add(symbol)
            with mlir.InsertionPoint.at_block_begin(module.body):
                func.FuncOp(symbol, ((element,), (element,)), visibility="private")
        with mlir.InsertionPoint(op), op.location:
            if not is_vector:
                result = func.call([element], symbol, [operand])
            else:
                result = operand
                for lane in range(mlir.VectorType(operand.type).shape[0]):
                    value = func.call([element], symbol, [vector.extract(operand, [], [lane])])
                    result = vector.insert(value, result, [], [lane])
        op.results[0].replace_all_uses_with(result)
        op.erase()


def _round_integers(module: mlir.Module) -> None:
    """An integer becomes f32 and that f16, in two ops: of an f16 op that it emulates, upstream leaves out the rounding
    before the next op, and an odd exponent that f16 has no number for would stay odd. What f32 rounds as well is
    infinite in f16. The canonicaliser would make one op of both, so that this comes after it."""
    for op in _operations(module, "arith.sitofp", "arith.uitofp"):
        type_ = op.results[0].type
        bits = mlir.IntegerType(element_type(op.operands[0].type)).width
        if isinstance(element_type(type_), mlir.F16Type) and bits > _EXACT_F16_BITS:
            with mlir.InsertionPoint(op), op.location:
                wide = with_element(type_, mlir.F32Type.get())
                convert = arith.sitofp if op.name == "arith.sitofp" else arith.uitofp
                op.results[0].replace_all_uses_with(arith.truncf(type_, convert(wide, op.operands[0])))
            op.erase()


def _functions(module: mlir.Module) -> Iterator[mlir.Operation]:
    return (op.operation for op in module.body.operations if op.operation.name == "llvm.func")


def _make_private_internal(module: mlir.Module) -> None:
    internal = mlir.Attribute.parse("#llvm.linkage<internal>")
    for function in _functions(module):
        has_body = len(function.regions[0].blocks) > 0
        private = "sym_visibility" in function.attributes and str(function.attributes["sym_visibility"]) == '"private"'
        if has_body and (private or str(function.attributes["linkage"]) == "#llvm.linkage<linkonce_odr>"):
            function.attributes["linkage"] = internal


def _hoist_static_allocas(module: mlir.Module) -> None:
    """Moves allocas of constant size to the entry block: inside a loop each iteration would grow the stack."""
    for op in _operations(module, "llvm.alloca"):
        size = op.operands[0].owner
        if isinstance(size, mlir.Block) or size.name != "llvm.mlir.constant":
            continue
        function = op.parent
        while function.name != "llvm.func":
            function = function.parent
        entry = function.regions[0].blocks[0]
        if op.block == entry:
            continue
        first = entry.operations[0]
        if first.operation != size:
            size.move_before(first)
        op.move_after(size)
