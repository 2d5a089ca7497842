"""Writes the C headers of the instruction tables, eyas_isa.h and eyas_vmvx_isa.h, into a folder.

python runtime/tools/make_isa_headers.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
from eyas.module import isa, vmvx_isa  # noqa: E402

HEADERS = {"eyas_isa.h": isa.emit_c, "eyas_vmvx_isa.h": vmvx_isa.emit_c}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: make_isa_headers.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, emit in HEADERS.items():
        (folder / name).write_text(emit(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
