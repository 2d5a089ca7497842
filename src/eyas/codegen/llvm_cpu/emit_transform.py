"""Emits a nest that transforms tiles.

What is outside of the image is read from a line of zeros, so that a test costs two conditional moves and no mask.
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.emission.tile_loads import Block, Indices
from eyas.codegen.common.emission.transform_body import TransformBody
from eyas.codegen.common.kernel import Access
from eyas.codegen.common.sizes import Size
from eyas.codegen.llvm_cpu.emit import NestEmitter
from eyas.ir.structured import constant_scalar


class TransformEmitter(TransformBody, NestEmitter):
    takes_guards = True

    def emit(self, indices: Indices) -> None:
        transform = self._transform()
        apart = (self.lane_loop, transform.p, transform.q)
        plain = [loop for loop in self.nest.parallel if indices[loop] is None and loop not in apart]
        self._enter(plain, indices, self._vector_blocks)

    def _element(self, access: Access, block: Block, known: dict[tuple, mlir.Value]) -> mlir.Value:
        loads = self._loads(block)
        zero = isinstance(access.otherwise, mlir.Value) and constant_scalar(access.otherwise) == 0
        lanes = self.lane_loop
        if lanes is None or not access.guards or not zero or access.strides[lanes] != Size(1):
            return loads.get(access, 0, 0)
        if any(guard.coefficients[lanes] for guard in access.guards):
            return loads.get(access, 0, 0)
        inside = None
        for number, guard in enumerate(access.guards):
            key = (number, *(block.indices[loop] for loop, factor in enumerate(guard.coefficients) if factor))
            if key not in known:
                known[key] = self.memory.in_range(self._position(guard, block.indices), guard.extent)
            inside = known[key] if inside is None else arith.AndIOp(inside, known[key]).result
        assert inside is not None
        return self.memory.load_or_zeros(
            access.storage, loads.address(access, 0, 0), self.width, block.mask_of(0), inside
        )
