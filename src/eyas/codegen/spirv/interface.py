"""From the arguments of a kernel to descriptor bindings and push constants.

An argument says what it is (`eyas.role`): a binding of the dispatch, memory that the driver adds (scratch, the error
word), or a word (a push constant, the error's tag). Words lie in one block in this order: constants, the bytes by which
each unaligned binding begins behind what the descriptor could say, the tag; in push constants if the target has room
for them, else in a storage buffer of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, memref

from eyas.codegen.common.passes.lanes import element_type
from eyas.codegen.common.sizes import Size
from eyas.ir.values import element_bytes
from eyas.ir.walk import entry_block
from eyas.targets.gpu import GpuTarget

ROLE, BINDING = "eyas.role", "eyas.binding"
"""Of an argument."""
BINDINGS, UNALIGNED, SCRATCH = "eyas.bindings", "eyas.unaligned", "eyas.scratch"
"""Of the kernel: how many bindings the dispatch has, used or not, which of them may begin anywhere, and terms of the
bytes of scratch memory, each a factor and the ordinals of push constants."""
ENTRY_POINT = "main"

_WORDS = "push_constants"
_BUFFER = "#spirv.storage_class<StorageBuffer>"


@dataclass(frozen=True)
class Buffer:
    """One storage buffer of the kernel, as one of its arguments sees it."""

    number: int
    """Of its descriptor, in set 0. Two may have the same: they look at the same memory as other types."""
    role: str
    read: bool
    written: bool


@dataclass(frozen=True)
class Interface:
    """What a dispatch hands a kernel."""

    buffers: tuple[Buffer, ...]
    """By argument."""
    words: int
    words_in_buffer: bool
    """Whether the words are too many for push constants and lie in the constants buffer."""
    scratch: tuple[Size, ...]
    """The sum of these is how many bytes of scratch memory there are."""


@dataclass(frozen=True)
class _Argument:
    """One argument of the kernel. `number` is that of its descriptor."""

    value: mlir.BlockArgument
    role: str
    number: int = -1


def bind_arguments(kernel: mlir.OpView, target: GpuTarget) -> Interface:
    """Leaves a kernel of storage buffers alone, each with its descriptor; words are loaded where it begins."""
    arguments = list(_numbered(kernel))
    buffers = [one for one in arguments if one.number >= 0]
    unaligned = _unaligned(kernel)
    constants = [one for one in arguments if one.role == "constant"]
    tags = [one for one in arguments if one.role == "error_tag"]
    count = len(constants) + len(unaligned) + len(tags)
    in_buffer = 4 * count > target.limits.push_constant_bytes
    block = entry_block(kernel)
    numbers, roles = [one.number for one in buffers], [one.role for one in buffers]
    with mlir.InsertionPoint.at_block_begin(block), kernel.operation.location:
        if in_buffer:
            numbers.append(max(numbers, default=-1) + 1)
            roles.append("constants")
            source = block.add_argument(_words_type(), kernel.operation.location)
            loaded = [memref.load(source, [_index(place)]) for place in range(count)]
        else:
            loaded = _load_push_constants(kernel, count)
        for one, word in zip(constants, loaded[: len(constants)], strict=True):
            one.value.replace_all_uses_with(word)
        for one, word in zip(tags, loaded[count - len(tags) :], strict=True):
            one.value.replace_all_uses_with(word)
        residuals = dict(zip(unaligned, loaded[len(constants) :][: len(unaligned)], strict=True))
        for one in buffers:
            if one.role == "binding" and one.number in residuals:
                _shift_accesses(one.value, _elements(residuals[one.number], one.value))
    for one in sorted((*constants, *tags), key=lambda one: -one.value.arg_number):
        block.erase_argument(one.value.arg_number)
    _set_signature(kernel, numbers)
    used = tuple(map(_use_of, block.arguments, numbers, roles))
    return Interface(used, count, in_buffer, _scratch(kernel) if "scratch" in roles else ())


def _use_of(buffer: mlir.Value, number: int, role: str) -> Buffer:
    users = {use.owner.operation.name for use in buffer.uses}
    stores = {"memref.store", "gpu.subgroup_mma_store_matrix"}
    return Buffer(number, role, read=bool(users - stores), written=bool(users & (stores | {"memref.atomic_rmw"})))


def _numbered(kernel: mlir.OpView) -> Iterator[_Argument]:
    """Bindings keep the number that the dispatch has for them; scratch, then the error word, come behind."""
    block = entry_block(kernel)
    attributes = [dict((one.name, one.attr) for one in entry) for entry in kernel.attributes["arg_attrs"]]
    roles = [mlir.StringAttr(entry[ROLE]).value for entry in attributes]
    ordinals = [int(entry[BINDING].value) if BINDING in entry else -1 for entry in attributes]
    following = 1 + max(ordinals, default=-1)
    if BINDINGS in kernel.attributes:
        following = mlir.IntegerAttr(kernel.attributes[BINDINGS]).value
    added = [role for role in ("scratch", "error") if role in roles]
    for value, role, ordinal in zip(block.arguments, roles, ordinals, strict=True):
        number = following + added.index(role) if role in added else ordinal
        yield _Argument(value, role, number)


def _unaligned(kernel: mlir.OpView) -> list[int]:
    if UNALIGNED not in kernel.attributes:
        return []
    return sorted(mlir.DenseI64ArrayAttr(kernel.attributes[UNALIGNED]))


def _scratch(kernel: mlir.OpView) -> tuple[Size, ...]:
    terms = [list(mlir.DenseI64ArrayAttr(one)) for one in mlir.ArrayAttr(kernel.attributes[SCRATCH])]
    return tuple(Size(factor, tuple(symbols)) for factor, *symbols in terms)


# --- words ------------------------------------------------------------------------------------------------------------


def _words_type() -> mlir.MemRefType:
    return mlir.Type.parse(f"memref<?xi32, {_BUFFER}>")


def _load_push_constants(kernel: mlir.OpView, count: int) -> list[mlir.Value]:
    """Declares the block beside the kernel, and loads its words at the current place."""
    if count == 0:
        return []
    i32 = mlir.IntegerType.get_signless(32)
    block = mlir.Type.parse(f"!spirv.ptr<!spirv.struct<(!spirv.array<{count} x i32, stride=4> [0])>, PushConstant>")
    word = mlir.Type.parse("!spirv.ptr<i32, PushConstant>")
    named = {"type": mlir.TypeAttr.get(block), "sym_name": mlir.StringAttr.get(_WORDS)}
    with mlir.InsertionPoint(kernel):
        mlir.Operation.create("spirv.GlobalVariable", attributes=named)
    variable = {"variable": mlir.FlatSymbolRefAttr.get(_WORDS)}
    base = mlir.Operation.create("spirv.mlir.addressof", [block], attributes=variable).result

    def constant(value: int) -> mlir.Value:
        return mlir.Operation.create(
            "spirv.Constant", [i32], attributes={"value": mlir.IntegerAttr.get(i32, value)}
        ).result

    def load(place: int) -> mlir.Value:
        chain = mlir.Operation.create("spirv.AccessChain", [word], [base, constant(0), constant(place)]).result
        return mlir.Operation.create("spirv.Load", [i32], [chain]).result

    return [load(place) for place in range(count)]


# --- addresses --------------------------------------------------------------------------------------------------------


def _elements(residual: mlir.Value, buffer: mlir.Value) -> mlir.Value:
    """The residual, bytes, in elements of the buffer: a binding begins where one of its elements may."""
    type_ = mlir.MemRefType(buffer.type).element_type
    lanes = mlir.VectorType(type_).shape[0] if isinstance(type_, mlir.VectorType) else 1
    width = lanes * element_bytes(element_type(type_))
    shift = arith.constant(residual.type, width.bit_length() - 1)
    return arith.index_cast(mlir.IndexType.get(), arith.shrui(residual, shift))


def _shift_accesses(buffer: mlir.Value, elements: mlir.Value) -> None:
    """Adds `elements` to the index of each access. A 1-D access has its index last."""
    for use in list(buffer.uses):
        op = use.owner.operation
        last = len(op.operands) - 1
        with mlir.InsertionPoint(op), op.location:
            op.operands[last] = arith.addi(op.operands[last], elements)


def _index(value: int) -> mlir.Value:
    return arith.constant(mlir.IndexType.get(), value)


# --- the signature ----------------------------------------------------------------------------------------------------


def _set_signature(kernel: mlir.OpView, numbers: list[int]) -> None:
    block = entry_block(kernel)
    for argument in block.arguments:
        argument.set_type(_in_buffer(mlir.MemRefType(argument.type)))
    types = [argument.type for argument in block.arguments]
    attributes = kernel.operation.attributes
    attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))
    attributes["arg_attrs"] = mlir.ArrayAttr.get(
        [
            mlir.DictAttr.get(
                {"spirv.interface_var_abi": mlir.Attribute.parse(f"#spirv.interface_var_abi<(0, {number})>")}
            )
            for number in numbers
        ]
    )
    attributes["sym_name"] = mlir.StringAttr.get(ENTRY_POINT)
    size = list(mlir.DenseI32ArrayAttr(attributes["known_block_size"]))
    attributes["spirv.entry_point_abi"] = mlir.Attribute.parse(f"#spirv.entry_point_abi<workgroup_size = {size}>")


def _in_buffer(type_: mlir.MemRefType) -> mlir.Type:
    return mlir.MemRefType.get(type_.shape, type_.element_type, memory_space=mlir.Attribute.parse(_BUFFER))
