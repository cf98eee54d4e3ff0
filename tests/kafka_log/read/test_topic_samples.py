"""What real brokers wrote into Kafka's own topics: every key and value is parsed by a strict reader, and builds the same
bytes again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_codecs import (
    CONSUMER_OFFSETS_KEY,
    CONSUMER_OFFSETS_VALUE,
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
)
from kafka_log import Record, SegmentReader
from tests.paths import SAMPLES
from tests.support.topic_samples import COORDINATED, FRAMED, again

FILES = [
    path
    for path in sorted(SAMPLES.glob("*/__*/*"))
    if path.suffix in (".log", ".checkpoint") and path.name != "leader-epoch-checkpoint"
]


def topic(path: Path) -> str:
    return path.parent.name.rpartition("-")[0]


def records(path: Path) -> Iterator[Record]:
    """The records of a segment or a snapshot that are no control records."""
    for batch in SegmentReader(path, policy="strict"):
        yield from (record for record in batch.records if record.control is None)


@pytest.mark.parametrize("path", FILES, ids=[f"{p.parent.parent.name}-{p.parent.name}-{p.name}" for p in FILES])  # fmt: skip
def test_every_record_is_read_and_written_again(path: Path) -> None:
    for record in records(path):
        if topic(path) in FRAMED:
            assert record.key is None
            again(FRAMED[topic(path)], record.value)
        else:
            keys, values = COORDINATED[topic(path)]
            key = again(keys, record.key)
            if record.value is not None:
                again(values[key.type], record.value)


def test_what_members_of_a_group_hold() -> None:
    found = 0
    for path in FILES:
        if topic(path) == "__consumer_offsets":
            for record in records(path):
                key = CONSUMER_OFFSETS_KEY.parse(record.key or b"")
                if key.type.name == "GROUP_METADATA" and record.value is not None:
                    for member in CONSUMER_OFFSETS_VALUE[key.type].parse(record.value).members:
                        again(CONSUMER_PROTOCOL_SUBSCRIPTION, member.subscription)
                        if member.assignment:
                            again(CONSUMER_PROTOCOL_ASSIGNMENT, member.assignment)
                        found += 1
    assert found


def test_the_samples_hold_several_types_of_record() -> None:
    """So that the tests above are about something."""
    found: Counter[str] = Counter()
    for path in FILES:
        for record in records(path):
            if topic(path) in COORDINATED:
                found[COORDINATED[topic(path)][0].parse(record.key or b"").type.name] += 1
            else:
                found[FRAMED[topic(path)].parse(record.value or b"").api_key.name] += 1
    assert set(found) >= {
        *("OFFSET_COMMIT", "GROUP_METADATA", "TRANSACTION_LOG"),
        *("CONSUMER_GROUP_METADATA", "CONSUMER_GROUP_MEMBER_METADATA"),
        *("TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CONFIG_RECORD"),
        *("REGISTER_BROKER_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"),
    }
