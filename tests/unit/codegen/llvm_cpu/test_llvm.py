"""Every construct that we emit crosses from MLIR's LLVM to llvmlite's, on every architecture."""

from __future__ import annotations

import ctypes
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import native  # noqa: E402

from eyas.codegen.common.passes.expand_math import ExpandMath  # noqa: E402
from eyas.codegen.llvm_cpu import elf, llvm  # noqa: E402
from eyas.codegen.llvm_cpu.llvm import compile_text, emit_assembly, emit_llvm_ir, emit_object  # noqa: E402
from eyas.codegen.llvm_cpu.lowering import lower_to_llvm  # noqa: E402
from eyas.errors import InternalError  # noqa: E402
from eyas.ir import make_context, parse_module  # noqa: E402
from eyas.targets import Target  # noqa: E402

TARGETS = [
    "llvm-cpu:x86_64:znver4",
    "llvm-cpu:x86_64:znver3",
    "llvm-cpu:x86_64",
    "llvm-cpu:aarch64",
    "llvm-cpu:riscv64",
    "llvm-cpu:riscv64:+v,vlen=256",
]

# Bodies over %f: memref<?xf32>, %h: memref<?xf16>, %b: memref<?xbf16>, %i: memref<?xi32>, %n: index, %c0 and %c1.
CONSTRUCTS = {
    "vector_memory": """
      %m = vector.create_mask %n : vector<8xi1>
      %z = arith.constant dense<0.0> : vector<8xf32>
      %a = vector.load %f[%n] : memref<?xf32>, vector<8xf32>
      %l = vector.maskedload %f[%n], %m, %z : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      %r = vector.fma %a, %l, %z : vector<8xf32>
      vector.maskedstore %f[%n], %m, %r : memref<?xf32>, vector<8xi1>, vector<8xf32>
      vector.store %r, %f[%c0] : memref<?xf32>, vector<8xf32>""",
    "vector_gather_scatter": """
      %m = vector.create_mask %n : vector<8xi1>
      %z = arith.constant dense<0.0> : vector<8xf32>
      %x = vector.load %i[%c0] : memref<?xi32>, vector<8xi32>
      %g = vector.gather %f[%c0][%x], %m, %z
        : memref<?xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      vector.scatter %f[%c0][%x], %m, %g : memref<?xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32>""",
    "vector_rearrange": """
      %s = memref.load %f[%c0] : memref<?xf32>
      %a = vector.broadcast %s : f32 to vector<8xf32>
      %b2 = vector.load %f[%n] : memref<?xf32>, vector<8xf32>
      %x = vector.shuffle %a, %b2 [0, 8, 1, 9, 2, 10, 3, 11] : vector<8xf32>, vector<8xf32>
      %c = vector.shape_cast %x : vector<8xf32> to vector<2x4xf32>
      %t = vector.transpose %c, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
      %e = vector.extract %t[1] : vector<2xf32> from vector<4x2xf32>
      %j = vector.insert %e, %t[3] : vector<2xf32> into vector<4x2xf32>
      %q = vector.extract_strided_slice %j {offsets = [1], sizes = [2], strides = [1]}
        : vector<4x2xf32> to vector<2x2xf32>
      %k = vector.shape_cast %q : vector<2x2xf32> to vector<4xf32>
      vector.store %k, %f[%c0] : memref<?xf32>, vector<4xf32>""",
    "vector_transfer": """
      %z = arith.constant 0.0 : f32
      %a = memref.alloca() : memref<8x16xf32>
      %t = vector.transfer_read %a[%n, %n], %z : memref<8x16xf32>, vector<4x4xf32>
      %u = vector.transfer_read %a[%n, %n], %z {permutation_map = affine_map<(d0, d1) -> (d1, d0)>}
        : memref<8x16xf32>, vector<4x4xf32>
      %s = arith.addf %t, %u : vector<4x4xf32>
      vector.transfer_write %s, %a[%c0, %c1] {in_bounds = [true, true]} : vector<4x4xf32>, memref<8x16xf32>
      %v = memref.load %a[%n, %c1] : memref<8x16xf32>
      memref.store %v, %f[%n] : memref<?xf32>""",
    "vector_reduce": """
      %a = vector.load %f[%n] : memref<?xf32>, vector<8xf32>
      %0 = vector.reduction <add>, %a : vector<8xf32> into f32
      %1 = vector.reduction <mul>, %a, %0 : vector<8xf32> into f32
      %2 = vector.reduction <maximumf>, %a : vector<8xf32> into f32
      %3 = vector.reduction <minnumf>, %a : vector<8xf32> into f32
      %x = vector.load %i[%n] : memref<?xi32>, vector<8xi32>
      %4 = vector.reduction <maxsi>, %x : vector<8xi32> into i32
      %v = vector.from_elements %0, %1, %2, %3 : vector<4xf32>
      vector.store %v, %f[%c0] : memref<?xf32>, vector<4xf32>
      memref.store %4, %i[%c0] : memref<?xi32>""",
    "vector_contract": """
      %z = arith.constant dense<0.0> : vector<4x8xf32>
      %a = vector.load %f[%c0] : memref<?xf32>, vector<4xf32>
      %w = vector.load %f[%n] : memref<?xf32>, vector<8xf32>
      %p = vector.outerproduct %a, %w, %z : vector<4xf32>, vector<8xf32>
      %i0 = arith.constant dense<0.0> : vector<8xf32>
      %q = vector.multi_reduction <add>, %p, %i0 [0] : vector<4x8xf32> to vector<8xf32>
      vector.store %q, %f[%c0] : memref<?xf32>, vector<8xf32>""",
    "loops": """
      %z = arith.constant 0.0 : f32
      %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %z) -> f32 {
        %v = memref.load %f[%k] : memref<?xf32>
        %p = arith.cmpf ogt, %v, %acc : f32
        %y = scf.if %p -> f32 { scf.yield %v : f32 } else { scf.yield %acc : f32 }
        scf.yield %y : f32
      }
      %w = scf.while (%x = %s) : (f32) -> f32 {
        %p = arith.cmpf olt, %x, %z : f32
        scf.condition(%p) %x : f32
      } do {
      ^bb0(%x: f32):
        %y = arith.addf %x, %s : f32
        scf.yield %y : f32
      }
      scf.index_switch %n
      case 1 { memref.store %w, %f[%c0] : memref<?xf32> scf.yield }
      case 2 { memref.store %s, %f[%c1] : memref<?xf32> scf.yield }
      default { scf.yield }
      scf.forall (%k) in (4) { memref.store %w, %f[%k] : memref<?xf32> }
      scf.parallel (%k) = (%c0) to (%n) step (%c1) { memref.store %w, %f[%k] : memref<?xf32> scf.reduce }
      affine.for %k = 0 to 4 { affine.store %w, %f[%k + 1] : memref<?xf32> }""",
    "memory": """
      %a = memref.alloca() {alignment = 64 : i64} : memref<4x16xf32>
      %d = memref.alloc(%n) {alignment = 64 : i64} : memref<?xf32>
      %t = memref.get_global @table : memref<4xf32>
      %v = memref.load %t[%n] : memref<4xf32>
      memref.store %v, %a[%c0, %n] : memref<4x16xf32>
      %s = memref.subview %a[0, %n] [4, 2] [1, 1] : memref<4x16xf32> to memref<4x2xf32, strided<[16, 1], offset: ?>>
      linalg.fill ins(%v : f32) outs(%s : memref<4x2xf32, strided<[16, 1], offset: ?>>)
      %e = memref.expand_shape %f [[0, 1]] output_shape [%n, 4] : memref<?xf32> into memref<?x4xf32>
      %g = memref.collapse_shape %a [[0, 1]] : memref<4x16xf32> into memref<64xf32>
      %o = memref.load %g[%n] : memref<64xf32>
      memref.store %o, %e[%n, %c1] : memref<?x4xf32>
      %r = memref.reinterpret_cast %f to offset: [%n], sizes: [4, %n], strides: [%n, 1]
        : memref<?xf32> to memref<4x?xf32, strided<[?, 1], offset: ?>>
      memref.store %v, %r[%c1, %n] : memref<4x?xf32, strided<[?, 1], offset: ?>>
      %x = memref.atomic_rmw addf %v, %f[%n] : (f32, memref<?xf32>) -> f32
      %al = memref.assume_alignment %f, 64 : memref<?xf32>
      memref.prefetch %al[%n], read, locality<3>, data : memref<?xf32>
      memref.copy %d, %f : memref<?xf32> to memref<?xf32>
      memref.dealloc %d : memref<?xf32>""",
    "math_f32": "\n".join(
        ["%v0 = memref.load %f[%c0] : memref<?xf32>"]
        + [
            f"%v{index + 1} = math.{name} %v{index} : f32"
            for index, name in enumerate(
                "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
                "erfc sqrt rsqrt cbrt floor ceil trunc round roundeven absf".split()
            )
        ]
        + [
            "%w0 = math.fma %v30, %v1, %v2 : f32",
            "%w1 = math.powf %w0, %v3 : f32",
            "%w2 = math.atan2 %w1, %v4 : f32",
            "%w3 = math.copysign %w2, %v5 : f32",
            "%k = memref.load %i[%c0] : memref<?xi32>",
            "%w4 = math.fpowi %w3, %k : f32, i32",
            "%k1 = math.ctlz %k : i32",
            "%k2 = math.cttz %k1 : i32",
            "%k3 = math.ctpop %k2 : i32",
            "%k4 = math.ipowi %k3, %k : i32",
            "%k5 = math.absi %k4 : i32",
            "%w5 = arith.remf %w4, %v0 : f32",
            "memref.store %w5, %f[%c0] : memref<?xf32>",
            "memref.store %k5, %i[%c0] : memref<?xi32>",
        ]
    ),
    "math_vector": """
      %a = vector.load %f[%n] : memref<?xf32>, vector<8xf32>
      %0 = math.exp %a : vector<8xf32>
      %1 = math.erf %0 : vector<8xf32>
      %2 = math.fma %0, %1, %a : vector<8xf32>
      %3 = math.expm1 %2 : vector<8xf32>
      %4 = math.roundeven %3 : vector<8xf32>
      vector.store %4, %f[%c0] : memref<?xf32>, vector<8xf32>""",
    "f64": """
      %a = vector.load %f[%n] : memref<?xf32>, vector<8xf32>
      %d = arith.extf %a : vector<8xf32> to vector<8xf64>
      %c = arith.constant dense<0.3333333333333333> : vector<8xf64>
      %0 = math.exp %d : vector<8xf64>
      %1 = math.expm1 %0 : vector<8xf64>
      %2 = arith.mulf %1, %c : vector<8xf64>
      %3 = arith.truncf %2 : vector<8xf64> to vector<8xf32>
      vector.store %3, %f[%c0] : memref<?xf32>, vector<8xf32>""",
    "f16": """
      %a = vector.load %h[%n] : memref<?xf16>, vector<8xf16>
      %c = arith.constant dense<1.1> : vector<8xf16>
      %0 = arith.addf %a, %c : vector<8xf16>
      %1 = math.exp %0 : vector<8xf16>
      %2 = arith.maximumf %1, %a : vector<8xf16>
      %w = arith.extf %2 : vector<8xf16> to vector<8xf32>
      vector.store %w, %f[%n] : memref<?xf32>, vector<8xf32>
      %3 = arith.truncf %w : vector<8xf32> to vector<8xf16>
      vector.store %3, %h[%c0] : memref<?xf16>, vector<8xf16>""",
    "bf16": """
      %a = vector.load %b[%n] : memref<?xbf16>, vector<8xbf16>
      %c = arith.constant dense<1.1> : vector<8xbf16>
      %0 = arith.mulf %a, %c : vector<8xbf16>
      %1 = math.tanh %0 : vector<8xbf16>
      %w = arith.extf %1 : vector<8xbf16> to vector<8xf32>
      vector.store %w, %f[%n] : memref<?xf32>, vector<8xf32>
      %x = vector.load %f[%c0] : memref<?xf32>, vector<8xf32>
      %3 = arith.truncf %x : vector<8xf32> to vector<8xbf16>
      vector.store %3, %b[%c0] : memref<?xbf16>, vector<8xbf16>""",
    "integers": """
      %k = memref.load %i[%n] : memref<?xi32>
      %k8 = arith.trunci %k : i32 to i8
      %k1 = arith.trunci %k : i32 to i1
      %k64 = arith.extsi %k8 : i8 to i64
      %u = arith.uitofp %k1 : i1 to f32
      %s = arith.fptosi %u : f32 to i64
      %t = arith.addi %k64, %s : i64
      %x = arith.index_cast %t : i64 to index
      %y = arith.floordivsi %x, %n : index
      %z = arith.ceildivsi %y, %n : index
      %q = arith.maxsi %z, %c1 : index
      %ix = index.add %q, %c1
      %lo, %hi = arith.mului_extended %k, %k : i32
      memref.store %hi, %i[%ix] : memref<?xi32>""",
    "complex": """
      %re = memref.load %f[%c0] : memref<?xf32>
      %im = memref.load %f[%c1] : memref<?xf32>
      %c = complex.create %re, %im : complex<f32>
      %m = complex.mul %c, %c : complex<f32>
      %d = complex.div %m, %c : complex<f32>
      %e = complex.exp %d : complex<f32>
      %a = complex.abs %e : complex<f32>
      memref.store %a, %f[%c0] : memref<?xf32>""",
}


