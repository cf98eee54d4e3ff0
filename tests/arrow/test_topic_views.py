"""The views of Kafka's own topics, beside the values that the bytes are built of; kernels and reference codecs alike."""

from __future__ import annotations

import importlib
import uuid
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import kafka_codecs
from codecgen.runtime.arrow.payloads import decode

TIME = 1_795_243_559_142
THEN = datetime.fromtimestamp(TIME / 1000, UTC)
TOPIC = uuid.UUID("5e5b647c-1561-4c31-8c62-d8711b1768f6")
Payload = tuple[str, dict[str, Any], str, dict[str, Any] | None]
Rows = list[dict[str, Any]]


def built(layout: str, value: dict[str, Any] | None) -> bytes | None:
    found: bytes | None = None if value is None else getattr(kafka_codecs, layout).build(value)
    return found


def rows(view: str, payloads: list[Payload], *, compiled: bool) -> Rows:
    """The rows of a view, in which all payloads are as they should be."""
    module = importlib.import_module(f"kafka_codecs.arrow.{view}")
    parts = {
        "key": pa.array([built(layout, key) for layout, key, _, _ in payloads], pa.binary()),
        "value": pa.array([built(layout, value) for _, _, layout, value in payloads], pa.binary()),
    }
    out: Rows = []
    for found in decode(getattr(module, view.upper()), parts, strict=True, compiled=compiled):
        assert not found.rejected
        out += found.batch.to_pylist()
    return out


def filled(columns: dict[str, Any], *rows: dict[str, Any]) -> Rows:
    """Rows with what they all have, and null in what they do not name."""
    return [columns | row for row in rows]


