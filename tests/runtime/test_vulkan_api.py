"""The Vulkan driver's own declarations (`runtime/src/hal/vulkan/vk_api.h`) against Khronos' headers, where these are
installed: every size, offset and value."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "runtime" / "src"
OURS = SOURCE / "hal" / "vulkan" / "vk_api.h"
KHRONOS = Path("/usr/include/vulkan/vulkan_core.h")

PROGRAM = """
#include <stddef.h>
#include <stdio.h>
#include {header}
int main(void) {{
{lines}
}}
"""


def declarations(text: str) -> list[str]:
    """A line of C for each struct, field and value of a header, which prints what it is."""
    lines = []
    for name, body in re.findall(r"typedef struct (Vk\w+) \{(.*?)\n\} \1;", text, re.DOTALL):
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in re.findall(r"(\w+)(?:\[\w+\])*;", re.sub(r"struct \{.*?\}", "", body, flags=re.DOTALL)):
            if not field.startswith("unused"):  # several fields of Khronos in one
                place = f"offsetof({name}, {field}), sizeof((({name}*)0)->{field})"
                lines.append(f'printf("{name}.{field} %zu %zu\\n", {place});')
    for value in re.findall(r"^  (VK_\w+) = ", text, re.MULTILINE):
        lines.append(f'printf("{value} %lld\\n", (long long)(int){value});')
    return lines


def printed(folder: Path, header: str, lines: list[str]) -> list[str]:
    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM.format(header=header, lines="\n".join(lines)))
    subprocess.run(["cc", f"-I{SOURCE}", str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.skipif(not KHRONOS.exists(), reason="Khronos' headers are not installed: libvulkan-dev")
def test_declarations_are_khronos(tmp_path: Path) -> None:
    theirs = KHRONOS.read_text()
    known = set(re.findall(r"\bVK_\w+\b|\bVk\w+\b", theirs))
    lines = declarations(OURS.read_text())
    # Extensions that came later than the installed headers cannot be compared.
    lines = [line for line in lines if set(re.findall(r'^printf\("(\w+)', line)) <= known]
    assert len(lines) > 400
    ours = printed(tmp_path, '"hal/vulkan/vk_api.h"', lines)
    assert ours == printed(tmp_path, f'"{KHRONOS}"', lines)
