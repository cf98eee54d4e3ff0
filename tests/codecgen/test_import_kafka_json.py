"""``codecgen import kafka-json``: Kafka's message definitions as schema files, and what is refused."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codecgen.cli import COULD_NOT_RUN, FINDINGS, GOOD, main
from codecgen.diagnostics import Diagnostic
from codecgen.importers import commented_json, kafka_json, yaml_text
from codecgen.importers.commented_json import Array, Object, Scalar
from codecgen.importers.kafka_definitions import LAST, NONE, Range, range_of
from codecgen.importers.kafka_names import parts_apart, snake
from codecgen.importers.yaml_text import Mapped, Word
from tests.codecgen import importing
from tests.paths import ROOT

MESSAGE = {
    "type": "data",
    "name": "Parcel",
    "validVersions": "0-3",
    "flexibleVersions": "2+",
    "fields": [],
}


def definitions(directory: Path, *messages: dict[str, Any] | str) -> Path:
    """A directory with the definitions, one to a file."""
    directory.mkdir(parents=True, exist_ok=True)
    for i, message in enumerate(messages):
        text = message if isinstance(message, str) else json.dumps({**MESSAGE, **message})
        (directory / f"{i}.json").write_text(text, encoding="utf-8")
    return directory


def findings(tmp_path: Path, *messages: dict[str, Any] | str) -> list[Diagnostic]:
    return list(kafka_json.find(definitions(tmp_path, *messages)).findings)


def field(**keys: Any) -> dict[str, Any]:
    """A message with one field."""
    return {"fields": [{"name": "Weight", "type": "int32", "versions": "0+", **keys}]}


# ---------------------------------------------------------------- what is written


def test_the_schema_files_are_those_expected() -> None:
    assert importing.files() == importing.expected()


def test_what_is_left_out_is_said() -> None:
    said = list(kafka_json.lines_about(importing.imported()))
    assert said == [
        "retired, so without a file: GoneRequest",
        "not carried over: default of a float64 (1), deprecatedVersions (1), entityType (1), ignorable (1), "
        "latestVersionUnstable (1), listeners (1), mapKey (1), zeroCopy (1)",
        "in no version, so left out: OrderRequest.Gone, OrderRequest.Unused",
    ]


def test_a_definition_uses_every_key() -> None:
    from codecgen.importers import kafka_reading as reading

    text = "".join(p.read_text("utf-8") for p in importing.DEFINITIONS.rglob("*.json"))
    keys = {*reading.MESSAGE_KEYS, *reading.FIELD_KEYS, *reading.STRUCT_KEYS}
    assert not {key for key in keys if f'"{key}"' not in text} - {"deprecatedVersions"}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("TransactionalId", "transactional_id"),
        ("TopicID", "topic_id"),
        ("KRaftVersion", "kraft_version"),
        ("ISRChange", "isr_change"),
        ("protocolType", "protocol_type"),
        ("Ipv4Address", "ipv4_address"),
        ("group-coordinator", "group_coordinator"),
        ("X", "x"),
    ],
)
def test_names(name: str, ours: str) -> None:
    assert snake(name) == ours


@pytest.mark.parametrize(
    ("ways", "parts"),
    [
        ([("a",)], [""]),
        ([()], [""]),
        ([("metadata", "src", "m"), ("storage", "src", "m")], ["metadata", "storage"]),
        ([("k", "a", "m"), ("k", "b", "m")], ["a", "b"]),
        ([("a", "x"), ("a", "y"), ("b", "x")], ["a_x", "a_y", "b_x"]),
        ([(), ("a",)], ["", "a"]),
    ],
)
def test_directories_are_called_by_what_tells_them_apart(
    ways: list[tuple[str, ...]], parts: list[str]
) -> None:
    assert [parts_apart(ways)[way] for way in ways] == parts


def test_structs_of_one_name_have_that_of_the_message_in_front(tmp_path: Path) -> None:
    struct = {"name": "Line", "versions": "0+", "fields": []}
    held = {"name": "Lines", "type": "[]Line", "versions": "0+"}
    messages = [
        {"name": name, "fields": [held], "commonStructs": [struct]} for name in ("Order", "Bill")
    ]
    found = kafka_json.find(definitions(tmp_path, *messages))
    files = kafka_json.convert(found, "camel").files
    assert "layout: order_line\n" in files["order.yaml"]
    assert "{array: bill_line}" in files["bill.yaml"]
    taken = kafka_json.convert(found, "camel", ["order_line"]).files
    assert "layout: order_line_2\n" in taken["order.yaml"]


def test_names_that_are_too_long_lose_the_first_words_of_the_message(tmp_path: Path) -> None:
    message, struct = "ParcelsOfTheWholeCountryDescribeResponse", "WhatTheParcelHoldsOfEachOfThem"
    held = {"name": "A", "type": struct, "versions": "0+"}
    common = {"name": struct, "versions": "0+", "fields": []}
    messages: list[dict[str, Any]] = [
        {"name": name, "fields": [held], "commonStructs": [common]} for name in (message, "Order")
    ]
    found = kafka_json.find(definitions(tmp_path, *messages))
    files = kafka_json.convert(found, "camel").files
    called = re.findall("layout: (.*)", "".join(files.values()))
    assert "country_describe_response_what_the_parcel_holds_of_each_of_them" in called
    assert max(map(len, called)) <= 64


def test_a_struct_whose_place_has_a_taken_name_has_its_own(tmp_path: Path) -> None:
    inner = [{"name": "Weight", "type": "int32", "versions": "0+"}]
    holder = {"name": "Line", "type": "Held", "versions": "0+", "fields": inner}
    messages: list[dict[str, Any]] = [{"name": "Order", "fields": [holder]}, {"name": "OrderLine"}]
    found = kafka_json.find(definitions(tmp_path, *messages))
    files = kafka_json.convert(found, "camel").files
    assert "line: {layout: held}" in files["order.yaml"]
    assert "layout: held\n" in files["order.yaml"]


def test_names_are_spelled_where_the_manifest_does_not_give_them_back(tmp_path: Path) -> None:
    found = kafka_json.find(definitions(tmp_path, field(name="GrossWeight")))
    camel, snake_ = (kafka_json.convert(found, style).files for style in ("camel", "snake"))
    assert "gross_weight: i32" in camel["parcel.yaml"]
    assert "gross_weight: {type: i32, spelled: grossWeight}" in snake_["parcel.yaml"]


# ---------------------------------------------------------------- what is refused

WRONG_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "data"}, 'unknown key "kind" of a message'),
    ({"name": None}, 'the message has no "name"'),
    ({"name": "parcel"}, '"parcel" is no name of a message'),
    ({"type": "event"}, '"event" is no type of a message'),
    ({"validVersions": None}, 'the message has no "validVersions"'),
    ({"validVersions": "0+"}, "the message has no last version"),
    ({"validVersions": "3-1"}, '"validVersions" is no range of versions: 3-1'),
    ({"validVersions": "32768"}, '"validVersions" is no range of versions: 32768'),
    ({"flexibleVersions": None}, 'the message has no "flexibleVersions"'),
    ({"flexibleVersions": "1-2"}, "flexibleVersions 1-2 end; they are none or go on: 1+"),
    ({"apiKey": 40000}, '"apiKey" is a number of 16 bits'),
    ({"listeners": ["broker"]}, 'only requests have "listeners"'),
    ({"type": "request", "listeners": ["shop"]}, "a listener is one of"),
    ({"latestVersionUnstable": True}, 'only requests have "latestVersionUnstable"'),
    ({"latestVersionUnstable": "maybe"}, '"latestVersionUnstable" is true or false'),
    ({"type": "metadata"}, 'a message of type metadata has an "apiKey"'),
    ({"type": "coordinator-value"}, 'a message of type coordinator-value has an "apiKey"'),
    ({"type": "metadata", "apiKey": -1}, "the apiKey is negative"),
    ({"fields": "none"}, 'what "fields" lists are objects'),
    ({"commonStructs": [{"versions": "0+"}]}, 'the common struct has no "name"'),
    ({"commonStructs": [{"name": "A"}]}, 'the common struct has no "versions"'),
    ({"commonStructs": [{"name": "a", "versions": "0+"}]}, '"a" is no name of a struct'),
    ({"commonStructs": [{"name": "A", "versions": "0+"}] * 2}, "two common structs are called A"),
]
WRONG_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"nullable": "0+"}, 'unknown key "nullable" of a field'),
    ({"name": "a_b"}, '"a_b" is no name of a field'),
    ({"type": "uint64"}, '"uint64" is no type'),
    ({"type": "[][]int8"}, '"[][]int8" is no type'),
    ({"type": "[]"}, '"[]" is no type'),
    ({"type": None}, 'the field has no "type"'),
    ({"type": "Nowhere"}, "there is no struct Nowhere"),
    ({"versions": None}, 'the field has no "versions"'),
    ({"versions": "all"}, '"versions" is no range of versions: all'),
    ({"nullableVersions": "0+"}, "int32 cannot be null"),
    ({"fields": [{"name": "A", "type": "int8", "versions": "0"}]}, "int32 has no fields"),
    ({"flexibleVersions": "none"}, "only a string or bytes have flexibleVersions of their own"),
    ({"zeroCopy": True}, "only bytes are zeroCopy"),
    ({"mapKey": True}, "a field of the message itself is no mapKey"),
    ({"entityType": "parcel"}, '"parcel" is no entityType'),
    ({"entityType": "topicName"}, "a topicName is of type string, not int32"),
    ({"type": "[]int32", "entityType": "producerId"}, "a producerId is of type int64, not int32"),
    ({"taggedVersions": "2+"}, "taggedVersions without a tag"),
    ({"tag": 0}, "a tag without taggedVersions"),
    ({"tag": -1, "taggedVersions": "2+"}, "the tag is negative"),
    ({"tag": 1, "taggedVersions": "2+"}, "Parcel has no tag 0, but higher ones"),
    ({"tag": 0, "taggedVersions": "2-3"}, "taggedVersions 2-3 end; they go on: 2+"),
    ({"tag": 0, "taggedVersions": "1+"}, "taggedVersions 1+ are not in flexibleVersions 2+"),
    (
        {"tag": 0, "taggedVersions": "2+", "versions": "3+"},
        "taggedVersions 2+ are not in versions 3+",
    ),
    (
        {"type": "string", "tag": 0, "taggedVersions": "2+", "nullableVersions": "3+"},
        "null in versions 3+, tagged in 2+: all of them, or none",
    ),
    ({"type": "records", "tag": 0, "taggedVersions": "2+"}, "records have no tag"),
    ({"default": "many"}, "the default is no number, as -1 or 0x7f"),
    ({"default": "0x80000000"}, "0x80000000 does not fit int32"),
    ({"type": "uint16", "default": "-1"}, "-1 does not fit uint16"),
    ({"type": "int8", "default": "128"}, "128 does not fit int8"),
    ({"type": "bool", "default": "1"}, "the default is not true or false"),
    ({"type": "uuid", "default": "AAAA"}, "the default is no uuid in Base64"),
    ({"type": "float64", "default": "half"}, "the default is no number"),
    ({"type": "bytes", "default": "abc"}, "the default of bytes is empty, or null"),
    ({"type": "[]int32", "default": "1"}, "the default of an array is empty, or null"),
    ({"type": "string", "default": "null"}, "null is no default where the field cannot be null"),
    (
        {"type": "bytes", "default": "null", "nullableVersions": "1+"},
        "null is no default where the field cannot be null: it can in 1+ of 0+",
    ),
    ({"type": "S", "fields": [], "default": "1"}, "the default of a struct is empty, or null"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG_MESSAGES, ids=[m for _, m in WRONG_MESSAGES])
def test_a_message_is_refused(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    assert any(d.message.startswith(message) for d in findings(tmp_path, keys))


@pytest.mark.parametrize(("keys", "message"), WRONG_FIELDS, ids=[m for _, m in WRONG_FIELDS])
def test_a_field_is_refused(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    [found] = findings(tmp_path, field(**keys))
    assert found.message.startswith(message)
    assert (found.span.file, found.span.line) == ("0.json", 1)


def test_places_are_those_of_the_values(tmp_path: Path) -> None:
    text = """{
  "type": "data", "name": "Parcel", "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    { "name": "Weight", "type": "int23", "versions": "0+" },
    { "name": "Weight", "type": "int32", "versions": "zero" } ]
}"""
    found = findings(tmp_path, text)
    assert [(d.message, d.span.line, d.span.column) for d in found] == [
        ('"int23" is no type', 4, 33),
        ('"versions" is no range of versions: zero', 5, 54),
    ]
    assert found[0].help == 'did you mean "int32"?' or "int" in found[0].help


STRUCT = {"name": "S", "versions": "0+", "fields": []}
WEIGHT = {"name": "Weight", "type": "int32", "versions": "0+"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"fields": [WEIGHT, WEIGHT]}, "Parcel has two fields Weight"),
        (
            {
                "fields": [
                    {"name": n, "type": "int8", "tag": 0, "taggedVersions": "2+"} for n in "AB"
                ]
            },
            "Parcel has two fields with the tag 0",
        ),
        (
            {
                "fields": [{"name": "A", "type": "S", "versions": "0+", "fields": [WEIGHT]}],
                "commonStructs": [STRUCT],
            },
            "S is a common struct: its fields stand there",
        ),
        (
            {
                "fields": [
                    {"name": n, "type": "S", "versions": "0+", "fields": [WEIGHT]} for n in "AB"
                ]
            },
            "two structs are called S",
        ),
        (
            {
                "commonStructs": [
                    {**STRUCT, "fields": [{"name": "A", "type": "T", "versions": "0+"}]},
                    {
                        "name": "T",
                        "versions": "0+",
                        "fields": [{"name": "B", "type": "[]S", "versions": "0+"}],
                    },
                ]
            },
            "the struct S holds itself",
        ),
    ],
)
def test_structs_are_refused(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    assert message in [d.message for d in findings(tmp_path, keys)]


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([{}, {}], "two messages are called Parcel"),
        ([{"name": "ParcelID"}, {"name": "ParcelId"}], "two messages are called ParcelId"),
        (
            [{"type": "request", "apiKey": 1, "name": n} for n in ("A", "B")],
            "two messages of type request have the apiKey 1",
        ),
        (
            [{"type": "metadata", "apiKey": 1, "name": n} for n in ("A", "B")],
            "two messages of type metadata have the apiKey 1",
        ),
        (
            [
                {
                    "type": "coordinator-key",
                    "apiKey": 1,
                    "validVersions": "0",
                    "flexibleVersions": "none",
                }
            ],
            "no coordinator-value has the apiKey 1",
        ),
        (
            [{"type": "coordinator-value", "apiKey": 1}],
            "no coordinator-key has the apiKey 1",
        ),
        (
            [{"type": "coordinator-key", "apiKey": 1, "flexibleVersions": "none"}],
            "a coordinator-key has version 0 only",
        ),
        (
            [{"type": "coordinator-key", "apiKey": 1, "validVersions": "0"}],
            "a coordinator-key has no flexible versions",
        ),
    ],
)
def test_messages_beside_each_other_are_refused(
    tmp_path: Path, messages: list[dict[str, Any]], message: str
) -> None:
    assert message in [d.message for d in findings(tmp_path, *messages)]


def test_one_number_in_two_directories_is_good(tmp_path: Path) -> None:
    for name in ("A", "B"):
        definitions(tmp_path / name, {"type": "metadata", "apiKey": 1, "name": name})
    assert not kafka_json.find(tmp_path).findings


# ---------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("", "the file ends where a value is expected", 1, 1),
        ("[1,", "the file ends where a value is expected", 1, 4),
        ('{"a" 1}', "a colon is expected after the key", 1, 6),
        ('{"a": 1 "b": 2}', "a comma or a brace is expected after the value", 1, 9),
        ('{"a": 1,}', "a key is expected after the comma", 1, 9),
        ("{a: 1}", "a key in double quotes is expected", 1, 2),
        ("[1 2]", "a comma or a bracket is expected after the value", 1, 4),
        ("[1,]", "a value is expected after the comma", 1, 4),
        ("[\n  yes]", "yes is no value", 2, 3),
        ("[01]", "01 is no value", 1, 2),
        ('["a\nb"]', "the text does not end, or has what must be escaped in it", 1, 2),
        ('["\\ud800"]', "the text has half a character in it", 1, 2),
        ("/* x", "the comment does not end", 1, 1),
        ("{}\n{}", "there is something after the end of the definition", 2, 1),
        ("[" * 100, "more than 64 levels in each other", 1, 65),
        ('"' + "\xff", "the text does not end, or has what must be escaped in it", 1, 1),
    ],
)
def test_what_is_no_json(text: str, message: str, line: int, column: int) -> None:
    found = commented_json.parse("a.json", text.encode())
    assert isinstance(found, Diagnostic)
    assert (found.message, found.span.line, found.span.column) == (message, line, column)


def test_other_files_are_refused() -> None:
    for data in (b"\xff\xfe{}", b" " * (commented_json.MAX_BYTES + 1)):
        assert isinstance(commented_json.parse("a.json", data), Diagnostic)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab/*", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, st.integers(0, 3))
def test_json_is_read_as_python_reads_it(value: Any, indent: int) -> None:
    text = json.dumps(value, indent=indent or None, ensure_ascii=indent % 2 == 0)
    assert plain(commented_json.parse("a.json", text.encode())) == value


def plain(node: Any) -> Any:
    match node:
        case Scalar(text, quoted):
            return text if quoted else json.loads(text)
        case Array(items):
            return [plain(item) for item in items]
        case Object(members):
            return {member.key: plain(member.value) for member in members}
        case other:
            raise AssertionError(other)


def test_comments_belong_to_what_follows_or_stands_on_their_line() -> None:
    text = """// about the file
{ // begins
  // before a
  "a": 1, // behind a
  /* before
   * b */ "b": [
    // before the first
    {},
    {} // behind the second
    // at the end of the list
  ]
  // at the end
}"""
    node = commented_json.parse("a.json", text.encode())
    assert isinstance(node, Object)
    assert [m.comments for m in node.members] == [
        ("before a", "behind a"),
        ("before", "b", "at the end"),
    ]
    inner = node.members[1].value
    assert isinstance(inner, Array)
    assert [i.comments for i in inner.items if isinstance(i, Object)] == [
        ("before the first",),
        ("behind the second", "at the end of the list"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3", Range(3, 3)),
        ("0-4", Range(0, 4)),
        (" 2+ ", Range(2, LAST)),
        ("none", NONE),
        ("", None),
        ("-1", None),
        ("1-", None),
        ("+", None),
        ("²", None),
        ("4-2", None),
        ("0-40000", None),
    ],
)
def test_ranges(text: str, found: Range | None) -> None:
    assert range_of(text) == found


# ---------------------------------------------------------------- YAML

TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(" :#'\"-,[]{}&*!|>%@`?\t\n"),
    max_size=200,
)


@given(TEXTS, st.booleans())
def test_text_is_read_as_it_was(text: str, short: bool) -> None:
    if any(c in text for c in "\ufeff\x85\u2028\u2029"):
        text = text.translate(dict.fromkeys(map(ord, "\ufeff\x85\u2028\u2029")))
    inner = Mapped({"type": Word("i8"), "doc": text}, short=short)
    written = yaml_text.documents([Mapped({"layout": Word("x"), "fields": Mapped({"a": inner})})])
    read = yaml.safe_load(written)["fields"]["a"]["doc"]
    assert read == text or (read == f"{text}\n" and "doc: >" in written)


# ---------------------------------------------------------------- the command


def run(*arguments: object) -> int:
    return main(["import", "kafka-json", *map(str, arguments)])


def test_nothing_to_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none", "--out", tmp_path / "out") == COULD_NOT_RUN
    assert (
        "does not exist; name the directory that holds the definitions" in capsys.readouterr().err
    )
    assert run(tmp_path, "--out", tmp_path / "out") == COULD_NOT_RUN
    assert "there is no definition (*.json)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_there_are_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = definitions(tmp_path, {}, {"name": "Other"})
    monkeypatch.setattr(kafka_json, "MOST_FILES", 1)
    assert [d.message for d in kafka_json.find(source).findings] == [
        "more than 1 files, or 256 MiB"
    ]


def test_all_findings_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = field(type="int23")
    wrong["fields"].append({"name": "Other", "type": "int8", "versions": "0+", "default": "x"})
    source = definitions(tmp_path / "in", wrong, {"name": "Other", "type": "what"})
    assert run(source, "--out", tmp_path / "out") == FINDINGS
    said = capsys.readouterr().err
    assert '"int23" is no type' in said
    assert " --> 0.json:1:" in said
    assert '"what" is no type of a message' in said
    assert "the default is no number" in said
    assert said.endswith("codecgen: 3 findings\n")
    assert not (tmp_path / "out").exists()


def test_schema_files_are_written_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "schemas"
    assert run(importing.DEFINITIONS, "--out", out) == GOOD
    said = capsys.readouterr()
    assert said.out.startswith(f"{out}: 10 messages, 15 files written, 0 unchanged (")
    assert "codecgen: not carried over: " in said.err
    written = {p.relative_to(out).as_posix(): p.read_text("utf-8") for p in out.rglob("*.yaml")}
    assert written == importing.expected()
    assert main(["check", str(out)]) == GOOD


def test_nothing_is_overwritten_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = definitions(tmp_path / "in", field()), tmp_path / "schemas"
    assert run(source, "--out", out) == GOOD
    assert run(source, "--out", out) == GOOD
    assert "0 files written, 1 unchanged" in capsys.readouterr().out
    definitions(source, field(type="int64"), {"name": "Other", **field()})
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert run(source, "--out", out) == COULD_NOT_RUN
    assert "stands already: parcel.yaml; say --force" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert run(source, "--out", out, "--force") == GOOD
    assert "weight: i64" in (out / "parcel.yaml").read_text("utf-8")
    assert (out / "other.yaml").is_file()


def test_a_link_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = definitions(tmp_path / "in", field()), tmp_path / "schemas"
    out.mkdir()
    (out / "parcel.yaml").symlink_to(tmp_path / "elsewhere")
    assert run(source, "--out", out, "--force") == COULD_NOT_RUN
    assert "move it away first" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
    assert os.path.lexists(out / "parcel.yaml")


def test_beside_files_of_another_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that other files declare are not used for structs; a clash with a message is a finding."""
    out = tmp_path / "schemas"
    out.mkdir()
    manifest = "language: 1\npackage: shop\ntitle: Shop\nspelling: snake\n"
    (out / "codecgen.yaml").write_text(manifest, "utf-8")
    (out / "mine.yaml").write_text("layout: line\nfields: {a: i8}\n", "utf-8")
    struct = {"name": "Line", "versions": "0+", "fields": [WEIGHT]}
    held = {"name": "AllLines", "type": "[]Line", "versions": "0+"}
    order = {"name": "Order", "fields": [held], "commonStructs": [struct]}
    source = definitions(tmp_path / "in", order)
    assert run(source, "--out", out) == GOOD
    text = (out / "order.yaml").read_text("utf-8")
    assert "all_lines: {array: order_line, spelled: allLines}" in text
    assert (out / "codecgen.yaml").read_text("utf-8") == manifest
    definitions(source, order, {"name": "Line"})
    capsys.readouterr()
    assert run(source, "--out", out) == FINDINGS
    assert "nothing is written" in capsys.readouterr().err
    assert not (out / "line.yaml").exists()


