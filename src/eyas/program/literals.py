"""Constants of a model as attributes: small ones by value, big ones by the name under which the bytes can be found."""

from __future__ import annotations

import re

import numpy as np

from eyas.ir import mlir
from eyas.program.dtypes import numpy_dtype

# A constant of at most this size stays a value in the IR, where folding can use it; a larger one is a parameter.
LARGEST_INLINE_BYTES = 1024

_TORCH_CODES = {"ui8": 0, "ui32": 28}
"""torch's numbers of types that literals are converted to."""


def by_value(array: np.ndarray, element_type: str) -> mlir.Attribute:
    """`dense<...>` of a small array; `element_type` is the IR's text, so that `ui8` and `bf16` come out as said."""
    shape = "".join(f"{size}x" for size in array.shape)
    flat = np.ascontiguousarray(array).reshape(-1)
    if array.dtype == bool:
        body = str(array.tolist()).lower() if array.size else ""
    elif flat.size > 1 and len(set(flat.view(f"V{flat.itemsize}").tolist())) == 1:
        body = f'"0x{flat[:1].tobytes().hex()}"'
    else:
        body = f'"0x{flat.tobytes().hex()}"' if flat.size else ""
    return mlir.Attribute.parse(f"dense<{body}> : tensor<{shape}{element_type}>")


def by_name(key: str, shape: tuple[int, ...], element_type: str) -> mlir.Attribute:
    """`dense_resource<"key">` with no data attached. A context must see each key once: a second is renamed by MLIR."""
    dims = "".join(f"{size}x" for size in shape)
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    return mlir.Attribute.parse(f'dense_resource<"{quoted}"> : tensor<{dims}{element_type}>')


def bits_of_bytes(array: np.ndarray) -> np.ndarray:
    """The values that a literal of bytes holds. The conversion of an empty one is folded unless it is a real one."""
    return array.view(np.int8) if array.size else array.astype(np.int32)


def literal(attribute: mlir.Attribute, result: mlir.Type) -> mlir.Value:
    """A torch literal. One of unsigned integers has signed ones, and they are converted: the importer makes literals
    signless in one step and their types in another, and an unsigned one is invalid in between. They must be given by
    name, so that the conversion is not folded. Bytes have their bits in `si8`."""
    name = "torch.vtensor.literal"
    element_type = mlir.RankedTensorType(attribute.type).element_type
    unsigned = next((kind for kind in _TORCH_CODES if str(result).endswith(f",{kind}>")), str(element_type))
    if unsigned == str(element_type):
        return mlir.Operation.create(name, results=[result], attributes={"value": attribute}).result
    signed = mlir.Type.parse(str(result).replace(f",{unsigned}>", f",{element_type}>"))
    values = mlir.Operation.create(name, results=[signed], attributes={"value": attribute}).result
    code = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), _TORCH_CODES[unsigned])
    integer = mlir.Type.parse("!torch.int")
    number = mlir.Operation.create("torch.constant.int", results=[integer], attributes={"value": code}).result
    convert = "torch.prims.convert_element_type"
    return mlir.Operation.create(convert, results=[result], operands=[values, number]).result


def resource_name(attribute: mlir.Attribute) -> str | None:
    """The name inside `dense_resource<name>`, or None for another kind of attribute."""
    # The binding has no class test for resources; printing is cheap for all but dense elements.
    text = "" if isinstance(attribute, mlir.DenseElementsAttr) else str(attribute)
    if not text.startswith("dense_resource<"):
        return None
    name = text[len("dense_resource<") : text.rindex("> : ")]
    if name.startswith('"'):
        name = re.sub(r"\\(\\|[0-9A-F]{2})", _unescape, name[1:-1])
    return name


def _unescape(match: re.Match[str]) -> str:
    return "\\" if match.group(1) == "\\" else chr(int(match.group(1), 16))


def array_of(attribute: mlir.Attribute) -> np.ndarray:
    """The values of a `dense<...>` attribute: a view of its memory where the binding gives one."""
    type_ = mlir.RankedTensorType(attribute.type)
    if str(type_.element_type) != "bf16":
        return np.asarray(attribute)
    # The binding gives no buffer of bf16; large ones are printed as hex, small ones as nested lists of decimals or hex.
    text = str(attribute)
    if text.startswith('dense<"0x'):
        return np.frombuffer(bytes.fromhex(text[9 : text.index('">')]), numpy_dtype("bf16")).reshape(type_.shape)
    printed = text[: text.rindex(">", 0, text.rindex(":"))]
    numbers = re.findall(r"0x[0-9A-Fa-f]+|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?", printed)
    bits = [int(n, 16) if n.startswith("0x") else _bf16_bits(n) for n in numbers]
    values = np.array(bits, np.uint16).view(numpy_dtype("bf16"))
    return np.broadcast_to(values.reshape(() if len(bits) == 1 else type_.shape), type_.shape)


def _bf16_bits(decimal: str) -> int:
    """The nearest bf16: six digits may lie on either side of the value that was printed."""
    return int(np.float32(decimal).astype(numpy_dtype("bf16")).view(np.uint16))
