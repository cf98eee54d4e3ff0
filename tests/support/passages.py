"""Passages of Markdown pages, with the links that stand in them, and the numbers in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.result_page import RESULTS

NOT_COMPARED = {"aim"}
"""Headings of columns whose figures are no results."""

NUMBER = re.compile(r"(?<![\w.,])(?<![A-Za-z]-)\d+(?:[.,]\d+)*(?!\w)")
"""Not the digits of a name, as in lz4, CRC-32C and KIP-98."""


class Passage(NamedTuple):
    """A paragraph, an item of a list, or a row of a table.

    Attributes:
        line: Number of its first line.
        text: What a person reads: without code and without the targets of links.
        results: The pages of results that it links to. A row has the links of its heading too.
        subject: All that says what it is about: also code, the titles of links and the heading of a table.
    """

    line: int
    text: str
    results: list[Path]
    subject: str


def read_passages(page: Path) -> Iterator[Passage]:
    """Yield the passages of `page` in order, without blocks of code."""
    text = re.sub(
        r"^ *```.*?^ *```$",
        lambda block: "\n" * block[0].count("\n"),
        page.read_text("utf-8"),
        flags=re.M | re.S,
    )
    heading, first, lines = "", 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_row = line.startswith("|")
        if lines and (is_row or not line.strip() or re.match(r" *([-*]|\d+\.) |#", line)):
            yield make_passage(page, first, " ".join(lines), "")
            lines = []
        if is_row:
            heading = heading or line
            yield make_passage(page, number, line, heading)
        else:
            heading = ""
            if line.strip():
                first = first if lines else number
                lines.append(line.strip())


def make_passage(page: Path, line: int, text: str, heading: str) -> Passage:
    """Return `text` of `page` as a passage. `heading` is the first row of its table, or ""."""
    targets = re.findall(r"\]\(([^)#\s]+)", text + heading)
    paths = {(page.parent / target).resolve() for target in targets if ":" not in target}
    subject = re.sub(r"\]\([^)\s]*", "] ", f"{text} {heading}")
    if heading:
        names = [name.strip() for name in heading.split("|")]
        cells = zip(text.split("|"), names, strict=False)
        text = " | ".join(cell for cell, name in cells if name not in NOT_COMPARED)
    text = re.sub(r"`[^`]*`", "`", re.sub(r"\]\([^)]*\)", "]", text))
    results = sorted(path for path in paths if path.parent == RESULTS and path.suffix == ".md")
    return Passage(line, text, results, subject)
