"""What README and the pages tell users to type works, and what they point at exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.docs.snippets import ROOT, Snippet, pages, snippets

for framework in ("torch", "onnx", "jax"):
    pytest.importorskip(framework)
pytest.importorskip("onnxscript")  # what torch.onnx.export is made of

WITH_SNIPPETS = [page for page in pages() if any(not one.reason for one in snippets(page))]


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path / "cache"))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for snippet in snippets(page):
        if snippet.reason:
            continue
        if snippet.language == "python":
            run_python(snippet, namespace)
        else:
            run_shell(snippet, tmp_path)


def run_python(snippet: Snippet, namespace: dict[str, object]) -> None:
    # Blank lines in front, so that a traceback has the page's line numbers.
    source = "\n" * (snippet.line - 1) + snippet.code
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, str(snippet.page), "exec", dont_inherit=True), namespace)


def run_shell(snippet: Snippet, folder: Path) -> None:
    beside = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": beside + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-x", "-c", snippet.code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{snippet.place}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name}: '{target}' does not exist"
        if anchor and path.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
            known = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in known, f"{page.name}: '{target}' names no title of {path.name}; there are {sorted(known)}"


# Files that a user or a run of the compiler makes, and places of other projects.
MADE = re.compile(r"tiny\.py|^(build|dist|dump|~|\.venv|executables)/|\.eyas$|^NAME|PHASE|/NAME|verb_noun|\*|\.\.\.")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_name_exist(page: Path) -> None:
    """Paths in backquotes are of the repository, of src/eyas or of runtime/src."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    missing = []
    for name in re.findall(r"`([\w./-]+/[\w./-]+\.(?:py|c|h|inc|cc|md|mlir|sh))`", text):
        roots = (ROOT, ROOT / "src", ROOT / "src" / "eyas", ROOT / "runtime", ROOT / "runtime" / "src", ROOT / "docs")
        if not MADE.search(name) and not any((root / name).exists() for root in roots):
            missing.append(name)
    assert not missing, f"{page.name} names files that do not exist: {missing}"


def test_blocks_that_are_not_run_say_why() -> None:
    assert all(len(one.reason.split()) >= 2 for page in pages() for one in snippets(page) if one.reason)
    assert sum(1 for page in pages() for one in snippets(page) if not one.reason) >= 20
