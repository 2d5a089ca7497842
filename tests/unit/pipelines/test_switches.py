"""Each switch changes a program that is made for it, and numbers stay right without it; so they do without all."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
from switched import CASES, Case, softmax_of_product  # noqa: E402

from eyas.errors import UsageError  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.phases import OPTIONAL_PASSES, check_disabled, pipeline, switches  # noqa: E402
from eyas.pipelines.request import Options, Phase, Request, Services  # noqa: E402
from eyas.specs import as_sources  # noqa: E402
from eyas.targets import Target  # noqa: E402

TARGETS = {"llvm-cpu": Target.host(), "vmvx": Target.parse("vmvx")}

# Passes that have nothing to do on CPUs.
FOR_GPUS = ("split-reductions",)
# A pass that does the same for both is tried with one of them each time, with both where there is time.
PAIRS = [
    pytest.param(name, target, marks=pytest.mark.long if target == "vmvx" and name in OPTIONAL_PASSES else ())
    for target, parsed in TARGETS.items()
    for name in switches(parsed)
    if name not in FOR_GPUS
]


@functools.cache
def case_of(make) -> tuple[Case, list[np.ndarray]]:
    """A case and what torch makes of it."""
    torch.manual_seed(0)
    case = make()
    with torch.no_grad():
        results = case.model(*(one.clone() for one in case.inputs))
    results = results if isinstance(results, tuple) else (results,)
    torch.manual_seed(0)
    return make(), [one.numpy() for one in results]  # once more: the call has changed the state


@functools.cache
def compiled(make, target: str, off: tuple[str, ...]) -> driver.Result:
    case, _ = case_of(make)
    request = Request(
        case.model,
        case.inputs,
        dynamic_shapes=case.dynamic_shapes,
        targets=(TARGETS.get(target) or Target.parse(target),),
        disable=off,
        precision=case.precision,
        tuning_specs=as_sources(case.tuning_spec),
    )
    return driver.compile(request, Services(workers=1))


def check(make, target: str, off: tuple[str, ...]) -> None:
    case, expected = case_of(make)
    module = compiled(make, target, off).load("local-sync" if target in TARGETS else "vulkan")
    results = module(*(one.numpy() for one in case.inputs))
    results = results if isinstance(results, tuple) else (results,)
    for got, want in zip(results, expected, strict=True):
        scale = float(np.abs(want.astype(np.float64)).max())
        np.testing.assert_allclose(np.asarray(got), want, rtol=0, atol=case.rtol * scale)
    assert tuple(module.manifest["provenance"]["disabled"]) == off


def content(result: driver.Result) -> tuple:
    """All of a module but its manifest, and the strategies."""
    assert result.program is not None
    (one,) = result.program.variants
    weights = [(parameter.name, parameter.offset) for parameter in one.program.parameters]
    kernels = [(kernel["name"], kernel["strategy"], kernel["knobs"]) for kernel in one.manifest["kernels"]]
    return one.program, dict(one.executables), weights, kernels


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_a_switch_changes_something_and_no_number(name, target):
    make = CASES[name]
    assert content(compiled(make, target, ())) != content(compiled(make, target, (name,)))
    check(make, target, ())
    check(make, target, (name,))


@pytest.mark.parametrize("name", FOR_GPUS)
def test_a_switch_for_gpus_changes_something_and_no_number(name, vulkan_device):
    # Hardware with much to do for; its code runs on a device with other subgroups if that is said.
    target = f"vulkan:ampere:subgroup={Target.parse('vulkan').subgroup},shared=32K"
    test_a_switch_changes_something_and_no_number(name, target)


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_is_compiled_twice(target):
    """Otherwise a difference would show nothing."""
    again = compiled.__wrapped__(softmax_of_product, target, ())
    assert content(again) == content(compiled(softmax_of_product, target, ()))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("make", dict.fromkeys(CASES.values()), ids=lambda make: make.__name__)
def test_numbers_are_right_without_anything_optional(make, target):
    check(make, target, switches(TARGETS[target]))
    kernels = compiled(make, target, switches(TARGETS[target])).manifest["kernels"]
    assert {kernel["strategy"] for kernel in kernels} == {"loops"}


def test_every_switch_has_a_program():
    assert set(CASES) == {name for target in TARGETS.values() for name in switches(target)}


def test_ops_are_alone_without_fusion():
    alone = compiled(softmax_of_product, "llvm-cpu", ("form-dispatches",)).manifest["kernels"]
    assert len(alone) > len(compiled(softmax_of_product, "llvm-cpu", ()).manifest["kernels"])


def test_a_target_has_the_switches_of_its_own_backend():
    assert "microkernels" in switches(TARGETS["vmvx"]) and "optimize-llvm" not in switches(TARGETS["vmvx"])
    assert "optimize-llvm" in switches(TARGETS["llvm-cpu"]) and "microkernels" not in switches(TARGETS["llvm-cpu"])
    check_disabled(("microkernels", "optimize-llvm"))  # one request may be for several targets
    with pytest.raises(UsageError, match="did you mean 'winograd'"):
        check_disabled(("winogrand",))
    with pytest.raises(UsageError, match="'loops' cannot be disabled"):
        check_disabled(("loops",))


LOWERING = {
    "verify-input-contract",
    "split-concats",
    "pack-bindings",
    "convert-float-sizes",
    "tie-shapes",
    "check-nested-shapes",
    "check-shapes",
    "convert-reshapes-to-flow",
    "outline-dispatches",
    "convert-flow-to-stream",
    "convert-stream-to-hal",
    "note-alignment",
    "select-strategies",
    "note-work",
    "verify-schedules",
    "compile-executables",
    "split-bindings",
    "convert-hal-to-vm",
}
"""Steps without which there is no program. Whatever else a phase has must have a switch, so that it can be blamed."""


@pytest.mark.parametrize("options", [Options(), Options(precision="f16")], ids=["as it is", "f16"])
def test_every_pass_is_a_step_of_the_lowering_or_has_a_switch(options):
    names = [step.name for phase in Phase for step in pipeline(phase, options).steps if hasattr(step, "name")]
    assert not set(names) - LOWERING - set(OPTIONAL_PASSES)
    # Blame goes to the last of several cures, so the order of the switches must be that of the pipeline.
    ordered = [name for name in dict.fromkeys(names) if name in OPTIONAL_PASSES]
    assert ordered == [name for name in OPTIONAL_PASSES if name in names]
