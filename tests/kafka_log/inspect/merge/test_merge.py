"""Merges by hand: elections, compaction, log start offsets, other topics of the same name, and the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_codecs import LEADER_EPOCH_CHECKPOINT, OFFSET_CHECKPOINT, PARTITION_METADATA
from kafka_log import LogDirectory, Partition
from kafka_log.cli import main
from kafka_log.inspect.merge.replica import Replica, read_replica
from kafka_log.write.rewrite.partition_writer import finish
from kafka_log.write.staged_output import OutputError
from tests.paths import SAMPLES
from tests.support.replicas import Entry, Log, Made, compacted, write
from tests.support.salvage_rows import problems, rows, said

LOG: Log = [
    Entry(2 * i, 2 * i + 1, i // 5, tuple(Made(2 * i + k, b"k%d" % i, b"v%d" % k) for k in (0, 1)))
    for i in range(10)
]
"""Batches of two records; leader epoch 1 begins at offset 10."""


def other(log: Log, epoch: int) -> Log:
    """The same offsets, written by another leader."""
    return [
        replace(
            entry,
            epoch=epoch,
            records=tuple(replace(r, value=b"%d" % epoch) for r in entry.records),
        )
        for entry in log
    ]


def put(
    directory: Path,
    log: Log,
    rolls: Sequence[int] = (),
    epochs: Sequence[tuple[int, int]] | None = (),
) -> Path:
    """A replica. ``epochs``: those of its leader-epoch-checkpoint; (): as its batches say; None: no file."""
    write(directory, log, rolls)
    if epochs is not None:
        starts: dict[int, int] = {}
        for entry in log:
            starts.setdefault(entry.epoch, entry.base)
        stated = [{"epoch": e, "start_offset": s} for e, s in epochs or starts.items()]
        made = LEADER_EPOCH_CHECKPOINT.build({"epochs": stated})
        (directory / "leader-epoch-checkpoint").write_bytes(made)
    return directory


def damage(directory: Path, log: Log, *numbers: int) -> Path:
    """Flip a bit in the last byte of some batches of a replica of one segment."""
    (path,) = directory.glob("*.log")
    data = bytearray(path.read_bytes())
    for number in numbers:
        data[sum(len(entry.built()) for entry in log[: number + 1]) - 1] ^= 4
    path.write_bytes(data)
    return directory


def merge(out: Path, *replicas: Path) -> tuple[list[dict[str, Any]], bytes]:
    """Rows of the report, and the bytes of the merged log."""
    first, *others = replicas
    table = LogDirectory(first).merge(others, out)
    data = b"".join(path.read_bytes() for path in sorted(out.glob("*/*.log")))
    return table.to_pylist(), data


def built(log: Log) -> bytes:
    return b"".join(entry.built() for entry in log)


def offsets(found: Sequence[dict[str, Any]], what: str) -> list[tuple[int, int | None]]:
    return [(r["first_offset"], r["last_offset"]) for r in found if r["what"] == what]


# ------------------------------------------------------------ elections


def test_the_later_leader_epoch_wins(tmp_path: Path) -> None:
    """A wrote on in epoch 1, which nobody has copied; B was elected in epoch 2 with a shorter log."""
    a = put(tmp_path / "a/t-0", LOG)
    log_b = [*LOG[:6], *other(LOG[6:8], 2)]
    b = put(tmp_path / "b/t-0", log_b)
    for i, pair in enumerate(([a, b], [b, a])):
        found, data = merge(tmp_path / f"out-{i}", *pair)
        assert data == built(log_b)
        (row,) = [row for row in found if row["what"] == "diverged"]
        assert (row["first_offset"], row["last_offset"]) == (12, 19)
        assert (row["batches"], row["records"]) == (4, 8)
        assert row["file"].startswith(str(a)) and "leader epoch 2 from offset 12" in row["reason"]
        assert not offsets(found, "lost")


def test_damage_of_the_winner_is_not_filled_by_the_loser(tmp_path: Path) -> None:
    """What the loser has at these offsets are other records. What both had before is taken from it."""
    log_b = [*LOG[:6], *other(LOG[6:8], 2)]
    a = put(tmp_path / "a/t-0", LOG)
    b = damage(put(tmp_path / "b/t-0", log_b), log_b, 2, 6)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built([*log_b[:6], log_b[7]])
    assert offsets(found, "lost") == [(12, 13)]
    assert offsets(found, "replaced") == [(4, 5)]
    assert offsets(found, "diverged") == [(12, 19)]


def test_without_a_checkpoint_the_begin_of_an_epoch_may_be_damaged(tmp_path: Path) -> None:
    """Whether the batch of A at offset 12 is of the common log or of the lost one is not known: it is not written, and that is said."""
    log_b = [*LOG[:6], *other(LOG[6:8], 2)]
    a = put(tmp_path / "a/t-0", LOG[:7], epochs=None)
    b = damage(put(tmp_path / "b/t-0", log_b, epochs=None), log_b, 6)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built([*log_b[:6], log_b[7]])
    assert offsets(found, "lost") == [(12, 13)]
    assert offsets(found, "diverged") == [(12, 13)]


def test_an_epoch_without_records_takes_nothing_away(tmp_path: Path) -> None:
    """B was elected, but wrote nothing: there is no record of it that contradicts those of A."""
    a = put(tmp_path / "a/t-0", LOG)
    b = put(tmp_path / "b/t-0", LOG[:6], epochs=[(0, 0), (1, 10), (2, 12)])
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG)
    assert {row["what"] for row in found} == {"kept"}


def test_three_replicas_of_three_histories(tmp_path: Path) -> None:
    a = put(tmp_path / "a/t-0", [*LOG[:5], *other(LOG[5:7], 1)])
    b = put(tmp_path / "b/t-0", [*LOG[:4], *other(LOG[4:9], 2)])
    log_c = [*LOG[:3], *other(LOG[3:6], 4)]
    c = damage(put(tmp_path / "c/t-0", log_c), log_c, 1)
    found, data = merge(tmp_path / "out", a, b, c)
    assert data == built(log_c)
    assert offsets(found, "diverged") == [(6, 13), (6, 17)]
    assert offsets(found, "replaced") == [(2, 3)]


def test_a_wrong_epoch_in_a_header_is_no_election(tmp_path: Path) -> None:
    """No checksum covers it; the checkpoint beside it says which replica is right."""
    wrong = [*LOG[:9], replace(LOG[9], epoch=7)]
    a = put(tmp_path / "a/t-0", wrong, epochs=[(0, 0), (1, 10)])
    b = put(tmp_path / "b/t-0", LOG)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG)
    assert {row["what"] for row in found} == {"kept"}


def test_different_epochs_of_the_same_bytes_are_told(tmp_path: Path) -> None:
    a = put(tmp_path / "a/t-0", [*LOG[:9], replace(LOG[9], epoch=7)], epochs=None)
    b = put(tmp_path / "b/t-0", LOG, epochs=None)
    found, _ = merge(tmp_path / "out", a, b)
    assert offsets(found, "diverged") == [(18, 19)]


def test_other_records_in_the_same_epoch_are_not_merged(tmp_path: Path) -> None:
    log_b = [*LOG[:4], *other(LOG[4:5], 0), *LOG[5:]]
    a, b = put(tmp_path / "a/t-0", LOG), put(tmp_path / "b/t-0", log_b)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built([*LOG[:4], *LOG[5:]])
    assert offsets(found, "lost") == [(8, 9)]
    assert "different records" in next(row["reason"] for row in found if row["what"] == "lost")


def renumber(directory: Path, log: Log, number: int, base: int) -> Path:
    """Change the base offset of a batch of a replica of one segment, which no checksum covers."""
    (path,) = directory.glob("*.log")
    data = bytearray(path.read_bytes())
    start = len(built(log[:number]))
    data[start : start + 8] = base.to_bytes(8, "big")
    path.write_bytes(data)
    return directory


def test_a_wrong_base_offset_is_not_written_twice(tmp_path: Path) -> None:
    """In A the last batch states offset 40; B has the same bytes at 18."""
    a = renumber(put(tmp_path / "a/t-0", LOG), LOG, 9, 40)
    b = put(tmp_path / "b/t-0", LOG)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG)
    assert offsets(found, "twice") == [(40, 41)]
    assert not offsets(found, "absent")


@pytest.mark.parametrize("base", [40, 16])
def test_a_wrong_base_offset_beside_damage_is_not_written_twice(tmp_path: Path, base: int) -> None:
    """A does not know what was before. As many bytes after offset 14 as in A, B has the same batch at 18, and ends there."""
    log = [*LOG, Entry(20, 21, 1, (Made(20, b"l", b"1"), Made(21, b"l", b"2")))]
    a = renumber(damage(put(tmp_path / "a/t-0", LOG, epochs=None), LOG, 7, 8), LOG, 9, base)
    b = put(tmp_path / "b/t-0", log[:10], epochs=None)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG)
    assert offsets(found, "twice") == [(base, base + 1)]
    assert offsets(found, "replaced") == [(14, 17)]
    assert not {"lost", "diverged", "absent"} & {row["what"] for row in found}


def test_a_base_offset_of_which_nothing_says_whether_it_is_right(tmp_path: Path) -> None:
    """A lacks its first segment, and B is damaged before the batch: it may stand at 18 or at 40, and is written nowhere."""
    a = put(tmp_path / "a/t-0", LOG[8:])
    (path,) = a.glob("*.log")
    damage(renumber(a, LOG[8:], 1, 40), LOG[8:], 0)
    path.rename(path.with_name("00000000000000000000.log"))
    b = damage(put(tmp_path / "b/t-0", LOG), LOG, 7, 8)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG[:7])
    assert [pair for pair in offsets(found, "lost") if pair[0] in (18, 40)] == [(18, 19), (40, 41)]
    assert "no checksum covers a base offset" in next(r["reason"] for r in found if r["what"] == "lost" and r["first_offset"] == 40)  # fmt: skip
    assert (tmp_path / "out/t-0" / f"{42:020d}.log").stat().st_size == 0


def test_the_same_batch_sent_twice_stays_twice(tmp_path: Path) -> None:
    """A producer without idempotence sent batch 3 again. A is damaged where it was first, B ends before it came again."""
    a, b = put(tmp_path / "a/t-0", LOG[:5]), put(tmp_path / "b/t-0", LOG[:5])
    again = (10).to_bytes(8, "big") + LOG[3].built()[8:]
    (path,) = damage(a, LOG, 3).glob("*.log")
    path.write_bytes(path.read_bytes() + again)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG[:5]) + again
    assert {row["what"] for row in found} == {"kept", "replaced"}


# ------------------------------------------------------------ compaction and retention

KEYED: Log = [
    Entry(i, i, 0, (Made(i, key, value),))
    for i, (key, value) in enumerate(
        [(b"z", b"1"), (b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"b", b"2"), (b"a", None), (b"d", b"1"), (b"c", b"2"), (b"e", b"1")]
    )
]  # fmt: skip
"""Key a is deleted at offset 5; b and c have a later record."""


def test_a_compacted_replica_is_no_conflict(tmp_path: Path) -> None:
    a, b = put(tmp_path / "a/t-0", KEYED), put(tmp_path / "b/t-0", compacted(KEYED, 8), epochs=None)
    for i, pair in enumerate(([a, b], [b, a])):
        found, data = merge(tmp_path / f"out-{i}", *pair)
        assert data == built(KEYED)
        assert {row["what"] for row in found} == {"kept", "absent"}
        (row,) = [row for row in found if row["what"] == "absent" and "lacks" in row["reason"]]
        assert row["file"] == str(b)


def test_a_deleted_key_does_not_come_back(tmp_path: Path) -> None:
    """The tombstone of key a is damaged in A, and compaction removed it and the record before from B: what B lacks below is not written."""
    a = damage(put(tmp_path / "a/t-0", KEYED), KEYED, 5)
    left = [entry for entry in compacted(KEYED, 8) if entry.base != 5]
    b = put(tmp_path / "b/t-0", left, epochs=None)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(left)
    assert offsets(found, "lost") == [(5, 5)]
    (row,) = [row for row in found if row["what"] == "left out"]
    assert "compacted further" in row["reason"]


def test_sparse_batches_are_taken_from_the_fuller_replica(tmp_path: Path) -> None:
    full = [Entry(0, 3, 0, tuple(Made(i, b"%d" % (i % 3), b"v") for i in range(4))), *LOG[2:]]
    sparse = [replace(full[0], records=full[0].records[1:]), *LOG[2:]]
    a, b = put(tmp_path / "a/t-0", sparse), put(tmp_path / "b/t-0", full)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(full)
    assert offsets(found, "absent") == [(0, 3)]
    b = damage(b, full, 0)
    found, data = merge(tmp_path / "other", a, b)
    assert data == built(sparse)


def test_deleted_records_do_not_come_back(tmp_path: Path) -> None:
    """The highest log start offset that a replica states counts."""
    a, b = put(tmp_path / "a/t-0", LOG, [3]), put(tmp_path / "b/t-0", LOG, [3])
    entry = {"topic": "t", "partition": 0, "offset": 11}
    stated = OFFSET_CHECKPOINT.build({"entries": [entry]})
    (tmp_path / "b" / "log-start-offset-checkpoint").write_bytes(stated)
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG[5:])
    assert offsets(found, "left out") == [(0, 5), (6, 9)]
    assert (tmp_path / "out" / "log-start-offset-checkpoint").read_bytes() == stated


def test_a_lost_end_keeps_its_offsets(tmp_path: Path) -> None:
    """New records must not get offsets that consumers have seen: an empty segment begins where the log ended."""
    places = []
    for name in "ab":
        places.append(damage(put(tmp_path / name / "t-0", LOG), LOG, 9))
        (places[-1] / f"{20:020d}.log").touch()
    found, data = merge(tmp_path / "out", *places)
    assert data == built(LOG[:9])
    assert offsets(found, "lost") == [(18, 19)]
    assert (tmp_path / "out/t-0" / f"{20:020d}.log").stat().st_size == 0


def test_a_damaged_end_is_known_by_its_bytes(tmp_path: Path) -> None:
    """The last batch is whole in B alone, of which nothing else is: A held no more after it."""
    a = damage(put(tmp_path / "a/t-0", LOG), LOG, 9)
    b = damage(put(tmp_path / "b/t-0", LOG), LOG, *range(9))
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG)
    assert {row["what"] for row in found} == {"kept", "replaced"}
    short = put(tmp_path / "c/t-0", LOG[:9])
    found, _ = merge(tmp_path / "other", a, short)
    assert offsets(found, "lost") == [(18, None)]


def test_offsets_that_contradict_each_other_at_the_end_are_not_given_again(tmp_path: Path) -> None:
    a, b = put(tmp_path / "a/t-0", LOG), put(tmp_path / "b/t-0", [*LOG[:9], *other(LOG[9:], 1)])
    found, data = merge(tmp_path / "out", a, b)
    assert data == built(LOG[:9])
    assert offsets(found, "lost") == [(18, 19)]
    assert (tmp_path / "out/t-0" / f"{20:020d}.log").stat().st_size == 0


# ------------------------------------------------------------ what is refused, and the command line


def test_other_topics_of_one_name(tmp_path: Path) -> None:
    a, b = put(tmp_path / "a/t-0", LOG), put(tmp_path / "b/t-0", LOG)
    for number, directory in enumerate((a, b)):
        made = PARTITION_METADATA.build({"topic_id": UUID(int=number + 1)})
        (directory / "partition.metadata").write_bytes(made)
    found, data = merge(tmp_path / "out", a, b)
    assert data == b""
    (row,) = found
    assert row["what"] == "lost" and "topic ids" in row["reason"]


def test_what_is_written_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = put(tmp_path / "a/t-0", LOG), put(tmp_path / "b/t-0", LOG)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafka_log.inspect.merge.merged_log.finish", stop)
    with pytest.raises(KeyboardInterrupt):
        merge(tmp_path / "out", a, b)
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    merge(tmp_path / "out", a, b)
    times = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    merge(tmp_path / "out", a, b)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == times
    damage(b, LOG, 3)
    with pytest.raises(OutputError):
        merge(tmp_path / "out", a, b)
    with pytest.raises(OutputError, match="lies inside"):
        merge(b / "out", a, b)


def test_what_is_written_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that keeps other bytes is noticed."""
    a, b = put(tmp_path / "a/t-0", LOG), put(tmp_path / "b/t-0", LOG)

    def spoil(source: Any, out: Path, *more: Any, **options: Any) -> Any:
        found = finish(source, out, *more, **options)
        damage(out, LOG, 3)
        return found

    monkeypatch.setattr("kafka_log.inspect.merge.merged_log.finish", spoil)
    found, data = merge(tmp_path / "out", a, b)
    assert data == b""
    assert [row["what"] for row in found] == ["lost"]


