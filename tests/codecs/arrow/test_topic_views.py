"""The views of Kafka's own topics, beside the values that the bytes are built of; kernels and reference codecs alike."""

from __future__ import annotations

import importlib
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import kafka_codecs
from codecgen.runtime.arrow.payloads import decode
from tests.support.topic_rows import THEN, TIME, TOPIC, Rows, engines, filled

Payload = tuple[str, dict[str, Any], str, dict[str, Any] | None]


def built(layout: str, value: dict[str, Any] | None) -> bytes | None:
    found: bytes | None = None if value is None else getattr(kafka_codecs, layout).build(value)
    return found


def rows(view: str, payloads: list[Payload], *, compiled: bool) -> Rows:
    """The rows of a view, in which all payloads are as they should be."""
    module = importlib.import_module(f"kafka_codecs.columns.{view}")
    parts = {
        "key": pa.array([built(layout, key) for layout, key, _, _ in payloads], pa.binary()),
        "value": pa.array([built(layout, value) for _, _, layout, value in payloads], pa.binary()),
    }
    out: Rows = []
    for found in decode(getattr(module, view.upper()), parts, strict=True, compiled=compiled):
        assert not found.rejected
        out += found.batch.to_pylist()
    return out


LATER, LATER_THEN = TIME + 1, THEN + timedelta(milliseconds=1)
KEY = {"group": "billing", "topic": "orders", "partition": 2}
COMMIT = {"offset": 42, "metadata": "m", "commit_timestamp": TIME}
COMMITS: list[Payload] = [
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", {"version": 0, **COMMIT}),
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", {"version": 1, **COMMIT, "expire_timestamp": LATER}),
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", {"version": 1, **COMMIT}),
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", {"version": 3, **COMMIT, "leader_epoch": 5}),
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", {"version": 4, **COMMIT}),
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", {"version": 4, **COMMIT, "leader_epoch": 0, "topic_id": TOPIC}),
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", None),
    ("LEGACY_OFFSET_COMMIT_KEY", KEY, "LEGACY_OFFSET_COMMIT_VALUE", {"version": 0, **COMMIT}),
    ("LEGACY_OFFSET_COMMIT_KEY", KEY, "LEGACY_OFFSET_COMMIT_VALUE", None),
    ("CONSUMER_GROUP_METADATA_KEY", {"group_id": "g"}, "CONSUMER_GROUP_METADATA_VALUE", {"version": 0, "epoch": 1}),
]  # fmt: skip
SET = KEY | {
    "committed_offset": 42,
    "leader_epoch": None,
    "metadata": "m",
    "commit_time": THEN,
    "expire_time": None,
    "topic_id": None,
    "is_deleted": False,
}
GONE = dict.fromkeys(SET) | KEY | {"is_deleted": True}
OFFSETS = filled(
    SET,
    {},
    {"expire_time": LATER_THEN},
    {},
    {"leader_epoch": 5},
    {"topic_id": bytes(16)},
    {"leader_epoch": 0, "topic_id": TOPIC.bytes},
    GONE,
    {},
    GONE,
)

