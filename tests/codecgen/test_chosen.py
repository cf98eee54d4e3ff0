"""Choices in the place of a field and as elements: which case it is, in which version, and what has none."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codecgen.cli import main
from codecgen.diff import Side, diff
from codecgen.explain import UnknownName, explain
from codecgen.explain_program import explain_program
from codecgen.plan import make_plan
from codecgen.plan.as_of import as_of
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.plan.size_bounds import bounds
from codecgen.runtime.errors import BuildError, CodecError, LimitError, ParseError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.targets.registry import TARGETS
from codecgen.targets.template import emit_kaitai
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of

SCHEMA = """
enums:
  kind: {unknown: keep, doc: Kinds., values: {topic: 2, broker: 3, gone: 9}}
---
layout: record
fields:
  kind: {type: uvarint, enum: kind}
  version: uvarint
  body: {choice: body, given: kind, version: version, unknown: bytes}
---
layout: strict
fields:
  flags: {bits: u8, members: {kind: {at: 0-3, enum: kind}, others: {reserved: keep}}}
  held: u8
  body: {choice: body, given: flags.kind, version: held}
  spare: {choice: body, given: flags.kind, version: held, when: held > 0}
  after: {type: u8, default: if spare == null then 0 else 1}
---
choice: body
doc: Nothing for gone.
given: kind
cases: {topic: topic, broker: broker}
---
layout: topic
versions: 0-1
fields: {name: {string: u8}, id: {type: u8, versions: 1}}
---
layout: broker
fields: {id: u16}
---
layout: pair
accepts: [negative_null]
fields:
  key: {choice: key, length: varint, null: -1}
  value: {choice: value, given: key.version, length: i16, null: -1, unknown: bytes}
---
choice: key
by: version
cases: {0-1: commit, 2: group}
---
choice: value
given: i16
cases: {-1: nothing, 0-1: rest, 2: broker}
---
layout: commit
versions: 0-1
fields: {version: {type: i16, is: version}, name: {string: u8}}
---
layout: group
accepts: [trailing_bytes]
fields: {version: {type: i16, const: 2}, name: {string: u8}}
---
layout: rest
fields: {data: {bytes: rest}}
---
layout: nothing
versions: 0
fields: {never: {type: u8, when: 0 == 1}}
---
layout: several
versions: 0-1
fields:
  kind: u8
  ks: {array: {choice: key}, count: u8}
  vs: {array: {choice: value, given: kind, length: u8, null: 255, unknown: bytes}, count: u8}
  bodies: {array: {choice: around, given: kind}, until: end}
---
choice: around
given: u8
cases: {0-2: topic, 255: broker}
---
layout: told
fields:
  version: u8
  size: {type: u8, measures: {from: topic, to: topic}}
  topic: {layout: topic, present: i8, null: -1, version: version}
  commit: {layout: commit, version: version}
---
layout: node
fields: {kind: u8, next: {choice: node_or_end, given: kind}}
---
choice: node_or_end
given: u8
cases: {0: broker, 1: node}
"""

GOOD: list[tuple[str, dict[str, Any], str]] = [
    ("RECORD", {"kind": 2, "version": 1, "body": {"name": "a", "id": 7}}, "02 01 0161 07"),
    ("RECORD", {"kind": 2, "version": 0, "body": {"name": "a"}}, "02 00 0161"),
    ("RECORD", {"kind": 3, "version": 5, "body": {"id": 7}}, "03 05 0007"),
    ("RECORD", {"kind": 9, "version": 5, "body": b"ab"}, "09 05 6162"),
    ("RECORD", {"kind": 8, "version": 5, "body": b""}, "08 05"),
    ("RECORD", {"kind": 2, "version": 2, "body": b"\1\2"}, "02 02 0102"),
    ("PAIR", {"key": None, "value": None}, "01 ffff"),
    ("PAIR", {"key": None, "value": b""}, "01 0000"),
    ("PAIR", {"key": {"version": 1, "name": "a"}, "value": {"data": b""}}, "08 0001 0161 0000"),
    ("PAIR", {"key": {"version": 0, "name": ""}, "value": {"data": b"xy"}}, "06 0000 00 0002 7879"),
    ("PAIR", {"key": {"version": 2, "name": ""}, "value": {"id": 1}}, "06 0002 00 0002 0001"),
    ("NODE", {"kind": 1, "next": {"kind": 0, "next": {"id": 9}}}, "01 00 0009"),
    (
        "SEVERAL_V1",
        {
            "kind": 2,
            "ks": [{"version": 2, "name": ""}, {"version": 1, "name": "a"}],
            "vs": [{"id": 1}, None],
            "bodies": [{"name": "", "id": 3}, {"name": "", "id": 4}],
        },
        "02 02 000200 00010161 02 020001 ff 0003 0004",
    ),
    (
        "SEVERAL_V0",
        {"kind": 1, "ks": [], "vs": [{"data": b"a"}], "bodies": [{"name": "b"}]},
        "01 00 01 0161 0162",
    ),
    (
        "TOLD",
        {
            "version": 1,
            "size": 3,
            "topic": {"name": "", "id": 2},
            "commit": {"version": 1, "name": ""},
        },
        "01 03 01 00 02 0001 00",
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("chosen"), "made_of_choices")


@pytest.mark.parametrize(("layout", "value", "hex_"), GOOD)
def test_parse_and_build(made: ModuleType, layout: str, value: dict[str, Any], hex_: str) -> None:
    codec, data = getattr(made, layout), bytes.fromhex(hex_)
    parsed = codec.parse(data)
    assert _plain(parsed) == value
    assert codec.build(value) == codec.build(parsed) == data


def _plain(value: Any) -> Any:
    """Without what Construct adds to mappings and lists."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name != "_io"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("layout", "value", "hex_"), GOOD)