def test_the_example_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "import-kafka-json.md").read_text("utf-8")
    blocks = dict(re.findall(r"```(json|yaml)\n(.*?)```", page, re.DOTALL))
    (tmp_path / "ParcelRequest.json").write_text(blocks["json"], "utf-8")
    found = kafka_json.find(tmp_path)
    assert not found.findings
    imported = kafka_json.convert(found, "camel")
    assert imported.files == {"parcel_request.yaml": blocks["yaml"]}
    assert all(f"`{line}`" in page for line in kafka_json.lines_about(imported))


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    out = tmp_path_factory.mktemp("imported")
    assert (
        main(["generate", str(importing.SCHEMAS), "--out", str(out), "--targets", "construct"]) == 0
    )
    sys.path.insert(0, str(out))
    try:
        yield importlib.import_module("kafka_messages")
    finally:
        sys.path.remove(str(out))
        for name in [n for n in sys.modules if n.partition(".")[0] == "kafka_messages"]:
            del sys.modules[name]


@pytest.mark.parametrize(
    ("layout", "value", "data"),
    [
        ("SHELF_KEY", {"group": "g", "type": 3}, "0000 0001 67 03"),
        ("COUNT_KEY", {"group": "", "type": 0}, "0003 0000 00"),
        ("COUNT_VALUE", {"value_version": 0, "version": 1}, "0000 0000000000000001"),
        (
            "COUNT_VALUE",
            {"value_version": 1, "version": 1, "pieces": [2]},
            "0001 0000000000000001 02 00000002 00",
        ),
        ("ENTRY_RECORD_V1", {"amount": 1}, "0000000000000001 00"),
        ("NOTHING_RECORD_V0", {}, "00"),
        (
            "LEDGER_METADATA_RECORD",
            {"frame_version": 1, "version": 1, "body": {"amount": 1, "unknown_tags": []}},
            "01 00 01 0000000000000001 00",
        ),
        ("ORDER_HEADER_V0", {"client": None, "plain": "p"}, "ffff 0001 70"),
        (
            "ORDER_HEADER_V1",
            {"client": "c", "agent": b"a", "plain": "p"},
            "0001 63 00000001 61 02 70 00",
        ),
        (
            "ORDER_HEADER_V2",
            {"client": "c", "agent": None, "plain": "p"},
            "0001 63 ffffffff 02 70 00",
        ),
        ("ORDER_HEADER_V3", {"client": None, "agent": None, "plain": "p"}, "ffff 00 02 70 00"),
        ("PARTS_V4", {"tagged_number": 2}, "01 00 04 00000002"),
        ("PARTS_V3", {"number": 1}, "00000001 00"),
    ],
)
def test_bytes_are_those_of_kafka(
    codecs: Any, layout: str, value: dict[str, Any], data: str
) -> None:
    codec, whole = getattr(codecs, layout), bytes.fromhex(data)
    if layout.endswith("METADATA_RECORD"):
        value = {"api_key": 0, **value}
    assert codec.build(value) == whole
    parsed = codec.parse(whole)
    assert {name: parsed[name] for name in value} == value
    assert codec.build(parsed) == whole


def test_a_choice_tells_keys_apart(codecs: Any) -> None:
    found = codecs.STOCK_COORDINATOR_KEY.parse(bytes.fromhex("0003 0001 67 05"))
    assert (int(found.key_type), found.group, found.type) == (3, "g", 5)
