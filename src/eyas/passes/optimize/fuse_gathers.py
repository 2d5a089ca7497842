"""`fuse-gathers`: a product reads the matrices of chosen experts where they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg

from eyas.ir import Pass
from eyas.ir.structured import clone_body, element_type, generic, is_elementwise, split_operands
from eyas.ir.walk import defining_op, find_ops

_BATCH_MATMUL = ("(b, m, n, k) -> (b, m, k)", "(b, m, n, k) -> (b, k, n)", "(b, m, n, k) -> (b, m, n)")


@dataclass(frozen=True)
class FuseGathers(Pass):
    """Puts a gather into the product that alone reads it, when the gathered tensor is larger than its source.

    A grouped product takes a matrix for each row; with the rows of a whole prompt, copies of all of them would not fit
    into memory. A smaller gather stays: its copy is contiguous, which products read faster.

        %g = linalg.generic ins(%which) { tensor.extract %w[%in, %k, %n] } -> tensor<64x256x512xf32>
        %r = linalg.batch_matmul ins(%x, %g)
      becomes
        %r = linalg.generic ins(%x, %which) { %e = tensor.extract %w[%in2, %k, %n]; %out + %in1 * %e }
    """

    name: ClassVar[str] = "fuse-gathers"

    def run(self, module: mlir.Module) -> None:
        for product in find_ops(module, "linalg.batch_matmul", "linalg.generic"):
            if "reduction" not in str(product.attributes["iterator_types"] if _is_generic(product) else "reduction"):
                continue
            if not _is_generic(product) and not isinstance(element_type(product.results[0]), mlir.FloatType):
                continue
            for number, operand in enumerate(split_operands(product)[0]):
                gather = defining_op(operand)
                if gather is not None and _is_expansion(gather) and len(list(operand.uses)) == 1:
                    with mlir.InsertionPoint(product), product.operation.location:
                        _fuse(product.operation, number, gather)
                    break


def _is_generic(op: mlir.OpView) -> bool:
    return op.operation.name == "linalg.generic"


def _is_expansion(op: mlir.Operation) -> bool:
    """A gather that makes more elements than its source has."""
    if not is_elementwise(op):
        return False
    extracts = [inner for inner in op.regions[0].blocks[0].operations if inner.operation.name == "tensor.extract"]
    result = mlir.RankedTensorType(op.results[0].type)
    sources = [mlir.RankedTensorType(extract.operands[0].type) for extract in extracts]
    if not sources or not all(source.has_static_shape for source in sources):
        return False
    if any("assert" in inner.operation.name for inner in op.regions[0].blocks[0].operations):
        return False
    return not result.has_static_shape or math.prod(result.shape) > max(math.prod(s.shape) for s in sources)


def _fuse(product: mlir.Operation, number: int, gather: mlir.Operation) -> None:
    inputs, outputs = split_operands(product)
    maps, iterators = _loops(product)
    place = maps[number]
    if not all(isinstance(result, mlir.AffineDimExpr) for result in place.results):
        return  # Windows would take each element of the gather several times.
    gather_inputs, _ = split_operands(gather)
    gather_maps = [mlir.AffineMapAttr(attribute).value for attribute in gather.attributes["indexing_maps"]]
    moved = [_compose(map_, place) for map_ in gather_maps[: len(gather_inputs)]]
    fused_maps = [*maps[:number], *maps[number + 1 : len(inputs)], *moved, *maps[len(inputs) :]]
    if not _give_all_extents(fused_maps, len(iterators)):
        return
    fused = generic([*inputs[:number], *inputs[number + 1 :], *gather_inputs], outputs, fused_maps, iterators)
    body = fused.regions[0].blocks[0]
    arguments = list(body.arguments)
    own, taken = arguments[: len(inputs) - 1], arguments[len(inputs) - 1 : -len(outputs)]
    inner = gather.regions[0].blocks[0]
    # The gather's output has no value yet, and nothing reads it.
    values = dict(zip(list(inner.arguments)[: len(taken)], taken, strict=True))
    (element,) = clone_body(inner, body, values)
    for index in [op for op in body.operations if op.operation.name == "linalg.index"]:
        dim = mlir.AffineDimExpr(place.results[mlir.IntegerAttr(index.attributes["dim"]).value]).position
        index.attributes["dim"] = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), dim)
    elements = [*own[:number], element, *own[number:], *arguments[-len(outputs) :]]
    with mlir.InsertionPoint(body):
        if product.name == "linalg.generic":
            source = product.regions[0].blocks[0]
            linalg.YieldOp(clone_body(source, body, dict(zip(source.arguments, elements, strict=True))))
        else:
            *factors, total = elements
            # Sums of narrow floats are kept in f32.
            one, other = (arith.extf(total.type, x) if x.type != total.type else x for x in factors)
            linalg.YieldOp([arith.addf(total, arith.mulf(one, other))])
    for old, new in zip(product.results, fused.results, strict=True):
        old.replace_all_uses_with(new)
    product.erase()
    gather.erase()


def _give_all_extents(maps: list[mlir.AffineMap], loops: int) -> bool:
    """Whether each loop runs along a dimension of some operand: the gathered tensor may have been the only one."""
    plain = [e.position for map_ in maps for e in map_.results if isinstance(e, mlir.AffineDimExpr)]
    return set(plain) == set(range(loops))


def _loops(op: mlir.Operation) -> tuple[list[mlir.AffineMap], list[str]]:
    if op.name == "linalg.batch_matmul":
        texts = [f"affine_map<{text}>" for text in _BATCH_MATMUL]
        maps = [mlir.AffineMapAttr(mlir.Attribute.parse(text)).value for text in texts]
        return maps, ["parallel", "parallel", "parallel", "reduction"]
    kinds = [str(kind).split("<")[1].rstrip(">") for kind in op.attributes["iterator_types"]]
    return [mlir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]], kinds


def _compose(inner: mlir.AffineMap, outer: mlir.AffineMap) -> mlir.AffineMap:
    """The map that applies `outer` first."""
    results = [expression.compose(outer) for expression in inner.results]
    return mlir.AffineMap.get(outer.n_dims, 0, results)
