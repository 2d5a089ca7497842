"""A frame of HTML with places `{{name}}`, filled; `{{style}}` is the look that all our pages have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def fill(package: str, frame: str, values: Mapping[str, str]) -> str:
    """The frame in a package's folder with these values, which are HTML already, and the style."""
    text = files(package).joinpath(frame).read_text(encoding="utf-8")
    style = files("eyas.pages").joinpath("style.css").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: ({"style": style} | dict(values))[match[1]], text)


def script_data(data: Any) -> str:
    """JSON that is safe inside a script element: no tag can end it."""
    return json.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
