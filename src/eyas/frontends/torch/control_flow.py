"""Branches and loops of torch programs: the importer has a rule for `while_loop` without captured values alone.

The graphs of branches and bodies are functions that `import_program` has made already; here are the calls, inside
`torch.prim.If` and `torch.prim.Loop`, which become scf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch_mlir.extras.fx_importer import TORCH_DTYPE_TO_INT, GraphNodeImporter

from eyas.ir import mlir


class _Sizes:
    """Sizes of what a loop makes, as values: those that vary are read from the operand that has them."""

    def __init__(self, importer: ControlFlowImporter, loc: mlir.Location, node: fx.Node):
        self.importer, self.loc, self.node = importer, loc, node

    def of(self, size: Any) -> mlir.Value:
        if isinstance(size, int):
            return self.importer._int(size)
        for operand in self.node.all_input_nodes:
            value = operand.meta.get("val")
            if isinstance(value, torch.SymInt) and value.node.expr == size.node.expr:
                return self.importer._import_argument(self.loc, operand)
            for dim, other in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if isinstance(other, torch.SymInt) and other.node.expr == size.node.expr:
                    source = self.importer._import_argument(self.loc, operand)
                    return self.importer._size(source, dim)
        raise NotImplementedError(f"'{self.node.name}' makes rows of a size, {size}, that none of its operands has")


class ControlFlowImporter(GraphNodeImporter):
    """Rules for `cond`, `while_loop`, `scan` and `map`."""

    def _import_hop_cond(self, loc: mlir.Location, node: fx.Node, hop: Any) -> None:
        predicate, on_true, on_false, operands = cast(Any, node.args)
        values = self._operands(loc, operands)
        types = self._types(node)
        with loc:
            chosen = mlir.Operation.create(
                "torch.prim.If", results=types, operands=[self._truth(loc, predicate)], regions=2
            )
            for region, branch in zip(chosen.regions, (on_true, on_false), strict=True):
                block = mlir.Block.create_at_start(region, [])
                with mlir.InsertionPoint(block):
                    results = self._call(node, branch, values, types)
                    mlir.Operation.create("torch.prim.If.yield", operands=results)
        self._bind_all(node, list(chosen.results))

    def _import_hop_while_loop(self, loc: mlir.Location, node: fx.Node, hop: Any) -> None:
        condition, body, init, extra = cast(Any, node.args)
        start, fixed = self._operands(loc, init), self._operands(loc, extra)
        types, boolean = self._types(node), self._cc.get_vtensor_type(torch.Size([]), torch.bool)

        def goes_on(state: Sequence[mlir.Value]) -> mlir.Value:
            (truth,) = self._call(node, condition, [*state, *fixed], [boolean])
            return self._create("torch.aten.Bool.Tensor", self._cc.torch_bool_type, [truth])

        with loc:
            most = self._int(torch.iinfo(torch.int64).max)
            loop = mlir.Operation.create(
                "torch.prim.Loop", results=types, operands=[most, goes_on(start), *start], regions=1
            )
            block = mlir.Block.create_at_start(loop.regions[0], [self._cc.torch_int_type, *types])
            with mlir.InsertionPoint(block):
                state = self._call(node, body, [*list(block.arguments)[1:], *fixed], types)
                mlir.Operation.create("torch.prim.Loop.condition", operands=[goes_on(state), *state])
        self._bind_all(node, list(loop.results))

    def _import_hop_scan(self, loc: mlir.Location, node: fx.Node, hop: Any) -> None:
        body, init, xs, extra = cast(Any, node.args)
        self._loop(loc, node, body, self._operands(loc, init), xs, extra)

    def _import_hop_map_impl(self, loc: mlir.Location, node: fx.Node, hop: Any) -> None:
        body, xs, extra = cast(Any, node.args)
        self._loop(loc, node, body, [], xs, extra)

    def _loop(
        self,
        loc: mlir.Location,
        node: fx.Node,
        body: fx.Node,
        carried: list[mlir.Value],
        x_nodes: Sequence[fx.Node],
        extra_nodes: Any,
    ) -> None:
        """Runs the body on each row of `xs`; its results beyond the carried ones are rows of tensors."""
        xs, extra = self._operands(loc, x_nodes), self._operands(loc, extra_nodes)
        made = node.meta["val"][len(carried) :]
        types = self._types(node)
        with loc:
            sizes = _Sizes(self, loc, node)
            stacked = [self._zeros(value, sizes) for value in made]
            start = [*carried, *stacked]
            length = sizes.of(x_nodes[0].meta["val"].shape[0])
            loop = mlir.Operation.create(
                "torch.prim.Loop",
                results=types,
                operands=[length, self._constant_bool(True), *start],
                regions=1,
            )
            block = mlir.Block.create_at_start(loop.regions[0], [self._cc.torch_int_type, *types])
            with mlir.InsertionPoint(block):
                index, *state = block.arguments
                rows = [self._row(x, x_node.meta["val"], index) for x, x_node in zip(xs, x_nodes, strict=True)]
                row_types = [self._cc.get_vtensor_type(torch.Size(value.shape[1:]), value.dtype) for value in made]
                results = self._call(
                    node, body, [*state[: len(carried)], *rows, *extra], [*types[: len(carried)], *row_types]
                )
                written = [
                    self._write_row(whole, row, value, index)
                    for whole, row, value in zip(state[len(carried) :], results[len(carried) :], made, strict=True)
                ]
                mlir.Operation.create(
                    "torch.prim.Loop.condition",
                    operands=[self._constant_bool(True), *results[: len(carried)], *written],
                )
        self._bind_all(node, list(loop.results))

    def _row(self, x: mlir.Value, value: torch.Tensor, index: mlir.Value) -> mlir.Value:
        type_ = self._cc.get_vtensor_type(torch.Size(value.shape[1:]), value.dtype)
        return self._create("torch.aten.select.int", type_, [x, self._int(0), index])

    def _write_row(self, whole: mlir.Value, row: mlir.Value, value: torch.Tensor, index: mlir.Value) -> mlir.Value:
        as_slice = self._cc.get_vtensor_type(torch.Size((1, *value.shape[1:])), value.dtype)
        row = self._create("torch.aten.unsqueeze", as_slice, [row, self._int(0)])
        end = self._create("torch.aten.add.int", self._cc.torch_int_type, [index, self._int(1)])
        operands = [whole, row, self._int(0), index, end, self._int(1)]
        return self._create("torch.aten.slice_scatter", whole.type, operands)

    def _zeros(self, value: torch.Tensor, known: _Sizes) -> mlir.Value:
        sizes = mlir.Operation.create(
            "torch.prim.ListConstruct",
            results=[mlir.Type.parse("!torch.list<int>", self._c)],
            operands=[known.of(size) for size in value.shape],
        ).result
        none = self._create("torch.constant.none", mlir.Type.parse("!torch.none", self._c), [])
        dtype = self._int(TORCH_DTYPE_TO_INT[value.dtype])
        type_ = self._cc.get_vtensor_type(value.shape, value.dtype)
        return self._create("torch.aten.zeros", type_, [sizes, dtype, none, none, none])

    def _size(self, value: mlir.Value, dim: int) -> mlir.Value:
        return self._create("torch.aten.size.int", self._cc.torch_int_type, [value, self._int(dim)])

    def _operands(self, loc: mlir.Location, nodes: Any) -> list[mlir.Value]:
        return [self._import_argument(loc, node) for node in pytree.tree_leaves(nodes)]

    def _types(self, node: fx.Node) -> list[mlir.Type]:
        return [self._cc.value_info_to_type(value) for value in node.meta["val"]]

    def _truth(self, loc: mlir.Location, predicate: Any) -> mlir.Value:
        value = self._import_argument(loc, predicate)
        if value.type == self._cc.torch_bool_type:
            return value
        return self._create("torch.aten.Bool.Tensor", self._cc.torch_bool_type, [value])

    def _call(
        self, node: fx.Node, graph: fx.Node, operands: Sequence[mlir.Value], types: Sequence[mlir.Type]
    ) -> list[mlir.Value]:
        module = getattr(node.graph.owning_module, str(graph.target))
        name = self.fx_importer._graph_module_to_func_name[id(module)]
        callee = mlir.FlatSymbolRefAttr.get(name)
        return list(
            mlir.Operation.create(
                "func.call", results=list(types), operands=list(operands), attributes={"callee": callee}
            ).results
        )

    def _bind_all(self, node: fx.Node, results: list[mlir.Value]) -> None:
        self._multi_result_nodes.add(node)
        for position, value in enumerate(results):
            self.bind_node_value(node, value, position)

    def _int(self, value: int) -> mlir.Value:
        attribute = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), value)
        return self._create("torch.constant.int", self._cc.torch_int_type, [], value=attribute)

    def _constant_bool(self, value: bool) -> mlir.Value:
        return self._create("torch.constant.bool", self._cc.torch_bool_type, [], value=mlir.BoolAttr.get(value))

    def _create(
        self, name: str, type_: mlir.Type, operands: Sequence[mlir.Value], **attributes: mlir.Attribute
    ) -> mlir.Value:
        return mlir.Operation.create(name, results=[type_], operands=list(operands), attributes=attributes).result
