"""A spec changes the dispatches that it matches, in the model that it was made for and in others, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
import torch  # noqa: E402
from tests.tools import vulkan  # noqa: E402
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CompileError, UsageError  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.dumps import read_dump  # noqa: E402
from eyas.pipelines.request import Phase, Request  # noqa: E402
from eyas.specs import as_sources  # noqa: E402
from eyas.tune.spec import Entry, OpMatch, Spec, merge  # noqa: E402

MAPS = tuple(f"affine_map<(d0, d1, d2) -> {one}>" for one in ("(d0, d2)", "(d2, d1)", "(d0, d1)"))
PRODUCT = OpMatch(kind="contraction", sizes=(64, 96, 128), types=("f32",) * 3, maps=MAPS, nests=((64, 96, 128),))
SCHEDULES = {
    "llvm-cpu": '"contraction", {grid = [{loop = 0, tile = 16}], tiles = [{loop = 1, width = 8, vectors = 4,'
    " unroll_loop = 0, unroll = 2}]}",
    "vmvx": '"contraction", {grid = [{loop = 0, tile = 16}], tiles = [{loop = 1, width = 16, unroll_loop = 0,'
    " unroll = 8}]}",
    "vulkan": '"contraction", {column_points = 2, columns = 8, depth = 4, lanes = 1, row_points = 2, slices = 1,'
    " threads = 32}",
}


def entry(target: str, **changes: object) -> Entry:
    schedule = f"#codegen.strategy<{SCHEDULES[target]}>"
    return Entry("product", replace(PRODUCT, target=target, **changes), schedule)


class Made(nn.Module):
    """What the spec was made for: one product of the sizes it names."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(128, 96), nn.Linear(96, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


