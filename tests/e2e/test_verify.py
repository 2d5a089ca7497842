"""Faults are planted in passes and strategies; `eyas.verify` must find the layer, name the culprit, cut a reproducer.

Everything compiles in this process (`workers=1`), so that what is patched here is what runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.tools.faults import (
    TWICE,
    after,
    chain,
    drop_elementwise,
    dropped_op,
    freed_too_early,
    lost_tail,
    merged_executables,
    mlp,
    short_contraction,
    short_convolution,
    short_vmvx_products,
    verify,
    wrong_alias,
    wrong_constant,
    wrong_emitter,
    wrong_exp,
    wrong_fusion,
    wrong_layout,
    wrong_llvm,
)
from torch_mlir import ir as mlir

import eyas
from eyas.codegen.common.passes import approximations, expand_math
from eyas.codegen.vmvx.strategies import loops as vmvx_loops
from eyas.frontends.onnx import importer as from_onnx
from eyas.ir.walk import find_ops
from eyas.passes.dispatch import outline_dispatches
from eyas.passes.optimize import propagate_transposes

pytestmark = pytest.mark.usefixtures("faults_in_this_process")


FAULTS = [
    wrong_layout,
    dropped_op,
    wrong_constant,
    wrong_fusion,
    merged_executables,
    wrong_alias,
    freed_too_early,
    short_contraction,
    short_convolution,
    lost_tail,
    wrong_exp,
    wrong_llvm,
    wrong_emitter,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_planted_fault_is_named(fault, monkeypatch, tmp_path):
    (model, inputs), culprit, layer = fault(monkeypatch)
    report = verify(model, inputs, reproducer=tmp_path / "repro")
    assert not report.ok
    assert report.blame is not None and report.blame.name == culprit, report
    assert any(row.wrong for row in report.results), "the fault is in the program as it is"
    assert report.confirmed is not False, report
    if layer is not None:
        assert report.first is not None and report.first.layer.name == layer, report
    _check_reproducer(report, tmp_path / "repro", culprit)
    if set(culprit.split(" + ")) <= {"contraction", "rows", "expand-math", "optimize-llvm"}:
        assert report.reproducer_dispatches == 1, report


def test_portable_modules_are_verified_and_a_fault_in_them_is_named(monkeypatch, tmp_path):
    report = eyas.verify(mlp(), workers=1, threads=1, target="vmvx", device="local-sync")
    assert report.ok and len(report.layers) == 7, report
    (model, inputs), culprit, layer = short_vmvx_products(monkeypatch)
    assert verify(model, inputs).ok, "machine code does not have the fault"
    report = verify(model, inputs, target="vmvx", reproducer=tmp_path / "repro")
    assert report.blame is not None and report.blame.name == culprit, report
    assert report.first is not None and report.first.layer.name == layer and report.confirmed
    assert report.command is not None and report.command.endswith(" --target vmvx")
    _check_reproducer(report, tmp_path / "repro", culprit, "vmvx")


def test_programs_without_a_framework_are_compared_with_the_cpu(monkeypatch):
    """A fault in plain loops of another target is seen, although nothing simpler is left there."""
    lower = vmvx_loops.Loops.lower

    def wrong(self, function, asm):
        for op in find_ops(function, "arith.negf"):
            op.results[0].replace_all_uses_with(op.operands[0])
        lower(self, function, asm)

    monkeypatch.setattr(vmvx_loops.Loops, "lower", wrong)
    inputs = chain()[1]
    assert verify(TWICE, inputs, target="vmvx").ok, "microkernels do not have the fault"
    report = verify(TWICE, inputs, target="vmvx", disable=("microkernels",))
    assert report.first is not None and report.first.layer.op == "arith.negf", report
    assert report.blame is not None and "everything optional switched off" in report.blame.reason


def _check_reproducer(report, folder, culprit, target="llvm-cpu") -> None:
    """It is wrong as it stands, and right without the culprit."""
    assert report.command is not None and report.command.startswith("eyas run")
    inputs = [np.load(folder / f"input_{index}.npy") for index in range(len(list(folder.glob("input_*.npy"))))]
    expected = np.load(folder / "expected_0.npy")
    off = tuple(culprit.split(" + "))
    again = eyas.verify(folder / "repro.mlir", inputs, workers=1, threads=1, target=target)
    assert not again.ok, again
    right = eyas.compile(folder / "repro.mlir", disable=off, target=target)
    np.testing.assert_allclose(right(*inputs), expected, rtol=1e-3, atol=1e-4)


# --- faults that no switch explains -----------------------------------------------------------------------------------


def test_a_wrong_import_is_told_from_a_wrong_compilation(monkeypatch):
    finish = from_onnx.finish

    def wrong(module, *rest):
        with module.context, mlir.Location.unknown():
            drop_elementwise(module)
        return finish(module, *rest)

    monkeypatch.setattr(from_onnx, "finish", wrong)
    report = verify(mlp())
    assert report.first is not None and report.first.layer.name == "t"
    assert report.blame is not None and not report.blame.culprits
    assert "frontend" in report.blame.reason, report


def test_a_wrong_pass_that_cannot_be_switched_off_is_bounded_by_phase(monkeypatch):
    after(monkeypatch, outline_dispatches.OutlineDispatches, drop_elementwise)
    report = verify(mlp())
    assert report.first is not None and report.first.layer.name == "t"
    assert report.blame is not None and not report.blame.culprits
    assert "what phase 'optimize' leaves is right" in report.blame.reason, report


def test_a_fault_that_cancels_is_seen_in_its_layer_only(monkeypatch):
    """exp off by a factor, then normalised: the results are right, the layer is not."""
    monkeypatch.setitem(expand_math._FUNCTIONS, "math.exp", lambda x: approximations.exp(x) * 1.001)
    report = verify(mlp())
    assert not report.ok and not any(row.wrong for row in report.results)
    assert report.first is not None and report.first.layer.name == "e"
    assert report.blame is not None and report.blame.name == "expand-math"
    assert "results are right" in str(report)


def test_a_program_that_fails_to_compile_is_a_mismatch(monkeypatch):
    def fail(self, module):
        raise eyas.EyasError("planted")

    monkeypatch.setattr(propagate_transposes.PropagateTransposes, "run", fail)
    report = verify(mlp())
    assert not report.ok and "planted" in str(report)
    assert report.blame is not None and report.blame.name == "propagate-transposes"
