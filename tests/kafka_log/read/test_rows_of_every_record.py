"""Every record of Kafka's own topics has a row in a view, and what stands there is what the same record says as JSON.

The records are those that Kafka's classes wrote of messages that were made up (``tests/data/topic_messages.jsonl``).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from codecgen.runtime.arrow import payloads
from codecgen.runtime.arrow.view import PayloadView
from codecgen.runtime.construct import Choice, Layout
from kafka_codecs import METADATA_BODY, REMOTE_LOG_METADATA_BODY
from kafka_log.logs.names import INTERNAL_TOPICS
from kafka_log.read.internal_topics import VIEWS, internal_topic
from kafka_log.read.topic_views import topic_view
from tests.laws.payload_memory import decoded, summed
from tests.paths import ROOT
from tests.support.plain_kernels import plain_kernels
from tests.support.topic_samples import COORDINATED, FRAMED

MESSAGES: dict[str, dict[str, Any]] = {
    message["message"]: message
    for message in map(
        json.loads, (ROOT / "tests/data/topic_messages.jsonl").read_text("utf-8").splitlines()
    )
}
BODIES: Mapping[str, Mapping[Any, Any]] = {
    "__cluster_metadata": METADATA_BODY,
    "__remote_log_metadata": REMOTE_LOG_METADATA_BODY,
}

SPELLED: dict[str, dict[str, tuple[str, ...]]] = {
    "group_epochs": {
        "group": ("groupId", "group"),
        "epoch": ("epoch", "generation"),
        "assignment_time": ("assignmentTimestamp",),
        "topology_epoch": ("validatedTopologyEpoch",),
        "state_time": ("currentStateTimestamp",),
    },
    "group_topics": {"group": ("groupId",)},
    "assignments": {
        "group": ("groupId",),
        "partitions": ("topicPartitions", "assignedPartitions"),
    },
    "task_assignments": {"group": ("groupId",)},
    "regular_expressions": {
        "group": ("groupId",),
        "metadata_offset": ("version",),
        "lookup_time": ("timestamp",),
    },
    "topologies": {"group": ("groupId",)},
    "controllers": {"is_zk_migration_ready": ("zkMigrationReady",)},
    "features": {"feature": ("name",), "level": ("featureLevel",)},
    "quotas": {"name": ("key",)},
    "acls": {"acl_id": ("id",)},
    "scram_credentials": {"user": ("name",)},
    "delegation_tokens": {
        "issue_time": ("issueTimestamp",),
        "max_time": ("maxTimestamp",),
        "expire_time": ("expirationTimestamp",),
    },
    "producer_ids": {},
    "metadata_events": {"topic": ("topicName",)},
    "remote_partitions": {
        "topic": ("topicIdPartition.name",),
        "topic_id": ("topicIdPartition.id",),
        "partition": ("topicIdPartition.partition",),
        "state": ("remotePartitionDeleteState",),
        "event_time": ("eventTimestampMs",),
    },
}
"""Views, and what Kafka calls the columns of theirs that are called otherwise."""

ABSENT = {"assignment_time": 0, "topology_epoch": -1, "state_time": -1, "broker_epoch": -1}
"""What stands for null."""

IN_A_FILE = {"remote_log_segment_metadata_snapshot_record"}
"""What has the frame of a topic's records, and lies in a file beside it."""


@dataclass(frozen=True)
class Written:
    """A record, with its type, and the layout of its value, or of one that it might have."""

    number: int
    layout: str
    key: bytes | None
    value: bytes | None


def written(topic: str) -> Iterator[Written]:
    """Records of each case of a topic, in each version."""
    if topic in FRAMED:
        for kind, body in BODIES[topic].items():
            for version, layout in versions(body):
                for body_bytes in examples(layout, version):
                    frame = bytes((1, int(kind), version))
                    yield Written(int(kind), name_of(layout), None, frame + body_bytes)
        return
    keys, values = COORDINATED[topic]
    for kind, of_key in keys.cases.items():
        number = int(kind).to_bytes(2, "big")
        for key in examples(of_key, 0):
            for version, layout in versions(values[kind]):
                for value in examples(layout, version):
                    data = version.to_bytes(2, "big") + value
                    yield Written(int(kind), name_of(layout), number + key, data)
            yield Written(int(kind), name_of(layout), number + key, None)


def versions(found: Layout | Choice | Mapping[int, Layout]) -> Iterator[tuple[int, Layout]]:
    cases = getattr(found, "cases", found)
    yield from cases.items() if isinstance(cases, Mapping) else ((0, found),)


