"""Names that say what a dispatch does: `main_dispatch_12_conv_56x56x64_f32`."""

from __future__ import annotations

import re

from torch_mlir import ir as mlir

from eyas.passes.dispatch.grouping import Role, role_of

_SHORT = {
    "linalg.conv_1d_nwc_wcf": "conv",
    "linalg.conv_2d_nhwc_hwcf": "conv",
    "linalg.conv_2d_nchw_fchw": "conv",
    "linalg.depthwise_conv_2d_nhwc_hwc": "depthwise_conv",
    "linalg.depthwise_conv_2d_nchw_chw": "depthwise_conv",
    "linalg.batch_matmul": "batch_matmul",
}
_TELLING = ("math.", "arith.divf", "arith.maximumf", "tensor.extract")


def describe_region(ops: list[mlir.Operation]) -> str:
    """The root op, its shape and its element type."""
    root = root_of(ops)
    result = next((value for value in root.results if isinstance(value.type, mlir.RankedTensorType)), None)
    shape = ""
    if result is not None:
        type_ = mlir.RankedTensorType(result.type)
        dims = ["d" if type_.is_dynamic_dim(i) else str(type_.get_dim_size(i)) for i in range(type_.rank)]
        shape = "_" + "x".join([*dims, str(type_.element_type)] if not dims else ["x".join(dims)])
        shape += f"_{_identifier(str(type_.element_type))}" if dims else ""
    return _identifier(kind_of(root, ops) + shape)


def root_of(ops: list[mlir.Operation]) -> mlir.Operation:
    """The op that a dispatch is about: the first of the heaviest kind."""
    return max(ops, key=_weight)


def _weight(op: mlir.Operation) -> int:
    order = {Role.CONTRACTION: 3, Role.REDUCTION: 2, Role.ELEMENTWISE: 1, Role.OPAQUE: 1}
    return order.get(role_of(op), 0)


def kind_of(root: mlir.Operation, ops: list[mlir.Operation]) -> str:
    """What a dispatch with this root does, in a word."""
    if root.name in _SHORT:
        return _SHORT[root.name]
    role = role_of(root)
    bodies = {
        inner.operation.name for op in ops for region in op.regions for b in region.blocks for inner in b.operations
    }
    if "math.exp" in bodies and sum(_is_product(op) for op in ops) > 1:
        return "attention"
    if role is Role.REDUCTION and "math.exp" in bodies:
        return "softmax"
    if role is Role.REDUCTION and ("math.rsqrt" in bodies or "math.sqrt" in bodies):
        return "norm"
    if role is Role.REDUCTION:
        return "reduction"
    if root.name == "linalg.generic" and role is Role.CONTRACTION:
        return "contraction"
    if root.name == "linalg.generic":
        telling = sorted(name.split(".")[1] for name in bodies if name.startswith(_TELLING))
        return "elementwise" + (f"_{telling[0]}" if telling else "")
    return root.name.split(".", 1)[1]


def _is_product(op: mlir.Operation) -> bool:
    """Whether an op sums products of two tensors."""
    if op.name != "linalg.generic" or "reduction" not in str(op.attributes["iterator_types"]):
        return False
    block = op.regions[0].blocks[0]
    body = [view.operation.name for view in block.operations]
    read = [argument for argument in block.arguments if list(argument.uses)]
    return len(read) == 3 and body[-3:] == ["arith.mulf", "arith.addf", "linalg.yield"]


def _identifier(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_")
