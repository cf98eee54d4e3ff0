"""``kafka-log groups --states``: kinds of groups, and their members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kafka_codecs
from kafka_codecs import GROUP_METADATA_KEY, GROUP_METADATA_VALUE
from kafka_log.log_directory import LogDirectory
from tests.support.made_topics import commit, entry, log

MEMBER = {
    "group_instance_id": None,
    "client_id": "c",
    "client_host": "/h",
    "rebalance_timeout": 1,
    "session_timeout": 1,
    "subscription": b"",
    "assignment": b"",
}
NEW_MEMBER = {
    "consumer": {
        "instance_id": None,
        "rack_id": None,
        "client_id": "c",
        "client_host": "/h",
        "subscribed_topic_names": [],
        "subscribed_topic_regex": None,
        "rebalance_timeout_ms": 1,
        "server_assignor": None,
    },
    "share": {"rack_id": None, "client_id": "c", "client_host": "/h", "subscribed_topic_names": []},
    "streams": {
        "instance_id": None,
        "rack_id": None,
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout_ms": 1,
        "topology_epoch": 0,
        "process_id": "p",
        "user_endpoint": None,
        "client_tags": [],
    },
}


def classic(offset: int, generation: int | None, *members: str) -> bytes:
    value = {
        "version": 3,
        "protocol_type": "connect",
        "generation": generation,
        "protocol": None,
        "leader": None,
        "current_state_timestamp": 7,
        "members": [MEMBER | {"member_id": member} for member in members],
    }
    built = None if generation is None else GROUP_METADATA_VALUE.build(value)
    return entry(offset, GROUP_METADATA_KEY.build({"group": "g"}), built)


def newer(offset: int, kind: str, record: str, value: dict[str, Any] | None, **key: str) -> bytes:
    """A record of a group of a newer kind."""
    name = f"{kind.upper()}_GROUP_{record}"
    keys, values = (getattr(kafka_codecs, f"{name}_{part}") for part in ("KEY", "VALUE"))
    built = None if value is None else values.build({"version": 0, **value})
    return entry(offset, keys.build({"group_id": "g", **key}), built)


def state(directory: Path, *batches: bytes) -> tuple[Any, ...] | None:
    path = log(directory, "__consumer_offsets-0", *batches)
    found = LogDirectory(path).groups(states=True).to_pylist()
    shown = [
        (row["group_type"], row["protocol_type"], row["epoch"], row["members"]) for row in found
    ]
    return shown[0] if shown else None


def test_a_classic_group(tmp_path: Path) -> None:
    records = [classic(0, 1, "a", "b"), classic(1, 2, "b"), classic(2, 3), classic(3, None)]
    expected = [("classic", "connect", 1, 2), ("classic", "connect", 2, 1), ("classic", "connect", 3, 0), None]  # fmt: skip
    for i, wanted in enumerate(expected):
        assert state(tmp_path, *records[: i + 1]) == wanted


@pytest.mark.parametrize("kind", NEW_MEMBER)
def test_newer_groups_that_were_classic_ones(tmp_path: Path, kind: str) -> None:
    member, epoch = NEW_MEMBER[kind], {"epoch": 5, "metadata_hash": 0}
    records = [
        classic(0, 1, "a"),
        classic(1, None),
        newer(2, kind, "MEMBER_METADATA", member, member_id="a"),
        newer(3, kind, "MEMBER_METADATA", member, member_id="b"),
        newer(4, kind, "METADATA", epoch),
        newer(5, kind, "MEMBER_METADATA", None, member_id="a"),
        newer(6, kind, "MEMBER_METADATA", member, member_id="b"),
    ]
    assert state(tmp_path, *records[:5]) == (kind, None, 5, 2)
    assert state(tmp_path, *records) == (kind, None, 5, 1)
    gone = [
        newer(7, kind, "MEMBER_METADATA", None, member_id="b"),
        newer(8, kind, "METADATA", None),
    ]
    assert state(tmp_path, *records, *gone) is None
    assert state(tmp_path, *records, *gone, classic(9, 4, "z")) == ("classic", "connect", 4, 1)


def test_a_group_of_which_there_are_commits_alone(tmp_path: Path) -> None:
    assert state(tmp_path, commit(0, "g", 1)) == (None, None, None, 0)
    assert state(tmp_path, commit(0, "g", 1), classic(1, 1, "a"), classic(2, None)) == (None, None, None, 0)  # fmt: skip
