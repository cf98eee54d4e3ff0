"""Values of control records, beside the bytes that Kafka's own classes write and what those classes read.

``tests/data/control_values.jsonl`` was made by kafka-clients 4.4.0 (``python -m tests.brokers.control_values``).
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from typing import Any

import pytest

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import ParseError
from kafka_codecs import (
    CONTROL_RECORD_KEY,
    CONTROL_RECORD_VALUE,
    END_TXN_MARKER,
    END_TXN_MARKER_V0,
    KRAFT_VERSION_FEATURE,
    KRAFT_VERSION_FEATURE_V0,
    KRAFT_VERSION_RECORD,
    KRAFT_VERSION_RECORD_V0,
    LEADER_CHANGE_MESSAGE,
    LEADER_CHANGE_MESSAGE_V0,
    LEADER_CHANGE_MESSAGE_V1,
    SNAPSHOT_FOOTER_RECORD,
    SNAPSHOT_FOOTER_RECORD_V0,
    SNAPSHOT_HEADER_RECORD,
    SNAPSHOT_HEADER_RECORD_V0,
    VOTER,
    VOTER_V0,
    VOTER_V1,
    VOTERS_RECORD,
    VOTERS_RECORD_ENDPOINT,
    VOTERS_RECORD_ENDPOINT_V0,
    VOTERS_RECORD_V0,
    VOTERS_RECORD_VOTER,
    VOTERS_RECORD_VOTER_V0,
)
from tests.paths import ROOT

LINES = (ROOT / "tests" / "data" / "control_values.jsonl").read_text("utf-8").splitlines()
ANSWERS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
LAYOUTS: dict[tuple[str, int], Layout] = {
    ("EndTxnMarker", 0): END_TXN_MARKER_V0,
    ("LeaderChangeMessage", 0): LEADER_CHANGE_MESSAGE_V0,
    ("LeaderChangeMessage", 1): LEADER_CHANGE_MESSAGE_V1,
    ("SnapshotHeaderRecord", 0): SNAPSHOT_HEADER_RECORD_V0,
    ("SnapshotFooterRecord", 0): SNAPSHOT_FOOTER_RECORD_V0,
    ("KRaftVersionRecord", 0): KRAFT_VERSION_RECORD_V0,
    ("VotersRecord", 0): VOTERS_RECORD_V0,
}
WRITTEN = [a for a in ANSWERS if "tags" in a or ("left" not in a and "value" in a)]
READ = [a for a in ANSWERS if a not in WRITTEN]


def named(answer: dict[str, Any]) -> str:
    return f"{answer['message']}-{answer['version']}-{answer.get('hex', '')[:60]}"


def data_of(answer: dict[str, Any], key: str) -> bytes:
    """The bytes of a value. A marker's version stands before what Kafka's class for it writes."""
    prefix = "0000" if answer["message"] == "EndTxnMarker" else ""
    return bytes.fromhex(prefix + answer[key])


def ours(value: Any, version: int, name: str = "") -> Any:
    """Kafka's JSON in our names and types. A field that Kafka's JSON leaves out has its default."""
    if isinstance(value, dict):
        out = {snake(key): ours(item, version, key) for key, item in value.items()}
        if "voterId" in value and len(value) == 1 and version == 1:
            out["voter_directory_id"] = uuid.UUID(int=0)
        return out
    if isinstance(value, list):
        return [ours(item, version) for item in value]
    if name == "voterDirectoryId":
        return uuid.UUID(bytes=base64.urlsafe_b64decode(value + "=="))
    return value


def snake(name: str) -> str:
    """``kRaftVersion`` is ``kraft_version``: KRaft is one word."""
    return re.sub("([A-Z])", r"_\1", name.replace("kRaft", "kraft")).lower()


def without_tags(value: Any) -> Any:
    """A parsed value without tagged fields, which Kafka's JSON does not show."""
    if isinstance(value, dict):
        return {key: without_tags(item) for key, item in value.items() if key != "unknown_tags"}
    if isinstance(value, list):
        return [without_tags(item) for item in value]
    return value


