"""Runs a kernel of the GPU code generator, as `gpu.func`, on NumPy arrays: all threads of a workgroup in step.

It has the matrix instructions that no device of ours in CI has, and finds threads that touch what others of their
workgroup write without a barrier between them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
from torch_mlir import ir as mlir

from eyas.ir.walk import find_ops

_TYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "index": np.int64, "i64": np.int64, "i32": np.int32,
          "i16": np.int16, "i8": np.int8, "i1": np.bool_, "si8": np.int8, "bf16": np.uint16}  # fmt: skip
_FLOATS = {"arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
           "arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax}  # fmt: skip
_INTEGERS = {"arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.divui": np.floor_divide,
             "arith.remui": np.remainder, "arith.minui": np.minimum, "arith.maxui": np.maximum,
             "arith.ori": np.bitwise_or, "arith.andi": np.bitwise_and, "arith.xori": np.bitwise_xor,
             "arith.shli": np.left_shift, "arith.ceildivui": lambda a, b: -(-a // b)}  # fmt: skip
_ORDERS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal) + (
    np.less, np.less_equal, np.greater, np.greater_equal)  # fmt: skip


def run(
    kernel_text: str,
    buffers: list[np.ndarray],
    grid: tuple[int, int, int],
    subgroup: int,
    constants: Sequence[int] = (),
) -> None:
    """Runs the one kernel of a module on arrays of bytes, with push constants."""
    module = mlir.Module.parse(kernel_text)
    (function,) = find_ops(module, "gpu.func")
    for x, y, z in itertools.product(*map(range, grid)):
        Workgroup(function, buffers, (x, y, z), subgroup, constants).run()


class Memory:
    """A flat array of one element type, and who touched what since the last barrier where it is shared."""

    def __init__(self, words: np.ndarray, is_shared: bool):
        self.words = words  # (count,) or (count, lanes)
        self.is_shared = is_shared
        self.wrote, self.read = (np.full(len(words), -1) for _ in range(2))

    def barrier(self) -> None:
        self.wrote[:], self.read[:] = -1, -1

    def touch(self, at: np.ndarray, who: np.ndarray, writes: bool) -> None:
        assert at.size == 0 or (at.min() >= 0 and at.max() < len(self.words)), f"outside of memory: {at.max()}"
        if not self.is_shared:
            return
        seen = self.wrote[at]
        assert np.all((seen < 0) | (seen == who)), "a race: written by another subgroup since the last barrier"
        if writes:
            assert np.all((self.read[at] < 0) | (self.read[at] == who)), "a race: read by another subgroup"
            self.wrote[at] = who
        else:
            others = (self.read[at] >= 0) & (self.read[at] != who)
            self.read[at] = np.where(others, 1 << 30, who)


class Workgroup:
    def __init__(
        self,
        function: mlir.OpView,
        buffers: list[np.ndarray],
        ids: tuple[int, int, int],
        subgroup: int,
        constants: Sequence[int],
    ):
        self.function, self.ids, self.subgroup = function, ids, subgroup
        words = list(constants)
        self.threads = mlir.DenseI32ArrayAttr(function.attributes["known_block_size"])[0]
        self.who = np.arange(self.threads) // subgroup
        self.values: dict[mlir.Value, object] = {}
        self.shared: list[Memory] = []
        attributes = [dict((one.name, one.attr) for one in entry) for entry in function.attributes["arg_attrs"]]
        for argument, entry in zip(function.regions[0].blocks[0].arguments, attributes, strict=True):
            if not isinstance(argument.type, mlir.MemRefType):
                self.values[argument] = self._all(words.pop(0), argument.type)
                continue
            element, lanes = _element(mlir.MemRefType(argument.type).element_type)
            flat = buffers[entry["eyas.binding"].value].view(element)
            self.values[argument] = Memory(flat if lanes is None else flat.reshape(-1, lanes), False)

    def run(self) -> None:
        self._block(self.function.regions[0].blocks[0], np.ones(self.threads, bool))

    def _block(self, block: mlir.Block, active: np.ndarray) -> list:
        for view in block.operations:
            op = view.operation
            if op.name in ("scf.yield", "gpu.return"):
                return [self.values[operand] for operand in op.operands]
            found = self._op(op, [self.values.get(operand) for operand in op.operands], active)
            for result, value in zip(op.results, found, strict=True):
                self.values[result] = value
        return []

    def _op(self, op: mlir.Operation, of: list, active: np.ndarray) -> list:
        name = op.name
        with np.errstate(all="ignore"):
            if name in _FLOATS or name in _INTEGERS:
                return [(_FLOATS | _INTEGERS)[name](*of)]
        method = getattr(self, "_" + name.replace(".", "_"), None)
        assert method is not None, f"no such op here: {op}"
        return method(op, of, active)

    def _all(self, value: object, type_: mlir.Type) -> np.ndarray:
        return np.full(self.threads, value, _TYPES[str(type_)])

    # --- arith, vector ------------------------------------------------------------------------------------------------

    def _arith_constant(self, op, of, active):
        kind, value = op.results[0].type, op.attributes["value"]
        if isinstance(kind, mlir.VectorType):
            splat = mlir.DenseElementsAttr(value).get_splat_value().value
            return [np.full((self.threads, kind.shape[0]), splat, _TYPES[str(kind.element_type)])]
        return [self._all(value.value, kind)]

    def _arith_cmpi(self, op, of, active):
        return [_ORDERS[mlir.IntegerAttr(op.attributes["predicate"]).value](*of)]

    def _arith_cmpf(self, op, of, active):
        number = mlir.IntegerAttr(op.attributes["predicate"]).value
        assert number == 1, "only whether two numbers are equal is asked here"
        return [of[0] == of[1]]

    def _math_exp(self, op, of, active):
        with np.errstate(all="ignore"):
            return [np.exp(of[0])]

    def _gpu_shuffle(self, op, of, active):
        assert "xor" in str(op.attributes["mode"]), "the only way in which threads of a subgroup talk here"
        return [of[0][np.arange(self.threads) ^ of[1]], np.ones(self.threads, bool)]

    def _arith_select(self, op, of, active):
        condition, one, other = of
        return [np.where(condition[:, None] if one.ndim > 1 else condition, one, other)]

    def _arith_bitcast(self, op, of, active):
        return [of[0].view(_TYPES[str(op.results[0].type)])]

    def _convert(self, op, of, active):
        return [of[0].astype(_TYPES[str(op.results[0].type)])]

    _arith_extf = _arith_index_cast = _convert

    def _arith_truncf(self, op, of, active):
        if str(op.results[0].type) != "bf16":
            return self._convert(op, of, active)
        return [(of[0].view(np.uint32) >> 16).astype(np.uint16)]  # towards zero is near enough

    def _arith_extui(self, op, of, active):
        unsigned = of[0].view(f"u{of[0].dtype.itemsize}") if of[0].dtype != bool else of[0]
        return [unsigned.astype(_TYPES[str(op.results[0].type)])]

    def _vector_extract(self, op, of, active):
        return [of[0][:, mlir.DenseI64ArrayAttr(op.attributes["static_position"])[0]]]

    def _vector_broadcast(self, op, of, active):
        return [np.stack([of[0]] * op.results[0].type.shape[0], axis=1)]

    def _vector_from_elements(self, op, of, active):
        return [np.stack(of, axis=1)]

    # --- memory -------------------------------------------------------------------------------------------------------

    def _memref_alloc(self, op, of, active):
        type_ = mlir.MemRefType(op.results[0].type)
        element, lanes = _element(type_.element_type)
        shape = (type_.shape[0],) if lanes is None else (type_.shape[0], lanes)
        self.shared.append(Memory(np.zeros(shape, element), True))
        return [self.shared[-1]]

    def _memref_load(self, op, of, active):
        memory, at = of
        memory.touch(at[active], self.who[active], False)
        found = np.zeros((self.threads, *memory.words.shape[1:]), memory.words.dtype)
        found[active] = memory.words[at[active]]
        return [found]

    def _memref_store(self, op, of, active):
        value, memory, at = of
        memory.touch(at[active], self.who[active], True)
        memory.words[at[active]] = value[active]
        return []

    # --- control ------------------------------------------------------------------------------------------------------

    def _scf_for(self, op, of, active):
        low, high, step, *carried = of
        index, block = low.copy(), op.regions[0].blocks[0]
        while np.any(inside := active & (index < high)):
            self.values |= dict(zip(block.arguments, [index, *carried], strict=True))
            found = self._block(block, inside)
            keep = [value if value.shape[0] != self.threads or inside.all() else _mixed(inside, value, old)
                    for value, old in zip(found, carried, strict=True)]  # fmt: skip
            carried, index = keep, index + step
        return carried

    def _scf_if(self, op, of, active):
        found = [self._block(region.blocks[0], active & on) if len(region.blocks) and np.any(active & on) else None
                 for region, on in zip(op.regions, (of[0], ~of[0]), strict=False)]  # fmt: skip
        if not len(op.results):
            return []
        if None in found:
            return next(one for one in found if one is not None)
        return [_mixed(of[0], one, other) for one, other in zip(*found, strict=True)]

    def _gpu_barrier(self, op, of, active):
        assert active.all(), "a barrier that some threads do not reach"
        for memory in self.shared:
            memory.barrier()
        return []

    def _gpu_thread_id(self, op, of, active):
        return [np.arange(self.threads)]

    def _gpu_subgroup_id(self, op, of, active):
        return [self.who.astype(np.int64)]

    def _gpu_lane_id(self, op, of, active):
        return [np.arange(self.threads) % self.subgroup]

    def _gpu_block_id(self, op, of, active):
        axis = "xyz".index(re.search(r"dim (\w)", str(op.attributes["dimension"]))[1])
        return [self._all(self.ids[axis], op.results[0].type)]

    # --- matrices: one for each subgroup ------------------------------------------------------------------------------

    def _places(self, memory: Memory, at: np.ndarray, op, rows: int, columns: int, itemsize: int) -> np.ndarray:
        """Where the elements of each subgroup's matrix are, in elements of its type."""
        per = memory.words[0].nbytes // itemsize
        lead = mlir.IntegerAttr(op.attributes["leadDimension"]).value * per
        first = at.reshape(-1, self.subgroup)
        assert np.all(first == first[:, :1]), "a matrix whose place differs inside of a subgroup"
        turned = "transpose" in op.attributes
        i, j = np.mgrid[:rows, :columns]
        return first[:, :1, None] * per + (j * lead + i if turned else i * lead + j)

    def _touch(self, memory: Memory, places: np.ndarray, itemsize: int, writes: bool) -> None:
        per = memory.words[0].nbytes // itemsize
        who = np.broadcast_to(np.arange(len(places))[:, None, None], places.shape)
        memory.touch((places // per).ravel(), who.ravel(), writes)

    def _gpu_subgroup_mma_load_matrix(self, op, of, active):
        rows, columns, element = _matrix(op.results[0].type)
        memory, at = of
        places = self._places(memory, at, op, rows, columns, element.itemsize)
        self._touch(memory, places, element.itemsize, False)
        return [memory.words.view(element).ravel()[places]]

    def _gpu_subgroup_mma_store_matrix(self, op, of, active):
        rows, columns, element = _matrix(op.operands[0].type)
        value, memory, at = of
        places = self._places(memory, at, op, rows, columns, element.itemsize)
        self._touch(memory, places, element.itemsize, True)
        memory.words.view(element).ravel()[places] = value
        return []

    def _gpu_subgroup_mma_constant_matrix(self, op, of, active):
        rows, columns, element = _matrix(op.results[0].type)
        return [np.full((self.threads // self.subgroup, rows, columns), of[0][0], element)]

    def _gpu_subgroup_mma_elementwise(self, op, of, active):
        assert "mulf" in str(op.attributes["opType"]), "no such op of elements here"
        return [of[0] * of[1]]

    def _gpu_subgroup_mma_compute(self, op, of, active):
        a, b, c = of
        return [c + np.matmul(self._wide(a, c), self._wide(b, c))]

    def _wide(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        if value.dtype == np.float16 and str(self.function.attributes["eyas.matrix_element"]) == "bf16":
            return (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return value.astype(like.dtype)


def _mixed(on: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.where(on.reshape(-1, *[1] * (one.ndim - 1)), one, other)


def _element(type_: mlir.Type) -> tuple[np.dtype, int | None]:
    if isinstance(type_, mlir.VectorType):
        return np.dtype(_TYPES[str(type_.element_type)]), type_.shape[0]
    return np.dtype(_TYPES[str(type_)]), None


def _matrix(type_: mlir.Type) -> tuple[int, int, np.dtype]:
    rows, columns, element = re.search(r"<(\d+)x(\d+)x(\w+),", str(type_)).groups()
    return int(rows), int(columns), np.dtype(_TYPES[element])
