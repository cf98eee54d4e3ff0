"""Kafka's own topics, as a broker fills them that is used in every way: groups of the classic and the new protocol, share
groups, transactions, ACLs, SCRAM, quotas, configurations, features, voters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafka_log
from codecgen.runtime.construct import Choice
from kafka_log import Record, SegmentReader
from kafka_log.read.internal_topics import VIEWS, internal_topic
from tests.brokers import internal_topics
from tests.brokers.messages import Request, answers
from tests.support.log_files import is_read
from tests.support.topic_samples import COORDINATED, FRAMED, again

pytestmark = pytest.mark.broker

KINDS = {
    "__consumer_offsets": {
        *("OFFSET_COMMIT", "GROUP_METADATA"),
        *("CONSUMER_GROUP_METADATA", "CONSUMER_GROUP_MEMBER_METADATA"),
        *("CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA", "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER"),
        *("CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT", "CONSUMER_GROUP_REGULAR_EXPRESSION"),
        *("SHARE_GROUP_METADATA", "SHARE_GROUP_MEMBER_METADATA"),
        *("SHARE_GROUP_TARGET_ASSIGNMENT_METADATA", "SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER"),
        *("SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT", "SHARE_GROUP_STATE_PARTITION_METADATA"),
        *("STREAMS_GROUP_METADATA", "STREAMS_GROUP_MEMBER_METADATA", "STREAMS_GROUP_TOPOLOGY"),
        *("STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA", "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER"),
        "STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT",
    },
    "__transaction_state": {"TRANSACTION_LOG"},
    "__share_group_state": {"SHARE_SNAPSHOT", "SHARE_UPDATE"},
    "__cluster_metadata": {
        *("REGISTER_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"),
        *("REGISTER_CONTROLLER_RECORD", "PRODUCER_IDS_RECORD", "FEATURE_LEVEL_RECORD"),
        *("TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "REMOVE_TOPIC_RECORD"),
        *("CONFIG_RECORD", "CLIENT_QUOTA_RECORD"),
        *("ACCESS_CONTROL_ENTRY_RECORD", "REMOVE_ACCESS_CONTROL_ENTRY_RECORD"),
        *("USER_SCRAM_CREDENTIAL_RECORD", "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"),
        *("BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD"),
    },
}
"""What the broker is made to write."""


UNUSED = {"delegation_tokens"}
"""Views of which the broker writes no record."""

STATUS = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence")  # fmt: skip
"""The statuses of transactions, by their numbers, as Kafka's tools print them."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return internal_topics.make(tmp_path_factory.mktemp("internal"))


def records(logs: Path, topic: str) -> Iterator[Record]:
    """The records of a topic, of snapshots too, that are no control records."""
    for path in sorted((logs / f"{topic}-0").iterdir()):
        if path.suffix == ".log" or re.fullmatch(r"\d{20}-\d{10}\.checkpoint", path.name):
            for batch in SegmentReader(path, policy="strict"):
                yield from (record for record in batch.records if record.control is None)


def test_every_file_is_read_by_a_layout(logs: Path) -> None:
    """Those that the broker left, of all its topics and its own."""
    files = [p for p in logs.rglob("*") if p.is_file() and not p.parent.name.endswith("-delete")]
    assert len(files) > 40
    # Offset indexes of the metadata log stay preallocated: what follows their entries is zeros.
    assert [
        p for p in files if p.name != ".lock" and not is_preallocated(p) and not is_read(p)
    ] == []


def is_preallocated(path: Path) -> bool:
    index = path.name.endswith(("index",)) and path.parent.name.startswith("__cluster_metadata")
    return index and not path.read_bytes()[-1024:].strip(b"\0")


@pytest.mark.parametrize("topic", KINDS)
def test_every_record_has_a_row_in_a_view(logs: Path, topic: str) -> None:
    """But those of transactions that were aborted, as the coordinator leaves them out too."""
    shown: dict[str, set[int]] = {
        view: set(
            kafka_log.read_table(logs, ["record_offset"], view=view)["record_offset"].to_pylist()
        )
        for view, of in VIEWS.items()
        if of == topic
    }
    whole = kafka_log.scan(
        logs / f"{topic}-0", ["offset"], isolation="read_committed", control_records=False
    )
    written = set(whole.read_all()["offset"].to_pylist())
    assert written
    assert set().union(*shown.values()) == written
    assert {view for view, found in shown.items() if not found} == UNUSED & set(shown)


@pytest.mark.parametrize("topic", KINDS)
def test_every_record_is_read_and_written_again(logs: Path, topic: str) -> None:
    kinds = set()
    for record in records(logs, topic):
        if topic in FRAMED:
            kinds.add(again(FRAMED[topic], record.value).api_key.name)
            continue
        keys, values = COORDINATED[topic]
        key = again(keys, record.key)
        kinds.add(key.type.name)
        if record.value is not None:
            again(values[key.type], record.value)
    assert kinds >= KINDS[topic]


def asked_for(topic: str, record: Record) -> Iterator[tuple[str, Request]]:
    """What to ask Kafka's classes about the key and the value of a record."""
    keys, values = COORDINATED[topic]
    assert record.key is not None
    kind = int.from_bytes(record.key[:2], "big")
    yield "key", {"message": pascal(keys.cases[kind].layout_name), "version": 0, **rest(record.key)}
    if record.value is not None:
        version = int.from_bytes(record.value[:2], "big")
        layout = values[kind].cases[version] if isinstance(values[kind], Choice) else values[kind]
        yield (
            "value",
            {"message": pascal(layout.layout_name), "version": version, **rest(record.value)},
        )


def rest(data: bytes) -> Request:
    """What follows the type or the version."""
    return {"hex": data[2:].hex()}


def pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


@pytest.mark.parametrize("topic", COORDINATED)
def test_what_is_shown_is_what_kafkas_classes_say(logs: Path, topic: str) -> None:
    """The JSON that dump shows is that of Kafka's own converters, but for what its tools print otherwise."""
    decoder = internal_topic(topic)
    assert decoder is not None
    asked: list[Request] = []
    shown: list[Any] = []
    for record in records(logs, topic):
        found = decoder.decode(record.key, record.value, strict=True, show_secrets=True)
        assert found.error is None
        for part, request in asked_for(topic, record):
            asked.append(request)
            shown.append(getattr(found, part)["data"])
    for request, answer, ours in zip(asked, answers(asked), shown, strict=True):
        theirs = answer["value"]
        if "transactionStatus" in theirs:
            status = {label: number for number, label in enumerate(STATUS)}
            ours = ours | {"transactionStatus": status[ours["transactionStatus"]]}
        for member in theirs.get("members", ()):
            del member["subscription"], member["assignment"]
        for member in ours.get("members", ()):
            assert member.pop("subscription")["topics"]
            assert member.pop("assignment")["assignedPartitions"]
        assert ours == theirs, request
