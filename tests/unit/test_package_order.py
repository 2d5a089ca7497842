"""The order of packages: an import goes down, wherever it stands in a file, for types as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import eyas

ROOT = Path(eyas.__file__).parent

# From the top to the bottom, as in docs/architecture.md. Packages of a line do not know each other.
LAYERS = (
    ("cli",),
    ("verification", "explain", "tune"),
    ("api",),
    ("pipelines",),
    ("frontends",),
    ("passes",),
    ("codegen",),
    ("dialects", "targets"),
    ("program",),
    ("ir", "cache", "specs"),
    ("runtime",),
    ("module",),
    ("knobs",),
    ("errors", "libraries", "pages"),
)
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}

# What the runtime stands on, which is installed without the compiler.
RUNTIME = {"runtime", "module", "knobs", "errors"}
# Between the runtime and the compiler's front there are drivers that run what they made; nobody in between does.
RUNS_MODULES = {"cli", "verification", "explain", "tune", "api", "pipelines", "runtime"}

# Files of the package itself, above everything.
ENTRANCES = {"__init__", "__main__"}

EXCEPTIONS = {
    ("ir/context.py", "eyas.dialects"): "a context has every dialect loaded, and whoever needs one asks `ir`",
    ("targets/gpu_device.py", "eyas.runtime.device"): "a GPU is asked what it is; nothing is run on it",
}


def imports() -> Iterator[tuple[str, str, str]]:
    """Every import of ours in the package: the file, the package that it belongs to, and the module that it names."""
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT)
        package = file.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{file}:{node.lineno}: imports are absolute"
                names = [f"eyas.{one.name}" for one in node.names] if node.module == "eyas" else [node.module or ""]
            for name in names:
                # The package itself has nothing but the version and lazy names.
                if name.startswith("eyas.") and name != "eyas.__version__":
                    yield str(file), package, eyas._LAZY.get(name.removeprefix("eyas."), name)


IMPORTS = list(imports())


def package_of(name: str) -> str:
    return name.split(".")[1]


def test_every_package_has_a_place():
    found = {path.name.removesuffix(".py") for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - {"__pycache__", *ENTRANCES} <= set(LEVEL)


def test_imports_go_down():
    upward = [
        f"{file} imports {name}"
        for file, package, name in IMPORTS
        if package not in ENTRANCES
        if package_of(name) != package and LEVEL[package] >= LEVEL[package_of(name)]
        if (file, name) not in EXCEPTIONS
    ]
    assert not upward, "\n".join(upward)


def test_exceptions_are_needed():
    known = {(file, name) for file, _, name in IMPORTS}
    assert set(EXCEPTIONS) <= known, "an exception that nothing needs is to be taken away"


def test_the_runtime_stands_alone():
    outside = [
        f"{file} imports {name}"
        for file, package, name in IMPORTS
        if package in RUNTIME and package_of(name) not in RUNTIME
    ]
    assert not outside, "\n".join(outside)


def test_only_drivers_run_what_was_compiled():
    """Passes, code generators and frontends describe programs; running one is a driver's business."""
    runs = [
        f"{file} imports {name}"
        for file, package, name in IMPORTS
        if package_of(name) == "runtime" and package not in {*RUNS_MODULES, *ENTRANCES}
        if (file, name) not in EXCEPTIONS
    ]
    assert not runs, "\n".join(runs)


def test_backends_do_not_know_each_other():
    """What two of them need is in `codegen/common`, and what those of GPUs need in `codegen/gpu`."""
    shared = {"common", "gpu", "__pycache__"}
    folders = {path.name for path in (ROOT / "codegen").iterdir() if path.is_dir()} - shared
    assert {"llvm_cpu", "vmvx"} <= folders
    crossing = [
        f"{file} imports {name}"
        for file, _, name in IMPORTS
        for folder in folders
        if file.startswith(f"codegen/{folder}/") and name.startswith("eyas.codegen.")
        if name.split(".")[2] in folders - {folder} and (file, name) not in EXCEPTIONS
    ]
    assert not crossing, "\n".join(crossing)


def test_the_page_has_the_same_order():
    page = (ROOT.parents[1] / "docs" / "architecture.md").read_text()
    listed = page.partition("### Order of packages")[2].split("```")[1].strip()
    order = [tuple(line.split("#")[0].replace(",", " ").split()) for line in listed.splitlines()]
    assert order == list(LAYERS)
