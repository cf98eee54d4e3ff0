"""Figures of speed in README and docs stand in the pages of results that they link to."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.support.passages import NUMBER, RESULTS, read_passages

PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "api"),
]

RANGE = re.compile(rf"({NUMBER.pattern}) to ({NUMBER.pattern})")

SPEED = re.compile(
    r"\d (?:x|ns|µs|ms|s|seconds)\b"
    r"|\d[^.]{0,20}(?:/s|a second|an hour)\b"
    r"|\b(?:twice|half|times) (?:as (?:fast|slow|quick|long)|the (?:speed|rate|time)|faster|slower)\b"
    r"|\b(?:millions|thousands) (?:of \w+ )?a second\b|\ba \w+ of a second\b|\bhalf a second\b"
)

WITHOUT_RESULTS = {
    ROOT / "docs" / "decisions": "a decision keeps what was measured when it was made",
}
"""Where figures of speed may stand without a link, and why."""


@cache
def read_numbers(result: Path) -> set[str]:
    """Return the numbers of a page of results, as they are written there."""
    return set(NUMBER.findall(result.read_text("utf-8")))


@cache
def read_columns(result: Path) -> list[set[str]]:
    """Return the numbers of each column of a page of results. Equal headings are one column."""
    columns = defaultdict[str, set[str]](set)
    names: list[str] = []
    for line in result.read_text("utf-8").splitlines():
        cells = line.split("|") if line.startswith("|") else []
        names = names if cells and names else cells
        for name, cell in zip(names, cells, strict=True):
            columns[name].update(NUMBER.findall(cell))
    return list(columns.values())


def find_wrong_figures(page: Path) -> list[str]:
    """Return the figures of `page` that a page of results should have, and has not.

    A number is one that stands nowhere in these pages, a range "A to B" one whose ends do not
    stand in one column.
    """
    wrong = []
    for line, text, results in read_passages(page):
        numbers = set[str]().union(*map(read_numbers, results))
        columns = [column for result in results for column in read_columns(result)]
        missing = [number for number in NUMBER.findall(text) if number not in numbers]
        missing += [
            f"{low} to {high}"
            for low, high in RANGE.findall(text)
            if not any({low, high} <= column for column in columns)
        ]
        where = ", ".join(path.name for path in results)
        wrong += [
            f"{page.name}:{line}: {figure} is not in {where}: {text}"
            for figure in missing
            if results
        ]
    return wrong


def find_bare_figures(page: Path) -> list[str]:
    """Return the figures of speed in `page` without a link to results beside them."""
    return [
        f"{page.name}:{line}: no link to results beside {figure[0]}: {text}"
        for line, text, results in read_passages(page)
        if not results
        for figure in SPEED.finditer(text)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_stand_in_the_results_beside_them(page: Path) -> None:
    assert not find_wrong_figures(page)
    if page.parent not in WITHOUT_RESULTS:
        assert not find_bare_figures(page)


def test_exceptions_are_needed() -> None:
    needed = {page.parent for page in PAGES if find_bare_figures(page)}
    assert needed == set(WITHOUT_RESULTS)


def test_wrong_and_bare_figures_are_found(tmp_path: Path) -> None:
    link = f"[decode]({RESULTS / 'decode.md'})"
    page = tmp_path / "page.md"
    page.write_text(
        f"Decoding gives 33.2 million records/s, 6.7 x aiokafka ({link}).\n"
        f"It gave 33.25 million with lz4.\n\n"
        "- It reads 33.2 million records/s.\n"
        f"- It is 99.9 x\n  as fast as {link}.\n"
        "- It is twice as fast as `9.99 x`.\n\n"
        f"| aim | {link} |\n| --- | --- |\n| 99.9 x | 33.2 |\n| 6.7 x | 99.9 |\n"
        "| | 0.56 to 4.0 |\n| | 0.56 to 71.0 |\n\n"
        "```text\n9.99 x\n```\n",
        "utf-8",
    )
    assert [text.split(" is ")[0] for text in find_wrong_figures(page)] == [
        "page.md:1: 33.25",
        "page.md:5: 99.9",
        "page.md:12: 99.9",
        "page.md:14: 0.56 to 71.0",
    ]
    assert [text.split(" beside ")[1].split(": ")[0] for text in find_bare_figures(page)] == [
        "2 million records/s",
        "twice as fast",
    ]
