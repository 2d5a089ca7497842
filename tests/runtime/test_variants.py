"""Fat modules: several programs in one file, of which the first that a device can run is opened."""

from __future__ import annotations

import io
import struct
import zipfile

import kernels
import numpy as np
import pytest

import eyas.runtime
from eyas.errors import IncompatibleError, ModuleError
from eyas.module import container
from eyas.module.assembler import Direct, ProgramBuilder
from eyas.module.isa import Alloc
from eyas.module.pool import share_parameters
from eyas.module.signature import Signature, TensorSpec
from eyas.module.variants import Variant, decode_variants, encode_variants, folder_name
from eyas.runtime import _core, device

HERE, ELSEWHERE, TOO_NEW = "llvm-cpu:here", "llvm-cpu:elsewhere", "llvm-cpu:here:+time-travel"
GPU = "vulkan:baseline"
NEEDS = {GPU: {"format": "spirv"}, HERE: {}, ELSEWHERE: {"format": "elf-z80"}, TOO_NEW: {"features": ("time-travel",)}}


def scaled(factor: int, weights: dict[str, np.ndarray], needs: dict) -> tuple:
    """A program for w * factor, where w is its first weight; and the weights as they lie."""
    records, data = container.layout_parameters(weights)
    builder = ProgramBuilder()
    builder.executable(kernels.executable(**needs))
    for record in records:
        builder.parameter(record)
    count = records[0].bytes // 4
    asm = builder.function("main", Signature((), (TensorSpec("out", "f32", (count,)),)))
    out = asm.buffer_alloc(None, asm.const(4 * count), Alloc.RESULT)
    bindings = [Direct(asm.param(None, 0)), Direct(out)]
    size, by = asm.const(count), asm.const(factor)
    kernels.run_once(asm, 0, kernels.SCALE, kernels.groups(asm, size), [size, by], bindings)
    asm.set_result(0, out, [size])
    asm.return_()
    return builder.finish(), data


def fat(*targets: str, weights: list[dict[str, np.ndarray]] | None = None) -> bytes:
    """A module whose variants multiply by 1, 2, 3, ..."""
    weights = weights or [{"w": np.arange(5, dtype=np.float32)}] * len(targets)
    made = [scaled(n, weights[n - 1], NEEDS.get(target, {})) for n, target in enumerate(targets, 1)]
    programs, data = share_parameters(made)
    image = {"kernels": kernels.elf()}
    variants = [
        Variant(program, image, {"number": n}, target)
        for n, (program, target) in enumerate(zip(programs, targets, strict=True), 1)
    ]
    out = io.BytesIO()
    container.write_variants(out, variants, data)
    return out.getvalue()


def run(data: bytes, **options: str) -> list[float]:
    return eyas.runtime.load(data, **options)().tolist()


@pytest.mark.parametrize(
    ("targets", "chosen"),
    [
        ((HERE, ELSEWHERE), 1),
        ((ELSEWHERE, HERE), 2),
        ((ELSEWHERE, TOO_NEW, HERE), 3),
        ((TOO_NEW, HERE, "llvm-cpu:here:plain"), 2),
    ],
)
def test_the_first_that_runs_is_chosen(targets: tuple[str, ...], chosen: int) -> None:
    module = eyas.runtime.load(fat(*targets))
    assert module().tolist() == [chosen * i for i in range(5)]
    assert module.variants == targets and module.variant == targets[chosen - 1]
    assert module.manifest["number"] == chosen
    assert module.clone("local-sync")().tolist() == [chosen * i for i in range(5)]


def test_a_variant_can_be_named() -> None:
    data = fat(HERE, "llvm-cpu:here:plain", "vmvx")
    assert run(data, variant="llvm-cpu:here:plain")[1] == 2  # whole
    assert run(data, variant="plain")[1] == 2  # a part that no other has
    assert run(data, variant="llvm-cpu-here")[1] == 1  # the folder
    assert run(data, variant=HERE)[1] == 1  # whole, though a part of another
    for name, message in (("here", "more than one variant is called 'here'"), ("gpu", "no variant is called 'gpu'")):
        with pytest.raises(ModuleError, match=f"{message}; the module has: {HERE}, llvm-cpu:here:plain, vmvx"):
            run(data, variant=name)
        with pytest.raises(ModuleError, match=message):
            container.read(data, variant=name)


def test_nothing_runs_here() -> None:
    with pytest.raises(ModuleError) as caught:
        run(fat(ELSEWHERE, TOO_NEW))
    text = str(caught.value)
    assert "none of the module's 2 variants runs on device local-task" in text
    assert f"{ELSEWHERE}: it has the format elf-z80" in text
    assert f"{TOO_NEW}: it needs the CPU feature 'time-travel'" in text
    assert text.count("compile the model") == 1 and text.endswith("vmvx, which runs on every CPU")


def formats_of(data: bytes, **options: str) -> list[str]:
    return _core.Module.from_bytes(data, **options).formats(all=not options)


