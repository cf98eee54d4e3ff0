"""What `explain --program` says: what readers and writers do, one operation a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.cli import main
from codecgen.explain.declarations import UnknownName
from codecgen.explain.programs import explain_program
from tests.codecgen.goldens import MANIFEST, PROGRAMS
from tests.codecgen.schemas import our_model
from tests.paths import ROOT, SCHEMAS

OURS = our_model()
CONSTRUCTS = """\
enums:
  colour: {values: {red: 1, green: 2, blue: 7}}
---
layout: inner
fields:
  n: i8
---
layout: outer
fields:
  size: {type: u16, measures: {from: colour, to: held}}
  sum: {type: u32, checksum: crc32, covers: {from: colour, to: held}}
  colour: {type: u8, enum: colour}
  held: {layout: inner}
  has_more: bool
  more: {type: i64, when: has_more}
  numbers: {array: i16, count: u8}
  name: {string: u8, valid: "not has_more or (more > 3 - 1 and held.n != 4)"}
  rest: {bytes: rest}
  final: u8
"""


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.txt")), ids=lambda path: path.stem)
def test_programs_of_our_schemas(path: Path) -> None:
    text = explain_program(OURS, path.stem) + "\n"
    assert text == path.read_text("utf-8"), "if it is right: python -m tests.codecgen.goldens"


def test_one_version_of_a_layout() -> None:
    both = explain_program(OURS, "message")
    assert both == explain_program(OURS, "message@0") + "\n\n" + explain_program(OURS, "message@1")


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
def test_every_layout_and_view_has_its_program(every: int) -> None:
    for name in (*OURS.layouts, *OURS.views)[::every]:
        lines = explain_program(OURS, name).split("\n")
        assert len(lines) > 1 and all(len(line) <= 100 for line in lines), name


def test_every_operation_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "codecgen.yaml").write_text(MANIFEST)
    (tmp_path / "case.yaml").write_text(CONSTRUCTS)
    assert main(["explain", "--program", "outer", "--schemas", str(tmp_path)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.split("\n")]
    assert lines[1:-1] == [
        "number size u16",
        "number sum u32",
        "open colour to held size=size",
        "mark sum begins",
        "number colour u8",
        "require colour colour in 1, 2, 7 (enum)",
        "call held inner",
        "close size",
        "checksum sum crc32 colour to held",
        "number has_more bool",
        "when more has_more",
        "number more i64",
        "loop numbers i16 count=u8",
        "text name size=u8",
        "require name not has_more or more > 3 - 1 and held.n != 4 (valid)",
        "bytes rest to the end 1 byte follows",
        "number final u8",
    ]


@pytest.mark.share(ci=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("recrd", 'did you mean "record"'),
        ("message@7", "message@0"),
        ("zzz", "name a layout"),
    ],
)
def test_names_that_have_no_program(
    name: str, help: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnknownName, match="no program is called"):
        explain_program(OURS, name)
    assert main(["explain", "--program", name, "--schemas", str(SCHEMAS)]) == 2
    assert help in capsys.readouterr().err


def test_a_view_into_payloads(capsys: pytest.CaptureFixture[str]) -> None:
    schemas = ROOT / "tests" / "data" / "payloads"
    assert main(["explain", "--program", "marks", "--schemas", str(schemas)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.split("\n")]
    assert lines[1:3] == ["decided by key.version", "no rows for 0, 1, 2"]
    assert lines[lines.index("3: key mark_key, value null") :] == [
        "3: key mark_key, value null",
        "a row, if key.marked != 0",
        "kind key.version",
        "id key.id",
        "note null",
        "tags null",
        "level null",
        "urgent null",
        "",
        "4: key forgotten_key",
        "a row",
        "kind key.version",
        "group key.group",
        "id 0",
        "",
    ]
