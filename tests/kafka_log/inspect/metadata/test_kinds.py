"""Each kind of thing in ``kafka-log metadata``: what adds one, what changes it, and what takes it away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_log.log_directory import LogDirectory
from tests.support.made_topics import log, metadata, uuid

Said = tuple[str, int, dict[str, Any]]


def register(broker: int, epoch: int, **more: Any) -> Said:
    where = {"name": "INSIDE", "host": "::1", "port": 9092, "security_protocol": 0}
    return (
        "REGISTER_BROKER_RECORD",
        1,
        {
            "broker_id": broker,
            "incarnation_id": uuid(epoch),
            "broker_epoch": epoch,
            "end_points": [where],
            "features": [],
            "rack": None,
            "fenced": True,
            "in_controlled_shutdown": False,
            **more,
        },
    )


def change(broker: int, epoch: int, **more: Any) -> Said:
    return "BROKER_REGISTRATION_CHANGE_RECORD", 1, {"broker_id": broker, "broker_epoch": epoch, **more}  # fmt: skip


def states(directory: Path, what: str, *records: Said) -> list[list[dict[str, Any]]]:
    """What there is after each record."""
    batches = [
        metadata(i, kind, version, **body) for i, (kind, version, body) in enumerate(records)
    ]
    path = log(directory, "__cluster_metadata-0", *batches)
    found = LogDirectory(path)
    return [found.metadata(what, as_of=i).to_pylist() for i in range(len(records))]


def test_brokers(tmp_path: Path) -> None:
    found = states(
        tmp_path,
        "brokers",
        register(1, 5),
        change(1, 5, fenced=-1),
        change(1, 4, fenced=1),
        ("FENCE_BROKER_RECORD", 0, {"id": 1, "epoch": 5}),
        ("UNFENCE_BROKER_RECORD", 0, {"id": 1, "epoch": 5}),
        change(1, 5, in_controlled_shutdown=1),
        register(1, 9, rack="r", fenced=False),
        ("FENCE_BROKER_RECORD", 0, {"id": 2, "epoch": 9}),
        ("UNREGISTER_BROKER_RECORD", 0, {"broker_id": 1, "broker_epoch": 9}),
    )
    shown = [
        [(row["broker_epoch"], row["rack"], row["is_fenced"], row["is_in_controlled_shutdown"]) for row in rows]
        for rows in found
    ]  # fmt: skip
    assert shown == [
        [(5, None, True, False)],
        [(5, None, False, False)],
        [(5, None, False, False)],
        [(5, None, True, False)],
        [(5, None, False, False)],
        [(5, None, False, True)],
        [(9, "r", False, False)],
        [(9, "r", False, False)],
        [],
    ]
    assert found[0][0]["listeners"] == ["INSIDE://[::1]:9092"]


ACL = {
    "id": uuid(1),
    "resource_type": 2,
    "resource_name": "orders",
    "pattern_type": 4,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 2,
}
TOKEN = {
    "owner": "User:a",
    "requester": "User:b",
    "renewers": ["User:c"],
    "issue_timestamp": 1,
    "max_timestamp": (1 << 63) - 1,
    "expiration_timestamp": 2,
    "token_id": "t",
}
SCRAM = {"name": "u", "mechanism": 2, "salt": b"s", "stored_key": b"k", "server_key": b"v", "iterations": 4096}  # fmt: skip
USER = {"entity_type": "user", "entity_name": "u"}
CLIENT = {"entity_type": "client-id", "entity_name": None}
ONE_AND_NONE: dict[str, tuple[Said, Said]] = {
    "acls": (
        ("ACCESS_CONTROL_ENTRY_RECORD", 0, ACL),
        ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", 0, {"id": uuid(1)}),
    ),
    "tokens": (
        ("DELEGATION_TOKEN_RECORD", 0, TOKEN),
        ("REMOVE_DELEGATION_TOKEN_RECORD", 0, {"token_id": "t"}),
    ),
    "scram": (
        ("USER_SCRAM_CREDENTIAL_RECORD", 0, SCRAM),
        ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", 0, {"name": "u", "mechanism": 2}),
    ),
    "quotas": (
        ("CLIENT_QUOTA_RECORD", 0, {"entity": [USER, CLIENT], "key": "q", "value": 1.5, "remove": False}),
        ("CLIENT_QUOTA_RECORD", 0, {"entity": [CLIENT, USER], "key": "q", "value": 0.0, "remove": True}),
    ),
    "features": (
        ("FEATURE_LEVEL_RECORD", 0, {"name": "f", "feature_level": 3}),
        ("FEATURE_LEVEL_RECORD", 0, {"name": "f", "feature_level": 0}),
    ),
    "configs": (
        ("CONFIG_RECORD", 0, {"resource_type": 64, "resource_name": "", "name": "n", "value": ""}),
        ("CONFIG_RECORD", 0, {"resource_type": 64, "resource_name": "", "name": "n", "value": None}),
    ),
    "controllers": (
        ("REGISTER_CONTROLLER_RECORD", 0, {"controller_id": 3, "incarnation_id": uuid(1), "zk_migration_ready": False, "end_points": [], "features": []}),
        ("UNREGISTER_CONTROLLER_RECORD", 0, {"controller_id": 3}),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", ONE_AND_NONE)
def test_one_comes_and_goes(tmp_path: Path, what: str) -> None:
    made, gone = ONE_AND_NONE[what]
    path = log(tmp_path, "__cluster_metadata-0")
    found = LogDirectory(path)
    log(tmp_path, "__cluster_metadata-0", *(metadata(i, k, v, **b) for i, (k, v, b) in enumerate((made, made, gone))))  # fmt: skip
    assert [found.metadata(what, as_of=i).num_rows for i in range(3)] == [1, 1, 0]
    assert found.metadata_changes(0, 1, what).num_rows == 0
    assert found.metadata_changes(-1, 0, what)["change"].to_pylist() == ["added"]
    assert found.metadata_changes(1, 2, what)["change"].to_pylist() == ["removed"]


def test_words_for_numbers(tmp_path: Path) -> None:
    [[acl], _] = states(tmp_path, "acls", *ONE_AND_NONE["acls"])
    words = {"resource_type": "TOPIC", "pattern_type": "PREFIXED", "operation": "READ", "permission_type": "DENY"}  # fmt: skip
    said = {name: value for name, value in ACL.items() if name != "id"}
    assert acl == {"acl_id": uuid(1).bytes} | said | words
    [[setting], _] = states(tmp_path, "configs", *ONE_AND_NONE["configs"])
    assert setting["resource_type"] == "64", "what nobody knows stays a number"


def test_a_topic_of_the_same_name_is_another(tmp_path: Path) -> None:
    first, second = ({"name": "t", "topic_id": uuid(i)} for i in (1, 2))
    found = states(
        tmp_path,
        "topics",
        ("TOPIC_RECORD", 0, first),
        ("REMOVE_TOPIC_RECORD", 0, {"topic_id": uuid(1)}),
        ("TOPIC_RECORD", 0, second),
    )
    assert [[row["topic_id"] for row in rows] for rows in found] == [[uuid(1).bytes], [], [uuid(2).bytes]]  # fmt: skip
    changes = LogDirectory(tmp_path).metadata_changes(0, 2).to_pylist()
    assert [(row["change"], row["topic_id"]) for row in changes] == [
        ("removed", uuid(1).bytes),
        ("added", uuid(2).bytes),
    ]