MEMBER = {"member_id": "c-1", "client_id": "c", "client_host": "/127.0.0.1"}
CLASSIC = {
    "protocol_type": "consumer",
    "generation": 3,
    "protocol": "range",
    "leader": "c-1",
    "members": [
        MEMBER | {"session_timeout": 10, "subscription": b"s", "assignment": b"a"},
        MEMBER
        | {"member_id": "c-2", "session_timeout": 11, "subscription": b"", "assignment": b""},
    ],
}
STATIC = CLASSIC | {"members": [m | {"group_instance_id": "i", "rebalance_timeout": 9} for m in CLASSIC["members"]]}  # type: ignore[attr-defined] # fmt: skip
GROUP, IN_GROUP = {"group_id": "billing"}, {"group_id": "billing", "member_id": "m-1"}
CLIENT = {"rack_id": "r", "client_id": "c", "client_host": "/127.0.0.1"}
CONSUMER = CLIENT | {
    "version": 0,
    "instance_id": "i",
    "subscribed_topic_names": ["orders"],
    "subscribed_topic_regex": "",
    "rebalance_timeout_ms": 7,
    "server_assignor": None,
    "classic_member_metadata": None,
}
MEMBERS: list[Payload] = [
    ("GROUP_METADATA_KEY", {"group": "billing"}, "GROUP_METADATA_VALUE", {"version": 0, **CLASSIC}),
    ("GROUP_METADATA_KEY", {"group": "billing"}, "GROUP_METADATA_VALUE", {"version": 3, **STATIC}),
    ("GROUP_METADATA_KEY", {"group": "billing"}, "GROUP_METADATA_VALUE", {"version": 3, **STATIC, "members": []}),
    ("GROUP_METADATA_KEY", {"group": "billing"}, "GROUP_METADATA_VALUE", None),
    ("CONSUMER_GROUP_MEMBER_METADATA_KEY", IN_GROUP, "CONSUMER_GROUP_MEMBER_METADATA_VALUE", CONSUMER),
    ("CONSUMER_GROUP_MEMBER_METADATA_KEY", IN_GROUP, "CONSUMER_GROUP_MEMBER_METADATA_VALUE", None),
    ("SHARE_GROUP_MEMBER_METADATA_KEY", IN_GROUP, "SHARE_GROUP_MEMBER_METADATA_VALUE",
     CLIENT | {"version": 0, "subscribed_topic_names": []}),
    ("SHARE_GROUP_MEMBER_METADATA_KEY", IN_GROUP, "SHARE_GROUP_MEMBER_METADATA_VALUE", None),
    ("STREAMS_GROUP_MEMBER_METADATA_KEY", IN_GROUP, "STREAMS_GROUP_MEMBER_METADATA_VALUE",
     CLIENT | {"version": 0, "instance_id": None, "topology_epoch": 1, "process_id": "p", "client_tags": []}),
    ("STREAMS_GROUP_MEMBER_METADATA_KEY", IN_GROUP, "STREAMS_GROUP_MEMBER_METADATA_VALUE", None),
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", None),
]  # fmt: skip
NO_MEMBER: dict[str, Any] = {"record_type": 2, "group": "billing", "is_deleted": False} | dict.fromkeys(
    (
        *("member_id", "instance_id", "client_id", "client_host", "rack", "generation", "protocol"),
        *("leader", "session_timeout_ms", "rebalance_timeout_ms", "subscribed_topics"),
        *("subscription", "assignment"),
    )
)  # fmt: skip
OF_CLASSIC = MEMBER | {"generation": 3, "protocol": "range", "leader": "c-1", "session_timeout_ms": 10, "subscription": b"s", "assignment": b"a"}  # fmt: skip
SECOND = {"member_id": "c-2", "session_timeout_ms": 11, "subscription": b"", "assignment": b""}
OTHERS = {"member_id": "m-1", "client_id": "c", "client_host": "/127.0.0.1", "rack": "r"}
GROUPS = filled(
    NO_MEMBER,
    OF_CLASSIC,
    OF_CLASSIC | SECOND,
    OF_CLASSIC | {"instance_id": "i", "rebalance_timeout_ms": 9},
    OF_CLASSIC | SECOND | {"instance_id": "i", "rebalance_timeout_ms": 9},
    {"is_deleted": True},
    OTHERS
    | {"record_type": 5, "instance_id": "i", "rebalance_timeout_ms": 7}
    | {"subscribed_topics": ["orders"]},
    {"record_type": 5, "member_id": "m-1", "is_deleted": True},
    OTHERS | {"record_type": 10, "subscribed_topics": []},
    {"record_type": 10, "member_id": "m-1", "is_deleted": True},
    OTHERS | {"record_type": 19, "rebalance_timeout_ms": -1},
    {"record_type": 19, "member_id": "m-1", "is_deleted": True},
)

