"""A missing package skips its tests, and fails them where all are required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.frameworks import complaint, missing, wanted

ROOT = Path(__file__).parents[3]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    # In two parts, so that this file does not seem to want the package.
    wish = "import pytest\n{}pytest.import" + 'orskip("no_such_package")\n'
    (tmp_path / "test_one.py").write_text(wish.format(""))
    (tmp_path / "test_two.py").write_text(wish.format("def test(): ") + "def test_plain(): pass\n")
    return tmp_path


def run(suite: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.conftest", "-n0", str(suite)]
    command.append("--continue-on-collection-errors")
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)


def test_what_is_wanted_and_missing(suite: Path) -> None:
    assert {"torch", "onnx", "jax", "onnxruntime", "transformers"} <= set(wanted())
    assert missing(suite) == {"no_such_package": ["test_one.py", "test_two.py"]}
    assert "no_such_package: test_one.py and 1 more" in complaint(missing(suite))


def test_a_missing_package_skips(suite: Path) -> None:
    done = run(suite, EYAS_TEST_REQUIRE="")
    assert done.returncode == 0 and "1 passed, 2 skipped" in done.stdout, done.stdout


def test_a_missing_package_fails_where_all_are_required(suite: Path) -> None:
    done = run(suite, EYAS_TEST_REQUIRE="all")
    assert done.returncode == 1 and "1 failed, 1 passed, 1 error" in done.stdout, done.stdout
    assert done.stdout.count("EYAS_TEST_REQUIRE=all: Skipped: could not import 'no_such_package'") >= 2, done.stdout
