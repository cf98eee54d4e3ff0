"""kafka-log salvage: what was good is as it was, what is written is good, and what is lost is said."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from itertools import accumulate, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import PRODUCER_SNAPSHOT, RECORD_BATCH
from kafka_log import LogDirectory, SegmentReader, discover, encode, scan
from kafka_log.cli import main
from kafka_log.logs.partitions import DirectoryError
from kafka_log.write.staged_output import OutputError
from tests.paths import SAMPLES, VECTORS
from tests.shares import draw_seeds, examples
from tests.support.batches import batch, message
from tests.support.damaged_files import MADE, VECTOR_FILES, hurt
from tests.support.histories import History, history
from tests.support.salvage_rows import GAPS, files, problems, rows, said, sound_rows
from tests.support.segment_files import put
from tests.support.unreadable_files import bad

KEPT = (".log", "leader-epoch-checkpoint", "partition.metadata")
BROKERS = ["kafka-2.8", "kafka-4.x"]


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("broker", BROKERS)
def test_what_is_not_damaged_keeps_its_bytes(broker: str, tmp_path: Path) -> None:
    before = files(SAMPLES / broker, "")
    table = LogDirectory(SAMPLES / broker).salvage(tmp_path / "out")
    assert files(tmp_path / "out", *KEPT) == files(SAMPLES / broker, *KEPT)
    said = table.to_pylist()
    of_logs = [row["what"] for row in said if row["file"] != "quorum-state"]
    assert "kept" in of_logs and set(of_logs) <= {"kept", "open", "copied"}
    assert all(row["what"] == "left out" for row in said if row["file"] == "quorum-state")
    assert problems(tmp_path / "out") == []
    assert files(SAMPLES / broker, "") == before


@pytest.mark.slow
@pytest.mark.parametrize("broker", BROKERS)
def test_snapshots_at_the_end_of_a_log_are_the_brokers(broker: str, tmp_path: Path) -> None:
    LogDirectory(SAMPLES / broker).salvage(tmp_path)
    there = 0
    for name, ours in files(tmp_path, ".snapshot").items():
        theirs = SAMPLES / broker / name
        if theirs.exists() and not name.startswith("compacted-again"):  # an emptied marker
            there += 1
            read = [PRODUCER_SNAPSHOT.parse(data).entries for data in (ours, theirs.read_bytes())]
            by_producer = [sorted(entries, key=lambda e: e.producer_id) for entries in read]
            assert by_producer[0] == by_producer[1], name
    assert there > 30


def of_damage(tmp: Path, changed: bytes, base: int = 0) -> None:
    """What salvage makes of a damaged segment is good, and has its sound records."""
    source, out = tmp / "t-0", tmp / "out"
    for old in (source, out):
        shutil.rmtree(old, ignore_errors=True)
    put(source, (base, changed))
    table = LogDirectory(source).salvage(out)
    assert (
        problems(out, (*GAPS, "batch_rules", "control_record")) == []
    )  # a good batch stays as it is
    wanted, found = sound_rows(source), rows(out)
    # Nothing is made up, nothing comes twice, and what is not there is said.
    assert not Counter(found) - Counter(wanted)
    if not any(said(table, what) for what in ("lost", "twice", "unfinished")):
        moved = any(row["reason"] for row in said(table, "kept"))
        assert found == (sorted(wanted, key=lambda row: int(row[0])) if moved else wanted)
    if all(int(a[0]) < int(b[0]) for a, b in pairwise(wanted)) and not not_taken(table):
        assert found == wanted


NOT_TAKEN = ("fit neither its place", "are kept", "it cannot be written")


def not_taken(table: pa.Table) -> bool:
    """Whether records that can be read are not written: batches lie in the wrong place, or no batch can hold what damage made."""
    reasons = [row["reason"] or "" for row in table.to_pylist()]
    return any(why in reason for why in NOT_TAKEN for reason in reasons)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("salvage")


@pytest.mark.slow
@given(st.data())
@examples(60)
def test_of_damaged_batches(scratch: Path, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(MADE) - 6))
    parts = MADE[first : first + 6]
    ends = list(accumulate(map(len, parts), initial=0))
    of_damage(scratch, data.draw(hurt(b"".join(parts), list(pairwise(ends)))))


@pytest.mark.slow
@given(st.data())
@examples(30)
def test_all_that_can_be_read_is_kept_if_asked_for(scratch: Path, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(MADE) - 6))
    parts = MADE[first : first + 6]
    ends = list(accumulate(map(len, parts), initial=0))
    source, out = scratch / "k" / "t-0", scratch / "kept"
    for old in (source, out):
        shutil.rmtree(old, ignore_errors=True)
    put(source, (0, data.draw(hurt(b"".join(parts), list(pairwise(ends))))))
    table = LogDirectory(source).salvage(out, keep_damaged=True)
    assert problems(out, GAPS) == []
    wanted, found = rows(source, policy="salvage"), rows(out)
    assert not Counter(found) - Counter(wanted)
    if all(int(a[0]) < int(b[0]) for a, b in pairwise(wanted)) and not not_taken(table):
        assert found == wanted


@pytest.mark.slow
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.soak)])
def test_of_every_vector(scratch: Path, every: int) -> None:
    for file in VECTOR_FILES[::every]:
        of_damage(scratch, (VECTORS / file).read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_of_every_torn_vector(scratch: Path, every: int) -> None:
    for file in VECTOR_FILES[::every]:
        whole = (VECTORS / file).read_bytes()
        of_damage(scratch, whole[: len(whole) * 2 // 3])


def test_a_damaged_batch_is_lost_or_kept_as_asked(tmp_path: Path) -> None:
    parts = [batch(0), batch(10, "none", 5, 40), batch(20)]
    data = bytearray(b"".join(parts))
    data[len(parts[0]) + len(parts[1]) - 10] ^= 1  # in a value
    source = put(tmp_path / "t-0", (0, bytes(data)))
    table = LogDirectory(source).salvage(tmp_path / "a")
    (lost,) = said(table, "lost")
    assert (lost["byte"], lost["bytes"]) == (len(parts[0]), len(parts[1]))
    assert (lost["first_offset"], lost["last_offset"], lost["records"]) == (10, 14, 5)
    assert "crc" in lost["reason"]
    assert (tmp_path / "a/t-0" / f"{0:020d}.log").read_bytes() == parts[0] + parts[2]

    table = LogDirectory(source).salvage(tmp_path / "b", keep_damaged=True)
    assert said(table, "lost") == []
    (row,) = said(table, "rewritten")
    assert row["records"] == 5
    assert rows(tmp_path / "b") == rows(source, policy="salvage")
    assert problems(tmp_path / "b", GAPS) == []


@pytest.mark.slow
@given(st.data())
def test_offsets_ascend_in_what_is_kept_of_damaged_batches(
    scratch: Path, data: st.DataObject
) -> None:
    """Damage may change the offsets of records inside of a batch."""
    codec = data.draw(st.sampled_from(["none", "gzip"]))
    parts = [batch(5, codec), batch(8, codec), batch(11, codec)]
    damaged = bytearray(parts[1])
    at = data.draw(st.integers(RECORD_BATCH.offset_of("attributes"), len(damaged) - 1))
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    source, out = scratch / "t-0", scratch / "out"
    for old in (source, out):
        shutil.rmtree(old, ignore_errors=True)
    put(source, (5, parts[0] + bytes(damaged) + parts[2]))
    LogDirectory(source).salvage(out, keep_damaged=True)
    found = [int(row[0]) for row in rows(out)]
    assert found == sorted(set(found))
    assert {5, 6, 7, 11, 12, 13} <= set(found) <= set(range(5, 14))


def test_two_records_that_damage_gave_one_offset(tmp_path: Path) -> None:
    records = [{"offset_delta": delta, "key": b"k", "value": b"v"} for delta in (1, 1, 2)]
    twice = bytearray(RECORD_BATCH.build({"base_offset": 5, "records": records}, strict=False))
    twice[RECORD_BATCH.offset_of("crc")] ^= 1
    source = put(tmp_path / "t-0", (5, bytes(twice) + batch(8)))
    table = LogDirectory(source).salvage(tmp_path / "out", keep_damaged=True)
    assert [int(row[0]) for row in rows(tmp_path / "out")] == [6, 7, 8, 9, 10]
    assert [row["records"] for row in said(table, "rewritten")] == [2]
    assert [row["records"] for row in said(table, "lost")] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [1, 9, 1 << 28, 1 << 42])
@pytest.mark.parametrize("which", range(3))
def test_a_wrapper_whose_own_offset_is_wrong_keeps_its_messages(
    which: int, wrong: int, tmp_path: Path
) -> None:
    """Messages of version 0 state their own offsets. No checksum covers that of their wrapper, where brokers continue."""
    parts = [
        b"".join(
            encode(
                pa.table({"offset": range(i, i + 3), "value": [b"v"] * 3}), magic=0, codec="gzip"
            )
        )
        for i in (2, 5, 8)
    ]
    whole = put(tmp_path / "whole/t-0", (2, b"".join(parts)))
    offset = int.from_bytes(parts[which][:8], "big") ^ wrong
    parts[which] = offset.to_bytes(8, "big") + parts[which][8:]
    source = put(tmp_path / "t-0", (2, b"".join(parts)))
    table = LogDirectory(source).salvage(tmp_path / "out")
    assert rows(tmp_path / "out") == rows(whole)
    assert problems(tmp_path / "out") == []
    assert [row["what"] for row in said(table, "lost")] == []
    (row,) = said(table, "rewritten")
    assert (
        row["reason"] == f"its offset is {offset}, but that of its last message is {4 + 3 * which}"
    )


def test_a_version_that_there_is_not(tmp_path: Path) -> None:
    """No checksum covers it. The batch is read as one of the newest version, and written as that."""
    data = bytearray(batch(0) + batch(10))
    data[len(batch(0)) + 16] = 3
    source = put(tmp_path / "t-0", (0, bytes(data)))
    (row,) = said(LogDirectory(source).salvage(tmp_path / "out"), "rewritten")
    assert row["byte"] == len(batch(0))
    assert row["reason"].startswith("version 3 is unknown: what is read as version 2 may be wrong")
    written = (tmp_path / "out/t-0" / f"{0:020d}.log").read_bytes()
    assert (written[: len(batch(0))], written[len(batch(0)) + 16]) == (batch(0), 2)
    assert rows(tmp_path / "out") == rows(put(tmp_path / "whole/t-0", (0, batch(0) + batch(10))))


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_what_is_whole_of_a_torn_batch(tmp_path: Path, codec: str) -> None:
    whole = batch(0, codec, 20, 60)
    source = put(tmp_path / "t-0", (0, whole[: len(whole) * 3 // 4]))
    LogDirectory(source).salvage(tmp_path / "out")
    found = rows(tmp_path / "out")
    assert found == sound_rows(source)
    assert len(found) < 20
    if codec == "none":
        assert found


def test_bad_sectors(tmp_path: Path) -> None:
    parts = [batch(i * 10, size=300) for i in range(30)]
    source = put(tmp_path / "t-0", (0, b"".join(parts)))
    ends = list(accumulate(map(len, parts), initial=0))
    sector = ends[12] // 512 * 512
    with bad(source / f"{0:020d}.log", [(sector, sector + 512)]):
        table = LogDirectory(source).salvage(tmp_path / "out")
        wanted = sound_rows(source)
    assert rows(tmp_path / "out") == wanted
    assert len(wanted) >= 84
    assert any("cannot be read" in row["reason"] for row in said(table, "lost"))
    assert problems(tmp_path / "out", GAPS) == []


def committed(made: History) -> list[int]:
    """What was written outside of transactions, or in one that was committed, and is there still."""
    open_: dict[int, set[int]] = {}
    for written in made.batches:
        if written.kind == "data":
            new = range(written.offset, written.offset + written.count)
            open_.setdefault(written.producer, set()).update(new)
        elif written.kind != "plain":
            open_.pop(written.producer, None)
    undecided = set().union(*open_.values())
    return [o for o in made.uncommitted() if o not in made.aborted | undecided]


def gaps(directory: Path) -> set[tuple[int, int]]:
    """Return the offsets that `check` misses."""
    rows = LogDirectory(directory).check().to_pylist()
    return {(row["first_offset"], row["last_offset"]) for row in rows if row["code"] in GAPS}


@pytest.mark.slow
def test_control_records_are_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SAMPLES / "kafka-4.x"
    log = LogDirectory(source, topics="transactions")
    counts = [
        scan(source, ["offset"], topics="transactions", control_records=flag).read_all().num_rows
        for flag in (False, True)
    ]
    table = log.salvage(tmp_path / "out")
    found = [pc.sum(table.column(name)).as_py() for name in ("records", "control_records")]
    assert found == [counts[0], counts[1] - counts[0]] and min(found) > 0
    for command, one in (
        ("salvage", []),
        ("cut", ["--offsets", "0:1000"]),
        ("merge", [str(source)]),
    ):
        out = ["--out", str(tmp_path / command)]
        assert main([command, str(source), *one, "--topic", "transactions", *out]) == 0
        text = capsys.readouterr().out
        pairs = re.findall(
            r"^transactions-\d+: (\d+) records and (\d+) control records? in", text, re.M
        )
        assert [sum(map(int, numbers)) for numbers in zip(*pairs, strict=True)] == found
    flat = log.salvage(tmp_path / "flat", flatten=True).to_pylist()
    left_out = [row for row in flat if row["what"] == "left out"]
    markers = [row for row in left_out if row["reason"].startswith("transaction markers")]
    assert sum(row["control_records"] for row in markers) == found[1]
    assert {row["records"] for row in markers} == {0}


def test_what_flatten_leaves_out_is_no_gap(tmp_path: Path) -> None:
    """Beside records without keys, which no compacted topic has, `check` takes missing offsets for lost ones."""
    for seed in (1, 2, 10):  # no offset is missing there
        made, out = history(tmp_path / f"t-{seed}", seed), tmp_path / f"out-{seed}"
        table = LogDirectory(made.directory).salvage(out, flatten=True)
        assert said(table, "left out")
        assert problems(out) == []


def test_flattened_batches_end_where_they_did(tmp_path: Path) -> None:
    """Compaction removes records, and leaves batches without records for the sake of their producers: a log may end with these."""

    def build(first: int, last: int, *offsets: int) -> bytes:
        records = [{"offset_delta": offset - first, "value": b"v" * 99} for offset in offsets]
        fields = {"base_offset": first, "last_offset_delta": last - first, "records": records}
        whose = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
        return RECORD_BATCH.build({**fields, **whose, "attributes": {"compression": "gzip"}})

    source = put(tmp_path / "t-0", (0, build(0, 3, 0, 2) + batch(4)), (9, build(9, 11)))
    LogDirectory(source).salvage(tmp_path / "out", flatten=True)
    before, made = (
        [b for (found,) in [discover(path)] for s in found.segments for b in SegmentReader(s.path)]
        for path in (source, tmp_path / "out")
    )
    assert [(b.base_offset, b.last_offset, b.size) for b in made] == [
        (b.base_offset, b.last_offset, b.size) for b in before
    ]
    assert {(b.producer_id, b.producer_epoch, b.base_sequence) for b in made} == {(-1, -1, -1)}
    assert [row[:6] for row in rows(tmp_path / "out")] == [row[:6] for row in rows(source)]


@pytest.mark.slow
def test_flatten_leaves_committed_data(tmp_path: Path) -> None:
    for seed in draw_seeds(20):
        made = history(tmp_path / f"t-{seed}", seed)
        table = LogDirectory(made.directory).salvage(tmp_path / f"out-{seed}", flatten=True)
        out = tmp_path / f"out-{seed}"
        found = rows(out, isolation="read_committed")
        assert [int(row[0]) for row in found] == committed(made), seed
        # What is left out leaves no gap: those of the log are there, and no other.
        assert problems(out, GAPS) == [], seed
        assert gaps(out) <= gaps(made.directory), seed
        for partition in discover(out):
            for segment in partition.segments:
                for b in SegmentReader(segment.path):
                    assert b.producer_id == -1
                    assert not b.is_transactional and not b.is_control
        assert not said(table, "lost")
        ends = [LogDirectory(path).stat().to_pylist()[0] for path in (made.directory, out)]
        assert ends[1]["segments"] >= 1


@pytest.mark.slow
def test_histories_are_as_they_were(tmp_path: Path) -> None:
    """Also those whose first segments were deleted: the snapshot says which transactions began there."""
    for seed in draw_seeds(20):
        made = history(tmp_path / f"t-{seed}", seed)
        out = tmp_path / f"out-{seed}"
        table = LogDirectory(made.directory).salvage(out)
        assert rows(out) == rows(made.directory)
        for isolation in ("read_committed", "read_uncommitted"):
            ours, theirs = (rows(p, isolation=isolation) for p in (out, made.directory))
            assert ours == theirs, seed
        firsts = [row["first_offset"] for row in said(table, "open")]
        assert min(firsts, default=None) == made.last_stable_offset, seed


def test_a_lost_marker_leaves_a_transaction_open_unless_flat(tmp_path: Path) -> None:
    source = tmp_path / "transactions-1"
    shutil.copytree(SAMPLES / "kafka-4.x" / "transactions-1", source)
    path = source / f"{0:020d}.log"
    marker = [b for b in SegmentReader(path) if b.is_control][-1]
    data = bytearray(path.read_bytes())
    data[marker.position + marker.size - 1] ^= 1
    path.write_bytes(data)
    table = LogDirectory(source).salvage(tmp_path / "a")
    (row,) = said(table, "open")
    assert said(table, "lost")
    out = tmp_path / "a"
    assert max(int(r[0]) for r in rows(out, isolation="read_committed")) < row["first_offset"]
    table = LogDirectory(source).salvage(tmp_path / "b", flatten=True)
    assert said(table, "open") == []
    flat = rows(tmp_path / "b")
    assert rows(tmp_path / "b", isolation="read_committed") == flat
    assert max(int(r[0]) for r in flat) > row["first_offset"]  # others go on behind it


def test_the_log_ends_where_it_did(tmp_path: Path) -> None:
    """New records must not have offsets that consumers have seen; and consumers must come to the end."""
    source = SAMPLES / "kafka-4.x" / "transactions-0"
    LogDirectory(source).salvage(tmp_path, flatten=True)
    (partition,) = discover(tmp_path)
    (segment,) = partition.segments
    *_, last = SegmentReader(segment.path)
    assert (last.base_offset, last.last_offset, last.records) == (48, 49, [])


def test_leader_epochs_of_a_log_that_ends_before_its_start(tmp_path: Path) -> None:
    """The broker's file begins at the log start offset, after all that can be read; check says nothing of what comes out."""
    source = tmp_path / "in" / "trimmed-0"
    shutil.copytree(SAMPLES / "kafka-2.8" / "trimmed-0", source)
    path = source / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:181])
    LogDirectory(tmp_path / "in").salvage(tmp_path / "out")
    epochs = (tmp_path / "out" / "trimmed-0" / "leader-epoch-checkpoint").read_text()
    assert epochs == "0\n1\n0 0\n"
    assert LogDirectory(tmp_path / "out").check().num_rows == 0