def module_text(body: str) -> str:
    return f"""
    memref.global "private" constant @table : memref<4xf32> = dense<[1.1, 0x7F800000, 0x7FC00000, -0.0]>
    func.func @kernel(%f: memref<?xf32>, %h: memref<?xf16>, %b: memref<?xbf16>, %i: memref<?xi32>, %n: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      {body}
      return
    }}"""


def lowered(text: str, target: Target):
    module = parse_module(text, make_context())
    lower_to_llvm(module, target)
    assert module.operation.verify()
    return module


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_construct_compiles_and_links(construct: str, target: str) -> None:
    from eyas.codegen.llvm_cpu.linker import link

    parsed = Target.parse(target)
    image = link([compile_text(module_text(CONSTRUCTS[construct]), target)], ["kernel"], parsed)
    assert image.startswith(elf.IDENT[:4])


# --- constants --------------------------------------------------------------------------------------------------------

CONSTANT_BITS = {
    ("f32", 32): [0, 1 << 31, 1, 0x7FFFFF, 0x3F8CCCCD, 0x3EAAAAAB, 0x4B800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000,
                  0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001, 0xFF812345],
    ("f64", 64): [0, 1, 0x3FF199999999999A, 0x7FEFFFFFFFFFFFFF, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48,
                  (0x7FF << 52) + 1],
    ("f16", 16): [0, 1, 0x3C66, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFE01],
    ("bf16", 16): [0, 1, 0x3F8D, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFC1],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "width"), CONSTANT_BITS)
