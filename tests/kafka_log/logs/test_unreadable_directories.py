"""A partition whose directory cannot be read: what txn, keys and producers say of it, and of all others."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.logs import discovery
from kafka_log.segment.positioned_reads import UnreadableError
from tests.paths import SAMPLES
from tests.support.batches import batch
from tests.support.coordinator_logs import TIME, data_of, log, marker_of, state_of, states

LATER = TIME + 3_600_000
TIER_ID = "WTscIl6vTOe-sFdJ50q0_w"


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Directories that the system does not list; permissions do not bind root."""
    found: set[Path] = set()
    plain = discovery.list_directory

    def files_of(path: Path) -> Any:
        if path in found:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return plain(path)

    monkeypatch.setattr(discovery, "list_directory", files_of)
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


def test_vectors_say_so_of_a_name_that_is_no_utf_8(
    broker: Path, closed: set[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = broker / os.fsdecode(b"\xff-0")
    path.mkdir()
    closed.add(path)
    assert main(["dump", str(broker), "--format", "vectors"]) == 1
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    errors = [line["file"] for line in lines if line["type"] == "error"]
    assert sorted(errors) == sorted([str(broker / "t-1"), f"{broker}/\\udcff-0"])


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
    table = LogDirectory(broker).records_of_key(b"k1", on_problem=told.append)
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
    assert main([*verb, str(broker), "--format", "jsonl"]) == 1
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
        assert row["hanging"] is None and told == [reason(other)]
        assert row["reason"].startswith(
            "unknown whether it hangs: the readable part of __transaction_state"
        )
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
    assert (row["state"], row["hanging"]) == ("open", None)
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
    assert found.records_of_key(b"k0", on_problem=told.append)["offset"].to_pylist() == [0, 3]
    assert found.producers(on_damage=told.append).num_rows == 0
    assert found.txn(on_damage=told.append).num_rows == 0
    assert len(told) == 3 and len(set(told)) == 1 and str(wrong) in told[0]


@pytest.fixture
def cluster(tmp_path: Path, closed: set[Path]) -> Path:
    """A real broker's directory; nothing in it is closed yet."""
    return Path(shutil.copytree(SAMPLES / "kafka-4.x", tmp_path / "logs"))


def test_groups_are_answered_without_a_closed_topic(cluster: Path, closed: set[Path]) -> None:
    """The lag is not known where the log is closed, all else is as it was."""
    before = LogDirectory(cluster).groups().to_pylist()
    closed.add(cluster / "codecs-1")
    told: list[str] = []
    rows = LogDirectory(cluster).groups(on_damage=told.append).to_pylist()
    assert told == [reason(cluster / "codecs-1")]
    unknown = {"lag": None, "log_end_offset": None}
    hidden = [(row["topic"], row["partition"]) == ("codecs", 1) for row in before]
    assert any(hidden) and not all(hidden)
    expected = [row | (unknown if h else {}) for row, h in zip(before, hidden, strict=True)]
    assert rows == expected
    with pytest.raises(UnreadableError, match="codecs-1"):
        LogDirectory(cluster).groups()
    # Nobody asked for it.
    chosen = LogDirectory(cluster, topics="transactions").groups().to_pylist()
    assert chosen == [row for row in before if row["topic"] == "transactions"]
    assert LogDirectory(cluster).groups(states=True, on_damage=told.append).num_rows


def test_groups_of_the_other_partitions(cluster: Path, closed: set[Path]) -> None:
    """A partition of __consumer_offsets that is closed hides its own groups; where all are, there is no answer."""
    rows = LogDirectory(cluster).groups().to_pylist()
    shutil.copytree(cluster / "__consumer_offsets-0", cluster / "__consumer_offsets-1")
    closed.add(cluster / "__consumer_offsets-1")
    told: list[str] = []
    assert LogDirectory(cluster).groups(on_damage=told.append).to_pylist() == rows
    assert told == [reason(cluster / "__consumer_offsets-1")]
    closed.add(cluster / "__consumer_offsets-0")
    with pytest.raises(UnreadableError, match="__consumer_offsets-0"):
        LogDirectory(cluster).groups(on_damage=told.append)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["a", "b"])
def test_diff_compares_the_others(
    cluster: Path, tmp_path: Path, closed: set[Path], side: str
) -> None:
    other = Path(shutil.copytree(cluster, tmp_path / "other"))
    before = LogDirectory(cluster).diff(other).to_pylist()
    place = (cluster if side == "a" else other) / "codecs-1"
    closed.add(place)
    told: list[str] = []
    rows = LogDirectory(cluster).diff(other, on_damage=told.append).to_pylist()
    assert told == [reason(place)]
    assert rows == [row for row in before if (row["topic"], row["partition"]) != ("codecs", 1)]
    with pytest.raises(UnreadableError, match="codecs-1"):
        LogDirectory(cluster).diff(other)
    assert LogDirectory(cluster, topics="transactions").diff(other).num_rows


def test_metadata_needs_its_own_topic_alone(
    cluster: Path, tmp_path: Path, closed: set[Path]
) -> None:
    before = LogDirectory(cluster).metadata()
    closed.add(cluster / "codecs-1")
    assert LogDirectory(cluster).metadata().equals(before)
    assert LogDirectory(cluster).metadata_changes().num_rows
    other = tmp_path / "other" / "__cluster_metadata-0"
    shutil.copytree(cluster / other.name, other)
    closed.add(other)
    told: list[str] = []
    both = LogDirectory([cluster, other.parent])
    assert both.metadata(on_damage=told.append).equals(before) and told == [reason(other)]
    with pytest.raises(UnreadableError, match=str(other)):
        both.metadata()
    with pytest.raises(UnreadableError, match=str(other)):
        LogDirectory(other.parent).metadata(on_damage=told.append)


def test_a_closed_metadata_log_does_not_say_how_many(cluster: Path, closed: set[Path]) -> None:
    closed.add(cluster / "codecs-1")
    (row, _) = LogDirectory(cluster).coordinator("billing").to_pylist()
    assert row["partitions_from"] == "metadata"
    closed.add(cluster / "__cluster_metadata-0")
    told: list[str] = []
    (row, _) = LogDirectory(cluster).coordinator("billing", on_damage=told.append).to_pylist()
    assert row["partitions_from"] == "default"
    advice = "give the number of partitions (--partitions, partitions)"
    assert told == [f"{reason(cluster / '__cluster_metadata-0')}; {advice}"]
    with pytest.raises(UnreadableError):
        LogDirectory(cluster).coordinator("billing")
    assert LogDirectory(cluster).coordinator("billing", partitions=7).num_rows == 2


VERBS = [
    *("ls", "stat", "check", "dump", "dump --batches", "dump --format vectors", "keys"),
    *("keys --key k1", "txn", "producers", "groups", "diff"),
    *("salvage", "cut --offsets 0:5", "reindex", "convert --codec zstd"),
    "export",
    "export --policy salvage",
]


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reads_the_others_and_names_it(
    cluster: Path,
    tmp_path: Path,
    closed: set[Path],
    verb: str,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    closed.add(cluster / "codecs-1")
    command, *more = verb.split()
    places = [str(cluster)]
    if command == "diff":
        places.append(str(shutil.copytree(cluster, tmp_path / "other")))
    writes = command in ("salvage", "cut", "reindex", "convert", "export")
    if writes:
        more += ["--out", str(tmp_path / "out")]
    assert main([command, *places, *more]) == 1
    out, err = capfdbinary.readouterr()
    assert str(cluster / "codecs-1").encode() in out + err
    assert b"Permission denied" in out + err or command == "ls"
    assert b"Traceback" not in err
    if writes:
        # codecs-4 comes after it.
        assert list((tmp_path / "out").glob("codecs-4*")) and list((tmp_path / "out").glob("tr*"))
    elif command not in ("check", "diff"):
        assert b"codecs" in out or command in ("txn", "producers", "keys")
        assert len(out) > 100


@pytest.mark.parametrize("policy", ["kafka", "strict"])
def test_an_export_from_python_writes_the_others_first(
    cluster: Path, tmp_path: Path, closed: set[Path], policy: str
) -> None:
    """Then comes the error that names it; under salvage there is none."""
    closed.add(cluster / "codecs-1")
    log = LogDirectory(cluster, topics="codecs")
    made: list[str] = []
    with pytest.raises(UnreadableError, match="codecs-1"):
        made.extend(file.path.name for file in log.export(tmp_path / "out", policy=policy))
    others = [f"codecs-{number}.parquet" for number in (0, 2, 3, 4)]
    assert made == others
    assert sorted(path.name for path in (tmp_path / "out").glob("*.parquet")) == others
    found = list(log.export(tmp_path / "all", policy="salvage"))
    assert [(f.path.name, f.lost) for f in found if f.lost] == [
        ("codecs-1.parquet", (reason(cluster / "codecs-1"),))
    ]
    assert len(found) == 5