class Other(nn.Module):
    """Another model: such a product among others, with something else behind it, and one whose sizes are turned."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(128, 96), nn.Linear(96, 128), nn.Linear(128, 100)
        self.norm = nn.LayerNorm(128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(self.norm(x + self.b(torch.tanh(self.a(x) * 0.5))))


def target_of(name: str) -> str:
    return vulkan.target() if name == "vulkan" else name


def kernels(module: eyas.Module) -> dict[str, tuple]:
    return {one["name"]: (one["strategy"], one["knobs"], one.get("tuned")) for one in module.manifest["kernels"]}


@pytest.mark.parametrize("name", SCHEDULES)
def test_only_what_matches_changes(name: str) -> None:
    spec = Spec((entry(name),))
    torch.manual_seed(0)
    x = torch.randn(64, 128)
    for model in (Made().eval(), Other().eval()):
        plain = eyas.compile(model, (x,), target=target_of(name))
        tuned = eyas.compile(model, (x,), target=target_of(name), tuning_spec=spec)
        before, after = kernels(plain), kernels(tuned)
        changed = [one for one in after if before[one] != after[one]]
        assert len(changed) == 1 and "64x96" in changed[0]
        assert after[changed[0]][2] == "<spec> @product"
        assert before[changed[0]][:2] != after[changed[0]][:2] or name == "vmvx"  # whose knobs say nothing of the grid
        assert tuned.manifest["provenance"]["tuning"][0]["used"] == {"product": changed}
        expected = model(x).detach().numpy()
        np.testing.assert_allclose(np.asarray(tuned(x)), expected, rtol=1e-4, atol=1e-5)


def test_weights_are_packed_for_the_tuned_tile() -> None:
    request = Request(
        Made().eval(), (torch.randn(64, 128),), tuning_specs=as_sources(Spec((entry("llvm-cpu"),))), last=Phase.HAL
    )
    text = driver.run(request).as_text()
    assert "packed = [{binding = 1 : i64, lanes = 32 : i64}]" in text  # 4 vectors of 8 lanes


def test_sizes_that_vary() -> None:
    model = Made().eval()
    rows = torch.export.Dim("rows", min=2, max=512)
    spec = Spec((entry("llvm-cpu", sizes=("dynamic", 96, 128), nests=None),))
    made = eyas.compile(model, (torch.randn(64, 128),), dynamic_shapes=({0: rows},), tuning_spec=spec)
    assert sum(tuned is not None for _, _, tuned in kernels(made).values()) == 1
    for count in (2, 37, 300):
        x = torch.randn(count, 128)
        np.testing.assert_allclose(made(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    static = eyas.compile(model, (torch.randn(64, 128),), tuning_spec=spec)
    assert not any(tuned for _, _, tuned in kernels(static).values())


def test_edited_by_hand_and_linked(tmp_path) -> None:
    model, x = Other().eval(), torch.randn(64, 128)
    text = Spec((entry("llvm-cpu"),)).text()
    # Every product of 64 rows, and its own schedule for one of them before that.
    wide = text.replace("sizes = [64, 96, 128]", 'sizes = [64, "any", "multiple of 32"]').replace(
        "nests = [[64, 96, 128]]", "nests = [[64, 'any', 'any']]".replace("'", '"')
    )
    narrow = text.replace("vectors = 4", "vectors = 1")
    (tmp_path / "wide.mlir").write_text(wide)
    (tmp_path / "narrow.mlir").write_text(narrow)
    made = eyas.compile(model, (x,), tuning_spec=[tmp_path / "narrow.mlir", tmp_path / "wide.mlir"])
    by = [tuned.rsplit("/", 1)[1] for _, _, tuned in kernels(made).values() if tuned]
    assert sorted(by) == ["narrow.mlir @product", "wide.mlir @product", "wide.mlir @product"]
    np.testing.assert_allclose(made(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    merged = merge([Spec.parse(narrow), Spec.parse(wide)])
    again = eyas.compile(model, (x,), tuning_spec=merged)
    assert [one[:2] for one in kernels(again).values()] == [one[:2] for one in kernels(made).values()]


def test_each_variant_has_its_own_entries() -> None:
    model, x = Made().eval(), torch.randn(64, 128)
    spec = Spec((entry("llvm-cpu"), replace(entry("vmvx"), name="portable")))
    module = eyas.compile(model, (x,), target=["llvm-cpu", "vmvx"], tuning_spec=spec)
    assert [tuned for _, _, tuned in kernels(module).values() if tuned] == ["<spec> @product"]
    assert module.manifest["provenance"]["tuning"][0]["other_targets"] == ["portable"]
    np.testing.assert_allclose(module(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_torch_compile_takes_a_spec() -> None:
    model, x = Made().eval(), torch.randn(64, 128)
    broken = Spec((replace(entry("llvm-cpu"), schedule='#codegen.strategy<"contraction", {grid = [], tiles = []}>'),))
    with torch.no_grad():
        expected = model(x)
        good = torch.compile(model, backend="eyas", options={"tuning_spec": Spec((entry("llvm-cpu"),)).text()})
        torch.testing.assert_close(good(x), expected, rtol=1e-4, atol=1e-5)
        torch.compiler.reset()
        with pytest.raises(Exception, match="tiles has 0 tiles") as error:
            torch.compile(model, backend="eyas", options={"tuning_spec": broken.text()})(x)
    assert "entry @product" in str(error.value)


def test_shipped_specs_apply_by_default(tmp_path, monkeypatch) -> None:
    model, x = Made().eval(), torch.randn(64, 128)
    (tmp_path / "llvm-cpu-mine.mlir").write_text(Spec((entry("llvm-cpu"),)).text())
    (tmp_path / "vmvx.mlir").write_text("not read for other backends")
    monkeypatch.setenv("EYAS_SPECS", str(tmp_path))

    def tuned(**options: object) -> list[str]:
        return [one[2] for one in kernels(eyas.compile(model, (x,), **options)).values() if one[2]]

    assert tuned() == ["llvm-cpu-mine.mlir @product"]
    assert tuned(default_specs=False) == tuned(disable=["apply-tuning-spec"]) == []
    # The user's own come first.
    assert tuned(tuning_spec=Spec((entry("llvm-cpu"),))) == ["<spec> @product"]
    # One that no longer fits gives way to the default, and the cache knows that the text is another.
    bad = replace(entry("llvm-cpu"), schedule='#codegen.strategy<"contraction", {grid = [], tiles = []}>')
    (tmp_path / "llvm-cpu-mine.mlir").write_text(Spec((bad,)).text())
    module = eyas.compile(model, (x,))
    assert list(module.manifest["provenance"]["tuning"][0]["refused"]) == ["product"]
    np.testing.assert_allclose(module(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(CompileError, match="entry @product: .*tiles has 0 tiles"):
        eyas.compile(model, (x,), tuning_spec=Spec((bad,)))


def test_a_phase_without_specs_is_said() -> None:
    made = driver.run(Request(Made().eval(), (torch.randn(64, 128),), last=Phase.SCHEDULE))
    dump = read_dump(made.as_text(), {})
    with pytest.raises(UsageError, match="is applied in the phase 'schedule', which is not run here"):
        Request(dump, after=Phase.SCHEDULE, tuning_specs=as_sources(Spec((entry("llvm-cpu"),))))
    with pytest.raises(UsageError, match="is applied in the phase 'schedule'"):
        Request(Made(), last=Phase.OPTIMIZE, tuning_specs=as_sources(Spec((entry("llvm-cpu"),))))


def test_a_target_that_is_not_meant() -> None:
    elsewhere = Spec((replace(entry("llvm-cpu"), match=replace(PRODUCT, target="llvm-cpu:riscv64")),))
    module = eyas.compile(Made().eval(), (torch.randn(64, 128),), tuning_spec=elsewhere)
    assert not any(tuned for _, _, tuned in kernels(module).values())
