"""Puts the instruction tables, made from src/eyas/module/isa.py and vmvx_isa.py, into docs/vm.md and docs/vmvx.md.

python docs/make_vm.py            # writes them
python docs/make_vm.py --check    # exit code 1 when the page differs from the table
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from eyas.module import isa, vmvx_isa  # noqa: E402

PAGES = {"vm.md": isa.emit_md, "vmvx.md": vmvx_isa.emit_md}
BEGIN, END = "<!-- made by docs/make_vm.py: begin -->", "<!-- made by docs/make_vm.py: end -->"


def make_page(old: str, tables: str) -> str:
    """The page with fresh tables between its two marks."""
    tables = tables[tables.index("## Operands") :].rstrip()
    return re.sub(f"(?s){BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", old)


def main(arguments: list[str]) -> int:
    outdated = 0
    for name, emit in PAGES.items():
        page = Path(__file__).parent / name
        old = page.read_text()
        new = make_page(old, emit())
        if arguments == ["--check"]:
            print(f"{name} is {'up to date' if new == old else 'out of date: run python docs/make_vm.py'}")
            outdated += new != old
        else:
            page.write_text(new)
            print(f"wrote {name}")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
