"""Choices in models, in what is said of them, and beside releases, varints and flexible layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.cli import main
from codecgen.diff import Side, diff
from codecgen.explain.declarations import UnknownName, explain
from codecgen.explain.programs import explain_program
from codecgen.plan import make_plan
from codecgen.plan.as_of import as_of
from codecgen.runtime.errors import ParseError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.targets.registry import TARGETS
from codecgen.targets.template import emit_kaitai
from tests.codecgen.generated import package_of
from tests.codecgen.language.chosen import SCHEMA
from tests.codecgen.schemas import model_of


def test_a_case_for_all_versions_is_each_in_its_own() -> None:
    model = model_of(SCHEMA)
    assert [str(ref) for _, ref in model.choices["key"].cases] == ["commit@0", "commit@1", "group"]
    held = [str(ref) for ref in model.references(model.layouts["pair"])]
    assert held == ["commit@0", "commit@1", "group", "nothing", "rest", "broker"]


def test_cases_that_came_later_are_not_there_before() -> None:
    text = """
layout: holder
fields: {kind: {type: u8, enum: kind}, body: {choice: body, given: {kind: kind}}, more: {choice: newer, given: {kind: kind}, when: 0 == 1}}
---
enums: {kind: {doc: Kinds., values: {old: 0, new: {value: 1, since: {app: 2.0}}}}}
---
choice: body
given: {kind: kind}
by: kind
cases: {old: first, new: second}
---
choice: newer
given: {kind: kind}
by: kind
cases: {new: second}
doc: Nothing for old.
---
layout: first
fields: {a: u8}
---
layout: second
since: {app: 2.0}
fields: {b: u8}
"""
    now = model_of(text.replace(", more: {choice: newer, given: {kind: kind}, when: 0 == 1}", ""))
    assert [str(ref) for ref in now.references(now.layouts["holder"])] == ["first", "second"]
    before = as_of(now, "1.0")
    assert [str(ref) for ref in before.references(before.layouts["holder"])] == ["first"]
    assert (
        "holder" not in as_of(model_of(text), "1.0").layouts
    )  # of one of its choices nothing is there


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text("language: 1\npackage: some\ntitle: A case\n", "utf-8")
    (schemas / "case.yaml").write_text(SCHEMA, "utf-8")
    source = tmp_path / "pair.bin"
    source.write_bytes(bytes.fromhex("08 0001 0161 0002 7879"))
    assert main(["parse", "pair", str(source), "--schemas", str(schemas)]) == 0
    shown = capsys.readouterr().out
    for path, words in (("key", "length 4"), ("key.name", '"a"'), ("value.data", '"xy"')):
        assert any(
            line.split()[-len(words.split()) - 1 :] == [path, *words.split()]
            for line in shown.splitlines()
        )


def test_who_holds_a_choice_that_came_later_came_with_it() -> None:
    text = SCHEMA.replace("choice: value\n", "choice: value\nsince: {app: 2.0}\n")
    assert "pair" not in as_of(model_of(text), "1.0").layouts
    assert "pair" in as_of(model_of(text), "2.0").layouts


def test_a_layout_of_one_version_needs_none_told(tmp_path: Path) -> None:
    text = """
layout: holder
fields: {number: u8, a: {choice: own}, b: {choice: told, given: {kind: number}}, c: {choice: told, given: {kind: number}, version: number}}
---
choice: own
by: number
cases: {0: only}
---
choice: told
given: {kind: u8}
by: kind
cases: {0: only, 3: only_3}
---
layout: only
versions: 0
fields: {number: u8}
---
layout: only_3
versions: 3
fields: {number: u8}
"""
    made = package_of(text, tmp_path, "made_of_one_version")
    for data in (b"\0\0\1\2", b"\3\0\1\2"):
        assert made.HOLDER.build(made.HOLDER.parse(data)) == data


def test_what_the_commands_say_of_choices() -> None:
    model = model_of(SCHEMA)
    assert "one of body (topic, broker), by kind" in explain(model, "record.body")
    assert "in the version that version says" in " ".join(explain(model, "record.body").split())
    assert "pair.key" in explain(model, "commit")
    assert "a number (i16)" in explain(model, "value")
    with pytest.raises(UnknownName, match="is one of several: ask for topic, broker"):
        explain(model, "record.body.id")
    program = explain_program(model, "pair")
    assert "choose    key" in program
    assert "one of key by its version length=varint null=-1" in program
    assert "case      1                       commit@1" in program


def test_diff_says_which_cases_changed() -> None:
    before = model_of(SCHEMA)
    text = SCHEMA.replace(
        "{-1: nothing, 0-1: rest, 2: broker}", "{0-1: broker, 2: broker, 3: rest}"
    )
    after = model_of(text)
    said = diff("pair", Side("old", before, None), Side("new", after, None))
    assert "- value: case -1, nothing, is removed" in said
    assert "~ value: case 1 is rest, becomes broker" in said
    assert "+ value: case 3, rest, is added" in said


def test_pages_link_the_cases() -> None:
    page = next(
        text
        for name, text in TARGETS["docs"](make_plan(model_of(SCHEMA))).files.items()
        if name.endswith("case.md")
    )
    assert "one of [body](#body) ([topic](#topic), [broker](#broker)), by kind" in page
    assert "body: topic | broker | bytes (by kind)" in page
    assert "| `body` | a value that has no case | kept as bytes | kept as bytes |" in page
    assert "Decided by: a number that lies elsewhere, int16." in page


def test_text_says_the_bytes_of_what_has_no_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are text are printed so, and build again."""
    text = SCHEMA.replace(
        "---\nlayout: strict",
        "examples: [{name: newer, hex: 0900 6162, values: {kind: 9, version: 0, body: ab}}]\n---\nlayout: strict",
    )
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text("language: 1\npackage: some\ntitle: A case\n", "utf-8")
    (schemas / "case.yaml").write_text(text, "utf-8")
    assert main(["check", str(schemas)]) == 0
    (tmp_path / "values.yaml").write_text("{kind: 9, version: 0, body: ab}", "utf-8")
    out = tmp_path / "built"
    arguments = ["build", "record", str(tmp_path / "values.yaml"), "--schemas", str(schemas)]
    assert main([*arguments, "--out", str(out)]) == 0
    assert out.read_bytes() == b"\x09\0ab"