def test_float_constants_keep_their_bits(kind: str, width: int) -> None:
    rng = np.random.default_rng(0)
    bits = CONSTANT_BITS[kind, width] + [int(b) for b in rng.integers(0, 1 << width, 300, dtype=np.uint64)]
    values = ", ".join(f"0x{one:0{width // 4}X}" for one in bits)
    data = f"dense<[{values}]> : tensor<{len(bits)}x{kind}>"
    text = f"llvm.mlir.global external constant @t({data}) : !llvm.array<{len(bits)} x {kind}>"
    parsed = elf.parse_object(emit_object(parse_module(text, make_context()), Target.host()), "object")
    symbol = next(one for one in parsed.symbols if one.name == "t")
    data = parsed.sections[symbol.section].data[symbol.value : symbol.value + len(bits) * width // 8]
    assert np.frombuffer(data, f"<u{width // 8}").tolist() == bits


def test_float_constants_in_every_position() -> None:
    text = """llvm.func @f(%a: f32, %v: vector<4xf32>, %c: i1, %d: f64) -> vector<4xf32> {
      %0 = llvm.mlir.constant(0xFF800000 : f32) : f32
      %1 = llvm.fadd %a, %0 : f32
      %2 = llvm.mlir.constant(dense<[0.1, 0x7F800000, 0x7FC00000, 1.0]> : vector<4xf32>) : vector<4xf32>
      %3 = llvm.fcmp "ogt" %1, %0 : f32
      %4 = llvm.select %3, %0, %1 : i1, f32
      %5 = llvm.fmul %v, %2 : vector<4xf32>
      %i = llvm.mlir.constant(0 : i32) : i32
      %6 = llvm.insertelement %0, %5[%i : i32] : vector<4xf32>
      %w = llvm.mlir.constant(0.1 : f64) : f64
      %x = llvm.fadd %d, %w : f64
      %y = llvm.fptrunc %x : f64 to f32
      llvm.cond_br %c, ^bb1(%0 : f32), ^bb1(%y : f32)
    ^bb1(%p : f32):
      %7 = llvm.insertelement %p, %6[%i : i32] : vector<4xf32>
      llvm.return %7 : vector<4xf32>
    }"""
    printed = emit_llvm_ir(parse_module(text, make_context()), Target.host(), opt_level=0)
    assert "fadd float %0, 0xFFF0000000000000" in printed
    assert "float 0x3FB99999A0000000, float 0x7FF0000000000000, float 0x7FF8000000000000, float 1.000000e+00" in printed
    assert "fadd double %3, 1.000000e-01" in printed


def test_bfloats_that_are_moved_are_integers() -> None:
    moved = """
      %1 = call <40 x bfloat> @llvm.masked.load.v40bf16.p0(ptr %0, <40 x i1> %m, <40 x bfloat> splat (bfloat 0xRBF80))
      %2 = shufflevector <40 x bfloat> %1, <40 x bfloat> <bfloat 0xR3F80, bfloat 0xR0000>, <2 x i32> <i32 0, i32 1>
      attributes #0 = { "target-features"="+avx512bf16,bfloat" }
    """
    held = llvm._hold_bfloats_as_integers(moved)
    assert "@llvm.masked.load.v40i16.p0(ptr %0, <40 x i1> %m, <40 x i16> splat (i16 -16512))" in held
    assert "<40 x i16> <i16 16256, i16 0>" in held and "+avx512bf16,bfloat" in held
    for line in (
        "%3 = fadd <4 x bfloat> %1, %2",
        "%3 = fptrunc float %1 to bfloat",
        "%3 = call bfloat @llvm.fma.bf16(bfloat %1, bfloat %1, bfloat %1)",
        "define bfloat @f(bfloat %0) {",
        "%3 = call <4 x bfloat> @llvm.exp.v4bf16(<4 x bfloat> %1)",
    ):
        assert llvm._hold_bfloats_as_integers(moved + line) == moved + line


def test_functions_of_bfloats_and_of_integers_are_declared_once() -> None:
    integers = "declare <4 x i16> @llvm.masked.load.v4i16.p0(ptr captures(none), <4 x i1>, <4 x i16>) #1\n"
    both = integers + integers.replace("i16", "bf16").replace("x bf16", "x bfloat") + "declare void @g(i16)\n"
    assert "bfloat" in both
    assert llvm._hold_bfloats_as_integers(both) == integers + "declare void @g(i16)\n"


def test_text_inside_strings_is_not_rewritten() -> None:
    old = '@s = private constant [18 x i8] c"float +inf 1.5e+00"\n@t = global float +inf\n'
    new = llvm._to_older_syntax(old)
    assert 'c"float +inf 1.5e+00"' in new
    assert "global float 0x7FF0000000000000" in new


# --- what LLVM is told ------------------------------------------------------------------------------------------------

SAXPY = """
func.func @saxpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %va = vector.broadcast %a : f32 to vector<16xf32>
  scf.for %i = %c0 to %n step %c16 {
    %vx = vector.load %x[%i] : memref<?xf32>, vector<16xf32>
    %vy = vector.load %y[%i] : memref<?xf32>, vector<16xf32>
    %r = vector.fma %va, %vx, %vy : vector<16xf32>
    vector.store %r, %y[%i] : memref<?xf32>, vector<16xf32>
  }
  return
}"""


@pytest.mark.parametrize(
    ("target", "instruction"),
    [
        ("llvm-cpu:x86_64:skylake-avx512", "zmm"),  # a model that prefers 256 bits unless told otherwise
        ("llvm-cpu:x86_64:znver4", "zmm"),
        ("llvm-cpu:x86_64:znver3", "vfmadd"),
        ("llvm-cpu:x86_64", "mulps"),
        ("llvm-cpu:aarch64", "fmla"),
        ("llvm-cpu:riscv64:+v", "vfmacc"),
    ],
)
def test_assembly_uses_the_vector_unit(target: str, instruction: str) -> None:
    parsed = Target.parse(target)
    assert instruction in emit_assembly(lowered(SAXPY, parsed), parsed)


def test_a_loop_stays_a_loop() -> None:
    text = """func.func @zero(%x: memref<?xf32>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %z = arith.constant 0.0 : f32
      scf.for %i = %c0 to %n step %c1 { memref.store %z, %x[%i] : memref<?xf32> }
      return
    }"""
    assert "memset" not in emit_assembly(lowered(text, Target.host()), Target.host())


@pytest.mark.parametrize("target", TARGETS)
def test_sines_and_cosines_of_large_numbers_stay_behind_branches(target: str) -> None:
    text = """func.func @f(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      scf.for %i = %c0 to %n step %c8 {
        %a = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
        %s = math.sin %a : vector<8xf32>
        %c = math.cos %a : vector<8xf32>
        %r = arith.addf %s, %c : vector<8xf32>
        vector.store %r, %y[%i] : memref<?xf32>, vector<8xf32>
      }
      return
    }"""
    parsed = Target.parse(target)
    module = parse_module(text, make_context())
    with module.context:
        ExpandMath(fma=parsed.has_fma).run(module)
    lower_to_llvm(module, parsed)
    printed = emit_llvm_ir(module, parsed)
    block = next(part for part in printed.split("\n\n") if "@llvm.sin." in part and " call " in part)
    assert "load <" not in block and "store <" not in block, printed


def test_no_call_for_narrow_floats_on_this_machine() -> None:
    text = module_text(CONSTRUCTS["bf16"].replace("math.tanh", "math.absf"))
    target = Target.parse("llvm-cpu:x86_64:znver3")
    assert "call" not in emit_assembly(lowered(text, target), target)


def test_leftover_op_is_our_error_and_not_a_crash() -> None:
    text = """func.func @f(%x: memref<?xf32>) -> index {
      %0 = builtin.unrealized_conversion_cast %x : memref<?xf32> to index
      return %0 : index
    }"""
    module = parse_module(text, make_context())
    with pytest.raises(InternalError, match="'func.func' at line 1 was not lowered"):
        emit_object(module, Target.host())
    lower_to_llvm(module, Target.host())
    with pytest.raises(InternalError, match="unrealized_conversion_cast"):
        emit_object(module, Target.host())


def test_saxpy_runs() -> None:
    library = native.build(SAXPY, "saxpy")
    x, y = np.arange(64, dtype=np.float32), np.ones(64, dtype=np.float32)
    library.saxpy(ctypes.c_float(2.0), *native.memref(x), *native.memref(y), ctypes.c_int64(64))
    np.testing.assert_array_equal(y, 2 * x + 1)


def test_narrow_floats_round_as_numpy_does() -> None:
    import ml_dtypes

    text = """func.func @f(%x: memref<?xf32>, %h: memref<?xf16>, %b: memref<?xbf16>, %n: index) {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      scf.for %i = %c0 to %n step %c8 {
        %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
        %p = arith.truncf %v : vector<8xf32> to vector<8xf16>
        %q = arith.truncf %v : vector<8xf32> to vector<8xbf16>
        vector.store %p, %h[%i] : memref<?xf16>, vector<8xf16>
        vector.store %q, %b[%i] : memref<?xbf16>, vector<8xbf16>
      }
      return
    }"""
    x = np.random.default_rng(0).integers(0, 1 << 32, 4096, dtype=np.uint32).view(np.float32)
    x = np.where(np.abs(x) < 1e-30, np.float32(1.5), x)  # AVX512-BF16 flushes subnormal results
    with np.errstate(all="ignore"):
        half, brain = x.astype(np.float16), x.astype(ml_dtypes.bfloat16)
    library = native.build(text, "f")
    got_half, got_brain = np.empty_like(half), np.empty(len(x), np.uint16)
    library.f(*native.memref(x), *native.memref(got_half), *native.memref(got_brain), ctypes.c_int64(len(x)))
    finite = ~np.isnan(x)
    np.testing.assert_array_equal(got_half.view(np.uint16)[finite], half.view(np.uint16)[finite])
    np.testing.assert_array_equal(got_brain[finite], brain.view(np.uint16)[finite])
    assert np.isnan(got_half[~finite]).all() and np.isnan(got_brain.view(ml_dtypes.bfloat16)[~finite].astype("f")).all()


def test_compiles_in_a_worker_process() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        data = pool.submit(compile_text, SAXPY.encode(), "llvm-cpu:aarch64").result()
    assert elf.parse_object(data, "object").machine == 183
