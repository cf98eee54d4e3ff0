"""Flexible layouts: lengths that the version settles, and tagged fields, byte by byte."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from codecgen.cli import GOOD, main
from codecgen.diff import Side, diff
from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.runtime.errors import BuildError, LengthError, LimitError, ParseError, ValueRefused
from codecgen.runtime.located_bytes import Limits
from codecgen.schema.types import ArrayType, BytesType, StructType
from codecgen.targets.docs.hexdump import streams
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of

SCHEMA = """
layout: log
versions: 0-3
flexible: 2+
accepts: [negative_null]
fields:
  version: {type: i16, is: version}
  id: string
  note: {type: string, none: {1+: true}, default: null}
  blob: {type: bytes, none: {3+: true}}
  parts: {array: part, none: true}
  names: {array: string, versions: 1+}
  owner: {layout: part, none: {1+: true}}
  own: {string: u8}
  inner: {fields: {a: bytes, b: {type: i8, versions: 3+}}}
tagged:
  producer: {tag: 0, type: i64, default: -1, versions: 2+}
  label: {tag: 3, type: string, none: {3+: true}, default: null, versions: 3+}
  more: {tag: 1, array: part, versions: 2+}
  who: {tag: 7, layout: part, none: {2+: true}, versions: 2+}
  id_of: {tag: 200, type: uuid, versions: 2+}
  is_new: {tag: 9, type: bool, versions: 2+}
  state: {tag: 10, bits: u8, members: {on: {at: 0, default: true}, rest_: {reserved: keep}}, versions: 2+}
  text: {tag: 11, type: string, versions: 2+}
  data: {tag: 12, type: bytes, default: {hex: ff}, versions: 2+}
  ratio: {tag: 13, type: f64, versions: 2+}
---
layout: part
versions: 0-3
flexible: 2+
fields: {x: i16}
---
layout: loose
flexible: 0+
accepts: [loose_tags, overlong_varints]
fields: {a: u8}
tagged:
  x: {tag: 0, type: i64}
  y: {tag: 2, type: string, default: "no"}
