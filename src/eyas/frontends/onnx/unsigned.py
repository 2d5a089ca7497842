"""Constants of unsigned integers, which upstream has no way for: a literal of them is invalid between two of its steps.

They go through upstream's lowering as globals that it knows nothing of, and are parameters like any other after it.

    ml_program.global private @c(#ml_program.extern : tensor<4xi32>) : tensor<4xi32>
    %0 = ml_program.global_load_const @c : tensor<4xi32>          =>    %0 = flow.parameter "c" : tensor<4xi32>
    %1 = torch_c.from_builtin_tensor %0 : tensor<4xi32> -> !torch.vtensor<[4],ui32>
"""

from __future__ import annotations

import re

from eyas.dialects import flow
from eyas.ir import mlir
from eyas.ir.walk import find_ops

_UNSIGNED = re.compile(r",ui(\d+)>$")


def held(module: mlir.Operation, key: str, shape: tuple[int, ...], result: mlir.Type) -> mlir.Value:
    """A value of the torch type `result`, of unsigned integers, whose elements are those of the parameter `key`."""
    width = _UNSIGNED.search(str(result))
    assert width is not None, result
    dims = "".join(f"{size}x" for size in shape)
    type_ = mlir.Type.parse(f"tensor<{dims}i{width[1]}>")
    with mlir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        attributes = {
            "sym_name": mlir.StringAttr.get(key),
            "sym_visibility": mlir.StringAttr.get("private"),
            "type": mlir.TypeAttr.get(type_),
            "value": mlir.Attribute.parse(f"#ml_program.extern : {type_}"),
        }
        mlir.Operation.create("ml_program.global", attributes=attributes)
    name = {"global": mlir.FlatSymbolRefAttr.get(key)}
    loaded = mlir.Operation.create("ml_program.global_load_const", results=[type_], attributes=name).result
    return mlir.Operation.create("torch_c.from_builtin_tensor", results=[result], operands=[loaded]).result


def release(module: mlir.Module) -> None:
    """Makes parameters of what was held, once the module is lowered."""
    for view in find_ops(module, "ml_program.global_load_const"):
        op = view.operation
        key = mlir.FlatSymbolRefAttr(op.attributes["global"]).value
        with mlir.InsertionPoint(op), op.location:
            parameter = flow.ParameterOp(mlir.StringAttr.get(key), op.results[0].type)
        op.results[0].replace_all_uses_with(parameter.value)
        op.erase()
    for view in find_ops(module, "ml_program.global"):
        if "#ml_program.extern" in str(view.operation.attributes["value"]):
            view.operation.erase()
