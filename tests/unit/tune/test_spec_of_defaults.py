"""A spec that says what is chosen by default changes nothing: each dispatch is found again, and its schedule taken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "pipelines"))
from switched import CASES  # noqa: E402

from eyas.dialects import codegen, flow  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.request import Phase, Request  # noqa: E402
from eyas.specs import as_sources  # noqa: E402
from eyas.targets import Target  # noqa: E402
from eyas.tune.spec import Entry, Spec, match_of, merge, name_of, schedule_of  # noqa: E402

TARGETS = ("llvm-cpu:x86_64:znver3", "vmvx", "vulkan:lavapipe")
# One program for each kind of dispatch; the others are for where there is time.
SOME = ("attention", "windows", "recurrence", "winograd", "convert-sorts", "unify-dimensions")
MAKERS = {make.__name__: make for make in CASES.values() if make().tuning_spec is None}
QUICK = {CASES[name].__name__ for name in SOME}


def compiled(make, target: Target, *specs: Spec) -> driver.Compilation:
    torch.manual_seed(0)
    case = make()
    return driver.run(
        Request(
            case.model,
            case.inputs,
            dynamic_shapes=case.dynamic_shapes,
            targets=(target,),
            precision=case.precision,
            tuning_specs=as_sources(list(specs)),
            default_specs=False,
            last=Phase.HAL,
        )
    )


def spec_of(compilation: driver.Compilation, target: Target) -> tuple[Spec, set[str]]:
    """All that was chosen, as a spec, and the names of its dispatches; without those that write parts of results."""
    entries, names = [], set()
    with compilation.module.context:
        for function in compilation.module.body.operations:
            if flow.is_executable(function) and flow.IN_PLACE not in function.attributes:
                match = match_of(function, target)
                entries.append(Entry(name_of(match), match, schedule_of(function)))
                names.add(function.attributes["sym_name"].value)
    return merge([Spec(tuple(entries))]), names


def without_provenance(compilation: driver.Compilation) -> str:
    """The program, but who decided; reasons against other strategies are not asked for where one is noted."""
    module = compilation.module
    for op in (module.operation, *(one.operation for one in module.body.operations)):
        for name in (codegen.TUNING, codegen.TUNED, codegen.REJECTED):
            if name in op.attributes:
                del op.attributes[name]
    return compilation.as_text()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.long) for one in MAKERS])
def test_nothing_changes(name: str, target: str) -> None:
    parsed = Target.parse(target)
    plain = compiled(MAKERS[name], parsed)
    spec, names = spec_of(plain, parsed)
    text = spec.text()
    assert Spec.parse(text) == spec
    again = compiled(MAKERS[name], parsed, spec)
    tuned = {op.attributes["sym_name"].value for op in again.module.body.operations if codegen.TUNED in op.attributes}
    assert tuned == names
    assert without_provenance(again) == without_provenance(plain)
