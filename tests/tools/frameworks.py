"""Which packages the tests import if they can, and what becomes of a test whose package is missing.

Where one is missing, its tests are skipped: a contributor without JAX can work. CI sets EYAS_TEST_REQUIRE=all, and
there a missing package is a failure, before anything runs.
"""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
_WANTED = re.compile(r"""importorskip\(\s*["']([\w.]+)["']""")


def required() -> bool:
    """Whether every package has to be there: EYAS_TEST_REQUIRE is `all`."""
    given = os.environ.get("EYAS_TEST_REQUIRE", "")
    assert given in ("", "all"), f"EYAS_TEST_REQUIRE is {given!r}; allowed: all, or nothing"
    return given == "all"


def wanted(folder: Path = TESTS) -> dict[str, list[str]]:
    """Package -> test files that import it if they can."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for name in _WANTED.findall(path.read_text()):
            files = found.setdefault(name.partition(".")[0], [])
            if (where := path.relative_to(folder).as_posix()) not in files:
                files.append(where)
    return found


def missing(folder: Path = TESTS) -> dict[str, list[str]]:
    """The same of packages that are not installed."""
    return {name: files for name, files in wanted(folder).items() if importlib.util.find_spec(name) is None}


def complaint(lacking: dict[str, list[str]]) -> str:
    """What is missing, for what, and how to have it."""
    lines = [
        f"  {name}: {files[0]}" + (f" and {len(files) - 1} more" if files[1:] else "")
        for name, files in lacking.items()
    ]
    return "\n".join(
        ["EYAS_TEST_REQUIRE=all, and these packages of the tests are missing (`make venv` has them):", *lines]
    )