VARINTS = """
layout: holder
fields: {a: {choice: own}, b: u8}
---
choice: own
doc: By a varint behind a field of fixed size.
by: kind
cases: {0-299: short, 300: long}
---
layout: short
accepts: [overlong_varints]
fields: {at: u8, kind: uvarint}
---
layout: long
accepts: [overlong_varints]
fields: {at: u8, kind: uvarint, more: {string: u8}}
"""


def test_a_varint_decides(tmp_path: Path) -> None:
    made = package_of(VARINTS, tmp_path, "made_of_varints")
    for data, kind in (("07 2b 01", 43), ("07 ac02 0161 01", 300), ("00 ab02 01", 299)):
        parsed = made.HOLDER.parse(bytes.fromhex(data))
        assert parsed.a.kind == kind
        assert made.HOLDER.build(parsed) == bytes.fromhex(data)
    findings: list[ParseError] = []
    made.HOLDER.parse(bytes.fromhex("07 8100 01"), strict=False, findings=findings)
    assert [f.where.path for f in findings] == ["a.kind"]  # it is looked at twice, and noted once
    assert made.OWN.frame(Source(b"\7\xac", Session())) is None
    assert made.OWN.prefix_size == 6
    for data in ("07", "07 ac", "07 ad02 01", "07 8100 01"):
        with pytest.raises(ParseError) as raised:
            made.HOLDER.parse(bytes.fromhex(data))
        assert (raised.value.where.path or "").startswith("a")


def test_kaitai_leaves_them_out_and_says_so() -> None:
    plain = "---\nlayout: plain\nfields: {number: u8, topic: {layout: topic, version: number}}\n"
    warnings = emit_kaitai(make_plan(model_of(SCHEMA + plain)), {}).warnings
    for words in (
        "record: .ksy leaves out body: it is one of the layouts of body",
        "plain: .ksy leaves out topic: it is in the version that number says",
    ):
        assert any(words in line for line in warnings)


FLEXIBLE = """
enums: {kind: {doc: Kinds., unknown: keep, values: {topic: 2, broker: 3}}}
---
layout: record
fields:
  frame: {type: uvarint, const: 1}
  kind: {type: uvarint, enum: kind}
  version: uvarint
  body: {choice: body, given: {kind: kind}, version: version, unknown: bytes}
---
choice: body
given: {kind: kind}
by: kind
cases: {topic: topic, broker: broker}
---
layout: topic
versions: 0-1
flexible: 0+
fields: {name: string, number: {type: u16, versions: 1}}
---
layout: broker
versions: 0
flexible: 0+
fields: {number: i16, racks: {array: string}}
tagged: {bodies: {tag: 0, array: {choice: around, given: {kind: number}}, default: []}}
---
choice: around
given: {kind: i16}
by: kind
cases: {3: topic}
"""


def test_flexible_layouts_as_cases(tmp_path: Path) -> None:
    """A frame around one of several layouts, in the version that the frame says; one of them has a tagged array of others."""
    made = package_of(FLEXIBLE, tmp_path, "made_of_flexible_cases")
    tagged = {"number": 3, "racks": [], "bodies": [{"name": ""}]}
    for kind, version, body, hex_ in (
        (2, 1, {"name": "a", "number": 7}, "01 02 01 0261 0007 00"),
        (2, 0, {"name": "a"}, "01 02 00 0261 00"),
        (3, 0, {"number": 3, "racks": ["a"]}, "01 03 00 0003 02 0261 00"),
        (3, 0, tagged, "01 03 00 0003 01 01 00 03 02 0100"),
        (2, 7, b"\xaa\xbb", "01 02 07 aabb"),
    ):
        data = made.RECORD.build({"kind": kind, "version": version, "body": body})
        assert data == bytes.fromhex(hex_)
        assert made.RECORD.build(made.RECORD.parse(data)) == data
