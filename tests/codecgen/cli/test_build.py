"""codecgen build: bytes of values, and what is wrong with values, at its line."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from codecgen.cli import main
from tests.support.codecgen_tool import (
    GOOD,
    Tool,
    tool,
)

__all__ = ["tool"]

VALUES = """\
colour: dark_blue
wait: -1
name: osl
points: [{x: 1, y: 2}, {x: 3, y: -4}]
numbers: [5, 300]
"""


def build(tool: Tool, values: str, *options: str, layout: str = "packet") -> tuple[int, str, str]:
    (tool.root / "values.yaml").write_text(values, encoding="utf-8")
    ran = tool.run("build", layout, "values.yaml", "--schemas", "schemas", *options)
    return ran.code, ran.out, ran.err


def test_a_file(tool: Tool) -> None:
    """Written beside and renamed, and not written over another one unless that is said."""
    out = tool.root / "out.bin"
    assert build(tool, VALUES, "--out", "out.bin") == (0, "out.bin: 17 bytes\n", "")
    assert out.read_bytes() == GOOD
    out.write_bytes(b"old")
    code, _, err = build(tool, VALUES, "--out", "out.bin")
    assert (code, err) == (
        2,
        "codecgen: out.bin exists and is unchanged: add --overwrite to replace it\n",
    )
    assert out.read_bytes() == b"old"
    assert build(tool, VALUES, "--out", "out.bin", "--overwrite")[0] == 0
    assert out.read_bytes() == GOOD
    assert build(tool, "colour: 9", "--out", "out.bin", "--overwrite")[0] == 1
    assert out.read_bytes() == GOOD
    code, _, err = build(tool, VALUES, "--out", "no/out.bin")
    assert (code, err) == (2, "codecgen: no is not a directory\n")
    assert {p.name for p in tool.root.iterdir()} == {"out.bin", "schemas", "values.yaml"}


def test_hex(tool: Tool) -> None:
    assert build(tool, VALUES, "--hex") == (0, GOOD.hex() + "\n", "")


def test_bytes_on_standard_output(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
    (tool.root / "values.yaml").write_text(VALUES, encoding="utf-8")
    assert main(["build", "packet", "values.yaml", "--schemas", "schemas"]) == 0
    assert out.getvalue() == GOOD


def test_no_bytes_on_a_terminal(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    code, out, err = build(tool, VALUES)
    assert (code, out) == (2, "")
    assert "--out" in err and "--hex" in err


def test_values_from_standard_input(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(VALUES.encode())))
    ran = tool.run("build", "packet", "-", "--schemas", "schemas", "--hex")
    assert ran.out == GOOD.hex() + "\n"


def test_several_documents(tool: Tool) -> None:
    assert build(tool, f"{VALUES}---\n{VALUES}", "--hex")[1] == GOOD.hex() * 2 + "\n"


def test_what_is_worked_out_may_be_given(tool: Tool) -> None:
    """Lengths, counts and checksums are worked out, so that what was parsed can be changed and built."""
    assert build(tool, "size: 99\n" + VALUES, "--hex")[1] == GOOD.hex() + "\n"


JOURNEY = """\
layout: journey
fields:
  start: {type: i8, default: 0}
  count: {type: u8, counts: stops}
  stops: {array: stop}
build: {stops: {delta: {from: number, less: start, otherwise: index}}}
examples:
  - {name: by number, hex: "07 02 00 02", values: {stops: [{number: 7}, {number: 9}]}}
  - {name: by index, build: true, values: {start: 7, stops: [{}, {number: 8}]}}