def test_formats_tell_which_device_is_meant() -> None:
    data = fat(GPU, HERE)
    assert formats_of(data) == ["spirv", formats_of(fat(HERE))[0]] and formats_of(data, variant=GPU) == ["spirv"]
    assert run(data)[1] == 2 and eyas.runtime.load(data).device.name == "local-task"  # a CPU is enough
    with pytest.raises(ModuleError, match="format spirv, which device local-task .* cannot run: compile the model"):
        run(fat(GPU), device="local-task")


@pytest.mark.parametrize("options", [{}, {"variant": GPU}])
def test_a_module_for_gpus_alone_goes_to_the_first(options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(device, "shared_device", lambda name: asked.append(name) or device.Device("far"))
    with pytest.raises(IncompatibleError):
        run(fat(GPU, HERE) if options else fat(GPU), **options)
    assert asked == ["vulkan"]


def test_a_module_of_one_program_has_no_variants() -> None:
    data = kernels.add_module()
    module = eyas.runtime.load(data)
    assert module.variants == () and module.variant is None
    for open_ in (lambda: eyas.runtime.load(data, variant="x"), lambda: container.read(data, variant="x")):
        with pytest.raises(ModuleError, match="'x': the module holds one program for one target"):
            open_()
    alone = fat(HERE)  # one variant alone is such a module
    assert struct.unpack_from("<I", alone, container.INDEX_OFFSET + 8) == (container.VERSION,)
    assert run(alone) == [0, 1, 2, 3, 4]


def test_equal_weights_are_stored_once() -> None:
    rng = np.random.default_rng(3)
    common, one, two = (rng.random(3000, np.float32) for _ in range(3))
    none = np.zeros(0, np.float32)
    weights = [{"w": one, "c": common, "n": none}, {"w": two, "c": common.copy()}, {"w": common}]
    data = fat(HERE, "llvm-cpu:b", "llvm-cpu:c", weights=weights)
    opened = container.read(data)
    assert 36_000 <= opened.entries[-1].length < 36_000 + 3 * 64
    for number, variant in enumerate(opened.variants, 1):
        expected = [one, two, common][number - 1] * np.float32(number)
        np.testing.assert_array_equal(eyas.runtime.load(data, variant=variant.target)(), expected)
        part = container.read(data, variant=variant.target)
        np.testing.assert_array_equal(np.frombuffer(part.parameter("w"), np.float32) * np.float32(number), expected)


def test_zip_tools_read_it_and_the_manifest_lists_variants(tmp_path) -> None:
    (tmp_path / "m.eyas").write_bytes(fat(HERE, ELSEWHERE))
    with zipfile.ZipFile(tmp_path / "m.eyas") as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    assert names[:3] == ["index.bin", "manifest.json", "variants.bin"] and names[-1] == "parameters.bin"
    assert "variants/llvm-cpu-elsewhere/executables/kernels.elf" in names
    opened = container.read(tmp_path / "m.eyas", variant=ELSEWHERE)
    assert opened.variant is not None and opened.variant.executables == (("elf-z80", ()),)
    assert opened.manifest["number"] == 2


def test_variants_must_differ() -> None:
    with pytest.raises(ModuleError, match="two variants are for the targets"):
        fat(HERE, HERE)


def test_only_the_opened_variant_is_read() -> None:
    """Another one's bytes may be damaged, unless everything is to be verified."""
    data = bytearray(fat(HERE, ELSEWHERE))
    entries = {entry.name: entry for entry in container.read(bytes(data)).entries}
    data[entries["variants/llvm-cpu-elsewhere/program.bin"].offset + 9] ^= 1
    assert run(bytes(data)) == [0, 1, 2, 3, 4]
    for options in ({"variant": ELSEWHERE}, {"verify": True}):
        with pytest.raises(ModuleError, match="'variants/llvm-cpu-elsewhere/program.bin' was altered"):
            eyas.runtime.load(bytes(data), **options)
    data[entries["variants.bin"].offset + 9] ^= 1
    with pytest.raises(ModuleError, match=r"'variants.bin' was altered"):
        run(bytes(data))


def test_every_cut_and_flip_of_the_list_is_an_error_or_a_list() -> None:
    program, _ = scaled(1, {"w": np.zeros(1, np.float32)}, NEEDS[TOO_NEW])
    whole = encode_variants([Variant(program, {}, {}, HERE), Variant(program, {}, {}, "vmvx")])
    assert [one.target for one in decode_variants(whole)] == [HERE, "vmvx"]
    for length in range(len(whole)):
        with pytest.raises(ModuleError, match="damaged"):
            decode_variants(whole[:length])


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("llvm-cpu:x86_64:x86-64-v3", "llvm-cpu-x86_64-x86-64-v3"),
        ("llvm-cpu:riscv64:+v,vlen=256", "llvm-cpu-riscv64-v-vlen-256"),
        ("llvm-cpu:x86_64:znver4:-avx512f", "llvm-cpu-x86_64-znver4-no-avx512f"),
        ("", "variant"),
    ],
)
def test_folders_have_plain_names(target: str, name: str) -> None:
    assert folder_name(target) == name
