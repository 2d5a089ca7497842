"""`eyas devices`: what modules can run on here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from eyas.cli.common import print_json, print_table

NAME = "devices"


def command(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the devices of this machine."""
    from eyas.runtime import devices

    found = devices()
    if json:
        print_json([asdict(device) for device in found])
    else:
        rows: list[tuple[object, ...]] = [("device", "threads", "memory", "runs", "vmvx", "processor")]
        for one in found:
            memory = "the host's" if one.host_visible else "its own"
            runs = ", ".join(one.formats)
            rows.append((one.name, one.threads, memory, runs, f"{one.kernels} x {one.width}", one.description))
        print_table(rows, numbers=(1,))
