"""Examples of the schemas on their pages: they are tried, and every byte is shown."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecgen.plan import as_of, make_plan
from codecgen.schema.loader import load
from codecgen.targets import docs
from codecgen.targets.docs.examples import Worked, work
from codecgen.targets.live_codecs import load_codecs
from tests.codecgen import schemas
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.targets.docs.doc_pages import (
    BOTH,
    MAIL,
    findings,
    model_of,
)

ENVELOPE = """
enums: {colour: {values: {red: 0, green: {value: 1, spelled: GREEN}}}}
---
layout: envelope
fields:
  size: {type: u8, measures: rest}
  colour: {type: u8, enum: colour}
  flags: {bits: u8, members: {wet: {at: 0}, rest_: {reserved: keep}}}
  name: {string: u8}
  data: {bytes: varint, none: -1}
  inner: {array: part, count: u8}
examples:
  - {name: one, hex: %s, values: %s}
---
layout: part
fields: {n: i16, id: uuid}
"""
GOOD = "1b 01 01 02 c3a9 04 0102 01 fffe 00000000000000000000000000000007"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "value", "message"),
    [
        (GOOD, "{name: é, colour: GREEN, data: {hex: '0102'}}", None),
        (GOOD, "{inner: [{n: -2, id: 00000000-0000-0000-0000-000000000007}]}", None),
        (GOOD, "{flags: {wet: true}}", None),
        (GOOD, "{name: e}", "name is 'é', not 'e'"),
        (GOOD, "{colour: red}", "colour is 'GREEN', not 0"),
        (GOOD, "{colour: blue}", "colour: colour has no value 'blue'"),
        (GOOD, "{flags: {wet: false}}", "flags.wet is true, not false"),
        (GOOD, "{flags: {dry: false}}", "flags has no bits 'dry'"),
        (GOOD, "{data: null}", "data is {hex: 0102}, not null"),
        (GOOD, "{name: 5}", "name: text is needed, not 5; put it into quotes"),
        (GOOD, "{nam: x}", "envelope has no field 'nam' here"),
        (GOOD, "{inner: []}", "inner has 1 element, not 0"),
        (GOOD, "{inner: 1}", "inner: a list is needed, not 1"),
        (GOOD, "{inner: [{n: 2}]}", "inner[0].n is -2, not 2"),
        (GOOD, "{inner: [{m: 2}]}", "part has no field 'm' here"),
        (GOOD, "{inner: [{id: seven}]}", "inner[0].id: a uuid is needed, not 'seven'"),
        (GOOD, "[1]", "the top level: a mapping with the fields of envelope is needed, such as {"),
        (GOOD + "00", "{}", "1 byte follows the envelope"),
        ("1a" + GOOD[2:], "{}", "count is 1, but 17 bytes are left"),
        ("1b 02" + GOOD[5:], "{}", "2 is not a Colour"),
        ("", "{}", "1 byte is needed, 0 are left"),
    ],
)
def test_examples_are_checked(data: str, value: str, message: str | None) -> None:
    found = findings(ENVELOPE % (data or "''", value))
    if message is None:
        assert not found
        return
    (one,) = found
    assert one.code == "C024"
    assert one.message.startswith('example "one" of envelope: ')
    assert message in one.message
    assert one.span.line == 13


def test_a_diagnostic_points_at_the_value() -> None:
    text = ENVELOPE % (GOOD, "{size: 27, inner: [{n: 2}]}")
    (one,) = findings(text)
    line = text.splitlines()[one.span.line - 1]
    assert line[one.span.column - 1 : one.span.end_column - 1] == "n"


def test_an_example_that_cannot_be_built() -> None:
    text = ENVELOPE.replace("hex: %s", "build: true") % "{colour: red}"
    (one,) = findings(text)
    assert one.code == "C024" and "a value is needed: it is missing or null (name" in one.message


def test_a_compressed_example_needs_its_bytes() -> None:
    text = """
