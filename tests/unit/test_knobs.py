"""Environment variables: the cache, this machine, what runs bytecode, what code generation may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyas import knobs
from eyas.errors import UsageError


@pytest.mark.parametrize(
    ("eyas_cache", "xdg", "expected"),
    [
        ("/a/b", "/x", Path("/a/b")),
        ("", "/x", Path("/x/eyas")),
        ("", "relative", Path("/home/me/.cache/eyas")),
        ("", "", Path("/home/me/.cache/eyas")),
        ("~/c", "", Path("/home/me/c")),
        ("off", "/x", None),
        ("0", "/x", None),
    ],
)
def test_the_folder(monkeypatch, eyas_cache, xdg, expected):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("EYAS_CACHE", eyas_cache)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert knobs.cache_folder() == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("", 7), ("1000", 1000), ("2K", 2048), ("1.5 GiB", 3 << 29), ("3mb", 3 << 20), ("0", 0)]
)
def test_the_limit(monkeypatch, text, expected):
    monkeypatch.setenv("EYAS_CACHE_LIMIT", text)
    assert knobs.cache_limit_bytes(7) == expected


@pytest.mark.parametrize("text", ["many", "-1", "4X", "1e9"])
def test_a_limit_that_is_no_number(monkeypatch, text):
    monkeypatch.setenv("EYAS_CACHE_LIMIT", text)
    with pytest.raises(UsageError, match="EYAS_CACHE_LIMIT"):
        knobs.cache_limit_bytes(7)


@pytest.mark.parametrize(("width", "kernels", "expected"), [("", "", (None, None)), ("4", " avx2 ", (4, "avx2"))])
def test_what_runs_bytecode(monkeypatch, width, kernels, expected):
    monkeypatch.setenv("EYAS_VMVX_WIDTH", width)
    monkeypatch.setenv("EYAS_VMVX_KERNELS", kernels)
    assert (knobs.vmvx_width(), knobs.vmvx_kernels()) == expected


@pytest.mark.parametrize("text", ["0", "3", "16", "wide"])
def test_a_width_that_there_is_not(monkeypatch, text):
    monkeypatch.setenv("EYAS_VMVX_WIDTH", text)
    with pytest.raises(UsageError, match="EYAS_VMVX_WIDTH is .*; allowed are 1, 2, 4 and 8"):
        knobs.vmvx_width()


def test_no_other_file_reads_the_environment():
    """One place says which variables there are. Those that are passed on to other programs are no knobs."""
    sources = Path(knobs.__file__).parent
    readers = [
        path.relative_to(sources).as_posix()
        for path in sorted(sources.rglob("*.py"))
        if path.name != "knobs.py" and "environ" in (text := path.read_text()) and "EYAS_" in text
    ]
    assert readers == []
    runtime = sources.parents[1] / "runtime"
    asking = {path.name for path in (runtime / "src").rglob("*.c") if "getenv(" in path.read_text()}
    assert asking <= {"cpu_features.c"}, "EYAS_HOST, which knobs.py names"


def test_limits_of_code_generation(monkeypatch):
    monkeypatch.delenv("EYAS_COMPILE_SECONDS", raising=False)
    monkeypatch.delenv("EYAS_COMPILE_MEMORY", raising=False)
    assert knobs.compile_seconds() == 120 and knobs.compile_memory_bytes() >= 4 << 30
    monkeypatch.setenv("EYAS_COMPILE_SECONDS", "2.5")
    monkeypatch.setenv("EYAS_COMPILE_MEMORY", "900M")
    assert knobs.compile_seconds() == 2.5 and knobs.compile_memory_bytes() == 900 << 20
    for text in ("0", "soon", "-1"):
        monkeypatch.setenv("EYAS_COMPILE_SECONDS", text)
        with pytest.raises(UsageError, match=f"EYAS_COMPILE_SECONDS is '{text}'"):
            knobs.compile_seconds()


def test_the_folder_of_default_specs(monkeypatch):
    monkeypatch.setenv("EYAS_SPECS", "")
    assert knobs.specs_folder() is None
    monkeypatch.setenv("EYAS_SPECS", "/a/b")
    assert knobs.specs_folder() == Path("/a/b")


@pytest.mark.parametrize(("text", "expected"), [("", False), ("0", False), ("off", False), ("1", True)])
def test_code_generation_in_this_process(monkeypatch, text, expected):
    monkeypatch.setenv("EYAS_COMPILE_IN_PROCESS", text)
    assert knobs.compiles_in_process() is expected
