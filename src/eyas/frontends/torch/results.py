"""Results of a torch program that are numbers which its tensors hold."""

from __future__ import annotations

import torch
from torch.export.graph_signature import SymBoolArgument, SymFloatArgument, TensorArgument

aten = torch.ops.aten


def return_tensors(program: torch.export.ExportedProgram) -> None:
    """Makes tensors without dimensions of truths and floats that are returned; the importer has only integers."""
    graph = program.graph
    output = graph.output_node()
    results, read = list(output.args[0]), []
    for place, spec in enumerate(program.graph_signature.output_specs):
        if not isinstance(spec.arg, (SymBoolArgument, SymFloatArgument)):
            continue
        number = results[place]
        if number.target is aten._local_scalar_dense.default:
            results[place] = number.args[0]
        else:
            dtype = torch.bool if isinstance(spec.arg, SymBoolArgument) else torch.float64
            with graph.inserting_before(output):
                results[place] = graph.call_function(aten.scalar_tensor.default, (number,), {"dtype": dtype})
            fake = next(node.meta["val"] for node in graph.nodes if isinstance(node.meta.get("val"), torch.Tensor))
            results[place].meta = {**number.meta, "val": fake.new_empty((), dtype=dtype)}
        spec.arg = TensorArgument(name=results[place].name)
        read.append(number)
    output.args = (tuple(results),)
    for number in read:
        if not number.users:
            graph.erase_node(number)