KEY = {"group": "billing", "topic": "orders", "partition": 2}
COMMIT = {"offset": 42, "metadata": "m", "commit_timestamp": TIME}
COMMITS: list[Payload] = [
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", {"version": 0, **COMMIT}),
    ("OFFSET_COMMIT_KEY", KEY, "OFFSET_COMMIT_VALUE", {"version": 1, **COMMIT, "expire_timestamp": TIME}),
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
    {"expire_time": THEN},
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
    "transaction_last_update_timestamp_ms": TIME,
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
    "last_update_time": THEN,
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
    "write_timestamp": TIME,
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
    "write_time": THEN,
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


LONG_TO_COMPILE = ("groups", "share_states", "partitions", "brokers")
"""Views whose kernels take the compiler many seconds."""


def engines(*views: str) -> list[Any]:
    """Each view with the reference codecs (False) and with the kernels (True)."""
    slow = {view: [pytest.mark.slow] if view in LONG_TO_COMPILE else [] for view in views}
    return [pytest.param(view, False) for view in views] + [
        pytest.param(view, True, marks=slow[view]) for view in views
    ]


@pytest.mark.parametrize(("view", "compiled"), engines(*(case[0] for case in CASES)))
def test_rows(view: str, compiled: bool) -> None:
    ((payloads, expected),) = [case[1:] for case in CASES if case[0] == view]
    found = rows(view, payloads, compiled=compiled)
    for ours, wanted in zip(found, expected, strict=True):
        assert ours == wanted


# ---------------------------------------------------------------- records behind frames

Framed = tuple[str, int, dict[str, Any]]
ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)
STATE_OF = {
    "partition_id": 2,
    "topic_id": TOPIC,
    "replicas": [1, 2],
    "isr": [1],
    "removing_replicas": [],
    "adding_replicas": [2],
    "leader": 1,
    "leader_epoch": 5,
    "partition_epoch": 6,
}
LISTENER = {"name": "PLAINTEXT", "host": "localhost", "port": 65535, "security_protocol": 3}
REGISTRATION = {
    "broker_id": 1,
    "incarnation_id": ONE,
    "broker_epoch": 7,
    "end_points": [LISTENER],
    "features": [],
    "rack": "r",
}
OTHER: Framed = ("no_op_record", 0, {})
COPIED: dict[str, Any] = {
    "remote_log_segment_id": {
        "topic_id_partition": {"name": "orders", "id": TOPIC, "partition": 2},
        "id": ONE,
    },
    "start_offset": 100,
    "end_offset": 199,
    "broker_id": 1,
    "max_timestamp_ms": TIME,
    "event_timestamp_ms": TIME,
    "segment_leader_epochs": [{"leader_epoch": 5, "offset": 100}],
    "segment_size_in_bytes": 1000,
    "remote_log_segment_state": 0,
}
RECORDS: dict[str, list[Framed]] = {
    "topics": [
        OTHER,
        ("topic_record", 0, {"name": "orders", "topic_id": TOPIC}),
        ("remove_topic_record", 0, {"topic_id": TOPIC}),
    ],
    "partitions": [
        ("partition_record", 0, STATE_OF),
        OTHER,
        (
            *("partition_record", 2),
            STATE_OF | {"directories": [ONE, TWO], "eligible_leader_replicas": [2]},
        ),
        ("partition_change_record", 0, {"partition_id": 2, "topic_id": TOPIC}),
        (
            *("partition_change_record", 2),
            {"partition_id": 2, "topic_id": TOPIC, "leader": -1, "isr": [], "last_known_elr": [1]}
            | {
                "directories": [TWO],
                "replicas": [2],
                "adding_replicas": [],
                "removing_replicas": [1],
            },
        ),
    ],
    "brokers": [
        ("register_broker_record", 0, REGISTRATION),
        (
            *("register_broker_record", 4),
            REGISTRATION | {"fenced": False, "in_controlled_shutdown": True, "log_dirs": [ONE]},
        ),
        OTHER,
        ("broker_registration_change_record", 0, {"broker_id": 1, "broker_epoch": 7, "fenced": -1}),
        (
            *("broker_registration_change_record", 1),
            {"broker_id": 1, "broker_epoch": 7, "in_controlled_shutdown": 1},
        ),
        ("fence_broker_record", 0, {"id": 1, "epoch": 7}),
        ("unfence_broker_record", 0, {"id": 1, "epoch": 7}),
        ("unregister_broker_record", 0, {"broker_id": 1, "broker_epoch": 7}),
    ],
    "configs": [
        (
            *("config_record", 0),
            {"resource_type": 2, "resource_name": "orders", "name": "n", "value": "v"},
        ),
        OTHER,
        (
            *("config_record", 0),
            {"resource_type": 4, "resource_name": "", "name": "n", "value": None},
        ),
    ],
    "remote_segments": [
        ("remote_log_segment_metadata_record", 0, COPIED),
        ("remote_log_segment_metadata_record", 0, COPIED | {"custom_metadata": b"m"}),
        (
            *("remote_log_segment_metadata_update_record", 0),
            {
                "remote_log_segment_id": {
                    "topic_id_partition": {"name": "orders", "id": TOPIC, "partition": 2},
                    "id": ONE,
                },
                "broker_id": 2,
                "event_timestamp_ms": TIME,
                "custom_metadata": b"c",
                "remote_log_segment_state": 1,
            },
        ),
    ],
}
OF_PARTITION = {
    "topic_id": TOPIC.bytes,
    "partition": 2,
    "is_change": False,
    "leader": 1,
    "leader_epoch": 5,
    "partition_epoch": 6,
    "replicas": [1, 2],
    "isr": [1],
    "removing_replicas": [],
    "adding_replicas": [2],
    "directories": None,
    "eligible_leader_replicas": None,
    "last_known_elr": None,
}
AS_BEFORE = dict.fromkeys(OF_PARTITION) | {
    "topic_id": TOPIC.bytes,
    "partition": 2,
    "is_change": True,
}
OF_BROKER: dict[str, Any] = {
    "broker_id": 1,
    "broker_epoch": 7,
    "is_registration": False,
    "incarnation_id": None,
    "rack": None,
    "is_fenced": None,
    "is_in_controlled_shutdown": None,
    "fencing_change": None,
    "controlled_shutdown_change": None,
    "end_points": None,
    "log_dirs": None,
    "is_deleted": False,
}
REGISTERED = {
    "is_registration": True,
    "incarnation_id": ONE.bytes,
    "rack": "r",
    "end_points": [LISTENER],
}
OF_SEGMENT = {
    "topic": "orders",
    "topic_id": TOPIC.bytes,
    "partition": 2,
    "segment_id": ONE.bytes,
    "state": 0,
    "broker_id": 1,
    "event_time": THEN,
    "start_offset": 100,
    "end_offset": 199,
    "max_timestamp": THEN,
    "size": 1000,
    "leader_epochs": [{"leader_epoch": 5, "offset": 100}],
    "custom_metadata": None,
}
SHOWN: dict[str, Rows] = {
    "topics": [
        {"topic": "orders", "topic_id": TOPIC.bytes, "is_deleted": False},
        {"topic": None, "topic_id": TOPIC.bytes, "is_deleted": True},
    ],
    "partitions": [
        OF_PARTITION,
        OF_PARTITION | {"directories": [ONE.bytes, TWO.bytes], "eligible_leader_replicas": [2]},
        AS_BEFORE,
        AS_BEFORE
        | {"leader": -1, "isr": [], "last_known_elr": [1], "directories": [TWO.bytes]}
        | {"replicas": [2], "adding_replicas": [], "removing_replicas": [1]},
    ],
    "brokers": filled(
        OF_BROKER,
        REGISTERED | {"is_fenced": True},
        REGISTERED
        | {"is_fenced": False, "is_in_controlled_shutdown": True, "log_dirs": [ONE.bytes]},
        {"fencing_change": -1},
        {"fencing_change": 0, "controlled_shutdown_change": 1},
        {"is_fenced": True},
        {"is_fenced": False},
        {"is_deleted": True},
    ),
    "configs": [
        {"resource_type": 2, "resource_name": "orders", "name": "n", "value": "v"}
        | {"is_deleted": False},
        {"resource_type": 4, "resource_name": "", "name": "n", "value": None, "is_deleted": True},
    ],
    "remote_segments": filled(
        OF_SEGMENT,
        {},
        {"custom_metadata": b"m"},
        {"state": 1, "broker_id": 2, "custom_metadata": b"c", "leader_epochs": None}
        | dict.fromkeys(("start_offset", "end_offset", "max_timestamp", "size")),
    ),
}


@pytest.mark.parametrize(("view", "compiled"), engines(*RECORDS))
def test_rows_of_framed_records(view: str, compiled: bool) -> None:
    remote = view == "remote_segments"
    frame = getattr(kafka_codecs, "REMOTE_LOG_METADATA_RECORD" if remote else "METADATA_RECORD")
    values = [
        frame.build({"api_key": name, "version": version, "body": body})
        for name, version, body in RECORDS[view]
    ]
    values += [bytes.fromhex("01 63 00 cafe")]  # nobody knows it, and there is no row
    module = importlib.import_module(f"kafka_codecs.arrow.{view}")
    out: Rows = []
    parts = {"value": pa.array(values, pa.binary())}
    for found in decode(getattr(module, view.upper()), parts, strict=True, compiled=compiled):
        assert not found.rejected
        out += found.batch.to_pylist()
    for ours, wanted in zip(out, SHOWN[view], strict=True):
        assert ours == wanted
