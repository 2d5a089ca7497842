"""The function that a module is about: which one it is, its signature, and its arguments that are weights."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eyas.dialects import flow
from eyas.errors import FrontendError
from eyas.ir import mlir
from eyas.program.dtypes import short_name_of_ir
from eyas.program.program import Argument, Signature

_VTENSOR = re.compile(r"!torch\.vtensor<\[([\d,?]*)\],(.+)>")
_SCALARS = {"!torch.int": "i64", "!torch.float": "f64", "!torch.bool": "bool"}


def public_functions(module: mlir.Module) -> list[str]:
    """The names of the functions with a body that may be called from outside."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func" and op.regions[0].blocks]
    return [_text(op, "sym_name") for op in functions if "private" not in _text(op, "sym_visibility")]


def make_private(module: mlir.Module, names: Sequence[str]) -> None:
    """Hides functions, which then disappear into those that call them."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and _text(op, "sym_name") in names:
            op.attributes["sym_visibility"] = mlir.StringAttr.get("private", module.context)


def select_main(module: mlir.Module, source: str) -> mlir.OpView:
    """The one public function, renamed to @main when it has another name."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func" and op.regions[0].blocks]
    public = [op for op in functions if "private" not in _text(op, "sym_visibility")]
    named = [op for op in functions if _text(op, "sym_name") == "main"]
    if len(named) != 1 and len(public) != 1:
        names = ", ".join("@" + _text(op, "sym_name") for op in public) or "none"
        raise FrontendError(f"{source} must have one public function or one named @main; public functions: {names}")
    main = named[0] if named else public[0]
    if not named:
        mlir.SymbolTable(module.operation).set_symbol_name(main, "main")
    for op in public:
        if op is not main:
            op.attributes["sym_visibility"] = mlir.StringAttr.get("private", module.context)
    if "sym_visibility" in main.attributes:
        main.attributes["sym_visibility"] = mlir.StringAttr.get("public", module.context)
    return main


def signature_of(main: mlir.OpView) -> Signature:
    """Names from positions, types as written: before lowering these still tell signed from unsigned."""
    type_ = mlir.FunctionType(mlir.TypeAttr(main.attributes["function_type"]).value)
    arguments = tuple(_argument(f"arg{index}", one) for index, one in enumerate(type_.inputs))
    names = ["output"] if len(type_.results) == 1 else [f"output.{index}" for index in range(len(type_.results))]
    results = tuple(_argument(name, one) for name, one in zip(names, type_.results, strict=True))
    symbols = {dim: (0, None) for argument in arguments for dim in argument.dims if isinstance(dim, str)}
    return Signature(arguments, results, symbols)


def bind_parameters(module: mlir.Module, names: Sequence[str], first: int = 0) -> None:
    """Makes arguments of @main parameters, from the first of them on."""
    main = next(op for op in module.body.operations if _text(op, "sym_name") == "main")
    block = main.regions[0].blocks[0]
    with module.context, mlir.InsertionPoint.at_block_begin(block), main.location:
        for name in names:
            argument = block.arguments[first]
            parameter = flow.ParameterOp(key=mlir.StringAttr.get(name), value=argument.type)
            argument.replace_all_uses_with(parameter.value)
            block.erase_argument(first)
        results = mlir.FunctionType(mlir.TypeAttr(main.attributes["function_type"]).value).results
        inputs = [argument.type for argument in block.arguments]
        main.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(inputs, results))


def _argument(name: str, type_: mlir.Type) -> Argument:
    text = str(type_)
    if text in _SCALARS:
        return Argument(name, _SCALARS[text], ())
    if vtensor := _VTENSOR.fullmatch(text):
        dims = [int(dim) if dim != "?" else None for dim in vtensor.group(1).split(",") if dim]
        element = vtensor.group(2)
    elif isinstance(type_, mlir.RankedTensorType):
        dims = [None if type_.is_dynamic_dim(index) else size for index, size in enumerate(type_.shape)]
        element = str(type_.element_type)
    elif isinstance(type_, (mlir.IntegerType, mlir.FloatType, mlir.IndexType)):
        dims, element = [], text
    else:
        raise FrontendError(f"'{name}' has type {text}; only ranked tensors and numbers can enter or leave a program")
    symbolic = tuple(size if size is not None else f"{name}_dim{index}" for index, size in enumerate(dims))
    return Argument(name, short_name_of_ir(element, f"'{name}'"), symbolic)


def _text(op: mlir.OpView, attribute: str) -> str:
    return mlir.StringAttr(op.attributes[attribute]).value if attribute in op.attributes else ""