def parsed(layout: Layout, data: bytes, *, strict: bool) -> Any:
    found = without_tags(layout.parse(data, strict=strict))
    if layout is END_TXN_MARKER_V0:
        assert found.pop("version") == 0
    return found


def test_there_is_enough() -> None:
    assert {(a["message"], a["version"]) for a in WRITTEN if "hex" in a} == set(LAYOUTS)
    assert len(WRITTEN) > 25
    assert len([a for a in READ if "error" in a]) > 10
    assert len([a for a in READ if "error" not in a]) > 30


@pytest.mark.parametrize("answer", WRITTEN, ids=named)
def test_builds_what_kafka_writes(answer: dict[str, Any]) -> None:
    if "hex" not in answer:
        # a voter of version 1 without a directory: Kafka's JSON wants one
        assert "voterDirectoryId" not in str(answer["value"])
        return
    layout = LAYOUTS[answer["message"], answer["version"]]
    value = ours(answer["value"], answer["version"])
    tags = [{"tag": tag, "data": bytes.fromhex(data)} for tag, data in answer.get("tags", [])]
    data = data_of(answer, "hex")
    assert layout.build(value | ({"unknown_tags": tags} if tags else {})) == data
    assert parsed(layout, data, strict=True) == value
    if answer["message"] != "EndTxnMarker":
        assert layout.parse(data).unknown_tags == tags


def test_the_version_of_a_message_is_0_when_none_is_given() -> None:
    """Kafka's classes begin with 0 in every field that has no default of its own."""
    assert END_TXN_MARKER_V0.build({"coordinator_epoch": 9}).hex() == "000000000009"
    assert SNAPSHOT_FOOTER_RECORD_V0.build({}).hex() == "000000"
    assert SNAPSHOT_HEADER_RECORD_V0.build({"last_contained_log_timestamp": 1}).hex() == (
        "0000000000000000000100"
    )
    assert KRAFT_VERSION_RECORD_V0.build({"kraft_version": 1}).hex() == "0000000100"
    assert VOTERS_RECORD_V0.build({"voters": []}).hex() == "00000100"
    empty = {"leader_id": 5, "voters": [], "granting_voters": []}
    assert LEADER_CHANGE_MESSAGE_V0.build(empty).hex() == "000000000005010100"
    assert LEADER_CHANGE_MESSAGE_V1.build(empty).hex() == "000000000005010100"


@pytest.mark.parametrize("answer", READ, ids=named)
def test_reads_what_kafka_reads(answer: dict[str, Any]) -> None:
    """Leniently what Kafka's classes read, with its value; strictly what they would also write."""
    layout = LAYOUTS[answer["message"], answer["version"]]
    data = data_of(answer, "hex")
    if "error" in answer:
        for strict in (True, False):
            with pytest.raises(ParseError):
                layout.parse(data, strict=strict)
        return
    value = ours(answer["value"], answer["version"])
    assert parsed(layout, data, strict=False) == value
    if answer["again"] == answer["hex"]:
        assert parsed(layout, data, strict=True) == value
        assert layout.build(layout.parse(data)) == data
    else:
        with pytest.raises(ParseError):
            layout.parse(data, strict=True)


def test_the_versions_are_those_of_kafka() -> None:
    """``validVersions`` of Kafka's message definitions. Those of structures in them are the message's."""
    one = (END_TXN_MARKER, SNAPSHOT_HEADER_RECORD, SNAPSHOT_FOOTER_RECORD, KRAFT_VERSION_RECORD)
    one += (VOTERS_RECORD, VOTERS_RECORD_VOTER, VOTERS_RECORD_ENDPOINT, KRAFT_VERSION_FEATURE)
    assert [set(versions) for versions in one] == [{0}] * 8
    assert set(LEADER_CHANGE_MESSAGE) == set(VOTER) == {0, 1}


