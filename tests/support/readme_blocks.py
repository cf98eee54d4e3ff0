"""Code blocks and sections of the README and of other pages."""

from __future__ import annotations

import re

from tests.paths import ROOT


def section(title: str, page: str = "README.md") -> str:
    """Return the section of a page whose heading begins with `title`, with its heading. Raise ValueError without one."""
    text = (ROOT / page).read_text("utf-8")
    start = text.index(f"\n## {title}")
    end = text.find("\n## ", start + 1)
    return text[start : end if end > 0 else None]


def blocks(text: str) -> list[tuple[str, str]]:
    """Return language and code of every code block, without the indentation of a list."""
    found = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", text, re.M | re.S)
    return [
        (language, "".join(line[len(pad) :] for line in code.splitlines(keepends=True)))
        for pad, language, code in found
    ]
