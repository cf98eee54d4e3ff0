"""Figures of speed in README, CHANGELOG and docs stand where the page of results that they link to has them.

That is in a row and a column that the passage names: by a word of the row's label or of the heading above its table, and by a
word of the column's heading. Where the text has no such words, the title of the link has them: `[decode](decode.md "100-byte value: x Java")`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from benchmarks.result_page import RESULTS
from tests.paths import ROOT
from tests.support.passages import NUMBER, read_passages

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
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


NO_SUBJECT = {
    "the", "of", "and", "in", "to", "with", "as", "it", "is", "for", "on", "by", "at", "an",
    "or", "that", "are", "all", "than", "from", "its", "be", "no", "each", "second", "time",
    "some", "into", "what", "other", "we", "our", "their", "kafka", "mib", "kib", "gib", "byte",
}  # fmt: skip
SIZE = re.compile(r"(\d[\d,]*)[ -]?(KiB|MiB|GiB|TiB|MB|byte)\b")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of results has a number: the words of its row and of its column."""

    row: frozenset[str]
    column: frozenset[str]

    def is_named(self, words: Collection[str]) -> bool:
        """Return whether a passage with these words names the row and the column."""
        return bool(self.row.intersection(words) and self.column.intersection(words))


def find_words(text: str) -> frozenset[str]:
    """Return the words of a text that can name something, without the s of the plural, and sizes such as `16kib`."""
    plain = re.sub("[`_*]", " ", text.lower())
    found = {
        word.rstrip("s") if len(word) > 3 else word
        for word in re.findall(r"[a-zµ][a-z0-9]+", plain)
    }
    return frozenset(
        found - NO_SUBJECT | {number + unit.lower() for number, unit in SIZE.findall(text)}
    )


@cache
def read_places(result: Path) -> dict[str, list[Place]]:
    """Return the places of each number of a page of results. Those of a number in prose, in a heading or in the first cell
    of a row are its line: row and column are the same words."""
    places = defaultdict[str, list[Place]](list)
    section, names = frozenset[str](), list[str]()
    for line in result.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if line.startswith("#"):
            section = find_words(line)
        if not cells or not names:
            for number in NUMBER.findall(line):
                places[number].append(Place(find_words(line), find_words(line)))
            names = cells
            continue
        first, *others = cells
        label = find_words(
            " ".join([first, *(cell for cell in others if not cell[:1].isdecimal())])
        )
        for number in NUMBER.findall(first):
            places[number].append(Place(label | section, label | section))
        for name, cell in zip(names[1:], others, strict=True):
            for number in NUMBER.findall(cell):
                row = label | section
                places[number].append(Place(row, find_words(f"{name} {cell}") or row))
    return places


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

    A number is one that stands nowhere in these pages where the passage names the row and the column, a range "A to B"
    one whose ends do not stand in one column.
    """
    wrong = []
    for line, text, results, subject in read_passages(page):
        words = find_words(subject)
        places = [read_places(result) for result in results]
        columns = [column for result in results for column in read_columns(result)]
        missing = [
            number
            for number in NUMBER.findall(text)
            if not any(place.is_named(words) for of in places for place in of.get(number, ()))
        ]
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
        for line, text, results, _ in read_passages(page)
        if not results
        for figure in SPEED.finditer(text)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_stand_in_the_results_beside_them(page: Path) -> None:
    assert not find_wrong_figures(page)
    if page.parent not in WITHOUT_RESULTS:
        assert not find_bare_figures(page)


def test_exceptions_are_needed() -> None:
    needed = {page.parent for page in PAGES if find_bare_figures(page)}
    assert needed == set(WITHOUT_RESULTS)


def test_wrong_and_bare_figures_are_found(tmp_path: Path) -> None:
    plain, titled = (f"[decode]({RESULTS / 'decode.md'}{title})" for title in ("", ' "Java"'))
    link = f'[decode]({RESULTS / "decode.md"} "100-byte value: x aiokafka")'
    page = tmp_path / "page.md"
    page.write_text(
        f"Decoding gives 33.2 million records/s, 6.7 x aiokafka ({link}).\n"
        f"It gave 33.25 million with lz4.\n\n"
        "- It reads 33.2 million records/s.\n"
        f"- It is 99.9 x\n  as fast as {link}.\n"
        "- It is twice as fast as `9.99 x`.\n\n"
        f"| aim | {link} million records/s, x Java: values, headers |\n| --- | --- |\n| 99.9 x | 33.2 |\n| 6.7 x | 99.9 |\n"
        "| | 0.56 to 4.0 |\n| | 0.56 to 71.0 |\n\n"
        "```text\n9.99 x\n```\n"
        f"- With 100-byte values 1.54 x {titled}.\n- With 100-byte values 1.54 x {plain}.\n"
        f"- With three headers 1.54 x {titled}.\n- With 100-byte values 1.54 x {link}.\n",
        "utf-8",
    )
    assert [text.split(" is ")[0] for text in find_wrong_figures(page)] == [
        "page.md:1: 33.25",
        "page.md:5: 99.9",
        "page.md:12: 99.9",
        "page.md:14: 0.56 to 71.0",
        "page.md:20: 1.54",
        "page.md:21: 1.54",
        "page.md:22: 1.54",
    ]
    assert [text.split(" beside ")[1].split(": ")[0] for text in find_bare_figures(page)] == [
        "2 million records/s",
        "twice as fast",
    ]