@pytest.mark.slow
@pytest.mark.parametrize("flatten", [False, True])
def test_the_metadata_log_and_its_snapshots(flatten: bool, tmp_path: Path) -> None:
    """A metadata log that begins after its snapshot is nothing without it, nor without its own control records."""
    source = tmp_path / "in" / "__cluster_metadata-0"
    shutil.copytree(SAMPLES / "kafka-4.x" / source.name, source)
    log = LogDirectory(tmp_path / "in")
    said = log.salvage(tmp_path / "out", flatten=flatten).to_pylist()
    snapshots = sorted(path.name for path in source.glob("*.checkpoint"))
    assert sorted(row["file"] for row in said if row["what"] == "copied") == snapshots
    assert {row["what"] for row in said} == {"kept", "copied", "left out"}
    assert [row["file"] for row in said if row["what"] == "left out"] == ["quorum-state"]
    flat = [row["reason"] or "" for row in said if row["what"] == "kept"]
    assert all(("--flatten" in reason) == flatten for reason in flat)
    for snapshot in snapshots:
        copy = tmp_path / "out" / source.name / snapshot
        assert copy.read_bytes() == (source / snapshot).read_bytes()
    made = LogDirectory(tmp_path / "out")
    assert made.check().num_rows == 0
    for kind in ("topics", "partitions", "configs"):
        assert made.metadata(kind) == log.metadata(kind)
    # One that was not written to its end is of no use.
    newest = source / snapshots[-1]
    newest.write_bytes(newest.read_bytes()[:-20])
    said = log.salvage(tmp_path / "again").to_pylist()
    assert [row["file"] for row in said if row["what"] == "lost"] == snapshots[-1:]
    assert not (tmp_path / "again" / source.name / newest.name).exists()


