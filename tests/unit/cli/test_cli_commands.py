"""Every command, on a small program: results on stdout, and JSON where a machine may read."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import eyas as eyas_package
from eyas.runtime import _core


def test_help_lists_every_command_and_imports_nothing_heavy():
    script = (
        "import sys\nfrom eyas.cli.app import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'torch_mlir', 'llvmlite', 'numpy', 'rich.table'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for command in ("compile", "run", "bench", "explain", "inspect", "opt", "targets", "devices", "version"):
        assert f"  {command} " in done.stdout
    assert "heavy: []" in done.stdout


def test_compile_then_run_with_files(eyas, model, tmp_path):
    done = eyas("compile", model, "-o", tmp_path / "out" / "m.eyas")
    assert (done.code, done.err) == (0, "") and "kernels for llvm-cpu" in done.out
    generator = np.random.default_rng(0)
    x, w = generator.standard_normal((4, 8), np.float32), generator.standard_normal((8, 3), np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "w.npy", w)
    inputs = ["--input", f"@{tmp_path / 'x.npy'}", "--input", f"@{tmp_path / 'w.npy'}"]
    outputs = ["--output", f"@{tmp_path / 'product'}", "--output", f"@{tmp_path / 'double.npy'}"]
    assert eyas("run", tmp_path / "out" / "m.eyas", *inputs, *outputs).code == 0
    np.testing.assert_allclose(np.load(tmp_path / "product"), x @ w, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(np.load(tmp_path / "double.npy"), 2 * x)


def test_run_compiles_a_model_and_takes_named_and_filled_inputs(eyas, model):
    done = eyas("run", model, "--input", "arg1=8x3xf32=2", "--input", "4x8xf32=0.5", "--json")
    assert (done.code, done.err) == (0, "")
    product, double = done.json
    assert product["shape"] == [4, 3] and np.allclose(product["values"], 8.0)
    assert double["name"] == "output.1" and np.allclose(double["values"], 1.0)


def test_run_writes_a_folder_and_lists_values(eyas, module, tmp_path):
    ones = ["--input", "4x8xf32=1", "--input", "8x3xf32=1"]
    assert "output.0: float32[4, 3]\n[[8. 8. 8.]" in eyas("run", module, *ones).out
    assert eyas("run", module, *ones, "--output", tmp_path / "results").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "results" / "output.1.npy"), np.full((4, 8), 2, np.float32))


def test_values_of_one_input_in_order(eyas, module):
    numbers = ",".join(str(number) for number in range(24))
    done = eyas("run", module, "--input", "4x8xf32=1", "--input", f"8x3xf32={numbers}", "--json")
    expected = np.arange(24).reshape(8, 3).sum(0)
    assert np.allclose(done.json[0]["values"], np.tile(expected, (4, 1)))


def test_bench_reports_statistics_and_flops(eyas, module):
    report = eyas("bench", module, "--runs", 5, "--per-dispatch", "--threads", 1, "--json").json
    assert report["runs"] == 5 and report["device"]["workers"] == 1
    assert 0 < report["min_us"] <= report["p5_us"] <= report["median_us"] <= report["p95_us"]
    assert report["flops"] == 2 * 4 * 3 * 8 and report["gflop_per_s"] > 0
    assert sum(row["share"] for row in report["dispatches"]) == pytest.approx(1, abs=0.01)
    product = next(row for row in report["dispatches"] if row["flops"])
    assert product["bytes"] == 4 * (32 + 24 + 12) and product["why"] and product["of_peak"] > 0
    text = eyas("bench", module, "--runs", 3, "--per-dispatch").out
    assert "median" in text and "5 to 95 %" in text and "GFLOP/s" in text and "matmul" in text
    assert "limit  idle  n  grid" in text


def test_inspect_shows_provenance_kernels_and_digests(eyas, module):
    report = eyas("inspect", module, "--json").json
    assert report["provenance"]["compiler"] == f"eyas {eyas_package.__version__}"
    assert report["provenance"]["target"].startswith("llvm-cpu:") and len(report["provenance"]["source_digest"]) == 64
    assert report["bytes"] == module.stat().st_size and report["flops"] == 192
    assert all(kernel["strategy"] and kernel["dispatches"] == 1 for kernel in report["kernels"])
    assert {entry["name"] for entry in report["entries"]} >= {"manifest.json", "program.bin"}
    text = eyas("inspect", module, "--kernels").out
    assert "main(arg0: f32[4,8], arg1: f32[8,3])" in text and report["entries"][0]["sha256"] in text
    assert all(kernel["name"] in text for kernel in report["kernels"])
    assert "function main(" in eyas("inspect", module, "--bytecode").out


def test_inspect_reports_the_arena_against_its_lower_bound(eyas, tmp_path):
    path = tmp_path / "chain.mlir"
    path.write_text(CHAIN)
    assert eyas("compile", path, "-q").out == ""
    memory = eyas("inspect", path.with_suffix(".eyas"), "--json").json["memory"]
    assert memory["arena_bytes"] >= memory["arena_lower_bound_bytes"] > 0
    assert memory["arena_ratio"] == pytest.approx(memory["arena_bytes"] / memory["arena_lower_bound_bytes"], abs=1e-4)
    assert "x the lower bound of" in eyas("inspect", path.with_suffix(".eyas")).out
    tight = eyas("compile", path, "-q", "--max-arena", 64)
    assert tight.code == 1 and "64" in tight.err


CHAIN = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %a = linalg.matmul ins(%x, %x : tensor<64x64xf32>, tensor<64x64xf32>)
    outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = linalg.matmul ins(%a, %x : tensor<64x64xf32>, tensor<64x64xf32>)
    outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.matmul ins(%b, %a : tensor<64x64xf32>, tensor<64x64xf32>)
    outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
"""


