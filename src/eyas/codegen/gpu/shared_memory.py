"""What a kernel keeps in the memory that threads of a workgroup share."""

from __future__ import annotations

from typing import Any

from eyas.codegen.common.blocks import locals_of
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.sizes import product
from eyas.codegen.common.traffic import element_bytes
from eyas.codegen.gpu.team import why_not_together


def local_bytes(kernel: Kernel, slots: Any, threads: Any) -> Any:
    """Bytes of shared memory that `slots` rows take, and the shares of sums of `threads` threads."""
    rows = 0
    for storage in locals_of(kernel.nests):
        elements = product(storage.shape).static
        rows += max(elements or 0, 1) * element_bytes(storage.element)
    shares: dict[tuple[int, str], int] = {}
    for nest in kernel.nests:
        if why_not_together(nest) is None:
            for number, element in enumerate(nest.statements[0].element_types):
                shares[number, str(element)] = element_bytes(element)
    return rows * slots + threads * sum(shares.values())