---
layout: never
flexible: never
fields: {a: string, b: {type: bytes, none: true}, c: {array: string, none: true}, d: {layout: never_held, none: true}}
---
layout: never_held
flexible: never
fields: {z: u8}
---
layout: measured
flexible: 0+
fields: {size: {type: u16, measures: rest}, crc: {type: u32, checksum: crc32, covers: rest}, a: string}
tagged: {t: {tag: 0, type: u8}}
"""

ZERO = uuid.UUID(int=0)
TAGGED: dict[str, Any] = {
    "producer": -1, "more": [], "who": None, "id_of": ZERO, "is_new": False, "state": {"on": True, "rest_": 0},
    "text": "", "data": b"\xff", "ratio": 0.0, "unknown_tags": [],
}  # fmt: skip
BODY = {"id": "ab", "blob": b"z", "own": "q"}

VALUES: list[tuple[int, dict[str, Any], str]] = [
    (0, {**BODY, "note": "n", "parts": None, "owner": {"x": 1}, "inner": {"a": b"!"}},
     "0000 0002 6162 0001 6e 00000001 7a ffffffff 0001 01 71 00000001 21"),
    (1, {**BODY, "note": None, "parts": [{"x": 2}], "names": ["s", ""], "owner": None, "inner": {"a": b""}},
     "0001 0002 6162 ffff 00000001 7a 00000001 0002 00000002 0001 73 0000 ff 01 71 00000000"),
    (2, {**BODY, "note": None, "parts": None, "names": [], "owner": {"x": 3, "unknown_tags": []},
         "inner": {"a": b"!", "unknown_tags": []}, **TAGGED},
     "0002 03 6162 00 02 7a 00 01 01 0003 00 01 71 02 21 00 00"),
    (3, {**BODY, "blob": None, "note": "", "parts": [{"x": 2, "unknown_tags": []}], "names": ["s"], "owner": None,
         "inner": {"a": b"", "b": 4, "unknown_tags": [{"tag": 5, "data": b"?"}]}, **TAGGED, "label": None,
         "producer": 5, "who": {"x": 1, "unknown_tags": []}, "unknown_tags": [{"tag": 8, "data": b""}, {"tag": 300, "data": b"zz"}]},
     "0003 03 6162 01 00 02 0002 00 02 02 73 ff 01 71 01 04 01 05 01 3f"
     "04 00 08 0000000000000005 07 04 01 0001 00 08 00 ac02 02 7a7a"),
    (3, {**BODY, "note": "", "parts": [], "names": [], "owner": None,
         "inner": {"a": b"", "b": 4, "unknown_tags": []}, **TAGGED, "label": "", "more": [{"x": 1, "unknown_tags": []}],
         "id_of": uuid.UUID(int=1), "is_new": True, "state": {"on": False, "rest_": 0}, "text": "t", "data": b"", "ratio": 1.0},
     "0003 03 6162 01 02 7a 01 01 ff 01 71 01 04 00"
     "08 01 04 02 0001 00 03 01 01 09 01 01 0a 01 00 0b 02 02 74 0c 01 01 0d 08 3ff0000000000000"
     "c801 10 00000000000000000000000000000001"),
]  # fmt: skip


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("flexible"), "flexible_codecs")


@pytest.mark.parametrize(("version", "values", "data"), VALUES)
def test_bytes_by_hand(
    package: ModuleType, version: int, values: dict[str, Any], data: str
) -> None:
    whole = bytes.fromhex(data)
    assert package.LOG.build({"version": version, **values}) == whole
    parsed = package.LOG.parse(whole)
    assert {name: parsed[name] for name in values} == values
    assert package.LOG.build(parsed) == whole
    plan = make_plan(model_of(SCHEMA))
    assert encoded_size(plan, plan.versions["log"][version], values) == len(whole)


def test_defaults_are_left_out_whether_they_are_given_or_not(package: ModuleType) -> None:
    _, values, data = VALUES[2]
    bare = {name: value for name, value in values.items() if name not in TAGGED}
    assert package.LOG.build({"version": 2, **bare}).hex() == data.replace(" ", "")


def test_a_layout_that_is_never_flexible(package: ModuleType) -> None:
    whole = bytes.fromhex("0001 61 ffffffff 00000001 0001 62 01 07")
    values = {"a": "a", "b": None, "c": ["b"], "d": {"z": 7}}
    assert package.NEVER.build(values) == whole
    assert package.NEVER.parse(whole) == values
    assert package.NEVER.build({"a": "", "b": b"", "c": None, "d": None}).hex() == (
        "0000 00000000 ffffffff ff".replace(" ", "")
    )


def test_lengths_and_checksums_cover_the_section(package: ModuleType) -> None:
    data = package.MEASURED.build({"a": "", "t": 3})
    assert data[:2] == b"\0\x09"
    assert data[6:] == bytes.fromhex("01 01 00 01 03")
    assert package.MEASURED.parse(data).t == 3


REFUSED = [
    ("0002 03 6162 00 02 7a 00 01 ff 01 71 01 00 {}", "02 00 08 0000000000000005 00 08 0000000000000006",
     "tag 0 stands there twice", "unknown_tags"),
    ("", "02 05 00 04 00", "tag 4 stands after tag 5", "unknown_tags"),
    ("", "01 00 07 0000000000000005", "tag 0: 8 bytes are needed, 7 are left", "producer"),
    ("", "01 00 09 000000000000000500", "tag 0: 1 byte is left of the 9 that are its size", "producer"),
    ("", "01 00 08 ffffffffffffffff", "tag 0: a field that holds its default is not written", "producer"),
    ("", "01 00 88 00 0000000000000005", "tag 0: unsigned varint is not in its shortest form (2 bytes)", "producer"),
    ("", "81 00 05 00", "unsigned varint is not in its shortest form (2 bytes)", "unknown_tags"),
    ("", "01 03 01 01", "tag 3 is that of a field that this version does not have", "unknown_tags"),
    ("", "01 05 02 00", "tag 5: size is 2, but 1 byte is left", "unknown_tags"),
    ("", "01 01 05 02 0001 00", "tag 1: size is 5, but 4 bytes are left", "more"),
    ("", "01 01 05 03 0001 00 00", "tag 1: count is 2, but 4 bytes are left", "more"),
    ("", "01 01 06 02 0001 01 05 09", "tag 1: size is 9, but 0 bytes are left", "more[0].unknown_tags"),
    ("", "03 05 00", "the number of tagged fields is 3, but 2 bytes are left", "unknown_tags"),
    ("", "ffffffff0f", "the number of tagged fields is -1: it cannot be negative", "unknown_tags"),
    ("", "01 ffffffff0f 00", "tag 4294967295 is higher than any, 2147483647", "unknown_tags"),
    ("", "01", "1 byte is needed", "unknown_tags"),
    ("", "", "1 byte is needed", "unknown_tags"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "reason", "path"), [case[1:] for case in REFUSED])
def test_what_is_wrong_is_said_with_its_place(
    package: ModuleType, section: str, reason: str, path: str
) -> None:
    head = REFUSED[0][0].format("")
    data = bytes.fromhex(head + section)
    with pytest.raises(ParseError) as caught:
        package.LOG.parse(data)
    if "1 byte is needed" not in reason and "more[0]" not in path and "count" not in reason:
        assert caught.value.reason == reason
    assert caught.value.where.path == path
    assert caught.value.where.schema is not None
    assert len(bytes.fromhex(head)) <= (caught.value.where.position or 0) <= len(data)


def test_the_number_of_tags_is_bounded(package: ModuleType) -> None:
    data = bytes.fromhex("00 64" + "".join(f"{tag:02x}00" for tag in range(1, 102) if tag != 2))
    assert len(package.LOOSE.parse(data).unknown_tags) == 100
    with pytest.raises(LimitError):
        package.LOOSE.parse(data, limits=Limits(elements=99))
    for number in ("ffffffff07", "ffffffff0f"):
        with pytest.raises(LengthError):
            package.LOOSE.parse(bytes.fromhex("00" + number), strict=False)
    most, more = ({"a": 0, "unknown_tags": tags(range(3, 3 + n))} for n in (10_000, 10_001))
    data = package.LOOSE.build(most)
    assert package.LOOSE.build(package.LOOSE.parse(data)) == data
    with pytest.raises(BuildError, match="10001 tagged fields, more than the limit of 10000"):
        package.LOOSE.build(more)
    data = bytes.fromhex("00914e") + data[3:] + bytes.fromhex("934e00")
    with pytest.raises(LimitError, match="10001, more than the limit of 10000"):
        package.LOOSE.parse(data, strict=False)


def tags(numbers: Iterable[int]) -> list[dict[str, Any]]:
    return [{"tag": number, "data": b""} for number in numbers]


LOOSE: list[tuple[str, dict[str, Any], int]] = [
    ("02 00 08 0000000000000005 00 08 0000000000000006", {"x": 6}, 1),
    ("02 02 02 01 00 08 0000000000000006", {"x": 6, "y": ""}, 2),
    ("01 00 63 0000000000000005", {"x": 5}, 1),
    ("02 00 04 0000000000000005 05 01 aa", {"x": 5, "unknown_tags": [{"tag": 5, "data": b"\xaa"}]}, 1),
    ("01 02 03 03 6e6f", {"y": "no"}, 1),
    ("02 05 00 05 01 aa", {"unknown_tags": [{"tag": 5, "data": b""}, {"tag": 5, "data": b"\xaa"}]}, 1),
    ("01 ffffffff0f 00", {"unknown_tags": [{"tag": 0xFFFFFFFF, "data": b""}]}, 1),
    ("8100 0500", {"unknown_tags": [{"tag": 5, "data": b""}]}, 1),
]  # fmt: skip


@pytest.mark.parametrize(("section", "values", "findings"), LOOSE)
def test_what_lenient_readers_take(
    package: ModuleType, section: str, values: dict[str, Any], findings: int
) -> None:
    data = bytes.fromhex("00" + section)
    with pytest.raises(ParseError):
        package.LOOSE.parse(data)
    found: list[ParseError] = []
    parsed = package.LOOSE.parse(data, strict=False, findings=found)
    assert {name: parsed[name] for name in values} == values
    assert len(found) == findings
    assert all(f.where.path and f.where.position is not None for f in found)


@pytest.mark.parametrize(
    "section", [*(case[0] for case in LOOSE), "02 02 05 01 02 02 01", "03 02 05 01 02 09 02 79 00 63 0000000000000005"]
)  # fmt: skip
def test_what_lenient_readers_take_is_shown(package: ModuleType, section: str) -> None:
    data = bytes.fromhex("00" + section)
    trace: list[tuple[str, int, int, bool]] = []
    parsed = package.LOOSE.parse(data, strict=False, trace=trace)
    plan = make_plan(model_of(SCHEMA))
    [stream] = streams(plan, plan.versions["loose"][0], data, parsed, trace)
    at = 0
    for piece in stream.pieces:
        assert piece.start == at
        at = piece.end
    assert at == len(data)


def test_no_reader_takes_the_tag_of_another_version(package: ModuleType) -> None:
    data = bytes.fromhex(REFUSED[0][0].format("01 03 01 01"))
    for strict in (True, False):
        with pytest.raises(ValueRefused, match="tag 3 is that of a field"):
            package.LOG.parse(data, strict=strict)


@pytest.mark.parametrize(
    ("tags", "path", "reason"),
    [
        ([{"tag": 0, "data": b""}], "unknown_tags[0]", "tag 0 is that of a field"),
        ([{"tag": 5, "data": b""}, {"tag": 4, "data": b""}], "unknown_tags[1]", "tag 4 stands after tag 5"),
        ([{"tag": 5, "data": b""}, {"tag": 5, "data": b""}], "unknown_tags[1]", "tag 5 stands after tag 5"),
        ([{"tag": -1, "data": b""}], "unknown_tags[0]", "a tag (0 to 2147483647)"),
        ([{"tag": 1 << 31, "data": b""}], "unknown_tags[0]", "a tag (0 to 2147483647)"),
        ([{"tag": True, "data": b""}], "unknown_tags[0]", "a tag (0 to 2147483647)"),
        ([{"tag": 5, "data": "text"}], "unknown_tags[0]", "a tag (0 to 2147483647)"),
        ([{"tag": 5}], "unknown_tags[0]", "a tag (0 to 2147483647)"),
        ([{"tag": 5, "data": b"", "size": 0}], "unknown_tags[0]", "tag and data only"),
        ({}, "unknown_tags", "a list of tagged fields is needed"),
        (None, "unknown_tags", "a list of tagged fields is needed"),
    ],
)  # fmt: skip
def test_builders_refuse_tags_that_cannot_be(
    package: ModuleType, tags: Any, path: str, reason: str
) -> None:
    with pytest.raises(BuildError) as caught:
        package.LOOSE.build({"a": 0, "unknown_tags": tags})
    assert reason in caught.value.reason
    assert caught.value.where.path == path


def test_builders_name_a_tagged_field_that_does_not_fit(package: ModuleType) -> None:
    with pytest.raises(BuildError) as caught:
        package.LOOSE.build({"a": 0, "x": 1 << 63})
    assert caught.value.where.path == "x"
    with pytest.raises(BuildError, match="has no field 'producer'"):
        package.LOG.build({"version": 1, "producer": 5})


def test_null_where_a_version_does_not_allow_it(package: ModuleType) -> None:
    _, values, _ = VALUES[0]
    with pytest.raises(BuildError):
        package.LOG.build({"version": 0, **values, "note": None})
    with pytest.raises(ParseError, match="cannot be negative"):
        package.LOG.parse(bytes.fromhex("0000 0002 6162 ffff"))


def test_the_types_are_those_that_the_language_has() -> None:
    """So nothing after the loader has to know more of flexible layouts than the section."""
    model = model_of(SCHEMA)
    log = model.layouts["log"]
    types = {
        v: {f.name: f.in_versions((v,)).type for f in log.fields_of(v)} for v in range(4)
    }  # fmt: skip
    assert [types[v]["id"] for v in range(4)] == [BytesType("i16", True)] * 2 + [
        BytesType("compact", True)
    ] * 2
    assert [getattr(types[v]["note"], "null", 9) for v in range(4)] == [None, -1, 0, 0]
    assert [getattr(types[v]["blob"], "null", 9) for v in range(4)] == [None, None, None, 0]
    parts = [types[v]["parts"] for v in range(4)]
    assert [(p.count, p.null) for p in parts if isinstance(p, ArrayType)] == [
        ("i32", -1), ("i32", -1), ("compact", 0), ("compact", 0)
    ]  # fmt: skip
    owners = [types[v]["owner"] for v in range(4)]
    assert [(o.present, o.null) for o in owners if isinstance(o, StructType)] == [
        (None, None), ("i8", -1), ("i8", -1), ("i8", -1)
    ]  # fmt: skip
    assert types[2]["who"] == StructType(types[2]["who"].layout, "uvarint", 0)


def test_people_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text("language: 1\npackage: told\ntitle: T\n", "utf-8")
    (schemas / "case.yaml").write_text(SCHEMA, "utf-8")
    assert main(["explain", "log.producer", "--schemas", str(schemas)]) == GOOD
    assert "tag 0; size 8" in capsys.readouterr().out
    assert main(["explain", "log", "--schemas", str(schemas)]) == GOOD
    assert "flexible     2+" in capsys.readouterr().out
    assert main(["explain", "--program", "log@2", "--schemas", str(schemas)]) == GOOD
    program = capsys.readouterr().out
    assert "tags      unknown_tags" in program
    assert "not 3" in program
    assert "tag       producer                0" in program
    data = tmp_path / "log.bin"
    data.write_bytes(bytes.fromhex(VALUES[3][2]))
    assert main(["parse", "log", str(data), "--schemas", str(schemas)]) == GOOD
    shown = capsys.readouterr().out
    for line in ("count 4", "tag 0, size 8", "tag 7, size 4", "who.x", "tag 300, size 2", '"zz"'):
        assert line in shown
    out = tmp_path / "out"
    assert main(["generate", str(schemas), "--out", str(out), "--targets", "docs,kaitai"]) == GOOD
    page = (out / "docs" / "case.md").read_text("utf-8")
    assert "| tag 0 | 8 |" in page
    assert "Left out where it holds its default." in page
    assert "    producer: int64 (tag 0)" in page
    ksy = next(out.rglob("loose.ksy")).read_text("utf-8")
    assert "x: it is a tagged field" in ksy


def test_a_tag_that_changes_is_a_difference() -> None:
    text = "layout: a\nflexible: 0+\nfields: {x: u8}\ntagged: {t: {tag: 1, type: u8}}\n"
    models = [model_of(text), model_of(text.replace("tag: 1", "tag: 2"))]
    sides = [Side("one", model, None) for model in models]
    assert "~ t: `tag` 1 becomes 2" in diff("a", *sides)