def test_disable_leaves_a_strategy_out(eyas, model, tmp_path):
    flags = ["--disable", "contraction", "--disable", "rows"]
    assert eyas("compile", model, "-o", tmp_path / "plain.eyas", *flags, "-q").code == 0
    report = eyas("inspect", tmp_path / "plain.eyas", "--json").json
    assert {kernel["strategy"] for kernel in report["kernels"]} == {"loops"}
    assert report["provenance"]["disabled"] == ["contraction", "rows"]


def test_precision_is_compiled_run_and_verified(eyas, model, tmp_path):
    path = tmp_path / "half.eyas"
    assert eyas("compile", model, "-o", path, "--precision", "f16", "-q").code == 0
    assert eyas("inspect", path, "--json").json["provenance"]["precision"] == "f16"
    assert eyas("run", model, "--precision", "bf16").code == 0
    report = eyas("verify", model, "--precision", "f16", "--no-reproducer", "--json")
    assert report.code == 0 and report.json["ok"]
    refused = eyas("run", path, "--precision", "f16")
    assert refused.code != 0 and "is compiled already" in refused.err


@pytest.mark.parametrize("target", ["llvm-cpu:aarch64", "llvm-cpu:riscv64:+v"])
def test_compile_for_another_cpu_makes_a_module(eyas, model, tmp_path, target):
    done = eyas("compile", model, "-o", tmp_path / "other.eyas", "--target", target, "--json")
    assert done.code == 0 and done.json["target"] == target and done.json["bytes"] > 0
    report = eyas("inspect", tmp_path / "other.eyas", "--json").json
    assert report["executables"][0]["format"] == f"elf-{target.split(':')[1]}"


def test_several_targets_make_variants(eyas, model, tmp_path):
    path = str(tmp_path / "m.eyas")
    targets = ["llvm-cpu:aarch64", "llvm-cpu", "vmvx"]
    done = eyas("compile", model, "-o", path, *(word for one in targets for word in ("--target", one)), "--json").json
    assert len(done["variants"]) == 3 and done["variants"][-1] == "vmvx" and "llvm-cpu:aarch64" in done["variants"]
    shown = eyas("inspect", path, "--json").json
    assert [one["target"] for one in shown["variants"]] == done["variants"]
    assert shown["runs_here"] == shown["provenance"]["target"] == done["variants"][0]
    assert all(0 <= one["own_parameter_bytes"] <= one["parameter_bytes"] for one in shown["variants"])
    text = eyas("inspect", path, "--variant", "vmvx").out
    assert "runs here" in text and "kernels: vmvx" in text and "llvm-cpu:aarch64" in text
    results = [eyas("run", path, "--json", *variant).json for variant in ([], ["--variant", "vmvx"])]
    assert results[0][0]["shape"] == results[1][0]["shape"]
    wrong = eyas("run", path, "--variant", "cuda")
    assert wrong.code == 1 and "no variant is called 'cuda'" in wrong.err


