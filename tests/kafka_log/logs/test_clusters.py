"""Log directories of several clusters, as in a tree of backups: no answer of one is made of logs of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_log import read_table
from kafka_log.cli import main
from kafka_log.log_directory import LogDirectory
from kafka_log.logs.names import META
from kafka_log.logs.partitions import DirectoryError
from tests.support.coordinator_logs import data_of, state_of, states
from tests.support.coordinator_logs import log as log_of
from tests.support.made_topics import commit, log, metadata, uuid
from tests.support.tiers import local

SAID = "different clusters"


def name_clusters(root: Path, **ids: str) -> list[Path]:
    """Log directories of brokers, each with the id of its cluster."""
    for name, cluster in ids.items():
        (root / name).mkdir(exist_ok=True)
        (root / name / META).write_text(f"version=1\nnode.id=1\ncluster.id={cluster}\n")
    return [root / name for name in ids]


def test_answers_of_internal_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Topics of clusters before Kafka 2.8 have no ids, and the metadata log has the same id in all clusters."""
    for name, end in (("a", 3), ("b", 1)):
        log(tmp_path / name, "__consumer_offsets-0", *(commit(i, name, i) for i in range(end)))
        topic = metadata(0, "TOPIC_RECORD", name=f"t{name}", topic_id=uuid(1))
        log(tmp_path / name, "__cluster_metadata-0", topic)
    places = name_clusters(tmp_path, a="one", b="two")
    for ask in (LogDirectory.groups, LogDirectory.metadata):
        with pytest.raises(DirectoryError, match=SAID):
            ask(LogDirectory(places))
    for command in ("groups", "metadata"):
        assert main([command, str(tmp_path)]) == 2
        assert SAID in capsys.readouterr().err
    name_clusters(tmp_path, b="one")
    (row,) = LogDirectory(places).groups().to_pylist()
    assert row["group"] == "a"
    assert LogDirectory(places).metadata().num_rows == 1


def test_partitions_of_coordinators_of_two_clusters(tmp_path: Path) -> None:
    """Each cluster has another partition of the topic, so that none is a copy of the other."""
    for number, name in enumerate("ab"):
        log(tmp_path / name, f"__consumer_offsets-{number}", commit(0, name, 0))
    with pytest.raises(DirectoryError, match=SAID):
        LogDirectory(name_clusters(tmp_path, a="one", b="two")).groups(states=True)


def test_lag_goes_to_the_end_in_the_same_cluster(tmp_path: Path) -> None:
    log(tmp_path / "a", "__consumer_offsets-0", commit(0, "g", 4))
    for place, end in (("a", 10), ("b", 30)):
        local(tmp_path / place, 0, end)
    places = name_clusters(tmp_path, a="one", b="two")
    (row,) = LogDirectory(places).groups().to_pylist()
    assert (row["log_end_offset"], row["lag"]) == (10, 6)
    name_clusters(tmp_path, b="one")
    (row,) = LogDirectory(places).groups().to_pylist()
    assert (row["log_end_offset"], row["lag"]) == (30, 26)


def test_the_newest_is_not_of_another_cluster(tmp_path: Path) -> None:
    for place, end in (("a", 30), ("b", 10)):
        local(tmp_path / place, 0, end)
    places = name_clusters(tmp_path, a="one", b="two")
    with pytest.raises(DirectoryError, match=SAID):
        read_table(places, replicas="newest")
    assert read_table(places, replicas="keep").num_rows == 40
    name_clusters(tmp_path, b="one")
    assert read_table(places, replicas="newest").num_rows == 30


def test_nothing_is_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in "ab":
        local(tmp_path / place, 0, 10)
    places = name_clusters(tmp_path, a="one", b="two")
    command = ["merge", *map(str, places), "--out", str(tmp_path / "out")]
    assert main(command) == 1
    said = capsys.readouterr()
    assert SAID in said.out + said.err
    assert not (tmp_path / "out" / "t-0").exists()


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_coordinator_of_another_cluster(tmp_path: Path, order: str) -> None:
    """Producer ids begin at 0 in each cluster: what one coordinator says of 7 is not about the other's."""
    for place, status in (("a", "ongoing"), ("b", "complete_commit")):
        log_of(tmp_path / place, "orders-3", [data_of(0, 7)])
        states(tmp_path / place, state_of(f"tx-{place}", status, partitions=[("orders", 3)]))
    name_clusters(tmp_path, a="one", b="two")
    rows = LogDirectory([tmp_path / place for place in order]).txn(states="open").to_pylist()
    assert {Path(row["directory"]).parent.name: row["transactional_id"] for row in rows} == {
        "a": "tx-a",
        "b": "tx-b",
    }
    assert {row["transactional_id"]: row["hanging"] for row in rows} == {
        "tx-a": False,
        "tx-b": True,
    }


def test_a_transaction_whose_coordinators_were_not_read(tmp_path: Path) -> None:
    """The states of another cluster have no entry of its producer, which proves nothing."""
    log_of(tmp_path / "a", "orders-3", [data_of(0, 7)])
    states(tmp_path / "b", state_of("tx", "complete_commit", 8))
    places = name_clusters(tmp_path, a="one", b="two")
    (row,) = LogDirectory(places).txn(states="open").to_pylist()
    assert row["hanging"] is None
    assert "__transaction_state was not read" in row["reason"]
    (tmp_path / "a" / META).unlink()  # it may be of the same cluster
    (row,) = LogDirectory(places).txn(states="open").to_pylist()
    assert row["hanging"]