ID = {"transactional_id": "t"}
STATE = {
    "producer_id": 4001,
    "producer_epoch": 3,
    "transaction_timeout_ms": 60_000,
    "transaction_status": "ongoing",
    "transaction_partitions": [{"topic": "orders", "partition_ids": [0, 2]}],
    "transaction_last_update_timestamp_ms": LATER,
    "transaction_start_timestamp_ms": TIME,
}
EMPTY = STATE | {
    "transaction_status": "empty",
    "transaction_partitions": None,
    "transaction_start_timestamp_ms": -1,
}
STATES: list[Payload] = [
    ("TRANSACTION_LOG_KEY", ID, "TRANSACTION_LOG_VALUE", {"version": 0, **STATE}),
    ("TRANSACTION_LOG_KEY", ID, "TRANSACTION_LOG_VALUE", {"version": 1, **EMPTY}),
    ("TRANSACTION_LOG_KEY", ID, "TRANSACTION_LOG_VALUE", {"version": 1, **STATE, "previous_producer_id": 7, "next_producer_id": 8}),
    ("TRANSACTION_LOG_KEY", ID, "TRANSACTION_LOG_VALUE", None),
]  # fmt: skip
OPEN = ID | {
    "producer_id": 4001,
    "producer_epoch": 3,
    "timeout_ms": 60_000,
    "status": 1,
    "partitions": [{"topic": "orders", "partition_ids": [0, 2]}],
    "last_update_time": LATER_THEN,
    "start_time": THEN,
    "previous_producer_id": None,
    "next_producer_id": None,
    "is_deleted": False,
}
TRANSACTIONS = filled(
    OPEN,
    {},
    {"status": 0, "partitions": None, "start_time": None},
    {"previous_producer_id": 7, "next_producer_id": 8},
    dict.fromkeys(OPEN) | ID | {"is_deleted": True},
)

SHARE = {"group_id": "workers", "topic_id": TOPIC, "partition": 2}
RANGE = {"first_offset": 100, "last_offset": 109, "delivery_state": 2, "delivery_count": 1}
SNAPSHOT = {
    "version": 0,
    "snapshot_epoch": 1,
    "state_epoch": 4,
    "leader_epoch": 5,
    "start_offset": 100,
    "create_timestamp": TIME,
    "write_timestamp": LATER,
    "state_batches": [RANGE],
    "delivery_complete_count": 10,
}
UPDATE = {
    "version": 0,
    "snapshot_epoch": 1,
    "leader_epoch": 5,
    "start_offset": -1,
    "state_batches": [],
}
SHARES: list[Payload] = [
    ("SHARE_SNAPSHOT_KEY", SHARE, "SHARE_SNAPSHOT_VALUE", SNAPSHOT),
    ("SHARE_UPDATE_KEY", SHARE, "SHARE_UPDATE_VALUE", UPDATE),
    (
        *("SHARE_UPDATE_KEY", SHARE, "SHARE_UPDATE_VALUE"),
        UPDATE | {"start_offset": 7, "state_batches": [RANGE], "delivery_complete_count": 0},
    ),
    ("SHARE_SNAPSHOT_KEY", SHARE, "SHARE_SNAPSHOT_VALUE", None),
    ("SHARE_UPDATE_KEY", SHARE, "SHARE_UPDATE_VALUE", None),
]
WHOLE = {
    "group": "workers",
    "topic_id": TOPIC.bytes,
    "partition": 2,
    "is_snapshot": True,
    "snapshot_epoch": 1,
    "state_epoch": 4,
    "leader_epoch": 5,
    "start_offset": 100,
    "delivery_complete_count": 10,
    "create_time": THEN,
    "write_time": LATER_THEN,
    "state_batches": [RANGE],
    "is_deleted": False,
}
CHANGE = dict.fromkeys(("state_epoch", "create_time", "write_time")) | {"is_snapshot": False}
NOTHING = dict.fromkeys(list(WHOLE)[4:]) | {"is_deleted": True}
SHARE_STATES = filled(
    WHOLE,
    {},
    CHANGE | {"start_offset": None, "delivery_complete_count": None, "state_batches": []},
    CHANGE | {"start_offset": 7, "delivery_complete_count": 0},
    NOTHING,
    NOTHING | {"is_snapshot": False},
)

CASES: list[tuple[str, list[Payload], Rows]] = [
    ("offsets", COMMITS, OFFSETS),
    ("groups", MEMBERS, GROUPS),
    ("transactions", STATES, TRANSACTIONS),
    ("share_states", SHARES, SHARE_STATES),
]


@pytest.mark.parametrize(("view", "compiled"), engines(*(case[0] for case in CASES)))
def test_rows(view: str, compiled: bool) -> None:
    ((payloads, expected),) = [case[1:] for case in CASES if case[0] == view]
    found = rows(view, payloads, compiled=compiled)
    for ours, wanted in zip(found, expected, strict=True):
        assert ours == wanted
