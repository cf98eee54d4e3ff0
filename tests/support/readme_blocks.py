"""Code blocks and sections of the README."""

from __future__ import annotations

import re

from tests.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def section(title: str) -> str:
    start = README.index(f"\n## {title}")
    end = README.find("\n## ", start + 1)
    return README[start : end if end > 0 else None]


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, code) of every code block, without the indentation of a list."""
    found = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", text, re.M | re.S)
    return [
        (language, "".join(line[len(pad) :] for line in code.splitlines(keepends=True)))
        for pad, language, code in found
    ]
