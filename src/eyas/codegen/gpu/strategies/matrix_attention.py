"""Attention of f16 and bf16 by matrix instructions: a workgroup takes a block of query rows of one head, each of its
subgroups some fragments of them, and walks over the keys with online softmax (`matrix_softmax`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.expressions import Number, between, divides, equal
from eyas.codegen.common.kernel import Access, Kernel
from eyas.codegen.common.sizes import product
from eyas.codegen.common.space import Constraint, law, powers_of_two
from eyas.codegen.gpu.attention_form import AttentionForm, attention_form
from eyas.codegen.gpu.interface import MATRIX_ELEMENT, Interface
from eyas.codegen.gpu.matrix_softmax import KEYS, SIDE, Areas, MatrixAttentionKnobs, MatrixSoftmax, factors_of
from eyas.codegen.gpu.matrix_stage import GROUP_BYTES
from eyas.codegen.gpu.matrix_tile import POINTS
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.online_softmax import OnlineSoftmax
from eyas.codegen.gpu.operands import operands_of
from eyas.codegen.gpu.strategies.attention import Attention
from eyas.codegen.gpu.strategies.base import powers
from eyas.codegen.gpu.strategies.matrices import why_not_multiplied
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget
from eyas.targets.gpu_facts import MatrixShape

# Subgroups, row fragments of each, and keys of a block: the first that leaves each processor a workgroup is taken, or
# else the last that fits. On an H200 two row fragments took 1.8 times as long, and two subgroups 1.7 times.
_BLOCKS = ((4, 1, 64), (4, 1, 32), (2, 1, 64), (2, 1, 32), (1, 1, 64), (1, 1, 32))
# Elements of sums that a thread has in registers.
_MOST_SUMS = 128


@dataclass(frozen=True)
class MatrixAttention(Attention):
    name: ClassVar[str] = "matrix-attention"
    knobs_type: ClassVar[type] = MatrixAttentionKnobs
    knobs: MatrixAttentionKnobs  # type: ignore[assignment]

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> MatrixAttention | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        form = _form(kernel)
        if (reason := cls.why_not_on(kernel, target)) is not None:
            return reason
        knobs = [
            MatrixAttentionKnobs(down * target.subgroup, target.subgroup, rows, keys) for down, rows, keys in _BLOCKS
        ]
        fitting = [
            one
            for one in knobs
            if one.threads <= target.max_threads
            and cls.check(kernel, one) is None
            and shared_bytes(form, one) <= target.shared_bytes
        ]
        if not fitting:
            return "no block of rows and keys fits"
        heads = product(form.values.loops[: form.row]).factor
        busy = [one for one in fitting if heads * -(-form.row_count // one.row_block) >= target.cores]
        return cls(kernel, busy[0] if busy else fitting[-1])

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = super().kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        return _why_no_matrices(_form(kernel)) or kernel

    @classmethod
    def why_not_on(cls, kernel: Kernel, target: GpuTarget) -> str | None:
        element = str(factors_of(_form(kernel))[0].storage.element)
        if MatrixShape(element, "f32", SIDE, SIDE, SIDE) not in target.matrix_shapes:
            return f"no matrix instructions for {element}"
        if not target.has("subgroup-shuffle"):
            return "threads of a subgroup cannot hand each other values"
        return None

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        form, side = _form(kernel), of.key_block // KEYS
        least, most = SIDE // POINTS * KEYS, of.subgroup * KEYS
        whole = divides(of.subgroup, of.row_fragments * SIDE * side) & (of.row_block <= form.row_count)
        sums = of.row_fragments * SIDE * form.width // of.subgroup
        block = "key_block is {key_block}; "
        return [
            *powers(of, "threads", "subgroup", "row_fragments", "key_block"),
            law(divides(of.subgroup, of.threads), "threads is {threads}; it must be a multiple of subgroup"),
            law(
                between(SIDE // POINTS, side, of.subgroup), f"{block}it must be {least} to {{most}}", most=most
            ),
            law(of.key_block <= form.key_count, f"{block}there are {form.key_count} keys"),
            law(
                whole,
                f"row_fragments is {{row_fragments}}; a block has {{rows}} of {form.row_count} rows",
                rows=of.row_block,
            ),
            law(
                divides(POINTS * side, form.width),
                f"{block}{{side}} threads cannot share the {form.width} columns of values",
                side=side,
            ),
            law(
                sums <= _MOST_SUMS,
                f"row_fragments is {{row_fragments}}; so many sums of {form.width} columns are too many",
            ),
        ]  # fmt: skip

    @classmethod
    def limits(cls, kernel: Kernel, of: Any, target: GpuTarget) -> list[Constraint]:
        words = f"subgroup is {{subgroup}}; subgroups of the device have {target.subgroup} threads"
        return [*super(Attention, cls).limits(kernel, of, target), law(equal(of.subgroup, target.subgroup), words)]

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        return {
            "threads": powers_of_two(target.subgroup, target.max_threads),
            "subgroup": (target.subgroup,),
            "row_fragments": (1, 2, 4),
            "key_block": (16, 32, 64, 128),
        }

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        return shared_bytes(_form(kernel), of)

    def emit(self, interface: Interface) -> None:
        element = factors_of(self.form)[0].storage.element
        interface.function.attributes[MATRIX_ELEMENT] = mlir.TypeAttr.get(element)
        super().emit(interface)

    def _softmax(self, memory: Memory) -> OnlineSoftmax:
        return MatrixSoftmax(self.form, memory, self.knobs, memory.at.ids[1])


def shared_bytes(form: AttentionForm, knobs: MatrixAttentionKnobs) -> Any:
    return GROUP_BYTES * Areas.of(form, knobs).total


def _form(kernel: Kernel) -> AttentionForm:
    form = attention_form(kernel)
    assert isinstance(form, AttentionForm), form
    return form


def _why_no_matrices(form: AttentionForm) -> str | None:
    """Why not both products are sums of products of one narrow type, with columns that fill fragments."""
    found = operands_of(form.scores[0], form.row, form.inner)
    if isinstance(found, str):
        return found
    first, last = form.scores[0].statements[0], form.values.statements[0]
    inputs = tuple(source for source in last.inputs if isinstance(source, Access))
    if len(inputs) != 2 or all(source.storage is not form.weight for source in inputs):
        return "other than weights and values are multiplied"
    for sum_, factors in ((first, found), (last, (inputs[0], inputs[1]))):
        if (reason := why_not_multiplied(sum_, factors)) is not None:
            return reason
    if found[0].storage.element != form.weight.element:
        return "weights have another type than queries"
    if str(form.element) != "f32":
        return f"scores are of {form.element}"
    return f"{form.width} columns fill no fragments" if form.width % SIDE else None
