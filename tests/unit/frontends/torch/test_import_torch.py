"""PyTorch models reach the input contract with their numbers, names, shapes and trees intact."""

from __future__ import annotations

import collections
import dataclasses
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from eyas.errors import FrontendError, UnsupportedOpError, UsageError  # noqa: E402
from eyas.frontends import import_model  # noqa: E402
from eyas.verification.oracle import evaluate  # noqa: E402


class Function(nn.Module):
    """A module around a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Block(nn.Module):
    """Convolution, batch norm, residual: what a CNN is made of."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1, stride=2)
        self.norm = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x):
        x = self.norm(x)
        return x + self.attention(x, x, x, need_weights=False)[0]


class Tied(nn.Module):
    """An embedding whose weights are also the output layer's."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.head = nn.Linear(16, 64, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.arange(2000) % 3 == 0)
        self.register_buffer("table", torch.arange(500, dtype=torch.int64), persistent=False)
        self.plain = torch.linspace(0, 1, 400)

    def forward(self, x):
        return self.mask.sum() + x.long(), self.table * 2, self.plain + 1


def check(model, *args, rtol=1e-4, atol=1e-5):
    """Imports, runs the oracle, compares with eager torch."""
    program = import_model(model, *args)
    expected = model(*args)
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    arrays = [argument.detach().numpy() for argument in args]
    for got, want in zip(evaluate(program, *arrays), expected, strict=True):
        np.testing.assert_allclose(got, want.detach().numpy(), rtol=rtol, atol=atol)
    return program


def test_linear():
    program = check(nn.Linear(20, 30).eval(), torch.randn(4, 20))
    # 20 x 30 floats are a parameter; the bias is small enough to stay a value.
    assert list(program.parameters) == ["weight"]
    assert program.parameters["weight"].shape == (30, 20)
    assert str(program.signature) == "(input: f32[4, 20]) -> (output: f32[4, 30])"


def test_convolution():
    check(Block().eval(), torch.randn(2, 3, 16, 16))


def test_attention():
    check(Attention().eval(), torch.randn(2, 6, 32))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.topk(x, 3),
        lambda x: torch.sort(x, descending=True),
        lambda x: x.cumsum(1),
        lambda x: x.scatter_add(1, torch.tensor([[0, 1], [3, 3]]), x[:2, :2] * 2),
        lambda x: torch.cat([x, x.roll(2, 1)], 1),
        lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
        lambda x: F.grid_sample(x[None, None], torch.linspace(-1.5, 1.5, 24).reshape(1, 3, 4, 2), align_corners=False),
    ],
    ids=["topk", "sort", "cumsum", "scatter_add", "cat", "interpolate", "grid_sample"],
)
def test_irregular_ops(function):
    check(Function(function), torch.randn(4, 7))


def test_parameters_are_views_of_torch_memory():
    model = nn.Linear(20, 30).eval()
    array = import_model(model, torch.randn(4, 20)).parameters["weight"].array()
    assert array.ctypes.data == model.weight.data_ptr()
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_tied_weights_are_one_parameter():
    program = import_model(Tied().eval(), torch.tensor([1, 2, 3]))
    assert list(program.parameters) == ["embed.weight"]
    text = program.as_text()
    assert set(re.findall(r'key = "([^"]+)"', text)) == {"embed.weight"}
    assert "dense_resource" not in text


def test_buffers():
    program = check(Buffers().eval(), torch.ones(3))
    assert {name: parameter.dtype for name, parameter in program.parameters.items()} == {
        "mask": "bool",
        "table": "i64",
        "plain": "f32",
    }


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_float_types(dtype):
    model = nn.Linear(40, 40).to(dtype).eval()
    program = import_model(model, torch.randn(2, 40, dtype=dtype))
    name = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64"}[dtype]
    assert program.signature.arguments[0].dtype == program.parameters["weight"].dtype == name
    array = program.parameters["weight"].array()
    assert array.ctypes.data == model.weight.data_ptr()
    np.testing.assert_array_equal(array.astype(np.float64), model.weight.detach().double().numpy())


def test_unsigned_bytes_convert_as_unsigned():
    program = check(Function(lambda x: x.float() / 255), torch.tensor([200, 3], dtype=torch.uint8))
    assert program.signature.arguments[0].dtype == "u8"


def test_dict_input_constants_and_nested_results():
    class Model(nn.Module):
        def forward(self, batch, scale=2.0, nothing=None, *, shift):
            x = batch["x"] * scale + shift
            return {"y": x, "none": None, "pair": (x.sum(), 3)}

    program = import_model(Model(), {"x": torch.ones(3)}, 4.0, shift=torch.ones(3))
    assert [argument.name for argument in program.signature.arguments] == ["batch.x", "shift"]
    assert [result.name for result in program.signature.results] == ["y", "pair.0"]
    leaves = program.in_tree.flatten(({"x": "X"}, 4.0), {"shift": "S"})
    assert leaves == ["X", "S"]
    assert program.out_tree.unflatten(["Y", "P"]) == {"y": "Y", "none": None, "pair": ("P", 3)}
    y, total = evaluate(program, np.ones(3, np.float32), np.ones(3, np.float32))
    np.testing.assert_array_equal(y, np.full(3, 5.0))
    assert total == 15.0


def test_named_tuple_and_dataclass_results():
    Pair = collections.namedtuple("Pair", "a b")
    globals()["Pair"] = Pair
    Pair.__module__ = __name__

    program = import_model(Function(lambda x: Pair(x + 1, x * 2)), torch.ones(2))
    assert program.out_tree.unflatten([1, 2]) == Pair(1, 2)
    program = import_model(Function(lambda x: torch.sort(x)), torch.ones(2))
    assert [result.name for result in program.signature.results] == ["values", "indices"]
    result = program.out_tree.unflatten([torch.ones(2), torch.zeros(2)])
    assert isinstance(result, torch.return_types.sort)


@dataclasses.dataclass
class Boxes:
    xy: torch.Tensor
    score: torch.Tensor


def test_dataclass_argument():
    torch.export.register_dataclass(Boxes, serialized_type_name="eyas.test.Boxes")
    program = import_model(Function(lambda b: Boxes(b.xy + 1, b.score * 2)), Boxes(torch.ones(2), torch.ones(3)))
    assert [argument.name for argument in program.signature.arguments] == ["x.xy", "x.score"]
    assert program.in_tree.flatten((Boxes("XY", "S"),), {}) == ["XY", "S"]
    assert program.out_tree.unflatten(["A", "B"]) == Boxes("A", "B")


def test_dynamic_dimensions_are_named_by_the_user():
    batch = Dim("batch", min=2, max=64)
    program = import_model(Attention().eval(), torch.randn(3, 6, 32), dynamic_shapes={"x": {0: batch}})
    assert program.signature.arguments[0].dims == ("batch", 6, 32)
    assert program.signature.results[0].dims == ("batch", 6, 32)
    assert program.signature.symbols == {"batch": (2, 64)}


def test_dynamic_dimensions_compute():
    model = nn.Sequential(nn.Linear(8, 16), nn.Softmax(-1)).eval()
    program = import_model(model, torch.randn(3, 8), dynamic_shapes=({0: Dim("batch")},))
    for size in (2, 5):
        x = torch.randn(size, 8)
        np.testing.assert_allclose(evaluate(program, x.numpy())[0], model(x).detach().numpy(), rtol=1e-5)


def test_size_as_result_is_a_tensor():
    program = import_model(Function(lambda x: (x * 2, x.shape[0])), torch.ones(3), dynamic_shapes={"x": {0: Dim("n")}})
    _, size = evaluate(program, np.ones(7, np.float32))
    assert size.shape == () and size == 7


def test_exported_program_and_saved_file(tmp_path):
    exported = torch.export.export(Function(lambda x: (torch.relu(x), None)), (torch.randn(4),))
    for _ in range(2):
        assert import_model(exported).out_tree.unflatten([1]) == (1, None)
    torch.export.save(exported, tmp_path / "model.pt2")
    program = import_model(tmp_path / "model.pt2")
    assert program.source.description == "model.pt2"
    np.testing.assert_array_equal(evaluate(program, np.array([-1, 1, -2, 2], np.float32))[0], [0, 1, 0, 2])


def test_locations_name_module_node_and_line():
    program = import_model(Block().eval(), torch.randn(1, 3, 8, 8))
    text = program.module.operation.get_asm(enable_debug_info=True)
    assert re.search(r'loc\("conv/\w+"', text)
    assert "test_import_torch.py" in text


def test_source_text_shows_torch_ops_without_weights():
    text = import_model(nn.Linear(64, 64).eval(), torch.randn(1, 64)).as_text(level="source")
    assert "torch.aten" in text and "dense_resource<weight>" in text
    assert len(text) < 5000


def test_large_literals_are_parameters_with_values():
    table = torch.randn(400)
    program = import_model(Function(lambda x: x + table), torch.zeros(400))
    (parameter,) = program.parameters.values()
    np.testing.assert_array_equal(parameter.array(), table.numpy())


def test_digest_depends_on_weights():
    model = nn.Linear(20, 30).eval()
    first = import_model(model, torch.randn(4, 20)).digest
    assert import_model(model, torch.randn(4, 20)).digest == first
    with torch.no_grad():
        model.weight[0, 0] += 1
    assert import_model(model, torch.randn(4, 20)).digest != first


def fails_with(kind, pattern, model, *args, **kwargs):
    with pytest.raises(kind) as caught:
        import_model(model, *args, **kwargs)
    message = str(caught.value)
    assert re.search(pattern, message), message
    assert "\n" not in message
    return message


@torch.library.custom_op("eyas_tests::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@halved.register_fake
def _(x):
    return torch.empty_like(x)


def test_unregistered_op_names_node_and_line():
    message = fails_with(UnsupportedOpError, r"eyas_tests\.halved", Function(lambda x: halved(x)), torch.randn(4, 4))
    assert "node 'halved" in message and "test_import_torch.py:" in message


def test_memory_beside_a_tensor_names_node_and_line():
    beside = Function(lambda x: torch.as_strided(x, (2, 2), (1, 2), 0) + 1)
    message = fails_with(UnsupportedOpError, r"'as_strided' .*outside the base tensor", beside, torch.randn(20)[10:])
    assert "node 'as_strided" in message and "test_import_torch.py:" in message


def test_loops_run_over_a_dynamic_number_of_rows():
    from torch._higher_order_ops.map import map as map_rows

    class Rows(nn.Module):
        def forward(self, x):
            return map_rows(lambda row: row.cumsum(0) + 1, x)

    dynamic = {"x": {0: torch.export.Dim("rows", min=2, max=9)}}
    program = import_model(Rows(), torch.randn(4, 3), dynamic_shapes=dynamic)
    for rows in (2, 5, 9):
        x = torch.randn(rows, 3)
        (got,) = evaluate(program, x.numpy())
        np.testing.assert_allclose(got, Rows()(x).numpy(), rtol=1e-6)


def test_written_buffers_become_state():
    program = import_model(nn.BatchNorm2d(3), torch.randn(2, 3, 4, 4))
    assert str(program.signature) == "(input: f32[2, 3, 4, 4]) -> (output: f32[2, 3, 4, 4])"
    counts = program.op_counts()
    assert counts["flow.set_state"] == 3, "mean, variance and the number of batches"
    assert {"running_mean@initial", "running_var@initial"} <= set(program.parameters)


def test_written_arguments_are_results():
    program = import_model(Function(lambda x: x.add_(1)), torch.randn(4))
    assert [one.name for one in program.signature.results][-1].endswith(".new")
    assert program.entries["main"].mutates == ((1, 0),)


def test_bad_element_types_are_refused():
    fails_with(FrontendError, r"torch\.uint16", Function(lambda x: x.to(torch.uint16)), torch.randn(4))


def test_data_dependent_branch_is_refused():
    fails_with(
        FrontendError, r"torch\.export could not trace", Function(lambda x: x if x.sum() > 0 else -x), torch.ones(2)
    )


def test_missing_inputs_and_files(tmp_path):
    fails_with(UsageError, r"forward needs example inputs: input", nn.Linear(2, 2))
    fails_with(FrontendError, r"no such file", tmp_path / "none.pt2")
    (tmp_path / "garbage.pt2").write_bytes(b"not a zip file")
    fails_with(FrontendError, r"garbage\.pt2' is not a program", tmp_path / "garbage.pt2")
    fails_with(UsageError, r"already has its inputs", torch.export.export(nn.ReLU(), (torch.ones(2),)), torch.ones(2))