def test_the_size_is_known_without_building(layout: str, value: dict[str, Any], hex_: str) -> None:
    plan = make_plan(model_of(SCHEMA))
    name, _, version = layout.lower().partition("_v")
    found = next(p for p in plan.versions[name] if p.version in (None, int(version or 0)))
    assert encoded_size(plan, found, value) == len(bytes.fromhex(hex_))
    limits = bounds(plan, found)
    assert limits.least <= len(bytes.fromhex(hex_))


BAD_BYTES: list[tuple[str, str, str, str, int | None]] = [
    ("PAIR", "04 0007", "7 has no case: the cases are 0, 1, 2", "key", 1),
    ("PAIR", "05 0001 0161", "null is written as -1, not as -3", "key", 0),
    ("PAIR", "0a 0001 0161 00", "1 bytes follow", "key", 5),
    ("PAIR", "28 0001", "length is 20, but 2 bytes are left", "key", 0),
    ("PAIR", "02 00", "2 bytes are needed, 1 are left", "key.version", 1),
    ("NODE", "07 00", "7 has no case: the cases are 0, 1", "next", 1),
    ("SEVERAL_V0", "07 00 00 01", "7 has no case", "bodies[0]", 3),
    ("SEVERAL_V0", "02 01 0007", "7 has no case", "ks[0]", 2),
    ("SEVERAL_V1", "01 ff 00", "count is 255", "ks", 1),
    ("STRICT", "02 05 00", "version 5 is not known: there are 0, 1", "body", 2),
    ("STRICT", "09 05 00", "gone (9) has no case: the cases are topic (2), broker (3)", "body", 2),
    ("TOLD", "05 02 01 00", "version 5 is not known: there are 0, 1", "topic", 3),
    ("TOLD", "00 02 01 00 0001 00", "it is in version 1, where version 0 is told", "commit", 4),
]


@pytest.mark.parametrize(("layout", "hex_", "reason", "path", "position"), BAD_BYTES)
def test_bytes_without_a_case_are_refused(
    made: ModuleType, layout: str, hex_: str, reason: str, path: str, position: int | None
) -> None:
    with pytest.raises(ParseError) as raised:
        getattr(made, layout).parse(bytes.fromhex(hex_))
    where = raised.value.where
    assert reason in raised.value.reason
    assert (where.path, where.position) == (path, position)
    assert (where.schema or "").startswith("case.yaml")


BAD_VALUES: list[tuple[str, dict[str, Any], str, str]] = [
    ("RECORD", {"version": 1, "body": {"name": "a"}}, "a value is needed", "kind"),
    (
        "RECORD",
        {"kind": 2, "version": 1, "body": b"ab"},
        "a mapping with the fields of topic",
        "body",
    ),
    ("RECORD", {"kind": 2, "version": 7, "body": {"name": ""}}, "version 7 is not known", "body"),
    ("RECORD", {"kind": 2, "version": 0, "body": {"name": "", "id": 1}}, "no field 'id'", "body"),
    ("RECORD", {"kind": 2, "version": 0, "body": None}, "null is not allowed", "body"),
    ("RECORD", {"kind": 2, "version": 0, "body": 7}, "a mapping", "body"),
    ("RECORD", {"kind": 2, "version": 0}, "a value is needed", "body"),
    ("PAIR", {"key": {"name": "a"}, "value": None}, "a value is needed", "key.version"),
    ("PAIR", {"key": {"version": 7}, "value": None}, "7 has no case", "key"),
    ("PAIR", {"key": b"ab", "value": None}, "not bytes", "key"),
    ("PAIR", {"key": None, "value": {"id": 1}}, "nothing says which", "value"),
    ("PAIR", {"key": {"version": 2, "name": ""}, "value": b"a"}, "fields of broker", "value"),
    ("SEVERAL_V0", {"kind": 7, "bodies": [{"name": ""}]}, "7 has no case", "bodies[0]"),
    ("TOLD", {"version": 2, "topic": {"name": ""}}, "version 2 is not known", "topic"),
    ("TOLD", {"version": 0, "topic": None, "commit": {"version": 1}}, "version 1, where", "commit"),
]


