"""MLIR of four dialects reaches the input contract, told apart by its ops."""

from __future__ import annotations

import numpy as np
import pytest

from eyas.errors import FrontendError, UnsupportedOpError, UsageError
from eyas.frontends import import_model
from eyas.verification.oracle import evaluate

LINALG = """
func.func @add_one(%x: tensor<?xf32>) -> tensor<?xf32> {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.map { arith.addf } ins(%x, %f : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>)
  return %y : tensor<?xf32>
}
""".replace("  %y =", "  %f = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>\n  %y =")

STABLEHLO = """
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<2x3xui8> {mhlo.sharding = "{replicated}"})
      -> (tensor<2x3xf32> {jax.result_info = ""}) {
    %0 = call @convert(%x) : (tensor<2x3xui8>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
  func.func private @convert(%x: tensor<2x3xui8>) -> tensor<2x3xf32> {
    %0 = stablehlo.convert %x : (tensor<2x3xui8>) -> tensor<2x3xf32>
    %1 = chlo.erf %0 : tensor<2x3xf32> -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
"""

TOSA = """
func.func @main(%x: tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32> {
  %w = "tosa.const"() {values = dense<1.0> : tensor<2x3x3x2xf32>} : () -> tensor<2x3x3x2xf32>
  %b = "tosa.const"() {values = dense<0.5> : tensor<2xf32>} : () -> tensor<2xf32>
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %c = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>,
      pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}
    : (tensor<1x4x4x2xf32>, tensor<2x3x3x2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x2xf32>
  %r = tosa.clamp %c {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  return %r : tensor<1x4x4x2xf32>
}
"""

TORCH = """
func.func @main(%x: !torch.vtensor<[2,3],si64>) -> !torch.vtensor<[2,3],si64> {
  %k = torch.vtensor.literal(dense<[10, 20, 30]> : tensor<3xsi64>) : !torch.vtensor<[3],si64>
  %one = torch.constant.int 1
  %y = torch.aten.add.Tensor %x, %k, %one
    : !torch.vtensor<[2,3],si64>, !torch.vtensor<[3],si64>, !torch.int -> !torch.vtensor<[2,3],si64>
  return %y : !torch.vtensor<[2,3],si64>
}
"""


def test_linalg(tmp_path):
    (tmp_path / "add.mlir").write_text(LINALG)
    for model in (LINALG, tmp_path / "add.mlir"):
        program = import_model(model)
        assert str(program.signature) == "(arg0: f32[arg0_dim0]) -> (output: f32[output_dim0])"
        np.testing.assert_array_equal(evaluate(program, np.arange(3, dtype=np.float32))[0], [1, 2, 3])
        assert program.as_text(level="source") == program.as_text()


def test_stablehlo_with_calls_signs_and_foreign_attributes():
    program = import_model(STABLEHLO)
    assert program.signature.arguments[0].dtype == "u8"
    assert "stablehlo.convert" in program.as_text(level="source")
    x = np.array([[1, 2, 3], [200, 254, 255]], np.uint8)
    np.testing.assert_array_equal(evaluate(program, x)[0], x.astype(np.float32))


def test_stablehlo_artifact_bytes(tmp_path):
    jax = pytest.importorskip("jax")
    exported = jax.export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((3,), np.float32))
    data = bytes(exported.mlir_module_serialized)
    (tmp_path / "f.stablehlo").write_bytes(data)
    for model in (data, tmp_path / "f.stablehlo"):
        np.testing.assert_array_equal(evaluate(import_model(model), np.ones(3, np.float32))[0], [2, 2, 2])


def test_tosa():
    program = import_model(TOSA)
    y = evaluate(program, np.ones((1, 4, 4, 2), np.float32))[0]
    assert y[0, 0, 0, 0] == 6.0
    assert {name.partition(".")[0] for name in program.op_counts()} <= {"func", "linalg", "tensor", "arith"}
    y = evaluate(program, np.full((1, 4, 4, 2), 0.1, np.float32))[0]
    np.testing.assert_allclose(y[0, :2, 0, 0], [0.1 * 8 + 0.5, 0.1 * 12 + 0.5], rtol=1e-5)


def test_torch():
    program = import_model(TORCH)
    assert program.signature.arguments[0].dtype == "i64"
    x = np.zeros((2, 3), np.int64)
    np.testing.assert_array_equal(evaluate(program, x)[0], [[10, 20, 30]] * 2)


def test_resources_in_text_become_parameters():
    values = np.arange(300, dtype=np.float32)
    text = (
        "func.func @main() -> tensor<300xf32> {\n  %0 = arith.constant dense_resource<weights> : tensor<300xf32>\n"
        "  return %0 : tensor<300xf32>\n}\n"
        '{-# dialect_resources: { builtin: { weights: "0x04000000' + values.tobytes().hex() + '" } } #-}'
    )
    program = import_model(text)
    np.testing.assert_array_equal(program.parameters["weights"].array(), values)


