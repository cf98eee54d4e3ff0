"""The table of producers: held against what brokers noted of them, and a count in numbers that do not wrap."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import LOG_ENTRY, PRODUCER_SNAPSHOT
from kafka_log import LogDirectory, SegmentReader, discover
from kafka_log.cli import main
from kafka_log.inspect.producers.table import PRODUCERS, SEQUENCES, sequence_distance
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.histories import TIME

PARTITIONS = [p for folder in ("kafka-2.8", "kafka-4.x") for p in discover(SAMPLES / folder)]


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    table = LogDirectory(path).producers(**options)
    assert table.schema == PRODUCERS
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def batch(offset: int, sequence: int, count: int, producer: int = 7, epoch: int = 0) -> bytes:
    records = [
        {"timestamp_delta": 0, "offset_delta": i, "key": None, "value": b"v", "headers": []}
        for i in range(count)
    ]
    data: bytes = LOG_ENTRY.build(
        {
            "magic": 2,
            "base_offset": offset,
            "base_timestamp": TIME + offset,
            "max_timestamp": TIME + offset,
            "producer_id": producer,
            "producer_epoch": epoch,
            "base_sequence": sequence % SEQUENCES,
            "records": records,
        }
    )
    return data


def written(directory: Path, batches: list[bytes]) -> Path:
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))
    return directory


# ---------------------------------------------------------------- brokers


@pytest.mark.slow
@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: f"{p.directory.parent.name}-{p.directory.name}")  # fmt: skip
def test_as_all_records_have_it(partition: Any) -> None:
    """Every record by itself, by the reference codecs."""
    naive: dict[tuple[int, int], list[tuple[int, int]]] = {}
    markers: dict[tuple[int, int], int] = {}
    for segment in partition.segments:
        for found in SegmentReader(segment.path):
            key = found.producer_id, found.producer_epoch
            if found.is_control and found.producer_id >= 0:
                markers[key] = markers.get(key, 0) + 1
            elif found.producer_id >= 0:
                naive.setdefault(key, []).extend((r.sequence, r.offset) for r in found.records)
    table = {(r["producer_id"], r["producer_epoch"]): r for r in rows(partition.directory)}
    assert {key for key, row in table.items() if row["batches"] or row["markers"]} == {
        *naive,
        *markers,
    }
    for key, row in table.items():
        numbers = naive.get(key, [])
        assert row["records"] == len(numbers)
        assert row["markers"] == markers.get(key, 0)
        if partition.topic.startswith("__"):
            assert (row["first_sequence"], row["last_sequence"]) == (None, None)
        elif numbers and "compacted" not in partition.topic:
            assert (row["first_sequence"], row["last_sequence"]) == (numbers[0][0], numbers[-1][0])
            assert (row["first_offset"], row["last_offset"]) == (numbers[0][1], numbers[-1][1])


@pytest.mark.parametrize("folder", ["kafka-2.8", "kafka-4.x"])
def test_the_last_sequence_is_what_the_broker_noted(folder: str) -> None:
    """The brokers were stopped cleanly: their newest snapshots are of the end of the log."""
    noted = [r for r in rows(SAMPLES / folder) if r["snapshot_last_sequence"] is not None]
    assert len(noted) > 5
    for row in noted:
        assert row["last_sequence"] == row["snapshot_last_sequence"], row


def test_brokers_take_no_gaps_and_no_duplicates() -> None:
    for folder in ("kafka-2.8", "kafka-4.x"):
        found = rows(SAMPLES / folder)
        assert len(found) > 5
        for row in found:
            assert row["duplicates"] == 0
            if "compacted" not in row["topic"]:
                assert row["gaps"] == 0, row


def test_producers_without_an_id_have_no_row() -> None:
    assert rows(SAMPLES / "kafka-2.8" / "v1-0") == []
    assert min(row["producer_id"] for row in rows(SAMPLES / "kafka-4.x")) >= 0


# ---------------------------------------------------------------- sequences


STEPS = st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=1, max_size=12)


@pytest.mark.slow
@examples(150)
@given(STEPS, st.sampled_from([0, 5, 100, SEQUENCES - 20, SEQUENCES - 5, SEQUENCES - 1]))
def test_gaps_and_duplicates(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], start: int
) -> None:
    """The same count in numbers that go on where sequences begin anew."""
    runs: list[tuple[int, int]] = []
    following = start + SEQUENCES  # so that none is below 0
    for jump, count in steps:
        first = following + jump if runs else following
        runs.append((first, count))
        following = first + count
    offset = 0
    batches = []
    for first, count in runs:
        batches.append(batch(offset, first, count))
        offset += count
    directory = written(tmp_path_factory.mktemp("log") / "t-0", batches)
    (row,) = rows(directory)
    highest = [runs[0][0] - 1]
    for first, count in runs:
        highest.append(max(highest[-1], first + count - 1))
    before = list(zip(runs, highest, strict=False))
    assert row["gaps"] == sum(max(first - high - 1, 0) for (first, _), high in before)
    assert row["duplicates"] == sum(first <= high for (first, _), high in before)
    assert row["last_sequence"] == highest[-1] % SEQUENCES
    assert row["first_sequence"] == runs[0][0] % SEQUENCES
    assert row["batches"] == len(runs)
    assert row["records"] == sum(count for _, count in runs)


def test_distance_goes_the_shorter_way_round() -> None:
    assert [sequence_distance(a, b) for a, b in pairwise([0, 1, 0, SEQUENCES - 1, 0])] == [
        1,
        -1,
        -1,
        1,
    ]
    assert sequence_distance(SEQUENCES - 2, 3) == 5


def test_epochs_begin_anew(tmp_path: Path) -> None:
    directory = written(tmp_path / "t-0", [batch(0, 0, 3), batch(3, 0, 2, epoch=1)])
    assert [(r["producer_epoch"], r["gaps"], r["duplicates"]) for r in rows(directory)] == [
        (0, 0, 0),
        (1, 0, 0),
    ]


def test_timestamps_are_the_smallest_and_the_largest(tmp_path: Path) -> None:
    """Producers' clocks go back, too: each batch here has its offset as the time."""
    batches = [batch(5, 0, 1), batch(3, 1, 1), batch(4, 2, 1)]
    (row,) = rows(written(tmp_path / "t-0", batches))
    ends = row["first_timestamp"], row["last_timestamp"]
    assert [round(time.timestamp() * 1000) - TIME for time in ends] == [3, 5]


