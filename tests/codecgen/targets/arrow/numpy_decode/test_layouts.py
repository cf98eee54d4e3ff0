"""Layouts that were made up, on the readers that need no compiler: they take and refuse what the kernels do."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from codecgen.check import run
from codecgen.diagnostics import render
from codecgen.plan import make_plan
from codecgen.runtime.arrow.decoder import Rejected
from codecgen.schema import loader
from codecgen.targets import arrow
from tests.codecgen.schemas import unread_by_kernels
from tests.shares import draw_seeds
from tests.support.other_layouts import MANIFEST, decoded, emitted

FORMAT = """\
enums:
  colour: {values: {red: 1, green: 2, blue: 9}}
  squeeze: {values: {none: 0, zstd: 3}}
---
layout: lines
fields:
  size: {type: u32, measures: rest, refuse: size > 100000}
  kind: {type: u16, const: 300}
  part: {type: u8, measures: {from: hue, to: blob}}
  hue: {type: i8, enum: colour}
  flags: {bits: u8, members: {dated: {at: 0}, named: {at: 1}, level: {at: 2-4}, unused: {reserved: keep}}}
  check: {type: u32, checksum: crc32, covers: {from: date, to: name}}
  date: {type: i64, when: flags.dated}
  name: {string: u8, when: flags.named}
  blob: {bytes: u8}
  lines: {array: line, until: end, at_least: 1}
---
layout: line
fields:
  size: {type: uvarint, measures: rest}
  number: varint
  mark: {type: u8, valid: mark < 200}
  extra: {bytes: 3, when: mark > 100}
  more: {type: i16, when: mark > 150}
  words: {array: word, until: end, at_least: 1}
---
layout: word
fields:
  text: {string: compact}
  tail: {bytes: varint, none: -1}
---
layout: pairs
fields:
  size: {type: u32, measures: rest}
  kind: {type: u16, const: 301}
  squeeze: {type: u8, enum: squeeze}
  pairs: {array: pair, count: uvarint, compressed: {by: squeeze, limit: 100000}}
---
layout: pair
fields:
  size: {type: i16, measures: rest}
  key: {bytes: uvarint}
  value: {bytes: rest}
---
choice: packet
by: kind
cases: {300: lines, 301: pairs}
---
view: all
of: packet
columns:
  number: {type: int32, nullable: true}
  date: {type: timestamp_ms, nullable: true}
  mark: {type: int16, nullable: true}
  more: {type: int16, nullable: true}
  extra: {type: binary, nullable: true}
  words: {list: {text: {type: string}, tail: {type: binary, nullable: true}}}
  value: {type: binary, nullable: true}
  key: {type: binary, nullable: true}
  level: {type: int8, nullable: true}
  first: {type: int64, nullable: true}
  position: {type: int64}
rows:
  - of: lines
    each: lines
    columns:
      number: item.number
      date: date
      mark: item.mark
      more: item.more
      extra: item.extra
      words: item.words
      level: "if flags.named and not (flags.level > 3) then flags.level else null"
      first: first(lines).number
      position: position
  - of: pairs
    each: pairs
    columns: {value: item.value, key: item.key, position: position}
