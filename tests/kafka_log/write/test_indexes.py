"""kafka-log reindex: the files beside segments, as brokers write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codecgen.runtime.arrow.structured_dtype import structured
from kafka_codecs import OFFSET_INDEX_ENTRY, RECORD_BATCH, TIME_INDEX_ENTRY
from kafka_log import LogDirectory, discover
from kafka_log.cli import main
from kafka_log.logs.partitions import Segment
from kafka_log.write.indexes import EntryRule
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.batches import batch
from tests.support.histories import history
from tests.support.lying_headers import START, with_header
from tests.support.salvage_rows import files, said
from tests.support.segment_files import put

SMALL = 300
"""The index.interval.bytes of the samples that have more than one segment."""

INDEXES = (".index", ".timeindex", ".txnindex")
HISTORY = ("kafka-2.8/compacted-", "kafka-2.8/v1-compacted-")
"""Kafka 2.8 has an entry for what is appended at once at most: what the cleaner keeps of a segment, and the messages that one
request of an old producer brings. Which batches these were cannot be seen any more; `check` takes ours as well."""

ROLLED = [
    segment
    for version in ("kafka-2.8", "kafka-4.x")
    for partition in discover(SAMPLES / version)
    for segment in partition.segments
    if segment.rolled
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The indexes of both brokers' samples."""
    out = tmp_path_factory.mktemp("indexes")
    for version in ("kafka-2.8", "kafka-4.x"):
        table = LogDirectory(SAMPLES / version).reindex(out / version, interval_bytes=SMALL)
        others = [row["file"] for row in table.to_pylist() if row["what"] != "indexed"]
        there = (SAMPLES / version).glob("__cluster_metadata-0/*.checkpoint")
        assert sorted(others) == sorted(path.name for path in there)
    return out


def ours_and_theirs(made: Path, segment: Segment, end: str) -> tuple[bytes, bytes]:
    theirs = segment.path.with_suffix(end)
    ours = made / theirs.relative_to(SAMPLES)
    found = [path.read_bytes() if path.exists() else b"" for path in (ours, theirs)]
    return found[0], found[1]


@pytest.mark.slow
def test_rolled_segments_have_the_brokers_bytes(made: Path) -> None:
    assert len(ROLLED) > 15
    differ = {
        str(segment.path.with_suffix(end).relative_to(SAMPLES))
        for segment in ROLLED
        for end in INDEXES
        if len(set(ours_and_theirs(made, segment, end))) > 1
    }
    assert all(name.startswith(HISTORY) for name in differ), differ


def test_transaction_indexes_are_the_brokers(made: Path) -> None:
    there = 0
    for version in ("kafka-2.8", "kafka-4.x"):
        theirs = files(SAMPLES / version, ".txnindex")
        assert files(made / version, ".txnindex") == {n: d for n, d in theirs.items() if d}
        there += len(theirs)
    assert there >= 10


def test_snapshots_where_segments_begin_are_the_brokers(made: Path) -> None:
    name = "kafka-4.x/segments.small-1/{:020d}.snapshot"
    for base in (44, 81, 108):
        assert (made / name.format(base)).read_bytes() == (SAMPLES / name.format(base)).read_bytes()


def test_every_entry_leads_to_its_batch(made: Path, tmp_path: Path) -> None:
    """The rule of a broker's sanity check, and of its lookups, by `check` on segments with our indexes."""
    for version in ("kafka-2.8", "kafka-4.x"):
        for path in (SAMPLES / version).rglob("*.log"):
            target = tmp_path / path.relative_to(SAMPLES)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
        for name, data in files(made / version, *INDEXES).items():
            (tmp_path / version / name).write_bytes(data)
        found = LogDirectory(tmp_path / version).check().to_pylist()
        assert [row for row in found if "index" in row["code"]] == []


@pytest.mark.slow
def test_aborted_transactions_of_histories(tmp_path: Path) -> None:
    """Also those that began before the first segment, as its snapshot says."""
    for seed in draw_seeds(30):
        history(tmp_path / "logs" / f"t-{seed}", seed)
    LogDirectory(tmp_path / "logs").reindex(tmp_path / "out")
    for name, data in files(tmp_path / "out", *INDEXES).items():
        (tmp_path / "logs" / name).write_bytes(data)
    found = LogDirectory(tmp_path / "logs").check().to_pylist()
    assert [row for row in found if "index" in row["code"]] == []
    assert len(files(tmp_path / "out", ".txnindex")) > 10


def naive(batches: list[tuple[int, int, int]], interval: int) -> tuple[list[int], list[int]]:
    """Kafka's LogSegment.append and onBecomeInactiveSegment, word for word, of size, last offset and timestamp; offsets that have an
    entry in the offset index, and timestamps in the time index."""
    offsets, times = [], []
    since, largest = 0, -1
    for size, last, timestamp in batches:
        largest = max(largest, timestamp)
        if since > interval:
            offsets.append(last)
            if largest > (times[-1] if times else -1):
                times.append(largest)
            since = 0
        since += size
    if largest > (times[-1] if times else -1):
        times.append(largest)
    return offsets, times


