"""Results of a torch program that are truths which its tensors hold."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.export.graph_signature import SymBoolArgument, TensorArgument

aten = torch.ops.aten


def return_tensors(program: torch.export.ExportedProgram) -> None:
    """Returns the tensors that truths are read from; the importer reads only numbers."""
    graph = program.graph
    output = graph.output_node()
    results, read = list(cast(Any, output.args[0])), []
    for place, (number, spec) in enumerate(zip(results, program.graph_signature.output_specs, strict=True)):
        if isinstance(spec.arg, SymBoolArgument) and number.target is aten._local_scalar_dense.default:
            results[place] = number.args[0]
            spec.arg = TensorArgument(name=results[place].name)
            read.append(number)
    output.args = (tuple(results),)
    for number in read:
        if not number.users:
            graph.erase_node(number)