@pytest.mark.parametrize(("layout", "value", "reason", "path"), BAD_VALUES)
def test_values_that_do_not_fit_are_refused(
    made: ModuleType, layout: str, value: dict[str, Any], reason: str, path: str
) -> None:
    with pytest.raises(BuildError) as raised:
        getattr(made, layout).build(value)
    assert reason in raised.value.reason
    assert raised.value.where.path == path


def test_given_by_name_and_by_label(made: ModuleType) -> None:
    value = {"kind": "topic", "version": 1, "body": {"name": "a", "id": 7}}
    assert made.RECORD.build(value) == bytes.fromhex("02 01 0161 07")


def test_bits_decide_and_a_choice_may_be_left_out(made: ModuleType) -> None:
    body = {"name": "a"}
    data = made.STRICT.build({"flags": {"kind": "topic"}, "held": 0, "body": body})
    assert data.hex(" ") == "02 00 01 61 00"
    assert made.STRICT.parse(data).spare is None
    value = {"name": "a", "id": 1}
    both = {"flags": {"kind": 2}, "held": 1, "body": value, "spare": value}
    assert made.STRICT.build(both).hex(" ") == "02 01 01 61 01 01 61 01 01"


def test_lenient_readers(made: ModuleType) -> None:
    findings: list[ParseError] = []
    parsed = made.PAIR.parse(bytes.fromhex("03 ffff"), strict=False, findings=findings)
    assert parsed.key is None
    assert [f.where.path for f in findings] == ["key"]
    findings.clear()
    data = bytes.fromhex(
        "08 0002 00 ff 0002 0001"
    )  # a byte after the last field, which that layout takes
    parsed = made.PAIR.parse(data, strict=False, findings=findings)
    assert (parsed.key.name, parsed.value.id) == ("", 1)
    assert [(f.where.path, f.where.position) for f in findings] == [("key", 4)]
    with pytest.raises(CodecError):
        made.PAIR.parse(data)


def test_a_choice_that_holds_itself_goes_as_deep_as_parsers_do(made: ModuleType) -> None:
    with pytest.raises(LimitError, match="32 deep"):
        made.NODE.parse(b"\1" * 5000)
    value: dict[str, Any] = {"kind": 0, "next": {"id": 1}}
    for _ in range(40):
        value = {"kind": 1, "next": value}
    with pytest.raises(BuildError, match="32 deep"):
        made.NODE.build(value)


@pytest.mark.parametrize("layout", ["RECORD", "PAIR", "SEVERAL_V1", "TOLD", "STRICT"])
def test_bytes_that_are_cut_off_raise_an_error_of_codecs(made: ModuleType, layout: str) -> None:
    for name, _, hex_ in GOOD:
        if name == layout:
            data = bytes.fromhex(hex_)
            for end in range(len(data)):
                try:
                    parsed = getattr(made, layout).parse(data[:end])
                except ParseError:
                    continue
                assert getattr(made, layout).build(parsed) == data[:end]


def test_a_case_for_all_versions_is_each_in_its_own() -> None:
    model = model_of(SCHEMA)
    assert [str(ref) for _, ref in model.choices["key"].cases] == ["commit@0", "commit@1", "group"]
    held = [str(ref) for ref in model.references(model.layouts["pair"])]
    assert held == ["commit@0", "commit@1", "group", "nothing", "rest", "broker"]


def test_cases_that_came_later_are_not_there_before() -> None:
    text = """
layout: holder
fields: {kind: {type: u8, enum: kind}, body: {choice: body, given: kind}, more: {choice: newer, given: kind, when: 0 == 1}}
---
enums: {kind: {doc: Kinds., values: {old: 0, new: {value: 1, since: {app: 2.0}}}}}
---
choice: body
given: kind
cases: {old: first, new: second}
---
choice: newer
given: kind
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
    now = model_of(text.replace(", more: {choice: newer, given: kind, when: 0 == 1}", ""))
    assert [str(ref) for ref in now.references(now.layouts["holder"])] == ["first", "second"]
    before = as_of(now, "1.0")
    assert [str(ref) for ref in before.references(before.layouts["holder"])] == ["first"]
    assert (
        "holder" not in as_of(model_of(text), "1.0").layouts
    )  # of one of its choices nothing is there


def test_commands(made: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
fields: {number: u8, a: {choice: own}, b: {choice: told, given: number}, c: {choice: told, given: number, version: number}}
---
choice: own
by: number
cases: {0: only}
---
choice: told
given: u8
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
  body: {choice: body, given: kind, version: version, unknown: bytes}
---
choice: body
given: kind
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
tagged: {bodies: {tag: 0, array: {choice: around, given: number}, default: []}}
---
choice: around
given: i16
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