@pytest.mark.parametrize("seed", draw_seeds(1, first=7))
def test_the_rule_is_kafkas(seed: int) -> None:
    r = np.random.default_rng(seed)
    for _ in range(200):
        interval = int(r.integers(0, 500))
        rule = EntryRule(100, interval)
        batches = []
        position, last = 0, 100
        for _ in range(int(r.integers(0, 30))):
            size, timestamp = int(r.integers(61, 400)), int(r.integers(-1, 40))
            last += int(r.integers(1, 4))
            batches.append((size, last, timestamp))
            rule.add(position, size, last, timestamp)
            position += size
        rule.close()
        made = rule.files()
        offsets = np.frombuffer(made[".index"], structured(OFFSET_INDEX_ENTRY))
        times = np.frombuffer(made[".timeindex"], structured(TIME_INDEX_ENTRY))
        found = [o + 100 for o in offsets["relative_offset"].tolist()], times["timestamp"].tolist()
        assert found == naive(batches, interval)


def test_offsets_that_do_not_rise_have_no_entry(tmp_path: Path) -> None:
    """A broker would not load an index with them."""
    parts = [batch(o, size=200) for o in (10, 20, 15, 5, 30)]
    source = put(tmp_path / "t-0", (10, b"".join(parts)))
    LogDirectory(source).reindex(tmp_path / "out", interval_bytes=0)
    data = (tmp_path / "out/t-0" / f"{10:020d}.index").read_bytes()
    found = np.frombuffer(data, structured(OFFSET_INDEX_ENTRY))["relative_offset"].tolist()
    assert found == [12, 22]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"max_timestamp": -1}, f"max_timestamp is -1, but a record has {START + 2}; "),
        ({"max_timestamp": START - 1}, f"max_timestamp is {START - 1}, but a record has"),
        ({"last_offset_delta": 0}, "the last offset is 3, but a record has 5; "),
        ({"max_timestamp": START + 1}, None),
        ({}, None),
    ],
)
def test_a_batch_is_named_whose_header_says_less_than_its_records(
    tmp_path: Path, fields: dict[str, int], reason: str | None
) -> None:
    """Index entries are those of Kafka's recovery, which believes the header: a broker finds the records by no better ones."""
    records = [{"timestamp_delta": i, "offset_delta": i, "value": bytes(400)} for i in range(3)]
    head = {"base_timestamp": START, "max_timestamp": START + 2, "last_offset_delta": 2}
    whole = [
        RECORD_BATCH.build({"base_offset": 3 * i, "records": records, **head}) for i in range(4)
    ]
    whole[1] = with_header(whole[1], **fields)
    source = put(tmp_path / "t-0", (0, b"".join(whole)))
    table = LogDirectory(source).reindex(tmp_path / "out", interval_bytes=0)
    rows = said(table, "understated")
    data = (tmp_path / "out/t-0" / f"{0:020d}.timeindex").read_bytes()
    times = np.frombuffer(data, structured(TIME_INDEX_ENTRY))["timestamp"].tolist()
    assert times == [START + 2]
    if reason is None:
        assert rows == []
        return
    (row,) = rows
    place = (row["file"], row["byte"], row["bytes"], row["first_offset"], row["last_offset"])
    assert place == (f"{0:020}.log", len(whole[0]), len(whole[1]), 3, 5)
    assert row["reason"].startswith(reason)


def test_damage_is_passed_over_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [batch(i * 3, size=400) for i in range(9)]
    data = bytearray(b"".join(parts))
    data[len(parts[0]) + 200] ^= 1
    source = put(tmp_path / "t-0", (0, bytes(data)))
    assert main(["reindex", str(source), "--out", str(tmp_path / "out")]) == 1
    assert "lost" in capsys.readouterr().out
    table = LogDirectory(source).reindex(tmp_path / "out")
    (lost,) = said(table, "lost")
    assert (lost["byte"], lost["bytes"]) == (len(parts[0]), len(parts[1]))
    assert sorted(p.suffix for p in (tmp_path / "out/t-0").iterdir()) == [
        ".index",
        ".snapshot",
        ".timeindex",
    ]


def test_a_segment_that_cannot_be_opened_is_not_indexed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = put(tmp_path / "t-0", (0, batch(0)), (6, batch(6)))
    (source / f"{3:020d}.log").symlink_to("gone")
    out = tmp_path / "out"
    assert main(["reindex", str(source), "--out", str(out)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("t-0: 2 segments indexed\n  lost: ")
    assert f"{3:020d}.log" in text and "dangling link" in text
    rows = said(LogDirectory(source).reindex(tmp_path / "again"), "indexed")
    indexed = {Path(row["file"]).stem for row in rows}
    assert indexed == {path.stem for path in out.rglob("*.index")} == {f"{b:020d}" for b in (0, 6)}


def test_a_name_that_says_no_offset(tmp_path: Path) -> None:
    path = tmp_path / "some.log"
    path.write_bytes(batch(0))
    table = LogDirectory(path).reindex(tmp_path / "out")
    (row,) = said(table, "lost")
    assert "20 digits" in row["reason"]
