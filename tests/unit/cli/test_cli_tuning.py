"""`--tuning-spec`: what was decided by it is shown, by each command that compiles."""

from __future__ import annotations

import pytest

from eyas.targets import Target
from eyas.tune.spec import Entry, OpMatch, Spec
from eyas.verification.build import Build

LOOPS = '#codegen.strategy<"loops", {}>'


@pytest.fixture
def files(model, tmp_path):
    spec = tmp_path / "s.mlir"
    matches = {"product": OpMatch("llvm-cpu", "contraction"), "rest": OpMatch(kind="softmax"), "far": OpMatch("vmvx")}
    spec.write_text(Spec(tuple(Entry(name, match, LOOPS) for name, match in matches.items())).text())
    return model, spec


def test_compile_and_inspect_show_it(eyas, files, tmp_path):
    model, spec = files
    out = tmp_path / "m.eyas"
    done = eyas("compile", model, "--tuning-spec", spec, "-o", out)
    assert done.code == 0, done.err
    line = f"{spec}: 1 of 2 entries decide 1 kernel; nothing here matches @rest; 1 more for other targets"
    assert line in done.out
    assert line in " ".join(eyas("inspect", out).out.split())
    (told,) = eyas("compile", model, "--tuning-spec", spec, "-o", out, "--json").json["tuning"]
    assert told["unused"] == ["rest"] and list(told["used"]) == ["product"] and told["other_targets"] == ["far"]
    assert f"    as {spec} @product says\n" in eyas("inspect", out, "--kernels").out
    assert "tuning" not in eyas("compile", model, "-o", out, "--json").json


def test_errors_are_short(eyas, files, tmp_path):
    model, spec = files
    spec.write_text(spec.read_text().replace('"loops"', '"rows"'))
    done = eyas("compile", model, "--tuning-spec", spec, "-o", tmp_path / "m.eyas")
    assert done.code and "entry @product: executable 'main_dispatch_" in done.err and "Traceback" not in done.err
    done = eyas("compile", model, "--tuning-spec", tmp_path / "none.mlir")
    assert done.code and "cannot read the tuning spec" in done.err
    done = eyas("compile", model, "--tuning-spec", files[1], "--to", "optimize", "-o", tmp_path / "o.mlir")
    assert done.code and "is applied in the phase 'schedule'" in done.err


def test_verify_knows_the_pass(eyas, files):
    model, spec = files
    done = eyas("verify", model, "--tuning-spec", spec, "--no-reproducer", "--json")
    assert done.code == 0 and done.json["ok"]
    assert "apply-tuning-spec" not in Build(target=Target.parse("vmvx")).switches
    from eyas.specs import as_sources

    build = Build(target=Target.parse("vmvx"), tuning_specs=as_sources(spec))
    assert "apply-tuning-spec" in build.switches and any("--tuning-spec" in flag for flag in build.flags)
