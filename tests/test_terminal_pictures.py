"""The pictures of terminals: they show what the commands print now, and load nothing."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.console_pages import HOW_TO, README
from tests.terminal_pictures import FOLDER, PICTURES, WIDTH, Picture

SVG = "{http://www.w3.org/2000/svg}"
SHOWING = (README, *HOW_TO)
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="commands are run by bash")
each_picture = pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)


def read_screen(drawing: ElementTree.Element) -> list[str]:
    """Return the lines that a picture shows, by the places of its texts."""
    lines: dict[float, str] = defaultdict(str)
    [matrix] = [
        group for group in drawing.iter(f"{SVG}g") if group.get("class", "").endswith("-matrix")
    ]
    for text in matrix.iter(f"{SVG}text"):
        column = round(float(text.attrib["x"]) / 12.2)
        row = round((float(text.attrib["y"]) - 20) / 24.4)
        shown = (text.text or "").replace("\xa0", " ").rstrip("\n")
        lines[row] = lines[row].ljust(column) + shown
    return [lines[row].rstrip() for row in range(round(max(lines)) + 1)]


def cut(lines: list[str]) -> list[str]:
    """Return lines as a terminal shows them, which goes on in the next line at its last column."""
    return [
        line[at : at + WIDTH].rstrip()
        for line in lines
        for at in range(0, max(len(line), 1), WIDTH)
    ]


@needs_bash
@each_picture
def test_a_picture_shows_what_the_commands_print(picture: Picture) -> None:
    """Only what it shows is compared: another version of rich may write the same otherwise."""
    drawing = ElementTree.parse(picture.path).getroot()
    printed = [line.plain for line in picture.run()]
    assert drawing.findtext(f"{SVG}desc") == "\n".join(printed), (
        "run python -m tests.terminal_pictures, and look at the pictures that change"
    )
    assert read_screen(drawing) == cut(printed)
    assert all(len(line) <= WIDTH for line in read_screen(drawing))


@needs_bash
def test_a_picture_is_drawn_the_same_each_time() -> None:
    picture = Picture("again", "Again & <again>", [f"printf '%s\\n' {'7' * (WIDTH + 5)} '<&>'"])
    assert picture.draw() == picture.draw()
    drawing = ElementTree.fromstring(picture.draw())
    assert read_screen(drawing)[-3:] == ["7" * WIDTH, "7" * 5, "<&>"]
    assert drawing.findtext(f"{SVG}title") == "Again & <again>"


@needs_bash
def test_a_mark_that_nothing_prints_is_refused() -> None:
    with pytest.raises(ValueError, match="'b'"):
        Picture("marks", "Marks", ["echo a"], marks=["a", "b"]).draw()


def test_marks_are_drawn() -> None:
    for picture in PICTURES:
        drawing = ElementTree.parse(picture.path)
        texts = [text.text for text in drawing.iter(f"{SVG}text")]
        assert {mark.replace(" ", "\xa0") for mark in picture.marks} <= {*texts}


def test_there_is_no_other_picture() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {picture.path.name for picture in PICTURES}


@each_picture
def test_a_picture_is_small_and_loads_nothing(picture: Picture) -> None:
    text = picture.path.read_text(encoding="utf-8")
    assert len(text.encode()) < 40_000
    assert not re.search(
        r"https?:|url\(|@font-face|@import|href|<script", text.replace(SVG[1:-1], "")
    )


@each_picture
def test_a_page_shows_the_picture_with_a_text_instead(picture: Picture) -> None:
    shown = [
        first or second
        for page in SHOWING
        for first, second in re.findall(
            rf"!\[([^]]*)\]\(\.\./pictures/{picture.path.name}\)"
            rf'|<img src="docs/pictures/{picture.path.name}"[^>]* alt="([^"]*)"',
            page.read_text(encoding="utf-8"),
        )
    ]
    assert shown
    assert all(len(text) > 40 for text in shown)


def test_pages_show_no_picture_that_is_missing() -> None:
    pages = [(page, page.read_text(encoding="utf-8")) for page in SHOWING]
    targets = [
        Path(page.parent, target)
        for page, text in pages
        for target in re.findall(r'(?:\]\(|src=")([^)"\s]+\.svg)', text)
    ]
    assert targets
    assert [target for target in targets if not target.is_file()] == []
