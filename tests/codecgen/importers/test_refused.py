"""``codecgen import kafka-json``: what is refused, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codecgen.importers import kafka_json
from tests.codecgen.importers.definitions import WEIGHT, definitions, field, findings

WRONG_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "data"}, 'unknown key "kind" of a message'),
    ({"name": None}, 'the message has no "name"'),
    ({"name": "parcel"}, '"parcel" is not a valid name of a message'),
    ({"type": "event"}, '"event" is not a type of a message'),
    ({"validVersions": None}, 'the message has no "validVersions"'),
    ({"validVersions": "0+"}, "the message has no last version"),
    ({"validVersions": "3-1"}, '"validVersions" is not a range of versions: 3-1'),
    ({"validVersions": "32768"}, '"validVersions" is not a range of versions: 32768'),
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
    ({"commonStructs": [{"name": "a", "versions": "0+"}]}, '"a" is not a valid name of a struct'),
    ({"commonStructs": [{"name": "A", "versions": "0+"}] * 2}, "two common structs are called A"),
]
WRONG_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"nullable": "0+"}, 'unknown key "nullable" of a field'),
    ({"name": "a_b"}, '"a_b" is not a valid name of a field'),
    ({"type": "uint64"}, '"uint64" is not a type'),
    ({"type": "[][]int8"}, '"[][]int8" is not a type'),
    ({"type": "[]"}, '"[]" is not a type'),
    ({"type": None}, 'the field has no "type"'),
    ({"type": "Nowhere"}, "no struct is called Nowhere"),
    ({"versions": None}, 'the field has no "versions"'),
    ({"versions": "all"}, '"versions" is not a range of versions: all'),
    ({"nullableVersions": "0+"}, "int32 cannot be null"),
    ({"fields": [{"name": "A", "type": "int8", "versions": "0"}]}, "int32 has no fields"),
    ({"flexibleVersions": "none"}, "only a string or bytes have flexibleVersions of their own"),
    ({"zeroCopy": True}, "only bytes are zeroCopy"),
    ({"mapKey": True}, "a field of the message itself cannot be a mapKey"),
    ({"entityType": "parcel"}, '"parcel" is not an entityType'),
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
    ({"default": "many"}, "the default is not a number such as -1 or 0x7f"),
    ({"default": "0x80000000"}, "0x80000000 does not fit int32"),
    ({"type": "uint16", "default": "-1"}, "-1 does not fit uint16"),
    ({"type": "int8", "default": "128"}, "128 does not fit int8"),
    ({"type": "bool", "default": "1"}, "the default is not true or false"),
    ({"type": "uuid", "default": "AAAA"}, "the default is not a UUID in Base64"),
    ({"type": "float64", "default": "half"}, "the default is not a number"),
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
        ('"int23" is not a type', 4, 33),
        ('"versions" is not a range of versions: zero', 5, 54),
    ]
    assert found[0].help == 'did you mean "int32"?' or "int" in found[0].help


STRUCT = {"name": "S", "versions": "0+", "fields": []}


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
