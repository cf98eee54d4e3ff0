"""The command codecgen in a directory of its own, and what a run of it printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.cli import main
from tests.codecgen.goldens import MANIFEST

TEXT = """\
enums:
  colour: {doc: Colours., values: {red: 0, dark_blue: {value: 1, spelled: DarkBlue}}}

---
layout: packet
doc: A packet.
fields:
  size: {type: u8, measures: rest}
  colour: {type: u8, enum: colour}
  wait: {type: i16, unit: ms, none: -1}
  name: {string: i8, none: -1}
  points: {array: point, count: u8}
  numbers: {array: uvarint, count: compact}

---
layout: point
fields: {x: i8, y: i8}

---
layout: dated
versions: 0-1
fields: {a: u8, b: {type: u8, versions: 1}}

---
layout: told
versions: 0-1
fields: {version: {type: u8, is: version}, b: {type: u8, versions: 1}}

---
layout: nothing
fields: {all: {bytes: rest}}

---
layout: empty
versions: 0-1
fields: {a: {type: u8, versions: 1}}

---
choice: of_number
given: {kind: u8}
by: kind
cases: {0-9: packet, 0x20: packet}
---
choice: of_colour
doc: By a colour.
given: {kind: colour}
by: kind
cases: {red: dated@0, dark_blue: dated@1}
"""


GOOD = bytes.fromhex("10 01 ffff 03 6f736c 02 0102 03fc 03 05 ac02")


class Ran:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


class Tool:
    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.capsys = capsys
        schemas = root / "schemas"
        schemas.mkdir()
        (schemas / "codecgen.yaml").write_text(MANIFEST, encoding="utf-8")
        (schemas / "packet.yaml").write_text(TEXT, encoding="utf-8")

    def parse(self, layout: str, data: bytes, *options: str) -> Ran:
        file = self.root / "x.bin"
        file.write_bytes(data)
        return self.run("parse", layout, "x.bin", "--schemas", "schemas", *options)

    def run(self, *arguments: str) -> Ran:
        code = main(list(arguments))
        return Ran(code, *self.capsys.readouterr())


@pytest.fixture
def tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Tool:
    monkeypatch.chdir(tmp_path)
    return Tool(tmp_path, capsys)
