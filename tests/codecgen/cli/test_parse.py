"""codecgen parse: bytes field by field, up to the damage and why."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from codecgen.cli import main
from codecgen.values import reading
from tests.paths import ROOT, SCHEMAS
from tests.support.codecgen_tool import GOOD, Ran, Tool
from tests.support.codecgen_tool import tool as tool

SAMPLE = ROOT / "samples/kafka-2.8/mixed-0/00000000000000000000.log"
VECTORS = ROOT / "tests/vectors"
SHOWN = """\
packet at byte 0, 17 bytes
   0  10                       size         16
   1  01                       colour       1 DarkBlue
   2  ff ff                    wait         -1 ms (none)
   4  03                       name         length 3
   5  6f 73 6c                 name         "osl"
   8  02                       points       count 2
   9  01                       points[0].x  1
  10  02                       points[0].y  2
  11  03                       points[1].x  3
  12  fc                       points[1].y  -4
  13  03                       numbers      count 2
  14  05                       numbers[0]   5
  15  ac 02                    numbers[1]   300
"""


def shown_bytes(text: str) -> bytes:
    """The bytes that stand in the lines of a dump."""
    out = b""
    for line in text.splitlines():
        found = re.match(r" *\d+  ((?:[0-9a-f]{2} ?)+)", line)
        out += bytes.fromhex(found[1]) if found else b""
    return out


def test_field_by_field(tool: Tool) -> None:
    ran = tool.parse("packet", GOOD)
    assert (ran.out, ran.err, ran.code) == (SHOWN, "", 0)


def test_up_to_the_damage(tool: Tool) -> None:
    """A colour that is none: it is shown, what lies after it is not read, and the error says where and why."""
    bad = GOOD[:1] + b"\x07" + GOOD[2:]
    ran = tool.parse("packet", bad)
    assert ran.code == 1
    assert ran.out.splitlines()[:3] == [
        "packet at byte 0",
        "   0  10                       size  16",
        "   1  07 ff ff 03 6f 73 6c 02        not read",
    ]
    assert shown_bytes(ran.out) == bad
    assert ran.err == (
        "codecgen: 7 is not a Colour that may stand here (0 red, 1 DarkBlue) "
        "(colour, byte 1 of x.bin, packet.yaml:9)\n"
    )
    lenient = tool.parse("packet", bad, "--lenient")
    assert lenient.code == 0
    assert "   1  07                       colour       7\n" in lenient.out
    assert lenient.err.startswith("codecgen: note: 7 is not a Colour")


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(len(GOOD)))
def test_every_cut(tool: Tool, cut: int) -> None:
    """All bytes that are there are shown, each once, and the error has a place."""
    ran = tool.parse("packet", bytes([cut - 1]) + GOOD[1:cut] if cut else b"")
    assert ran.code == 1
    assert len(shown_bytes(ran.out)) == cut
    assert f"byte {cut} of x.bin" in ran.err or " left (" in ran.err
    assert "packet.yaml:" in ran.err


def test_a_count_that_is_refused_is_shown(tool: Tool) -> None:
    ran = tool.parse("packet", GOOD[:8] + b"\x7f" + GOOD[9:])
    assert "   8  7f                       points  count 127\n" in ran.out
    assert "count is 127, but 8 bytes are left (points, byte 8 of x.bin" in ran.err


def test_elements_before_the_damage_are_shown(tool: Tool) -> None:
    ran = tool.parse("packet", GOOD[:-1])
    assert "size is 16, but 15 bytes are left" in ran.err
    ran = tool.parse("packet", b"\x0f" + GOOD[1:-1])
    assert "  14  05                       numbers[0]   5\n" in ran.out
    assert "numbers[1], byte 16 of x.bin" in ran.err


def test_many(tool: Tool) -> None:
    ran = tool.parse("packet", GOOD * 2, "--many")
    first, _, second = ran.out.partition("\n\n")
    assert first == "0: " + SHOWN.rstrip("\n")
    assert second.startswith("1: packet at byte 17, 17 bytes\n  17  10")
    assert shown_bytes(ran.out) == GOOD * 2
    assert tool.parse("packet", b"", "--many").out == ""
    ran = tool.parse("packet", GOOD + GOOD[:-1], "--many")
    assert (ran.code, "size is 16, but 15" in ran.err, "byte 17 of x.bin" in ran.err) == (1, 1, 1)
    ran = tool.parse("empty@0", b"x", "--many")
    assert (ran.code, "a layout of no bytes" in ran.err) == (1, True)
    assert tool.parse("nothing", b"abc", "--many").out.count("byte 0") == 1


def test_bytes_that_follow(tool: Tool) -> None:
    ran = tool.parse("packet", GOOD + b"rest")
    assert ran.code == 1
    assert shown_bytes(ran.out) == GOOD + b"rest"
    assert ran.err == (
        "codecgen: 4 bytes follow the packet (byte 17 of x.bin)\n"
        "codecgen: say --many to parse one after the other, --length to parse less\n"
    )


@pytest.mark.parametrize("at", ["3", "0x3", "0X3"])
def test_a_part_of_the_file(tool: Tool, at: str) -> None:
    ran = tool.parse("packet", b"xxx" + GOOD + b"yyy", "--at", at, "--length", "17")
    assert ran.code == 0
    assert ran.out.splitlines()[:2] == [
        "packet at byte 3, 17 bytes",
        "   3  10                       size         16",
    ]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--at", "99"], "x.bin has 17 bytes, but --at is 99; the largest is 17"),
        (
            ["--at", "9", "--length", "9"],
            "x.bin has 17 bytes, but --at 9 with --length 9 ends at byte 18; reduce --at or --length",
        ),
        (["--at", "-1"], "argument --at: '-1' is not a number of bytes"),
        (["--at", "x"], "argument --at: 'x' is not a number of bytes"),
        (["--json", "--yaml"], "not allowed with argument"),
        (["--given", "red"], "packet is a layout, not a choice: leave out --given"),
        (["--hex"], "x.bin:1:1: '\\x10' is not a hexadecimal digit"),
    ],
)
def test_what_cannot_be(tool: Tool, options: list[str], reason: str) -> None:
    ran = tool.parse("packet", GOOD, *options)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err


@pytest.mark.parametrize(
    ("layout", "options", "reason"),
    [
        ("paket", [], "unknown layout 'paket'; did you mean \"packet\"?"),
        ("dated", [], "the bytes of dated do not say their version: name dated@0 or dated@1"),
        ("dated@7", [], "dated has versions 0-1, not '7'"),
        ("dated@x", [], "dated has versions 0-1, not 'x'"),
        ("packet@0", [], "packet has no versions, not '0'"),
        ("of_colour", [], "of_colour is chosen by a colour: name it with --given red or dark_blue"),
        ("of_number", [], "of_number is chosen by a u8: name it with --given 0-9, 32"),
        ("of_colour", ["--given", "blue"], "'blue' is not one of them"),
        ("of_colour@1", ["--given", "red"], "of_colour is a choice, which has no versions"),
    ],
)
def test_what_a_name_does_not_say(tool: Tool, layout: str, options: list[str], reason: str) -> None:
    ran = tool.parse(layout, b"\x01\x02", *options)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err


def test_versions(tool: Tool) -> None:
    assert "dated@1 at byte 0, 2 bytes" in tool.parse("dated@1", b"\1\2").out
    assert "told@1 at byte 0, 2 bytes" in tool.parse("told", b"\1\2").out
    assert "told@0 at byte 0, 1 byte" in tool.parse("told", b"\0").out
    assert "dated@1 at byte" in tool.parse("of_colour", b"\1\2", "--given", "dark_blue").out
    ran = tool.parse("told", b"\7rest")
    assert ran.code == 1
    assert shown_bytes(ran.out) == b"\7rest"
    assert "7 is not one of 0, 1 (version, byte 0 of x.bin" in ran.err
    assert "1 stands where only 0 may" in tool.parse("told@0", b"\1\2").err


def test_values(tool: Tool) -> None:
    ran = tool.parse("packet", GOOD, "--json")
    assert json.loads(ran.out) == {
        "size": 16,
        "colour": "dark_blue",
        "wait": -1,
        "name": "osl",
        "points": [{"x": 1, "y": 2}, {"x": 3, "y": -4}],
        "numbers": [5, 300],
    }
    lines = tool.parse("packet", GOOD * 3, "--json", "--many").out.splitlines()
    assert [json.loads(line)["size"] for line in lines] == [16, 16, 16]
    ran = tool.parse("packet", GOOD[:1] + b"\7" + GOOD[2:], "--json")
    assert (ran.code, json.loads(ran.out)) == (1, {"size": 16})
    assert tool.parse("packet", GOOD, "--yaml").out == (
        "# packet at byte 0, 17 bytes\n"
        'size: 16\ncolour: dark_blue\nwait: -1\nname: "osl"\n'
        "points:\n  - x: 1\n    y: 2\n  - x: 3\n    y: -4\nnumbers:\n  - 5\n  - 300\n"
    )


def test_hex_text(tool: Tool) -> None:
    assert tool.parse("packet", GOOD.hex(" ").encode() + b"\n", "--hex").out == SHOWN
    assert tool.parse("packet", GOOD.hex("\n", 3).encode(), "--hex").out == SHOWN
    assert "33 hexadecimal digits" in tool.parse("packet", GOOD.hex().encode()[1:], "--hex").err


def test_standard_input(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD[:-1])))
    ran = tool.run("parse", "packet", "-", "--schemas", "schemas")
    assert "byte 0 of standard input" in ran.err
    monkeypatch.setattr(reading, "MAX_BYTES", 16)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD)))
    ran = tool.run("parse", "packet", "-", "--schemas", "schemas")
    assert (ran.code, "standard input has more than 16 bytes" in ran.err) == (2, True)


def test_a_file_is_not_read_whole(tool: Tool) -> None:
    """A terabyte of nothing with a packet in the middle, and more than memory after it."""
    with (tool.root / "large.bin").open("wb") as file:
        file.seek(1 << 39)
        file.write(GOOD)
        file.truncate(1 << 40)
    ran = tool.run("parse", "packet", "large.bin", "--schemas", "schemas", "--at", hex(1 << 39))
    assert ran.code == 1
    assert "549755813888  10                       size         16" in ran.out
    assert f".. {(1 << 39) - 17 - 64} bytes more" in ran.out


def test_missing_files(tool: Tool) -> None:
    ran = tool.run("parse", "packet", "no.bin", "--schemas", "schemas")
    assert (ran.code, "no.bin" in ran.err) == (2, True)
    ran = tool.run("parse", "packet", ".", "--schemas", "schemas")
    assert (ran.code, "directory" in ran.err) == (2, True)


@pytest.mark.slow
@pytest.mark.share(ci=3)
@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_a_narrow_terminal(
    tool: Tool, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines are as wide as the terminal, as far as bytes and a few letters go into it; all bytes are there."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    ran = tool.run("parse", "log_entry", str(SAMPLE), "--schemas", str(SCHEMAS), "--length", "49")
    assert ran.code == 0
    assert shown_bytes(ran.out) == SAMPLE.read_bytes()[:49]
    assert max(map(len, ran.out.splitlines())) <= max(width, 38)
    assert "\x1b" not in ran.out


SOME = sorted(VECTORS.glob("malformed/*.log"))[::6]


@pytest.mark.share(ci=24)
@pytest.mark.slow
@pytest.mark.parametrize("file", SOME, ids=[file.stem for file in SOME])
def test_damaged_logs(tool: Tool, file: Path) -> None:
    """All bytes are shown, in order; an error says where."""
    ran = tool.run("parse", "log_entry", str(file), "--schemas", str(SCHEMAS), "--many")
    data = file.read_bytes()
    shown = b"".join(
        shown_bytes(part) for part in ran.out.split("\n\n") if "decompressed with" not in part
    )
    assert data.startswith(shown[: len(shown) - 64]) and len(shown) > 60
    if ran.code:
        assert f"of {file}" in ran.err
    else:
        assert shown == data


@pytest.mark.slow
def test_streams_of_their_own(tool: Tool) -> None:
    file = VECTORS / "malformed/v2-gzip-record-headers-count-max.log"
    ran = tool.run(
        "parse", "log_entry", str(file), "--schemas", str(SCHEMAS), "--at", "100", "--length", "104"
    )
    main_stream, inner = ran.out.split("\n\n")
    assert "records                 43 bytes, compressed with gzip" in main_stream
    assert inner.splitlines()[0] == "records, decompressed with gzip, 23 bytes"
    assert "  14  fe ff ff ff 0f           records[0].headers          count 2147483647" in inner
    assert inner.splitlines()[-1].endswith("not read")
    assert ran.err.startswith("codecgen: count is 2147483647, but 4 bytes are left (records[0]")


def test_layouts_of_other_directories(tool: Tool) -> None:
    """A choice of layouts that another directory declares, and a layout of it by its whole name."""
    (tool.root / "own").mkdir()
    (tool.root / "own/codecgen.yaml").write_text(
        "language: 1\npackage: own_codecs\ntitle: Own\nuses: {other: ../schemas}\n", "utf-8"
    )
    (tool.root / "own/case.yaml").write_text(
        "layout: own\nfields: {points: {array: other.point, count: u8}}\n---\n"
        "choice: either\nby: version\ncases: {0: other.told@0, 1: other.told@1}\n---\n"
        "choice: given\ngiven: {colour: other.colour}\nby: colour\ncases: {red: other.point, dark_blue: own}\n",
        "utf-8",
    )
    (tool.root / "x.bin").write_bytes(b"\1\2\3")

    def parse(layout: str, *options: str) -> str:
        ran = tool.run("parse", layout, "x.bin", "--schemas", "own", *options)
        assert (ran.code, ran.err) == (0, "")
        return ran.out

    assert "points[0].y  3" in parse("own")
    assert parse("other.nothing").startswith("nothing at byte 0, 3 bytes")
    assert parse("either", "--length", "2").startswith("other.told@1 at byte 0, 2 bytes")
    assert parse("given", "--given", "red", "--length", "2").startswith("other.point at byte 0")
    (tool.root / "v.yaml").write_text(parse("either", "--length", "2", "--yaml"), "utf-8")
    ran = tool.run("build", "either", "v.yaml", "--schemas", "own", "--hex")
    assert (ran.out, ran.code) == ("0102\n", 0)


def test_values_are_utf_8(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the system writes else: what is printed is to be read by programs."""
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    (tool.root / "x.bin").write_bytes("Østersjøen 🌊".encode())
    assert main(["parse", "nothing", "x.bin", "--schemas", "schemas", "--json"]) == 0
    assert json.loads(out.getvalue().decode("utf-8")) == {"all": "Østersjøen 🌊"}