def name_of(layout: Layout) -> str:
    return re.sub(r"_v\d+$", "", layout.layout_name)


def message_of(layout: str) -> str:
    return "".join(word.capitalize() for word in layout.split("_"))


def examples(layout: Layout, version: int) -> list[bytes]:
    message = MESSAGES[message_of(name_of(layout))]
    found = [*message["examples"][str(version)], message["unset"][str(version)]]
    return [bytes.fromhex(data) for data in found]


@cache
def records(topic: str) -> list[Written]:
    return list(written(topic))


def parts_of(view: PayloadView, topic: str) -> dict[str, list[bytes | None]]:
    return {part: [getattr(record, part) for record in records(topic)] for part in view.parts}


@cache
def rows(name: str) -> list[tuple[int, dict[str, Any]]]:
    """The rows of a view with all its columns, each with the number of its record."""
    view = topic_view(name, None).view
    every = [column.name for column in view.columns]
    parts = parts_of(view, VIEWS[name])
    found = summed(decoded(view, parts, every, strict=True, compiled=False))
    assert not found["rejected"] and not found["unknown"]
    return list(zip(found["rows"], found["values"], strict=True))


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
def test_every_record_has_a_row_in_a_view(topic: str) -> None:
    shown = {number for view in VIEWS if VIEWS[view] == topic for number, _ in rows(view)}
    assert {r.layout for i, r in enumerate(records(topic)) if i not in shown} <= IN_A_FILE


@pytest.mark.parametrize("name", ["offsets"])
def test_kernels_see_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as plain Python, every access to memory checked."""
    view = topic_view(name, None).view
    assert view.kernels is not None
    monkeypatch.setattr(payloads, "load_kernels", lambda _: plain_kernels(view.kernels or ""))
    every = [column.name for column in view.columns]
    parts = parts_of(view, VIEWS[name])
    found = summed(decoded(view, parts, every, strict=True, tight=False))
    assert not found["rejected"] and not found["unknown"]
    assert list(zip(found["rows"], map(repr, found["values"]), strict=True)) == [
        (number, repr(row)) for number, row in rows(name)
    ]


# ---------------------------------------------------------------- by value


@cache
def said(topic: str) -> list[dict[str, Any]]:
    """What records say as JSON, key and value in one, with the tagged fields that are not in the bytes."""
    decoder = internal_topic(topic)
    assert decoder is not None
    out = []
    for record in records(topic):
        found = decoder.decode(record.key, record.value, strict=True, show_secrets=True)
        assert found.error is None
        data = found.key["data"] if found.key else {}
        if found.value:
            data = data | MESSAGES[message_of(record.layout)]["tagged"] | found.value["data"]
        held = data.get("topicIdPartition", {})
        out.append(data | {f"topicIdPartition.{name}": value for name, value in held.items()})
    return out


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda m: m[1].upper(), name)


URL_SAFE = str.maketrans("-_", "+/")


def same(ours: Any, theirs: Any) -> bool:
    """Whether a value is that of JSON, of which structs may hold less."""
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict):
        return all(same(value, theirs[camel(name)]) for name, value in ours.items())
    if isinstance(ours, bytes):
        padded = theirs.translate(URL_SAFE) + "=" * (-len(theirs) % 4)
        return ours == base64.b64decode(padded)
    return bool(ours == theirs) or (ours != ours and theirs != theirs)


@pytest.mark.parametrize("name", SPELLED)
def test_rows_are_what_records_say(name: str) -> None:
    topic = VIEWS[name]
    set_ones: set[str] = set()
    for number, found in rows(name):
        record, data, row = records(topic)[number], said(topic)[number], dict(found)
        assert row.pop("record_type", record.number) == record.number
        assert row.pop("is_target", "target" in record.layout) == ("target" in record.layout)
        gone = record.value is None or record.layout.startswith(("remove_", "unregister_"))
        assert row.pop("is_deleted", gone) == data.get("remove", gone)
        for column, value in row.items():
            spelled = SPELLED[name].get(column, (camel(column),))
            wanted = next((data[word] for word in spelled if word in data), None)
            removed = column == "value" and data.get("remove")
            if wanted is None or removed or wanted == ABSENT.get(column):
                assert value is None, (record, column)
            else:
                assert same(value, wanted), (record, column)
                set_ones.add(column)
    columns = {column.name for column in topic_view(name, None).view.columns}
    assert columns - set_ones <= {"record_type", "is_target", "is_deleted"}, "null in all rows"