@pytest.mark.parametrize(
    ("layout", "data"),
    [
        (VOTER_V0, "00000001 00"),
        (VOTER_V1, "00000001 0102030405060708090a0b0c0d0e0f10 00"),
        (KRAFT_VERSION_FEATURE_V0, "0000 0001 00"),
        (VOTERS_RECORD_ENDPOINT_V0, "02 61 02 62 2384 00"),
        (VOTERS_RECORD_VOTER_V0, "00000001 0102030405060708090a0b0c0d0e0f10 01 0000 0001 00 00"),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_a_structure_ends_where_it_ends(layout: Layout, data: str) -> None:
    """What is after a message is passed over; after a structure in one comes the next field of the message."""
    whole = bytes.fromhex(data)
    for strict in (True, False):
        assert layout.build(layout.parse(whole, strict=strict)) == whole
        with pytest.raises(ParseError):
            layout.parse(whole + b"\0", strict=strict)


LOOSE = ["02 05 00 03 00", "02 05 00 05 01 aa"]
"""Tags out of order, and one twice: Kafka's readers look at neither."""


@pytest.mark.parametrize("section", LOOSE)
@pytest.mark.parametrize(
    ("layout", "data"),
    [
        (VOTER_V0, "00000001"),
        (VOTER_V1, "00000001 0102030405060708090a0b0c0d0e0f10"),
        (KRAFT_VERSION_FEATURE_V0, "0000 0001"),
        (KRAFT_VERSION_RECORD_V0, "0000 0001"),
        (VOTERS_RECORD_V0, "0000 01"),
        (VOTERS_RECORD_ENDPOINT_V0, "02 61 02 62 2384"),
        (VOTERS_RECORD_VOTER_V0, "00000001 0102030405060708090a0b0c0d0e0f10 01 0000 0001 00"),
        (LEADER_CHANGE_MESSAGE_V0, "0000 00000001 01 01"),
        (SNAPSHOT_HEADER_RECORD_V0, "0000 0000000000000001"),
        (SNAPSHOT_FOOTER_RECORD_V0, "0000"),
    ],
    ids=lambda x: getattr(x, "layout_name", None),
)
def test_tagged_fields_may_come_in_any_way(layout: Layout, data: str, section: str) -> None:
    whole = bytes.fromhex(data + section)
    assert layout.parse(whole, strict=False).unknown_tags == [
        {"tag": int(tag, 16), "data": bytes.fromhex(some)}
        for tag, some in {
            LOOSE[0]: [("5", ""), ("3", "")],
            LOOSE[1]: [("5", ""), ("5", "aa")],
        }[section]
    ]
    with pytest.raises(ParseError):
        layout.parse(whole, strict=True)


def test_which_value_a_control_record_has() -> None:
    """By the number of the type in its key, as Kafka's ``ControlRecordType`` has them. Kafka reads all as version 0."""
    values = {
        0: END_TXN_MARKER_V0,
        1: END_TXN_MARKER_V0,
        2: LEADER_CHANGE_MESSAGE_V0,
        3: SNAPSHOT_HEADER_RECORD_V0,
        4: SNAPSHOT_FOOTER_RECORD_V0,
        5: KRAFT_VERSION_RECORD_V0,
        6: VOTERS_RECORD_V0,
    }
    assert {int(kind): layout for kind, layout in CONTROL_RECORD_VALUE.items()} == values
    names = ["abort", "commit", "leader_change", "snapshot_header", "snapshot_footer", "kraft_version", "kraft_voters"]  # fmt: skip
    for number, name in enumerate(names):
        data = bytes((0, 0, 0, number))
        assert CONTROL_RECORD_KEY.build({"type": name}) == data
        assert CONTROL_RECORD_KEY.parse(data).type == number


@pytest.mark.parametrize("number", [7, 32767, -1, -32768])
def test_types_that_came_later(number: int) -> None:
    """Kafka reads them as UNKNOWN and goes on: no error for anybody."""
    data = b"\0\0" + number.to_bytes(2, "big", signed=True)
    for strict in (True, False):
        parsed = CONTROL_RECORD_KEY.parse(data, strict=strict)
        assert parsed.type == number
        assert CONTROL_RECORD_KEY.build(parsed) == data
