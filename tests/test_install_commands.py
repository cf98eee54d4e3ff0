"""Messages, docstrings and pages name one command that installs an extra."""

from __future__ import annotations

import re
from pathlib import Path

from codecgen.runtime import extras
from tests.paths import ROOT
from tests.release.__main__ import FROM_A_COPY

PUBLISHED = re.compile(r"pip install .{0,2}kafka-codecs")
OF_AN_IMAGE = 'pip install "/opt/kafka-codecs-source['
"""In a Dockerfile, which copies the repository before: right before a release and after it."""


def read_pages() -> dict[Path, str]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return {page: page.read_text("utf-8") for page in pages}


def test_code_names_the_distribution_in_one_place() -> None:
    sources = [path for top in ("generator", "pipeline") for path in (ROOT / top).rglob("*.py")]
    named = [path for path in sources if "kafka-codecs[" in path.read_text("utf-8")]
    assert named == [Path(extras.__file__)]
    assert Path(extras.__file__).read_text("utf-8").count("kafka-codecs[") == 1


def test_pages_have_one_form() -> None:
    """They install from a copy, or all from PyPI: never some of both."""
    pages = read_pages()
    local = {page for page, text in pages.items() if FROM_A_COPY.search(text)}
    published = {page for page, text in pages.items() if PUBLISHED.search(text)}
    assert bool(local) != bool(published), sorted(published)
    form = re.escape(extras.INSTALL.format("EXTRAS")).replace("EXTRAS", "[a-z,]+")
    for page in published:
        commands = re.findall(r'pip install "kafka-codecs[^"]*"?', pages[page])
        assert all(re.fullmatch(form, command) for command in commands), page


def test_other_forms_are_not_in_pages() -> None:
    for page, text in read_pages().items():
        for command in re.findall(r"pip install [^`\n]*?\[[^`\n]*", text):
            known = FROM_A_COPY.match(command) or PUBLISHED.match(command)
            assert known or command.startswith(OF_AN_IMAGE), f"{page}: {command}"