def test_large_constants_of_every_type_become_parameters():
    import ml_dtypes

    values = np.arange(1400) % 50 - 20
    kinds = {
        "bf16": ml_dtypes.bfloat16,
        "f64": np.float64,
        "i32": np.int32,
        "i16": np.int16,
        "i1": np.bool_,
    }
    for kind, dtype in kinds.items():
        array = values.astype(dtype)
        data = str(array.tolist()).lower() if dtype == np.bool_ else f'"0x{array.tobytes().hex()}"'
        text = f"""func.func @main() -> tensor<1400x{kind}> {{
          %0 = arith.constant dense<{data}> : tensor<1400x{kind}>
          return %0 : tensor<1400x{kind}>
        }}"""
        program = import_model(text)
        (parameter,) = program.parameters.values()
        assert parameter.name == f"constant_0_{kind}_1400"
        np.testing.assert_array_equal(parameter.array(), array)


@pytest.mark.parametrize(
    ("kind", "pattern", "text"),
    [
        (FrontendError, r"not valid MLIR: .* \(at line 2\)", "func.func @main() {\n  nonsense\n}"),
        (FrontendError, "one public function", 'func.func @"a.1"() {\n return\n}\nfunc.func @b() {\n return\n}'),
        (FrontendError, "one public function", "module {\n}"),
        (FrontendError, "has no data", """func.func @main() -> tensor<300xf32> {
           %0 = arith.constant dense_resource<gone> : tensor<300xf32>
           return %0 : tensor<300xf32>\n}"""),
        (FrontendError, "'arg0' has type memref<4xf32>", "func.func @main(%m: memref<4xf32>) {\n return\n}"),
        (FrontendError, r"tensor<\*xf32>; only ranked", "func.func @main(%x: tensor<*xf32>) {\n return\n}"),
        (FrontendError, "i5", "func.func @main(%x: tensor<4xi5>) -> tensor<4xi5> {\n return %x : tensor<4xi5>\n}"),
        (FrontendError, "'tensor.pad' at line 4 pads by a negative amount", """
           func.func @main(%x: tensor<4xf32>) -> tensor<3xf32> {\n %z = arith.constant 0.0 : f32
           %p = tensor.pad %x low[1] high[-2] {
           ^bb0(%i: index):\n tensor.yield %z : f32\n} : tensor<4xf32> to tensor<3xf32>
           return %p : tensor<3xf32>\n}"""),
        (UnsupportedOpError, "'bufferization.to_buffer' at line 3 .*memref.load", """
           func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
           %m = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>\n %c = arith.constant 0 : index
           %v = memref.load %m[%c] : memref<4xf32>
           %r = tensor.from_elements %v : tensor<f32>\n return %r : tensor<f32>\n}"""),
        (UnsupportedOpError, r"'stablehlo\.custom_call'", """
           func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
           %0 = stablehlo.custom_call @someone_elses_kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
           return %0 : tensor<4xf32>\n}"""),
    ],
)  # fmt: skip
def test_bad_programs_teach(kind, pattern, text):
    with pytest.raises(kind, match=pattern) as caught:
        import_model(text)
    assert "\n" not in str(caught.value)


def test_bad_files_and_calls(tmp_path):
    with pytest.raises(FrontendError, match="no such file"):
        import_model(tmp_path / "none.mlir")
    (tmp_path / "binary.mlir").write_bytes(b"\xff\xfe\x00garbage")
    with pytest.raises(FrontendError, match="neither MLIR text nor"):
        import_model(tmp_path / "binary.mlir")
    (tmp_path / "cut.stablehlo").write_bytes(b"ML\xefR\x0dStableHLO_v1.0.0\x00rest")
    with pytest.raises(FrontendError, match="not a StableHLO artifact|not valid MLIR"):
        import_model(tmp_path / "cut.stablehlo")
    with pytest.raises(UsageError, match="pass it alone"):
        import_model(LINALG, np.ones(3))


@pytest.mark.parametrize(
    ("kind", "pattern", "model"),
    [
        (FrontendError, "cannot import a builtins.int; accepted: a torch.nn.Module", 3),
        (UsageError, "cannot tell what 'model.foo' is", "model.foo"),
        (UsageError, "holds weights without a program", "weights.pth"),
        (FrontendError, "cannot import a builtins.object", object()),
    ],
)
def test_unknown_things_are_refused(kind, pattern, model):
    with pytest.raises(kind, match=pattern):
        import_model(model)


@pytest.mark.parametrize(
    "type_, dtype", [("tensor<3x1xui16>", "u16"), ("tensor<ui8>", "u8"), ("tensor<0xui32>", "u32")]
)
def test_what_does_nothing_keeps_its_unsigned_types(type_, dtype):
    """As JAX writes it: no op says that it is StableHLO."""
    text = f"func.func public @main(%x: {type_}) -> {type_} {{ return %x : {type_} }}"
    program = import_model(text)
    assert [one.dtype for one in (*program.signature.arguments, *program.signature.results)] == [dtype, dtype]
    assert type_ not in str(program.module) and type_.replace("ui", "i") in str(program.module)
