"""The views of Kafka's own topics whose records lie behind frames, beside the values that the bytes are built of."""

from __future__ import annotations

import importlib
import uuid
from typing import Any

import pyarrow as pa
import pytest

import kafka_codecs
from codecgen.runtime.arrow.payloads import decode
from tests.support.topic_rows import THEN, TIME, TOPIC, Rows, engines, filled

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


@pytest.mark.share(2)
@pytest.mark.parametrize(("view", "compiled"), engines(*RECORDS))
def test_rows_of_framed_records(view: str, compiled: bool) -> None:
    remote = view == "remote_segments"
    frame = getattr(kafka_codecs, "REMOTE_LOG_METADATA_RECORD" if remote else "METADATA_RECORD")
    values = [
        frame.build({"api_key": name, "version": version, "body": body})
        for name, version, body in RECORDS[view]
    ]
    values += [bytes.fromhex("01 63 00 cafe")]  # nobody knows it, and there is no row
    module = importlib.import_module(f"kafka_codecs.columns.{view}")
    out: Rows = []
    parts = {"value": pa.array(values, pa.binary())}
    for found in decode(getattr(module, view.upper()), parts, strict=True, compiled=compiled):
        assert not found.rejected
        out += found.batch.to_pylist()
    for ours, wanted in zip(out, SHOWN[view], strict=True):
        assert ours == wanted
