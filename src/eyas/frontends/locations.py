"""Where an op came from, in the user's words: the node of the framework's graph and the line of the user's source."""

from __future__ import annotations

import re

from eyas.ir import mlir

_NAME = re.compile(r'loc\("([^"]+)"(?:\(|\))')
_FILE_LINE = re.compile(r'"([^"]+)":(\d+)(?::\d+)?')

UNKNOWN = "an unknown place"


def describe_source(location: mlir.Location | str) -> str:
    """`node 'encoder.fc/mm_3' (model.py:41)`, or whichever half is known."""
    text = str(location)
    name, place = _NAME.search(text), _FILE_LINE.search(text)
    line = None
    if place:
        file, number = place.groups()
        line = f"line {number}" if file in ("-", "<unknown>") else f"{file}:{number}"
    if name:
        return f"node '{name.group(1)}'" + (f" ({line})" if line else "")
    return line or UNKNOWN