GIVEN = """\
layout: named
given: {names: {array: string}, marks: {array: bytes}, base: u8}
fields: {index: {type: u8, valid: index < base}}
derived:
  name: {type: string, is: "names[index]"}
  mark: {type: bytes, is: "marks[index]"}
"""


def test_values_that_a_layout_is_given(tool: Tool) -> None:
    """Arrays are JSON lists: commas, brackets and quotes in them are theirs."""
    (tool.root / "schemas" / "named.yaml").write_text(GIVEN, "utf-8")

    def given(names: str, data: bytes = b"\1") -> Ran:
        values = f'names={names},marks=[{{"hex": "0102"}}, {{"hex": "ff00"}}],base=2'
        return tool.parse("named", data, "--given", values)

    ran = given('["a", "b,c=[d]"]')
    assert (ran.code, ran.err) == (0, "")
    for names, said in (
        ('["a,b"]', "index is 1, but names has only element 0"),  # index 1 looks a second one up
        ('["a"', "is not a JSON list"),
        ('["a", "b"]x', "write a comma after a list, not 'x,"),
        ('["a", 1]', "text is needed, not int; parse(.., given={..}) (names[1],"),
        ("a", "a list is needed, not 'a'; parse(.., given={..}) (names,"),
    ):
        ran = given(names)
        assert ran.code in (1, 2) and said in ran.err
    assert "not 'base'" in tool.parse("named", b"", "--given", "names=[],base").err
