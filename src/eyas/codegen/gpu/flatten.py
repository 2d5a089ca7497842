"""From loops on memrefs to a kernel on flat memory: a walk over the bufferised form, with a rule for each op.

Values of memref type become views; loads and stores address the view's buffer. How the threads of the workgroup divide
the work is for `crew.py` to say: `Flattener.crew` is None where one thread works alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import memref, scf

from eyas.codegen.common.sizes import Size
from eyas.codegen.gpu.bounds import Bounds
from eyas.codegen.gpu.crew import Crew
from eyas.codegen.gpu.flat_memory import Binding, Private, Spans, View, row_major, stored_in
from eyas.codegen.gpu.interface import Interface
from eyas.errors import CompileError
from eyas.ir.locations import describe_location
from eyas.ir.walk import remap_operands

PRIVATE_BYTES = 256
"""What a thread may have of its own for one allocation: registers, if the driver finds them."""


Rule = Callable[["Flattener", mlir.Operation], None]


class Flattener:
    """Writes the kernel's body while it walks the function."""

    def __init__(self, interface: Interface, constants: Sequence[mlir.Value], rules: Mapping[str, Rule]):
        """`constants`: the function's arguments that are push constants. `rules`: by op name; other ops are copied."""
        self.at = interface
        self.rules = rules
        self.spans = Spans(interface)
        self.crew: Crew | None = Crew(interface)
        self.values: dict[mlir.Value, mlir.Value] = dict(zip(constants, interface.constants, strict=True))
        self.views: dict[mlir.Value, View] = {}
        numbers = {value: number for number, value in enumerate(constants)}
        self.bounds = Bounds(numbers, lambda value, axis: self.views[value].bounds[axis])
        self.tables: dict[str, View] = {}
        self.allocates_privately = False

    # --- values -------------------------------------------------------------------------------------------------------

    def bind(self, value: mlir.Value, ordinal: int, dims: Sequence[int | None]) -> None:
        """The memref of a binding; `dims` are the push constants that its dynamic sizes are."""
        type_ = mlir.MemRefType(value.type)
        sizes, bounds = [], []
        for size, constant in zip(type_.shape, dims, strict=True):
            sizes.append(self.at.index(size) if constant is None else self.at.constants[constant])
            bounds.append((Size(size),) if constant is None else (Size(1, (constant,)),))
        strides = row_major(sizes, self.at)
        buffer, zero = Binding(self.at, ordinal), self.at.index(0)
        self.views[value] = View(buffer, type_.element_type, zero, zero, tuple(sizes), strides, tuple(bounds))

    def value(self, value: mlir.Value) -> mlir.Value:
        return self.values.get(value, value)

    def block(self, block: mlir.Block) -> mlir.Operation:
        """Writes the ops of a block but the last, and gives that."""
        *ops, last = block.operations
        for op in ops:
            self.op(op.operation)
        return last.operation

    def op(self, op: mlir.Operation) -> None:
        rule = self.rules.get(op.name)
        with op.location:
            if rule is not None:
                rule(self, op)
            elif op.regions or any(isinstance(one.type, mlir.MemRefType) for one in (*op.operands, *op.results)):
                raise unknown(op)
            else:
                clone = op.clone()
                remap_operands(clone.operation, self.values)
                self.values.update(zip(op.results, clone.operation.results, strict=True))

    # --- memory -------------------------------------------------------------------------------------------------------

    def load(self, op: mlir.Operation) -> None:
        if self.crew:
            self.crew.before_read()
        view = self.views[op.operands[0]]
        self.values[op.results[0]] = view.load([self.value(one) for one in list(op.operands)[1:]])

    def store(self, op: mlir.Operation) -> None:
        def write() -> None:
            operands = list(op.operands)
            self.views[operands[1]].store(self.value(operands[0]), [self.value(one) for one in operands[2:]])

        self.alone(write)

    def copy(self, op: mlir.Operation) -> None:
        self.copy_view(self.views[op.operands[0]], self.views[op.operands[1]])

    def copy_view(self, source: View, target: View) -> None:
        sizes = source.sizes
        self.share(sizes, lambda indices: target.store(source.load(indices), indices))

    def in_scratch(self, view: View) -> View:
        """The same elements in scratch memory."""
        if self.spans.has(view):
            return view
        moved = self.spans.allocate(view.element, view.sizes, view.bounds)
        self.copy_view(view, moved)
        return moved

    def allocate(self, op: mlir.Operation) -> None:
        type_ = mlir.MemRefType(op.results[0].type)
        if self.allocates_privately:
            self.views[op.results[0]] = self._own(type_)
            return
        dynamic = iter(op.operands)
        sizes, bounds = [], []
        for size in type_.shape if type_.rank else []:
            if size != mlir.ShapedType.get_dynamic_size():
                sizes.append(self.at.index(size))
                bounds.append((Size(size),))
                continue
            given = next(dynamic)
            bound = self.bounds.of(given)
            if bound is None:
                where = describe_location(op.location)
                raise CompileError(
                    f"the {op.name} at {where} has a size that depends on data, and memory on a GPU is given by sizes"
                )
            sizes.append(self.value(given))
            bounds.append(bound)
        self.views[op.results[0]] = self.spans.allocate(type_.element_type, sizes, bounds)

    def _own(self, type_: mlir.MemRefType) -> View:
        """Memory of the thread that works alone."""
        sizes = [self.at.index(size) for size in (type_.shape if type_.rank else [])]
        with self.at.top, mlir.Location.unknown():
            memory = memref.AllocaOp(stored_in(type_), [], []).result
        bounds = tuple((Size(size),) for size in (type_.shape if type_.rank else []))
        strides = row_major(sizes, self.at)
        zero = self.at.index(0)
        return View(Private(memory), type_.element_type, zero, zero, tuple(sizes), strides, bounds)

    # --- who works ----------------------------------------------------------------------------------------------------

    def alone(self, write: Callable[[], None]) -> None:
        """One thread of the crew, or the thread that is alone, writes."""
        if self.crew is None:
            write()
            return
        crew, self.crew = self.crew, None
        crew.alone(write)
        self.crew = crew

    def share(self, sizes: Sequence[mlir.Value], body: Callable[[Sequence[mlir.Value]], None]) -> None:
        """Runs `body` for each index, by the threads of the crew or by the one that is alone."""
        if self.crew is None:
            nested_loops(self.at, sizes, body)
            return
        crew, self.crew = self.crew, None
        crew.share(sizes, body)
        self.crew = crew


def nested_loops(at: Interface, sizes: Sequence[mlir.Value], body: Callable[[Sequence[mlir.Value]], None]) -> None:
    """Loops from 0 to each size, one in the other."""
    if not sizes:
        body([])
        return
    loop = scf.ForOp(at.index(0), sizes[0], at.index(1))
    with mlir.InsertionPoint(loop.body):
        nested_loops(at, sizes[1:], lambda inner: body([loop.induction_variable, *inner]))
        scf.YieldOp([])


def unknown(op: mlir.Operation) -> CompileError:
    return CompileError(f"a plain kernel has no rule for {op.name} at {describe_location(op.location)}")