"""

PACKAGE = "lines_codecs"
FILES = {"codecgen.yaml": MANIFEST.replace("made_up_codecs", PACKAGE), "format.yaml": FORMAT}


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    root = tmp_path_factory.mktemp("lines")
    for path, text in emitted(FILES).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(root))
    try:
        yield importlib.import_module(PACKAGE)
    finally:
        sys.path.remove(str(root))


def read(by: str, data: bytes) -> tuple[list[dict[str, Any]], list[Rejected]]:
    view = importlib.import_module(f"{PACKAGE}.arrow.all").ALL
    return decoded(view, importlib.import_module(f"{PACKAGE}.arrow.all_{by}"), data, None)


def line(r: random.Random) -> dict[str, Any]:
    mark = r.randrange(200)
    words = [
        {
            "text": r.choice(("", "ä", "long" * r.randrange(60))),
            "tail": r.choice((None, b"", b"x" * 90)),
        }
        for _ in range(r.randint(1, 4))
    ]
    number = r.choice((0, -1, 70, -70, 10_000, (1 << 31) - 1, -1 << 31))
    extra = {"extra": b"abc"} if mark > 100 else {}
    more = {"more": r.randint(-1 << 15, (1 << 15) - 1)} if mark > 150 else {}
    return {"number": number, "mark": mark, "words": words} | extra | more


def lines(codecs: ModuleType, r: random.Random) -> bytes:
    dated, named = r.random() < 0.5, r.random() < 0.5
    value: dict[str, Any] = {
        "hue": codecs.Colour(r.choice((1, 2, 9))),
        "flags": {"dated": dated, "named": named, "level": r.randrange(8)},
        "blob": r.randbytes(r.randrange(20)),
        "lines": [line(r) for _ in range(r.randint(1, 8))],
    }
    value |= {"date": r.randint(-1 << 63, (1 << 63) - 1)} if dated else {}
    value |= {"name": "ü" * r.randrange(9)} if named else {}
    return bytes(codecs.LINES.build(value))


def pairs(codecs: ModuleType, r: random.Random) -> bytes:
    items = [
        {"key": r.randbytes(r.randrange(30)), "value": r.randbytes(r.randrange(30))}
        for _ in range(r.randint(1, 40))
    ]
    return bytes(codecs.PAIRS.build({"squeeze": codecs.Squeeze(r.choice((0, 3))), "pairs": items}))


@pytest.mark.slow
@pytest.mark.share(ci=6)
@pytest.mark.parametrize("seed", draw_seeds(6))
def test_they_read_and_refuse_what_the_kernels_do(codecs: ModuleType, seed: int) -> None:
    r = random.Random(seed)
    refused = 0
    for _ in range(12):
        parts = [r.choice((lines, pairs))(codecs, r) for _ in range(r.randint(1, 25))]
        rows, rejected = read("numpy", b"".join(parts))
        assert rows and not rejected
        assert rows == read("kernels", b"".join(parts))[0]
        for _ in range(10):
            i = r.randrange(len(parts))
            part = bytearray(parts[i])
            for _ in range(r.choice((1, 1, 2))):
                part[r.randrange(len(part))] = r.choice((0, 1, 127, 128, 255, r.randrange(256)))
            data = b"".join([*parts[:i], bytes(part), *parts[i + 1 :]])
            rows, rejected = read("numpy", data)
            expected, theirs = read("kernels", data)
            assert rows == expected, part.hex()
            assert [(o.start, o.end) for o in rejected] == [(o.start, o.end) for o in theirs], (
                part.hex()
            )
            refused += bool(rejected)
    assert refused > 10


def test_the_values_are_those_that_were_built(codecs: ModuleType) -> None:
    r = random.Random(1)
    first, second = line(r) | {"number": -5}, line(r)
    value = {"hue": codecs.Colour.BLUE, "flags": {"dated": True, "named": True, "level": 3}}
    value |= {"date": 77, "name": "n", "blob": b"", "lines": [first, second]}
    rows, rejected = read("numpy", bytes(codecs.LINES.build(value)))
    none = {"value": None, "key": None, "more": None, "extra": None}
    same = {"date": 77, "level": 3, "first": -5, "position": 0}
    assert rows == [none | same | item for item in (first, second)]
    assert not rejected


def emitted_from(text: str) -> tuple[dict[str, str], str]:
    files = FILES | {"format.yaml": text}
    model, found = loader.load(files)
    assert model is not None
    assert render(found + run(model), files) == ""
    return dict(arrow.emit(make_plan(model)).files), render(unread_by_kernels(model), files)


def test_a_view_that_they_cannot_express_is_left_to_the_kernels() -> None:
    counted = "  mark: {type: u8, valid: mark < 200}\n"
    more = "  n: {type: u8, counts: odds}\n  odds: {array: u16, when: mark > 5}\n"
    for text, there in ((FORMAT, True), (FORMAT.replace(counted, counted + more), False)):
        files, problems = emitted_from(text)
        assert problems == ""
        assert (f"{PACKAGE}/arrow/all_numpy.py" in files) == there
        assert ("numpy=" in files[f"{PACKAGE}/arrow/all.py"]) == there


def test_a_length_that_another_field_refuses_is_named() -> None:
    text = FORMAT.replace("size: {type: u32,", "tag: u8\n  size: {type: u32,")
    files, problems = emitted_from(text)
    assert files and problems == ""
    files, problems = emitted_from(text.replace("size > 100000", "size > tag"))
    assert f"{PACKAGE}/arrow/all_kernels.py" not in files
    assert '"size" is a length that is refused for the sake of another field' in problems