# ---------------------------------------------------------------- snapshots


def snapshot(sequence: int, producer: int = 7, epoch: int = 0) -> bytes:
    entry = {"producer_id": producer, "producer_epoch": epoch, "timestamp": TIME}
    last = {"last_sequence": sequence, "last_offset": 9}
    data: bytes = PRODUCER_SNAPSHOT.build({"version": 1, "entries": [entry | last]})
    return data


def test_the_newest_snapshot_that_can_be_read_counts(tmp_path: Path) -> None:
    directory = written(tmp_path / "t-0", [batch(0, 0, 3)])
    assert rows(directory)[0]["snapshot_last_sequence"] is None
    for offset, sequence in ((1, 11), (20, 22), (3, 33)):
        (directory / f"{offset:020}.snapshot").write_bytes(snapshot(sequence))
    (directory / f"{30:020}.snapshot.deleted").write_bytes(snapshot(44))
    assert rows(directory)[0]["snapshot_last_sequence"] == 22
    (directory / f"{20:020}.snapshot").write_bytes(snapshot(22)[:-1])
    assert rows(directory)[0]["snapshot_last_sequence"] == 33


def test_a_producer_that_only_the_snapshot_knows(tmp_path: Path) -> None:
    directory = written(tmp_path / "t-0", [batch(0, 0, 3)])
    (directory / f"{3:020}.snapshot").write_bytes(snapshot(5, producer=8))
    of_7, of_8 = rows(directory)
    assert (of_7["snapshot_last_sequence"], of_7["records"]) == (None, 3)
    assert (of_8["snapshot_last_sequence"], of_8["records"], of_8["last_sequence"]) == (5, 0, None)
    assert rows(directory, producers=8) == [of_8]
    assert rows(directory, producers=[7]) == [of_7]


# ---------------------------------------------------------------- the command


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = written(tmp_path / "t-0", [batch(0, 0, 3), batch(3, 5, 2)])
    assert main(["producers", str(directory)]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[-2:] == ["gaps", "duplicates"]
    assert line.split() == ["t", "0", "7", "0", "5", "6", "2", "0"]
    assert main(["producers", str(directory), "--producer", "8"]) == 0
    assert capsys.readouterr().out == "no producers\n"


def test_damage_is_named_and_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [batch(0, 0, 3), batch(3, 3, 2), batch(5, 5, 1)]
    whole[1] = whole[1][:8] + b"\0\0\0\1" + whole[1][12:]
    directory = written(tmp_path / "t-0", whole)
    assert main(["producers", str(directory), "--format", "csv"]) == 1
    out, err = capsys.readouterr()
    assert "bytes" in err
    assert f"{0:020}.log" in err
    assert len(out.splitlines()) == 2
    with pytest.raises(Exception, match="were skipped"):
        rows(directory)