@pytest.mark.slow
@pytest.mark.parametrize("flatten", [False, True])
def test_a_metadata_log_that_begins_after_its_snapshot(flatten: bool, tmp_path: Path) -> None:
    """It says the same as before, and nothing without the snapshot."""
    whole = SAMPLES / "kafka-4.x" / "__cluster_metadata-0"
    newest = max(whole.glob("*.checkpoint"))
    end = int(newest.name[:20])
    LogDirectory(whole).cut(tmp_path / "in", (end, None))
    source = tmp_path / "in" / whole.name
    assert [int(path.stem) for path in source.glob("*.log")] == [end] != [0]
    with pytest.raises(DirectoryError):
        LogDirectory(source).metadata("topics")
    shutil.copyfile(newest, source / newest.name)
    LogDirectory(source).salvage(tmp_path / "out", flatten=flatten)
    for kind in ("topics", "partitions", "configs", "features"):
        expected = LogDirectory(whole).metadata(kind)
        assert expected.num_rows
        assert LogDirectory(tmp_path / "out").metadata(kind) == expected
    assert LogDirectory(tmp_path / "out" / whole.name).check().num_rows == 0


def test_salvage_knows_the_snapshots_that_it_has_copied(tmp_path: Path) -> None:
    """Another snapshot beside the same log is not taken for the one that is there."""
    source = tmp_path / "in" / "__cluster_metadata-0"
    shutil.copytree(SAMPLES / "kafka-4.x" / source.name, source)
    newest = max(source.glob("*.checkpoint"))
    data = newest.read_bytes()
    newest.write_bytes(data[:-20])
    first = LogDirectory(source).salvage(tmp_path / "out")
    assert "lost" in first.column("what").to_pylist()
    assert LogDirectory(source).salvage(tmp_path / "out") == first
    newest.write_bytes(data)
    with pytest.raises(OutputError, match="its metadata snapshots differ"):
        LogDirectory(source).salvage(tmp_path / "out")
    LogDirectory(source).salvage(tmp_path / "new")
    newest.unlink()
    with pytest.raises(OutputError, match="its metadata snapshots differ"):
        LogDirectory(source).salvage(tmp_path / "new")


