"""Copies in tiered storage that do not count are told from those that do, where the topic that says it is there."""

from __future__ import annotations

import base64
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_codecs import REMOTE_LOG_METADATA_RECORD
from kafka_log import LogDirectory, read_table
from kafka_log.cli import main
from kafka_log.logs.discovery import discover, survey
from kafka_log.logs.remote_states import read_remote_states
from tests.support.made_topics import entry, log

TOPIC = UUID(int=7 << 64 | 1)
OTHER = UUID(int=9 << 64 | 1)
STATES = (
    "copy_segment_started",
    "copy_segment_finished",
    "delete_segment_started",
    "delete_segment_finished",
)
LAST = {"none": None} | {state: state for state in STATES}
IDS = {name: UUID(int=i + 1 << 70 | 5) for i, name in enumerate(LAST)}


def letters(uuid: UUID) -> str:
    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def place(topic: UUID = TOPIC) -> dict[str, Any]:
    return {"name": "t", "id": topic, "partition": 0}


def said(segment: UUID, state: str, *, update: bool) -> bytes:
    body: dict[str, Any] = {
        "remote_log_segment_id": {"topic_id_partition": place(), "id": segment},
        "broker_id": 1,
        "event_timestamp_ms": 5,
        "custom_metadata": None,
        "remote_log_segment_state": state,
    }
    kind = "remote_log_segment_metadata_update_record"
    if not update:
        body |= {"start_offset": 0, "end_offset": 0, "max_timestamp_ms": 1}
        body |= {"segment_leader_epochs": [], "segment_size_in_bytes": 1}
        kind = "remote_log_segment_metadata_record"
    return bytes(REMOTE_LOG_METADATA_RECORD.build({"api_key": kind, "version": 0, "body": body}))


def deleted(topic: UUID) -> bytes:
    body = {
        "topic_id_partition": place(topic),
        "broker_id": 1,
        "event_timestamp_ms": 5,
        "remote_partition_delete_state": "delete_partition_marked",
    }
    kind = "remote_partition_delete_metadata_record"
    return bytes(REMOTE_LOG_METADATA_RECORD.build({"api_key": kind, "version": 0, "body": body}))


@pytest.fixture
def tier(tmp_path: Path) -> Path:
    """A copy for each state that it may be in, each with one record."""
    directory = tmp_path / "tier" / "kafka-tiered-storage" / f"t-0-{letters(TOPIC)}"
    directory.mkdir(parents=True)
    for i, (name, segment) in enumerate(IDS.items()):
        path = directory / f"{i:020d}-{letters(segment)}.log"
        path.write_bytes(entry(i, b"k", name.encode()))
    return tmp_path / "tier"


def broker(root: Path, *values: bytes | None) -> Path:
    records = (entry(i, None, value) for i, value in enumerate(values))
    log(root, "__remote_log_metadata-3", *records)
    return root


def history() -> list[bytes]:
    """Each copy goes through the states up to its last one; those of several lie among each other."""
    out = []
    for i, state in enumerate(STATES):
        for name, last in LAST.items():
            if last is not None and STATES.index(last) >= i:
                out.append(said(IDS[name], state, update=i > 0))
    return out


def values(paths: list[Path], *include: Any) -> set[bytes]:
    return set(read_table(paths, ["value"], include=include, topics="t")["value"].to_pylist())


def test_copies_that_count(tier: Path, tmp_path: Path) -> None:
    root = broker(tmp_path / "broker", *history())
    paths = [root, tier]
    assert values(paths, "remote") == {b"none", b"copy_segment_finished"}
    unfinished = {name.encode() for name in LAST} - values(paths, "remote")
    assert values(paths, "unfinished") == unfinished
    assert values(paths, "remote", "unfinished") == {name.encode() for name in LAST}
    assert values([tier], "remote") == {name.encode() for name in LAST}  # nobody knows
    rows = read_table(paths, ["value", "state"], include=["remote", "unfinished"], topics="t")
    assert {row["value"] for row in rows.to_pylist() if row["state"] == "unfinished"} == unfinished


def test_what_is_left_out_is_told(
    tier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = broker(tmp_path / "broker", *history())
    assert main(["dump", str(root), str(tier), "--include", "remote", "--topic", "t"]) == 1
    out, err = capsys.readouterr()
    assert "offsets 1 to 1 are lost" in out  # of an unfinished copy
    assert "copy_segment_finished" in out and "delete" not in out
    assert err.startswith("kafka-log: segments that are not live were skipped: 3 unfinished (")
    assert "add --include unfinished to read them" in err


def test_all_copies_of_a_partition_that_is_deleted(tier: Path, tmp_path: Path) -> None:
    root = broker(tmp_path / "broker", *history(), deleted(OTHER))
    assert len(values([root, tier], "remote")) == 2
    again = broker(tmp_path / "again", *history(), deleted(TOPIC))
    assert {s.state for s in survey([again, tier])[1]} == {"unfinished"}


def test_damage_of_the_states_is_told(
    tier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copies count as complete while nothing is known of them, and a warning says so."""
    every = history()
    root = broker(tmp_path / "broker", *every, None, b"", b"\xff" * 9, b"\x01\x63\x00\x00")
    told = "unfinished copies count as complete"
    with pytest.warns(UserWarning, match=told):
        assert len(values([root, tier], "remote")) == 2
    (path,) = root.glob("*/*.log")
    data = bytearray(path.read_bytes())
    data[-len(data) // 2] ^= 1
    path.write_bytes(data)
    found = LogDirectory([root, tier], include=["remote", "unfinished"])
    remote = [s for p in found.partitions if p.topic == "t" for s in p.segments]
    assert len(remote) == len(LAST)
    path.write_bytes(bytes(300))
    with warnings.catch_warnings():  # zeros at the end of an active segment are normal
        warnings.simplefilter("error")
        assert len(values([root, tier], "remote")) == len(LAST)
    path.write_bytes(b"\x01" * 300)
    with pytest.warns(UserWarning, match=told):
        assert len(values([root, tier], "remote")) == len(LAST)
    command = [str(root), str(tier), "--topic", "t"]
    assert main(["ls", *command, "--include", "remote"]) == 0
    assert f"{path} (a log with damage" in capsys.readouterr().err
    assert main(["ls", str(root), str(tier)]) == 0
    assert "damage" not in capsys.readouterr().err
    path.unlink()
    path.mkdir()
    with pytest.warns(UserWarning, match=told):
        assert len(values([root, tier], "remote")) == len(LAST)


@pytest.mark.parametrize("left", [0, 1])
def test_states_that_are_cut_off_after_the_listing_are_missed(left: int, tmp_path: Path) -> None:
    """A rolled segment has the size that was listed, also if it now ends where a batch does."""
    batches = [entry(i, None, said(IDS[s], s, update=False)) for i, s in enumerate(STATES)]
    log(tmp_path, "__remote_log_metadata-0", *batches)
    (partition,) = discover(tmp_path)
    listed = [replace(one, rolled=True) for one in partition.segments]
    whole = read_remote_states(listed)
    assert (len(whole.segments), whole.damaged) == (len(STATES), set())
    listed[0].path.write_bytes(b"".join(batches[:left]))
    assert read_remote_states(listed).damaged == {listed[0].path}