def test_a_batch_that_changes_while_it_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan says of the partition what the merge says."""
    log_b = [*LOG[:4], *other(LOG[4:5], 0), *LOG[5:]]
    a, b = put(tmp_path / "a/t-0", LOG), put(tmp_path / "b/t-0", log_b)
    whole = (b / f"{0:020d}.log").read_bytes()

    def read_and_change(number: int, partition: Partition) -> Replica:
        found = read_replica(number, partition)
        if partition.directory == b:
            damage(b, log_b, 4)
        return found

    monkeypatch.setattr("kafka_log.inspect.merge.merging.read_replica", read_and_change)
    (planned,) = LogDirectory(a).merge_plan(b).to_pylist()
    (b / f"{0:020d}.log").write_bytes(whole)
    (merged,), data = merge(tmp_path / "out", a, b)
    assert planned == merged and data == b""
    assert planned["what"] == "lost" and str(b) in planned["reason"]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = SAMPLES / "kafka-4.x" / "segments.small-0"
    places = []
    for name, at in (("a", 500), ("b", 900)):
        copy = shutil.copytree(source, tmp_path / name / source.name)
        path = copy / f"{42:020d}.log"
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)
        places.append(str(tmp_path / name))
    assert main(["merge", *places, "--dry-run"]) == 0
    assert "nothing is lost" in capsys.readouterr().out
    assert main(["merge", *places]) == 2
    assert "--out is needed" in capsys.readouterr().err
    out = tmp_path / "out"
    assert main(["merge", *places, "--out", str(out), "--format", "jsonl"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["what"] for row in found} == {"kept", "replaced"}
    assert rows(out) == rows(source)
    assert problems(out) == []
    for path in source.glob("*.log"):
        assert (out / source.name / path.name).read_bytes() == path.read_bytes()
    for path in source.glob("*.log"):
        other = tmp_path / "b" / source.name / path.name
        other.write_bytes((tmp_path / "a" / source.name / path.name).read_bytes())
    assert main(["merge", *places, "--out", str(tmp_path / "lost")]) == 1
    assert "1 range or record is lost" in capsys.readouterr().out


def test_partitions_that_one_replica_has(tmp_path: Path) -> None:
    put(tmp_path / "a/t-0", LOG)
    put(tmp_path / "b/t-1", LOG)
    table = LogDirectory(tmp_path / "a").merge(tmp_path / "b", tmp_path / "out")
    assert [(row["partition"], row["what"]) for row in table.to_pylist()] == [
        (0, "kept"),
        (1, "kept"),
    ]
    assert said(table, "kept")[0]["records"] == 20