enums: {codec: {values: {none: 0, gzip: 1}}}
---
layout: box
fields:
  codec: {type: u8, enum: codec}
  parts: {array: u8, until: end, compressed: {by: codec, limit: 100}}
examples:
  - {name: one, build: true, values: {codec: gzip, parts: [1]}}
---
layout: crate
fields:
  codec: {type: u8, enum: codec}
  parts: {array: box_part, until: end, compressed: {by: codec, limit: 100}}
examples:
  - {name: two, build: true, values: {codec: gzip, parts: [{n: 1}]}}
  - {name: three, build: true, values: {codec: none, parts: [{n: 1}]}}
---
layout: box_part
fields: {n: u8}
"""
    assert [d.span.line for d in findings(text)] == [9, 16]
    assert all("give the bytes (hex)" in d.message for d in findings(text))


def test_an_overhead_that_cannot_be_worked_out() -> None:
    text = """
layout: box
fields: {n: varint}
documentation: {overhead: {sizes: [1], columns: [{title: Box, layout: box, each: {}}]}}
"""
    (one,) = findings(text)
    assert one.code == "C023" and one.span.line == 4
    assert "the overhead table of box cannot be worked out: box: a number is needed" in one.message


def test_an_overhead_of_fields_that_the_version_lacks() -> None:
    text = """
layout: box
versions: 0-1
fields: {a: {bytes: u8}, b: {bytes: u8, versions: 0}}
documentation: {overhead: {sizes: [1], columns: [{title: Box, layout: %s, each: {a: 2, b: 9}}]}}
"""
    (one,) = findings(text % "box")
    assert "the overhead table of box cannot be worked out: box: this version has no field b" in (
        one.message
    )
    assert not findings(text % "box@0")


DATED = """
layout: entry
versions: 0-1
version_notes: {0: {since: {app: 1.0}}, 1: {since: {app: 1.1}}}
fields:
  extra: {type: varint, versions: 0}
  key: {bytes: u8}
  value: {bytes: i8, none: -1, since: {app: 1.1}}
documentation:
  overhead:
    sizes: [1]
    columns:
      - {title: By value, layout: entry, each: {key: 0, value: 5}}
      - {title: By key, layout: entry, each: {key: 5}}
---
layout: entries
fields:
  count: {type: u8, since: {app: 1.1}, counts: parts}
  parts: {array: part, since: {app: 1.1}}
documentation:
  overhead:
    sizes: [2]
    columns:
      - {title: By part, layout: entries, array: parts, number: place, each: {name: 3}}
      - {title: Alone, layout: part, each: {name: 3}}
---
layout: part
fields: {place: {type: u32, since: {app: 2.0}}, name: {string: u8}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "sizes"),
    [
        (None, {"By value": "2", "By key": "2", "By part": "11", "Alone": "10"}),
        ("2.0", {"By value": "2", "By key": "2", "By part": "11", "Alone": "10"}),
        ("1.1", {"By value": "2", "By key": "2", "Alone": "2"}),
        ("1.0", {"Alone": "2"}),
    ],
)
def test_overheads_as_of_a_release(release: str | None, sizes: dict[str, str]) -> None:
    """Columns of which a release lacks a field, or cannot know the size, are on no page of it."""
    manifest = f"{MANIFEST}documents: {{as_of: [1.0, 1.1, 2.0]}}\n"
    plan = make_plan(schemas.model_of(DATED, manifest))
    html = docs.emit_html(plan)
    markdown = docs.emit(make_plan(as_of(plan.model, release), release))
    assert not html.diagnostics and not markdown.diagnostics
    page = html.files[f"html/{f'as-of-{release}/' if release else ''}case.html"]
    found = re.findall(r'data-head="(By \w+|Alone)">(-?\d+)</td>', page)
    assert dict(found) == sizes and len(found) == len(sizes)
    heads = re.findall(r"^\| Messages \| (.*) \|$", markdown.files["docs/case.md"], re.MULTILINE)
    assert " | ".join(heads) == " | ".join(sizes)