---
layout: stop
fields: {delta: i8}
"""


@pytest.mark.slow
def test_what_is_given_in_the_place_of_a_field(tool: Tool) -> None:
    """Values, examples and `build` in Python take the same."""
    path = tool.root / "schemas" / "journey.yaml"
    path.write_text(JOURNEY, encoding="utf-8")
    assert tool.run("check", "schemas").code == 0
    for values in ("stops: [{number: 7}, {number: 9}]", "{start: 7, stops: [{}, {delta: 2}]}"):
        assert build(tool, values, "--hex", layout="journey") == (0, "07020002\n", "")
    code, _, err = build(tool, "stops: [{numbr: 7}]", layout="journey")
    assert code == 1
    assert "stop has no field 'numbr' here; did you mean \"number\"?" in err
    code, _, err = build(tool, "stops: [{number: 7, delta: 3}]", layout="journey")
    assert code == 1
    assert "stops[0].number: number is 7, but start 7 and delta 3 make it 10" in err
    for right, wrong, reason in (
        ("number: 9", "number: 8", "stops[1].number is 9, not 8"),
        ("number: 9", "number: x", "stops[1].number needs a number, not 'x'"),
        ("number: 9", "numbr: 9", '"stop" has no field "numbr"'),
    ):
        path.write_text(JOURNEY.replace(right, wrong), encoding="utf-8")
        ran = tool.run("check", "schemas")
        assert ran.code == 1
        assert reason in ran.out + ran.err


def test_versions(tool: Tool) -> None:
    assert build(tool, "{a: 1, b: 2}", "--hex", layout="dated@1")[1] == "0102\n"
    assert build(tool, "{a: 1}", "--hex", layout="dated@0")[1] == "01\n"
    assert build(tool, "{version: 1, b: 2}", "--hex", layout="told")[1] == "0102\n"
    assert build(tool, "{b: 2}", "--hex", layout="told@1")[1] == "0102\n"
    chosen = build(tool, "{a: 1, b: 2}", "--hex", "--given", "dark_blue", layout="of_colour")
    assert chosen[1] == "0102\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "values", "place", "reason"),
    [
        ("packet", VALUES.replace("-4", "400"), "4:31", "points[1].y: 400 does not fit int8"),
        ("packet", VALUES.replace("y: -4", "z: 1"), "4:31", "point has no field 'z' here"),
        ("packet", VALUES.replace("wait", "wiat"), "2:1", 'did you mean "wait"?'),
        ("packet", VALUES.replace("osl", "7"), "3:1", "name: text is needed, not 7; put it into"),
        ("packet", VALUES.replace("dark_", ""), "1:1", "colour: colour has no value 'blue'"),
        ("packet", VALUES.replace("[5, 300]", "7"), "5:1", "numbers: a list is needed, not 7"),
        ("packet", VALUES.replace("300", "-1"), "5:14", "numbers[1]: -1 does not fit"),
        ("packet", "wait: 1", "1:1", "colour: a value is needed"),
        ("packet", "a: [", "1:5", "expected the node content"),
        ("packet", "[1]", "1:1", "a document is a mapping"),
        (
            "packet",
            "{hex: 00}",
            "1:1",
            "the top level: a mapping of fields is needed, not {hex: 00}",
        ),
        ("packet", "", "1:1", "there are no values"),
        ("packet", "a: 1\na: 2", "2:1", '"a" is given twice'),
        ("packet", "name: \udcff", "1:7", "the file is not UTF-8 text"),
        ("told", "b: 1", "1:1", "version is needed, which chooses the told: one of 0, 1"),
        ("told", "b: 1\nversion: 7", "2:1", "version: 7 is not one of 0, 1, which choose the told"),
        ("told@1", "b: 1\nversion: 0", "2:1", "version: 0 was given, but told has 1 here"),
        ("nothing", "all: {hex: 0}", "1:1", "all: text is needed, or {hex: ..} with an even"),
    ],
)
def test_what_is_wrong_and_where(
    tool: Tool, layout: str, values: str, place: str, reason: str
) -> None:
    file = tool.root / "values.yaml"
    file.write_bytes(values.encode("utf-8", "surrogateescape"))
    ran = tool.run("build", layout, "values.yaml", "--schemas", "schemas", "--hex")
    assert (ran.code, ran.out) == (1, "")
    assert reason in ran.err.splitlines()[0]
    assert f"--> values.yaml:{place}\n" in ran.err


def test_what_a_field_is_says_the_schema(tool: Tool) -> None:
    err = build(tool, VALUES.replace("-4", "400"), "--hex")[2]
    assert "help: packet.yaml:17 says what stands here" in err


@pytest.mark.parametrize("option", [["--out", "x", "--hex"], ["--many"], ["--hex", "--overwrite"]])
def test_options_that_are_none(tool: Tool, option: list[str]) -> None:
    assert build(tool, VALUES, *option)[0] == 2


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("parse", "build"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        out = capsys.readouterr().out
        assert f"examples:\n  codecgen {command} " in out


def test_values_that_are_too_many(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codecgen.values.documents.MAX_TEXT_BYTES", 16)
    code, _, err = build(tool, VALUES, "--hex")
    assert (code, "larger than 16 bytes" in err) == (1, True)


def test_paths_are_those_of_the_system(tool: Tool) -> None:
    ran = tool.run("build", "packet", "no.yaml", "--schemas", "schemas", "--hex")
    assert (ran.code, "no.yaml" in ran.err) == (2, True)
    assert Path("schemas").is_dir()
