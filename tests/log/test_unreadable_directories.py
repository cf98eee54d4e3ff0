"""A partition whose directory cannot be read: what txn, keys and producers say of it, and of all others."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.disk import directory
from kafka_log.segment.positioned_reads import UnreadableError
from tests.log.coordinator_logs import TIME, data_of, log, marker_of, state_of, states
from tests.log.test_reader import batch

LATER = TIME + 3_600_000
TIER_ID = "WTscIl6vTOe-sFdJ50q0_w"


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Directories that the system does not list; permissions do not bind root."""
    found: set[Path] = set()
    plain = directory.files_of

    def files_of(path: Path) -> Any:
        if path in found:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return plain(path)

    monkeypatch.setattr(directory, "files_of", files_of)
    return found


@pytest.fixture
def broker(tmp_path: Path, closed: set[Path]) -> Path:
    """Three partitions of which the second one is closed."""
    for number in range(3):
        log(tmp_path, f"t-{number}", [data_of(0, 7), batch(1), marker_of(4, 7, "abort")])
    closed.add(tmp_path / "t-1")
    return tmp_path


def reason(path: Path) -> str:
    return f"Permission denied: it cannot be read ({path})"


@pytest.mark.parametrize("answer", ["txn", "producers"])
def test_the_others_have_their_rows(broker: Path, answer: str) -> None:
    told: list[str] = []
    table = getattr(LogDirectory(broker), answer)(on_damage=told.append)
    rows = table.select(["partition", "producer_id"]).to_pylist()
    assert rows == [{"partition": number, "producer_id": 7} for number in (0, 2)]
    assert told == [reason(broker / "t-1")]
    with pytest.raises(UnreadableError, match=r"t-1"):
        getattr(LogDirectory(broker), answer)()
    chosen = getattr(LogDirectory(broker, partitions=[0, 2]), answer)()
    assert chosen.equals(table)


def test_keys_say_so_in_the_row(broker: Path) -> None:
    rows = LogDirectory(broker).keys().to_pylist()
    assert [(row["partition"], row["records"], row["keys"]) for row in rows] == [
        (0, 4, 3),
        (1, 0, 0),
        (2, 4, 3),
    ]
    assert [row["problem"] for row in rows] == [None, reason(broker / "t-1"), None]
    assert (rows[1]["ratio"], rows[1]["directory"]) == (None, str(broker / "t-1"))


def test_the_records_of_a_key(broker: Path) -> None:
    told: list[str] = []
    table = LogDirectory(broker).records_of_key(b"k1", note=told.append)
    rows = table.select(["partition", "offset", "latest"]).to_pylist()
    assert rows == [{"partition": n, "offset": 2, "latest": True} for n in (0, 2)]
    assert told == [reason(broker / "t-1")]
    with pytest.raises(UnreadableError, match=r"t-1"):
        LogDirectory(broker).records_of_key(b"k1")


@pytest.mark.parametrize(
    ("verb", "rows"),
    [(["txn"], 2), (["producers"], 2), (["keys"], 3), (["keys", "--key", "k1"], 2)],
)
def test_the_verbs_name_it(
    broker: Path, capsys: pytest.CaptureFixture[str], verb: list[str], rows: int
) -> None:
    said = f"kafka-log: {reason(broker / 't-1')}\n"
    assert main([*verb, str(broker), "--output", "jsonl"]) == 1
    out, err = capsys.readouterr()
    found = {json.loads(line)["partition"] for line in out.splitlines()}
    assert (len(found), err) == (rows, said)
    assert main([*verb, str(broker)]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == rows + 1 and err == said
    assert main([*verb, str(broker), "--partition", "0", "--partition", "2"]) == 0
    assert capsys.readouterr().err == ""


def test_nobody_knows_what_a_closed_coordinator_knows(tmp_path: Path, closed: set[Path]) -> None:
    """A producer that the others do not know may be known there; it is named once, whatever topics are chosen."""
    log(tmp_path, "orders-3", [data_of(0, 7)])
    states(tmp_path, state_of("tx", "empty", 9))
    (row,) = LogDirectory(tmp_path).txn().to_pylist()
    assert row["hanging"]
    other = states(tmp_path, number=1)
    closed.add(other)
    for topics in (None, "orders"):
        told: list[str] = []
        found = LogDirectory(tmp_path, topics=topics)
        (row,) = found.txn(on_damage=told.append).to_pylist()
        assert not row["hanging"] and told == [reason(other)]
        assert row["reason"].startswith("cannot be told: what is here of __transaction_state")
        with pytest.raises(UnreadableError):
            found.txn()


def test_a_closed_directory_may_have_the_marker_of_its_tier(
    tmp_path: Path, closed: set[Path]
) -> None:
    tier = tmp_path / "kafka-tiered-storage" / f"orders-3-{TIER_ID}"
    tier.mkdir(parents=True)
    (tier / f"{0:020}-{TIER_ID}.log").write_bytes(data_of(0, 7))
    local = log(tmp_path, "orders-3", [marker_of(1, 7, "commit")], base=1)
    asked: dict[str, Any] = {"now": LATER, "on_damage": [].append}
    (row,) = LogDirectory(tmp_path, include="remote").txn(**asked).to_pylist()
    assert row["state"] == "committed"
    closed.add(local)
    (row,) = LogDirectory(tmp_path, include="remote").txn(**asked).to_pylist()
    assert (row["state"], row["hanging"]) == ("open", False)
    assert "cannot be read" in row["reason"]


@pytest.mark.parametrize("of_tier", [False, True])
def test_a_file_that_cannot_be_a_segment(tmp_path: Path, of_tier: bool) -> None:
    """The others of the partition are read."""
    local = log(tmp_path, "t-0", [batch(3)], base=3)
    tier = tmp_path / "kafka-tiered-storage" / f"t-0-{TIER_ID}"
    tier.mkdir(parents=True)
    (tier / f"{0:020}-{TIER_ID}.log").write_bytes(batch(0))
    name = "9" * 20
    wrong = tier / f"{name}-{TIER_ID}.log" if of_tier else local / f"{name}.log"
    wrong.write_bytes(b"")
    found = LogDirectory(tmp_path, include="remote")
    (row,) = found.keys().to_pylist()
    assert (row["records"], row["keys"]) == (6, 3)
    assert str(wrong) in row["problem"]
    told: list[str] = []
    assert found.records_of_key(b"k0", note=told.append)["offset"].to_pylist() == [0, 3]
    assert found.producers(on_damage=told.append).num_rows == 0
    assert found.txn(on_damage=told.append).num_rows == 0
    assert len(told) == 3 and len(set(told)) == 1 and str(wrong) in told[0]
