"""Puts the instruction tables, made from src/eyas/module/isa.py, into docs/vm.md.

python docs/make_vm.py            # writes them
python docs/make_vm.py --check    # exit code 1 when the page differs from the table
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from eyas.module.isa import emit_md  # noqa: E402

PAGE = Path(__file__).parent / "vm.md"
BEGIN, END = "<!-- made by docs/make_vm.py: begin -->", "<!-- made by docs/make_vm.py: end -->"


def make_page(old: str) -> str:
    """The page with fresh tables between its two marks."""
    tables = emit_md()
    tables = tables[tables.index("## Operands") :].rstrip()
    return re.sub(f"(?s){BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{tables}\n\n{END}", old)


def main(arguments: list[str]) -> int:
    old = PAGE.read_text()
    new = make_page(old)
    if arguments == ["--check"]:
        print(f"{PAGE.name} is {'up to date' if new == old else 'out of date: run python docs/make_vm.py'}")
        return 0 if new == old else 1
    PAGE.write_text(new)
    print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
