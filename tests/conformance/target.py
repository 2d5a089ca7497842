"""What a suite compiles for: `--target vmvx --disable microkernels`. Children are told through the environment."""

from __future__ import annotations

import argparse
import os
from typing import Any

from eyas.targets import Target

_TARGET, _DISABLE = "EYAS_TEST_TARGET", "EYAS_TEST_DISABLE"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", default="llvm-cpu", help="what to compile for, such as vmvx")
    parser.add_argument(
        "--disable", action="append", default=[], metavar="NAME", help="a pass or strategy to leave out"
    )


def set_target(given: argparse.Namespace) -> None:
    """Before any child is started."""
    os.environ[_TARGET], os.environ[_DISABLE] = given.target, ",".join(given.disable)


def sync_options() -> dict[str, Any]:
    """The same for a suite whose cases are small and many: on a CPU the caller's thread is enough."""
    options = compile_options()
    return options | (
        {"device": "local-sync"} if Target.parse(options["target"]).backend in ("llvm-cpu", "vmvx") else {}
    )


def compile_options() -> dict[str, Any]:
    """Keywords of `eyas.compile`."""
    disable = tuple(filter(None, os.environ.get(_DISABLE, "").split(",")))
    return {"target": os.environ.get(_TARGET, "llvm-cpu"), "disable": disable}