@pytest.mark.parametrize(
    "name", ["README.yaml", "readme.yaml", "pictures/box.yaml", "as-of-1/box.yaml"]
)
def test_pages_that_would_be_one_file(name: str) -> None:
    found = findings("layout: box\nfields: {n: u8}\n", name)
    assert [d.code for d in found] == ["C023"]
    assert "would take the place of another document" in found[0].message


def worked(directory: Path) -> Iterator[Worked]:
    plan = make_plan(model_of(directory))
    codecs, _ = load_codecs(plan)
    assert codecs is not None
    for layout in plan.model.layouts.values():
        for example in layout.examples:
            found = work(plan, codecs, layout, example)
            assert isinstance(found, Worked)
            yield found


PARTED = """
layout: block
fields:
  base: i8
  items_: {array: part, count: u8}
derived:
  items_:
    number: {type: i64, is: base + item.delta, doc: Number of an item.}
examples:
  - name: one without a delta between two that have one
    hex: 0a 03 01 02 00 01 07
    values: {base: 10, items_: [{has: true, delta: 2}, {has: false}, {has: true, delta: 7}]}
---
layout: part
fields:
  has: bool
  delta: {type: i8, when: has}
"""


def test_a_derived_value_of_each_element_is_shown(tmp_path: Path) -> None:
    manifest = "language: 1\npackage: block_codecs\ntitle: Blocks\n"
    (tmp_path / "codecgen.yaml").write_text(manifest, encoding="utf-8")
    (tmp_path / "block.yaml").write_text(PARTED, encoding="utf-8")
    (one,) = worked(tmp_path)
    assert one.derived == tuple((f"items_[{i}].number", n) for i, n in enumerate((12, None, 17)))


@BOTH
def test_a_dump_has_every_byte_once(directory: Path) -> None:
    count = 0
    for one in worked(directory):
        assert one.example.data in (None, one.streams[0].data)
        for stream in one.streams:
            at = 0
            for piece in stream.pieces:
                assert piece.start == at and piece.end >= at, (one.example.name, piece)
                at = piece.end
            assert at == len(stream.data)
            digits = [
                line.split("  ")[1] for line in (s.strip() for s in stream.text().splitlines())
            ]
            assert bytes.fromhex("".join(digits)) == stream.data
            count += 1
    assert count > 3


def test_a_dump_shows_what_is_compressed() -> None:
    (two,) = (one for one in worked(MAIL) if one.example.name == "two letters")
    outer, inner = two.streams
    assert (inner.path, inner.codec) == ("letters", "gzip")
    assert [p.path for p in inner.pieces if p.value == '"a|b"'] == ["letters[0].text"]
    assert outer.pieces[-1].value == "41 bytes, compressed with gzip"


def test_a_long_field_is_shown_in_part() -> None:
    text = "layout: box\nfields: {data: {bytes: i16}}\nexamples:\n  - {name: x, build: true, values: {data: %s}}\n"
    model, _ = load(
        {"codecgen.yaml": "language: 1\npackage: a_b\ntitle: T\n", "box.yaml": text % ("y" * 900)}
    )
    assert model is not None
    (one,) = (t for p, t in docs.emit(make_plan(model)).files.items() if p == "docs/box.md")
    assert ".. 644 bytes more" in one
    assert len(one) < 5000


def test_codecs_are_loaded_from_memory_by_many_threads() -> None:
    plan = make_plan(model_of(MAIL))
    before, finders = set(sys.modules), list(sys.meta_path)
    out: list[object] = []

    def one() -> None:
        codecs, _ = load_codecs(plan)
        assert codecs is not None
        for layout in plan.versions["letter"]:
            out.append(codecs.layout(layout).build({"text": b"x"}))

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(out) == 6 and len(set(out)) == 1
    assert not [name for name in set(sys.modules) - before if name.startswith("_codecgen_")]
    assert sys.meta_path == finders