def test_bytecode_is_compiled_shown_and_runs_here(eyas, model, tmp_path):
    path = tmp_path / "portable.eyas"
    done = eyas("compile", model, "-o", path, "--target", "vmvx", "--disable", "microkernels", "--json")
    assert done.code == 0 and done.json["target"] == "vmvx"
    report = eyas("inspect", path, "--json").json
    assert report["executables"][0]["format"] == "vmvx" and report["executables"][0]["features"] == []
    assert "executables/kernels.vmvx" in {entry["name"] for entry in report["entries"]}
    loops = eyas("inspect", path).out
    assert all(kernel["name"] in loops for kernel in report["kernels"]) and "bytecode loops" in loops
    text = eyas("inspect", path, "--bytecode").out
    assert "function main(" in text and "fmul_f32" in text and text.count(" bindings=") > 1
    assert eyas("run", path, "-i", "4x8xf32=1", "-i", "8x3xf32=1").code == 0
    why = eyas("explain", path, "--runs", 2, "--threads", 1).out
    assert "plain loops, one element at a time" in why


def test_a_portable_module_says_its_strategies_and_what_it_runs_with_here(eyas, model, module, tmp_path, monkeypatch):
    path = tmp_path / "portable.eyas"
    assert eyas("compile", model, "-o", path, "--target", "vmvx").code == 0
    monkeypatch.setenv("EYAS_VMVX_KERNELS", "portable")
    monkeypatch.setenv("EYAS_VMVX_WIDTH", "2")
    report = eyas("inspect", path, "--json").json
    assert report["vmvx_here"] == {"kernels": "portable", "width": 2}
    text = eyas("inspect", path, "--kernels").out
    assert "portable microkernels, 2 unit tiles an instruction" in text
    assert all(f"\n{kernel['name']}: {kernel['strategy']} " in text for kernel in report["kernels"])
    assert "contraction" in {kernel["strategy"] for kernel in report["kernels"]}
    assert "vmvx_here" not in eyas("inspect", module, "--json").json and "unit tiles" not in eyas("inspect", module).out


def test_opt_runs_our_passes_and_upstream_ones(eyas, model):
    done = eyas("opt", model, "--passes", "convert-elementwise-to-linalg,tie-shapes,cse")
    assert done.code == 0 and "arith.addf %x" not in done.out and "linalg.generic" in done.out
    listed = {row["name"]: row for row in eyas("opt", "--list", "--json").json}
    assert listed["form-dispatches"]["phase"] == "dispatch" and listed["form-dispatches"]["summary"]


def test_lists(eyas):
    targets = eyas("targets", "--json").json
    assert targets["host"]["target"].startswith("llvm-cpu:") and "riscv64" in targets["llvm-cpu"]
    assert targets["host"]["cores"] >= 1 and targets["backends"]["vmvx"]["compiles"]
    assert not targets["backends"]["cuda"]["compiles"]
    text = eyas("targets").out
    assert targets["host"]["target"] in text and all(row["syntax"] in text for row in targets["backends"].values())
    assert {"local-sync", "local-task"} <= {device["name"] for device in eyas("devices", "--json").json}
    assert "local-sync" in eyas("devices").out
    vmvx = [d for d in eyas("devices", "--json").json if "vmvx" in d["formats"]]
    assert {(d["kernels"], d["width"]) for d in vmvx} == {_core.vmvx()}
    assert eyas("version", "--json").json["eyas"] == eyas_package.__version__
    assert eyas("version").out.startswith("eyas ")


def test_help_has_a_line_for_each_command_that_is_not_cut(eyas):
    done = eyas("--help")
    assert done.code == 0 and "..." not in done.out.replace("COMMAND [ARGS]...", ""), done.out
    assert "eyas compile model.onnx -o model.eyas" in " ".join(done.out.split())


def test_version_option(eyas):
    import eyas as package

    assert eyas("--version").out.strip() == f"eyas {package.__version__}"