def test_all_snapshots_take_part_in_salvage_whatever_is_included(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SAMPLES / "kafka-4.x" / "__cluster_metadata-0"
    names = {path.name for path in source.glob("*.checkpoint")}
    for i, include in enumerate(([], ["--include", "snapshot"], ["--flatten"])):
        out = tmp_path / str(i)
        assert main(["salvage", str(source), "--out", str(out), *include]) == 0
        text, err = capsys.readouterr()
        assert err == ""
        assert all(f"copied: {name}" in text for name in names)
        assert "left out: quorum-state" in text
        assert ("leaves the metadata log as it is" in text) == ("--flatten" in include)
        assert {path.name for path in (out / source.name).glob("*.checkpoint")} == names


def test_a_segment_that_is_a_link_to_nothing_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disk that is not mounted: the others are written, and nobody says that nothing is lost."""
    source = tmp_path / "t-0"
    shutil.copytree(SAMPLES / "kafka-4.x/segments.small-0", source)
    (source / f"{84:020d}.log").unlink()
    (source / f"{84:020d}.log").symlink_to("gone")
    assert main(["salvage", str(source), "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr().out
    assert "lost: 00000000000000000084.log" in printed and "a dangling link" in printed
    assert main(["convert", str(source), "--codec", "gzip", "--out", str(tmp_path / "new")]) == 1
    assert "a dangling link" in capsys.readouterr().err and not (tmp_path / "new/t-0").exists()
    assert main(["reindex", str(source), "--out", str(tmp_path / "indexes")]) == 1
    assert "a dangling link" in capsys.readouterr().out
    cut = ["cut", str(source), "--out", str(tmp_path / "cut"), "--offsets"]
    assert main([*cut, ":84"]) == 0
    shutil.rmtree(tmp_path / "cut")
    assert main([*cut, ":85"]) == 1


def test_a_partition_without_segments_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t-0").mkdir()
    argv = ["cut", str(tmp_path / "t-0"), "--out", str(tmp_path / "out"), "--offsets", "0:5"]
    assert main(argv) == 0
    printed = capsys.readouterr()
    assert printed.out == "nothing to write: there are no segments\n"
    assert printed.err.splitlines() == ["kafka-log: nothing matches --offsets"]


def test_segments_that_overlap(tmp_path: Path) -> None:
    """As after a crash while a cleaned segment takes the place of two."""
    parts = [batch(i * 3) for i in range(10)]
    source = put(tmp_path / "t-0", (0, b"".join(parts)), (15, b"".join(parts[5:])))
    table = LogDirectory(source).salvage(tmp_path / "out")
    assert [int(row[0]) for row in rows(tmp_path / "out")] == list(range(30))
    assert said(table, "lost") == []
    (row,) = said(table, "twice")
    assert (row["first_offset"], row["last_offset"], row["batches"]) == (15, 29, 5)
    assert problems(tmp_path / "out") == []


def test_batches_in_the_wrong_place(tmp_path: Path) -> None:
    data = batch(0) + batch(30) + batch(10) + batch(20) + message(40)
    source = put(tmp_path / "t-0", (0, data))
    assert main(["salvage", str(source), "--out", str(tmp_path / "out")]) == 1
    assert [int(row[0]) for row in rows(tmp_path / "out")] == [0, 1, 2, 10, 11, 12, 20, 21, 22, 40]
    assert problems(tmp_path / "out", GAPS) == []


def test_nothing_is_left(tmp_path: Path) -> None:
    source = put(tmp_path / "t-0", (500, b"what is this?" * 99))
    table = LogDirectory(source).salvage(tmp_path / "out")
    assert said(table, "lost")
    (partition,) = discover(tmp_path / "out")
    assert [(s.base_offset, s.size) for s in partition.segments] == [(500, 0)]
    assert problems(tmp_path / "out", GAPS) == []


def test_zeros_that_nobody_wrote_are_no_loss(tmp_path: Path) -> None:
    source = put(tmp_path / "t-0", (0, batch(0) + bytes(5000)))
    assert main(["salvage", str(source), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/t-0" / f"{0:020d}.log").read_bytes() == batch(0)


def test_a_file_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "found.bin"
    path.write_bytes(b"junk" + batch(70) + batch(80))
    LogDirectory(path).salvage(tmp_path / "out")
    assert [p.name for p in sorted((tmp_path / "out/found-0").glob("*.log"))] == [f"{70:020d}.log"]
    assert [int(row[0]) for row in rows(tmp_path / "out")] == [70, 71, 72, 80, 81, 82]
