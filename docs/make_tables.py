"""Puts tables that the code has into pages: the instructions of the VM and of VMVX, and what can be switched off.

python docs/make_tables.py            # writes them
python docs/make_tables.py --check    # exit code 1 when a page differs from its table
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from eyas.module import isa, vmvx_isa  # noqa: E402
from eyas.pipelines import switches  # noqa: E402

BEGIN, END = "<!-- made by docs/make_tables.py: begin -->", "<!-- made by docs/make_tables.py: end -->"


def instructions(page: str) -> str:
    """The tables of a page that an instruction set makes whole."""
    return page[page.index("## Operands") :].rstrip()


TABLES = {
    "vm.md": lambda: instructions(isa.emit_md()),
    "vmvx-instructions.md": lambda: instructions(vmvx_isa.emit_md()),
    "architecture.md": switches.emit_md,
}


def make_page(old: str, tables: str) -> str:
    """The page with fresh tables between its two marks."""
    new, count = re.subn(f"(?s){BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", old)
    assert count == 1, f"the page has no '{BEGIN}' and '{END}'"
    return new


def main(arguments: list[str]) -> int:
    outdated = 0
    for name, emit in TABLES.items():
        page = Path(__file__).parent / name
        old = page.read_text()
        new = make_page(old, emit())
        if arguments == ["--check"]:
            print(f"{name} is {'up to date' if new == old else 'out of date: run python docs/make_tables.py'}")
            outdated += new != old
        else:
            page.write_text(new)
            print(f"wrote {name}")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
