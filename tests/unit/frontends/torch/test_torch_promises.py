"""Results of decompositions have the types of the ops that they replace."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from eyas.frontends.torch.decompositions import decomposition_table  # noqa: E402
from eyas.frontends.torch.promises import keep_types  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32])
@pytest.mark.parametrize("function", [torch.special.erfc, torch.special.ndtr, torch.isfinite])
def test_types_are_those_of_torch(function, dtype):
    """The second and third are compositions of other ops to torch."""

    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    x = torch.ones(3).to(dtype)
    program = torch.export.export(Module(), (x,)).run_decompositions(dict(decomposition_table()))
    (output,) = [node for node in program.graph.nodes if node.op == "output"]
    assert output.args[0][0].meta["val"].dtype == function(x).dtype


def test_a_composite_is_taken_apart_once():
    op, calls = torch.ops.aten.special_ndtr.default, []

    def wide(x):
        calls.append(x)
        return torch.erf(x.float())

    class Module(torch.nn.Module):
        def forward(self, x):
            return torch.special.ndtr(x)

    program = torch.export.export(Module(), (torch.ones(3).half(),))
    program.run_decompositions({op: keep_types(op, wide)})
    assert len(calls) <= 2  # once to learn what tracing changes, once to trace
