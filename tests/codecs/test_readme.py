"""The README's code works as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.codecs.tree import Tree
from tests.paths import ROOT
from tests.support.readme_blocks import blocks, section

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?(?: \"[^\"]*\")?\)")


def apply(diff: str, path: Path) -> None:
    """Take a diff without line numbers: its old lines must stand in the file once."""
    lines = diff.splitlines()
    old = "\n".join(line[1:] for line in lines if line[:1] in (" ", "-", ""))
    new = "\n".join(line[1:] for line in lines if line[:1] in (" ", "+", ""))
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.slow
def test_a_new_version_in_five_steps(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    text = (ROOT / "docs" / "new-format-version.md").read_text("utf-8")
    steps = blocks(text.split("\n## ")[0])
    assert [language for language, _ in steps] == ["diff", "sh", "sh", "sh", "python"]
    path = re.search(r"`(schemas/[^`]+\.yaml)`", text)
    assert path is not None
    for arguments in (["init", "-q"], ["add", "schemas"], ["commit", "-q", "-m", "released"]):
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)
    apply(steps[0][1], tmp_path / path[1])
    for command in "".join(code for _, code in steps[1:4]).splitlines():
        output = tree.run(*shlex.split(command))
        if "diff" in command:
            assert "record_count" in output
        if "breaking" in command:
            assert "1 change, none is breaking" in output
    tree.run("python", "-c", steps[4][1])


def test_the_lines_of_yaml_are_those_of_the_schema() -> None:
    text = section("Formats as data")
    ((_, lines),) = [b for b in blocks(text) if b[0] == "yaml"]
    path = re.search(r"\]\((schemas/.*?\.yaml)\)", text)
    assert path is not None
    schema = (ROOT / path[1]).read_text("utf-8").splitlines()
    assert set(lines.splitlines()) <= set(schema)


def test_parse_and_build_in_five_lines(tmp_path: Path) -> None:
    ((_, code),) = [b for b in blocks(section("Formats as data")) if b[0] == "python"]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=Tree(tmp_path).environment,
    )
    assert done.stdout.split()[0] == "1"
    assert done.stdout.split()[2] == "b'k'"
    assert "\n  base_offset: 7\n" in done.stdout


@pytest.mark.slow
def test_tables_in_three_lines(tmp_path: Path) -> None:
    """The code runs where the samples are."""
    for library in ("pyarrow", "duckdb", "polars", "pandas"):
        pytest.importorskip(library)
    codes = [code for language, code in blocks(section("As a table")) if language == "python"]
    assert len(codes) == 3  # the last one is of Spark, and has a test of its own
    (tmp_path / "samples").mkdir()
    for sample in ("kafka-4.x", "kafka-2.8"):
        shutil.copytree(ROOT / "samples" / sample, tmp_path / "samples" / sample)
    roots = [ROOT / "generator", ROOT / "generated", ROOT / "pipeline"]
    tail = "\nprint(frame.shape, small.shape)"
    outputs = []
    for code in (codes[0], codes[1] + tail):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, roots))},
        )
        outputs.append(done.stdout)
    assert "topic" in outputs[0]
    frame, small = re.findall(r"\((\d+), (\d+)\)", outputs[1])
    assert int(frame[0]) > 1000 and frame[1] == "3"
    assert small == ("10", "6")


@pytest.mark.parametrize(
    "page",
    sorted(
        path.relative_to(ROOT).as_posix()
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    ),
)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    pictures = re.findall(r'src="([^":]+)"', text)
    for target, mark in [*LINK.findall(text), *((picture, "") for picture in pictures)]:
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), f"{page}: {target}"
        assert not mark or mark in anchors(path), f"{page}: {target}{mark}"


@cache
def anchors(page: Path) -> set[str]:
    """Return the marks that a link to `page` may have, as GitHub makes them of headings."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    named = re.findall(r'<a id="([^"]+)"', text)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    titles = [re.sub(r"\]\([^)]*\)", "", heading).lower() for heading in headings]
    return {f"#{name}" for name in named} | {
        "#" + re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles
    }
