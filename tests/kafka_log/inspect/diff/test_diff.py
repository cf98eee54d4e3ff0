"""Comparisons of replicas: what happened to one of them is named, and nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafka_codecs import Compression
from kafka_log import LogDirectory, scan
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.replicas import (
    Entry,
    Log,
    Made,
    compacted,
    count,
    end,
    logs,
    rebatched,
    write,
)

record_comparison = import_module("kafka_log.inspect.diff.record_comparison")
side = import_module("kafka_log.inspect.diff.side")
walk = import_module("kafka_log.inspect.diff.comparison")  # the package has a function of this name
ROLLS = st.lists(st.integers(1, 12), max_size=3)


@contextmanager
def both(
    a: Log, b: Log, rolls: list[int] | None = None, rolls_b: list[int] | None = None
) -> Iterator[tuple[Path, Path]]:
    """Directories of two replicas. Those of B are rolled at the same offsets, as far as they have batches there."""
    with tempfile.TemporaryDirectory() as made:
        bases = {a[i].base for i in rolls or () if i < len(a)}
        if rolls_b is None:
            rolls_b = [i for i, entry in enumerate(b) if entry.base in bases]
        yield (
            write(Path(made, "a", "t-0"), a, rolls or ()),
            write(Path(made, "b", "t-0"), b, rolls_b),
        )


def difference(a: Path, b: Path) -> dict[str, Any]:
    (row,) = LogDirectory(a).diff(b).to_pylist()
    (turned,) = LogDirectory(b).diff(a).to_pylist()
    swap = {"a": "b", "b": "a"}
    assert sorted(turned["findings"]) == sorted(
        f[:-1] + swap[f[-1]] if f[-2:] in ("_a", "_b") else f for f in row["findings"]
    )
    assert turned["first_offset"] == row["first_offset"]
    assert turned["same"] == row["same"]
    return row


@given(logs(), ROLLS)
@examples(10)
def test_a_copy_is_the_same(log: Log, rolls: list[int]) -> None:
    with both(log, log, rolls) as (a, b):
        row = difference(a, b)
    assert (row["verdict"], row["findings"], row["same"]) == ("same", [], count(log))


@given(logs(least=2), ROLLS, st.data())
@examples(15)
def test_a_follower_that_lags(log: Log, rolls: list[int], data: st.DataObject) -> None:
    kept = data.draw(st.integers(1, len(log) - 1))
    with both(log, log[:kept], rolls) as (a, b):
        row = difference(a, b)
    assert row["findings"] == ["behind_b"]
    assert (row["behind_b"], row["same"]) == (count(log[kept:]), count(log[:kept]))
    assert row["first_offset"] == end(log[:kept])


@pytest.mark.slow
@given(logs(least=2), st.data())
@examples(15)
def test_retention(log: Log, data: st.DataObject) -> None:
    begin = data.draw(st.integers(1, len(log) - 1))
    with both(log, log[begin:], [begin]) as (a, b):
        row = difference(a, b)
    assert row["findings"] == ["trimmed_b"]
    assert (row["trimmed_b"], row["same"]) == (count(log[:begin]), count(log[begin:]))


@given(logs(least=2), ROLLS, ROLLS)
@examples(15)
def test_other_segments(log: Log, rolls: list[int], others: list[int]) -> None:
    with both(log, log, rolls, others) as (a, b):
        row = difference(a, b)
    inside = [{i for i in some if i < len(log)} for some in (rolls, others)]
    assert row["findings"] == (["segments"] if inside[0] != inside[1] else [])
    assert row["same"] == count(log)


@given(logs(), ROLLS, st.sampled_from(list(Compression)))
@examples(15)
def test_other_batches_and_codecs(log: Log, rolls: list[int], codec: Compression) -> None:
    other = rebatched(log, codec)
    with both(log, other, rolls) as (a, b):
        row = difference(a, b)
    assert row["findings"] == (["batches"] if list(other) != list(log) else [])
    assert row["same"] == count(log)


@pytest.mark.slow
@given(logs(), ROLLS, st.data())
@examples(40)
def test_compaction(log: Log, rolls: list[int], data: st.DataObject) -> None:
    clean_to = data.draw(st.integers(log[0].base, end(log)))
    left = compacted(log, clean_to)
    assume(left and left[-1].last == log[-1].last and left[0].base == log[0].base)
    with both(log, left, rolls, []) as (a, b):
        row = difference(a, b)
    removed = count(log) - count(left)
    assert set(row["findings"]) - {"segments"} == ({"cleaned_b"} if removed else set())
    assert (row["cleaned_b"], row["same"]) == (removed, count(left))


@pytest.mark.slow
@given(logs(), ROLLS, st.data())
@examples(20)
def test_two_compactions(log: Log, rolls: list[int], data: st.DataObject) -> None:
    """The second one goes further: what the first kept and it did not is gone from it."""
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, end(log))] * 2)))
    one = compacted(log, first)
    two = compacted(one, second) if one else one
    assume(two and two[-1].last == one[-1].last and two[0].base == one[0].base)
    with both(one, two, rolls, []) as (a, b):
        row = difference(a, b)
    removed = count(one) - count(two)
    assert set(row["findings"]) - {"segments"} == ({"cleaned_b"} if removed else set())


@pytest.mark.slow
@given(logs(least=2), ROLLS, st.data())
@examples(25)
def test_an_unclean_election(log: Log, rolls: list[int], data: st.DataObject) -> None:
    """B goes on with other records in a later epoch; A has as many, more or fewer of its own."""
    kept = data.draw(st.integers(0, len(log) - 1))
    at, epoch = log[kept].base, log[-1].epoch + 1
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    tail: list[Entry] = []
    offset = at
    for size in sizes:
        rows = tuple(Made(offset + i, b"new", b"%d" % i) for i in range(size))
        tail.append(Entry(offset, offset + size - 1, epoch, rows))
        offset += size
    with both(log, [*log[:kept], *tail], rolls, []) as (a, b):
        row = difference(a, b)
    assert set(row["findings"]) - {"segments"} == {"parted"}
    overlap = min(end(log), offset) - at
    assert (row["first_offset"], row["same"]) == (at, count(log[:kept]))
    assert (row["epoch_a"], row["epoch_b"]) == (log[kept].epoch, epoch)
    assert row["differ"] == overlap
    assert (row["parted_a"], row["parted_b"]) == (
        end(log) - at - overlap,
        offset - at - overlap,
    )
    assert "unclean election" in row["meaning"]


@pytest.mark.slow
@given(logs(), st.data())
@examples(15)
def test_the_same_records_of_another_epoch(log: Log, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(log) - 1))
    other = [replace(e, epoch=e.epoch + 1) if j >= i else e for j, e in enumerate(log)]
    with both(log, other) as (a, b):
        row = difference(a, b)
    assert row["findings"] == ["parted"]
    assert (row["first_offset"], row["columns"]) == (log[i].base, ["leader_epoch"])
    assert row["differ"] == count(log[i:])
    assert "Run kafka-log check on both" in row["remedy"] and "keep a copy of" in row["remedy"]


@pytest.mark.slow
@given(logs(least=2), st.data())
@examples(15)
def test_a_wrong_epoch_in_a_header_is_no_election(log: Log, data: st.DataObject) -> None:
    """No checksum covers the epoch, and the side with the higher one is not the better one."""
    i = data.draw(st.integers(0, len(log) - 2))
    other = [replace(e, epoch=e.epoch + 4) if j == i else e for j, e in enumerate(log)]
    assume(count(log[i : i + 1]) and count(log[i + 1 :]))
    with both(log, other) as (a, b):
        row = difference(a, b)
    assert (row["findings"], row["columns"]) == (["parted"], ["leader_epoch"])
    assert "same records" in row["meaning"] and "no checksum covers" in row["meaning"]
    assert f"from {log[i].base} to " in row["meaning"]
    assert "election" not in row["meaning"] and "keep a copy" not in row["remedy"]
    assert "Run kafka-log check on both" in row["remedy"]


@pytest.mark.slow
@given(logs(least=3, keys=st.none() | st.binary(min_size=8, max_size=8)), st.data())
@examples(15)
def test_a_hole(log: Log, data: st.DataObject) -> None:
    """A batch is gone whose keys do not come again: no cleaner did that, unless all are tombstones or were aborted."""
    i = data.draw(st.integers(1, len(log) - 2))
    log = [replace(e, records=tuple(replace(r, value=b"v") for r in e.records)) for e in log]
    lost = log[i]
    assume(lost.kind == "data" and lost.producer < 0)
    later = {r.key for e in log[i + 1 :] for r in e.records}
    assume(not later & {r.key for r in lost.records} - {None})
    with both(log, [*log[:i], *log[i + 1 :]]) as (a, b):
        row = difference(a, b)
    assert row["findings"] == ["missing_b"]
    assert (row["missing_b"], row["first_offset"]) == (len(lost.records), lost.base)


def test_a_hole_in_a_topic_whose_keys_come_again(tmp_path: Path) -> None:
    """An older record of the key is still there: a cleaner would have taken that one first."""
    log = [Entry(i, i, 0, (Made(i, b"k", b"%d" % i),)) for i in range(5)]
    a, b = write(tmp_path / "a", log), write(tmp_path / "b", [*log[:2], *log[3:]])
    row = difference(a, b)
    assert (row["findings"], row["missing_b"], row["first_offset"]) == (["missing_b"], 1, 2)


def test_a_tombstone_is_missing_where_an_older_record_is_still_there(tmp_path: Path) -> None:
    """Without the tombstone the older value is the last one again. A cleaner takes that one first, or both."""
    log = [
        Entry(0, 0, 0, (Made(0, b"k", b"v"),)),
        Entry(1, 1, 0, (Made(1, b"k", None),)),
        Entry(2, 2, 0, (Made(2, b"l", b"v"),)),
    ]
    a, b = write(tmp_path / "a", log), write(tmp_path / "b", [log[0], log[2]])
    row = difference(a, b)
    assert (row["findings"], row["missing_b"], row["first_offset"]) == (["missing_b"], 1, 1)
    both_taken = [replace(log[0], records=()), replace(log[1], records=()), log[2]]
    row = difference(a, write(tmp_path / "c", both_taken))
    assert (row["findings"], row["cleaned_b"]) == (["cleaned_b"], 2)


@pytest.mark.parametrize(("is_compacted", "missing", "cleaned"), [(False, 3, 0), (True, 1, 3)])
def test_aborted_records_beside_one_that_is_missing(
    is_compacted: bool, missing: int, cleaned: int, tmp_path: Path
) -> None:
    """They are missing with it, and their marker too, unless a cleaner has been there, which takes them."""
    log = [
        Entry(0, 0, 0, (Made(0, b"a", b"v"),)),
        Entry(1, 1, 0, (Made(1, b"k", b"v"),)),
        Entry(2, 2, 0, (Made(2, b"lost", b"v"),)),
        Entry(3, 3, 0, (Made(3, b"b", b"v"),), 4),
        Entry(4, 4, 0, (Made(4, None, None),), 4, "abort"),
        Entry(5, 5, 0, (Made(5, b"k", b"v"),)),
    ]
    kept = [log[0], *([] if is_compacted else log[1:2]), log[5]]
    a, b = write(tmp_path / "a", log), write(tmp_path / "b", kept)
    row = difference(a, b)
    assert (row["missing_b"], row["cleaned_b"], row["first_offset"]) == (missing, cleaned, 2)


def test_an_aborted_record_is_no_second_one_of_its_key(tmp_path: Path) -> None:
    """The cleaner was killed after the first segment: what was aborted is still in the next one, and no older record is gone for it."""
    log = [
        Entry(0, 0, 0, (Made(0, b"e", b""),)),
        Entry(1, 1, 0, (Made(1, b"d", b""),)),
        Entry(2, 2, 0, (Made(2, b"e", b""),), 4),
        Entry(3, 3, 0, (Made(3, b"d", b""),)),
        Entry(4, 4, 0, (Made(4, None, None),), 4, "abort"),
    ]
    a, b = write(tmp_path / "a", log), write(tmp_path / "b", [log[0], *log[2:]])
    row = difference(a, b)
    assert (row["findings"], row["cleaned_b"]) == (["cleaned_b"], 1)


def test_nothing_is_gone_for_an_aborted_record(tmp_path: Path) -> None:
    log = [
        Entry(0, 0, 0, (Made(0, b"a", b""),)),
        Entry(1, 1, 0, (Made(1, b"d", b""),)),
        Entry(2, 2, 0, (Made(2, b"d", b""),), 4),
        Entry(3, 3, 0, (Made(3, None, None),), 4, "abort"),
    ]
    a, b = write(tmp_path / "a", log), write(tmp_path / "b", [log[0], *log[2:]])
    row = difference(a, b)
    assert (row["findings"], row["missing_b"], row["first_offset"]) == (["missing_b"], 1, 1)


UNIQUE = st.integers(0, 1 << 62).map(lambda n: b"%d" % n)


@pytest.mark.slow
@given(logs(least=4, keys=st.none() | UNIQUE), st.data())
@examples(15)
def test_a_hole_in_a_log_whose_keys_do_not_repeat(log: Log, data: st.DataObject) -> None:
    """Whatever is in it: tombstones, transactions with their markers. No compaction leaves out the last record of a key while tombstones
    before it stay, and it takes what was aborted only where it takes something for its key."""
    keys = [r.key for e in log for r in e.records if r.key is not None]
    assume(len(keys) == len(set(keys)))
    low, high = sorted(data.draw(st.tuples(*[st.integers(1, len(log) - 1)] * 2)))
    lost, rest = log[low:high], [*log[:low], *log[high:]]
    tombstones = [r for e in lost for r in e.records if r.key is not None and r.value is None]
    before = [r for e in log[:low] for r in e.records if r.key is not None and r.value is None]
    assume(before or not tombstones)
    plain = [r for e in lost if e.kind == "data" and e.producer < 0 for r in e.records]
    assume(plain)
    with both(log, rest) as (a, b):
        row = difference(a, b)
    assert row["findings"] == ["missing_b"]
    assert (row["missing_b"], row["first_offset"]) == (count(lost), lost[0].base)


@pytest.mark.slow
@given(logs(least=2), st.data())
@examples(15)
def test_a_cleaner_that_was_killed(log: Log, data: st.DataObject) -> None:
    """It puts segments back one after the other: the first ones are clean, by keys that come again in those that are not."""
    clean_to = data.draw(st.integers(log[0].base, end(log)))
    up_to = data.draw(st.integers(log[0].base, end(log)))
    clean = [e for e in compacted(log, clean_to) if e.base < up_to]
    left = [*clean, *(e for e in log if e.base >= up_to)]
    assume(left and left[-1].last == log[-1].last and left[0].base == log[0].base)
    opened = {e.producer for e in clean if e.producer >= 0}
    assume(not any(e.kind != "data" and e.producer in opened for e in log))
    with both(log, left) as (a, b):
        row = difference(a, b)
    removed = count(log) - count(left)
    assert set(row["findings"]) == ({"cleaned_b"} if removed else set())
    assert row["cleaned_b"] == removed


@pytest.mark.parametrize(
    ("keys", "hole", "is_missing"),
    [
        ("aabxcx", [3], True),  # both a, and the first x is gone
        ("abxcxb", [2], False),  # the cleaner may have looked no further than the second x
        ("abxcbx", [2], True),  # it has looked beyond the second b
        ("xabcax", [0, 1], False),  # a whole start that comes again
        ("xaybcaxy", [2], True),  # a comes again before y does
    ],
)
def test_what_a_cleaner_would_have_taken_before(
    keys: str, hole: list[int], is_missing: bool, tmp_path: Path
) -> None:
    log = [Entry(i, i, 0, (Made(i, k.encode(), b"v"),)) for i, k in enumerate(keys)]
    a = write(tmp_path / "a", log)
    empty = [replace(e, records=()) if i in hole else e for i, e in enumerate(log)]
    b = write(tmp_path / "b", empty)
    row = difference(a, b)
    assert (row["findings"], row["missing_b"] + row["cleaned_b"]) == (
        ["missing_b" if is_missing else "cleaned_b"],
        len(hole),
    )


def test_a_marker_without_which_a_transaction_hangs(tmp_path: Path) -> None:
    log = [
        Entry(0, 0, 0, (Made(0, b"k", b"v"),), 4),
        Entry(1, 1, 0, (Made(1, None, None),), 4, "commit"),
        Entry(2, 2, 0, (Made(2, b"l", b"v"),)),
    ]
    a, b = write(tmp_path / "a", log), write(tmp_path / "b", [log[0], log[2]])
    row = difference(a, b)
    assert (row["findings"], row["first_offset"]) == (["missing_b"], 1)


@pytest.mark.slow
@given(logs(), ROLLS, st.data())
@examples(40)
def test_a_flipped_bit(log: Log, rolls: list[int], data: st.DataObject) -> None:
    """Damage is told apart from other records. Offset and leader epoch of a batch have no checksum over them."""
    with both(log, log, rolls) as (a, b):
        path = data.draw(st.sampled_from(sorted(b.glob("*.log"))))
        content = bytearray(path.read_bytes())
        entries = [e for e in log if e.built() in bytes(content)]
        at, entry = 0, entries[0]
        i = data.draw(st.integers(0, len(content) - 1))
        for entry in entries:
            size = len(entry.built())
            if i < at + size:
                break
            at += size
        assume(i - at >= 21 or 17 <= i - at < 21)  # the bytes of the checksum, and under it
        content[i] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        row = difference(a, b)
    assert [f for f in row["findings"] if f != "segments"] == ["damaged_b"]
    is_last = entry is log[-1]
    assert row["damaged_b"] == len(entry.records)
    assert row["first_offset"] == (0 if entry is log[0] and not is_last else entry.base) or (
        entry is log[0] and row["first_offset"] == 0
    )
    assert row["same"] == count(log) - len(entry.records)
    assert str(path) in row["meaning"]


@pytest.mark.slow
@given(logs(least=2), st.data())
@examples(20)
def test_bytes_without_a_checksum(log: Log, data: st.DataObject) -> None:
    """A flipped bit in an offset, a length, an epoch or a magic byte is never called the same."""
    with both(log, log) as (a, b):
        (path,) = b.glob("*.log")
        content = bytearray(path.read_bytes())
        starts = [sum(len(e.built()) for e in log[:i]) for i in range(len(log))]
        at = data.draw(st.sampled_from(starts)) + data.draw(st.integers(0, 16))
        content[at] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        row = difference(a, b)
    assert row["findings"]
    assert row["findings"] != ["cleaned_b"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kafka-2.8", "kafka-4.x"])
def test_samples_and_their_copies(name: str, tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / name, tmp_path / name)
    table = LogDirectory(SAMPLES / name).diff(tmp_path / name)
    assert set(table.column("verdict").to_pylist()) == {"same"}
    for row in table.to_pylist():
        everything = {"control_records": True, "deleted_records": True}
        records = scan(row["directory_a"], ["offset"], **everything).read_all()
        assert row["same"] == records.num_rows, row


def test_small_chunks_give_the_same_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read at a time does not matter: both sides are read a few batches at a time."""
    log = [
        Entry(
            4 * i,
            4 * i + 3,
            i // 9,
            tuple(Made(4 * i + j, b"%d" % (i % 5), b"v") for j in range(4)),
        )
        for i in range(60)
    ]
    other = compacted(rebatched(log, Compression.ZSTD), 100)
    a, b = write(tmp_path / "a", log, [7, 30]), write(tmp_path / "b", other, [11, 40])
    expected = LogDirectory(a).diff(b)
    reader = side.BlockReader
    monkeypatch.setattr(side, "BlockReader", lambda *p, **o: reader(*p, chunk_bytes=700, **o))
    monkeypatch.setattr(walk, "SHORT", 0)
    assert LogDirectory(a).diff(b).equals(expected)


def test_equal_batches_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are those that lie before or after all of the other log."""
    log = [Entry(i, i, 0, (Made(i, b"k", b"v"),), codec=Compression.ZSTD) for i in range(9)]
    a, b = write(tmp_path / "a", log, [3]), write(tmp_path / "b", log[3:7])

    def refused(*_: object) -> Iterator[Any]:
        raise AssertionError("it decodes")

    monkeypatch.setattr(walk, "RecordComparison", refused)
    row = difference(a, b)
    assert row["findings"] == ["behind_b", "trimmed_b"]
    assert (row["same"], row["behind_b"], row["trimmed_b"]) == (4, 2, 3)


@pytest.mark.parametrize("is_directory", [False, True])
def test_a_segment_that_is_gone_before_its_records_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_directory: bool
) -> None:
    """Its batches are damage, as they are if they cannot be read for another reason."""
    log = [Entry(i, i, 0, (Made(i, b"k", b"v"),)) for i in range(9)]
    a, b = write(tmp_path / "a", log, []), write(tmp_path / "b", rebatched(log, Compression.ZSTD))
    scanner = record_comparison.Scanner

    def scan_after_removal(path: Path, *rest: Any, **options: Any) -> Any:
        if path.is_relative_to(b) and path.is_file():
            path.unlink()
            if is_directory:
                path.mkdir()
        return scanner(path, *rest, **options)

    monkeypatch.setattr(record_comparison, "Scanner", scan_after_removal)
    [row] = LogDirectory(a).diff(b).to_pylist()
    assert (row["same"], row["verdict"], row["findings"]) == (0, "damaged", ["damaged_b"])


def test_an_end_by_the_name_of_an_empty_segment(tmp_path: Path) -> None:
    """Nothing lies between 42 and 84 in A, but its log has gone as far; B never has."""
    for side in ("a", "b"):
        (tmp_path / side / "orders-0").mkdir(parents=True)
        name = f"{0:020d}.log"
        shutil.copy(
            SAMPLES / "kafka-4.x" / "segments.small-0" / name, tmp_path / side / "orders-0" / name
        )
    (tmp_path / "b" / "orders-0" / f"{42:020d}.log").touch()
    assert difference(tmp_path / "a", tmp_path / "b")["findings"] == []
    (tmp_path / "a" / "orders-0" / f"{84:020d}.log").touch()
    row = difference(tmp_path / "a", tmp_path / "b")
    assert (row["verdict"], row["findings"], row["first_offset"]) == ("behind", ["behind_b"], 42)
    assert (row["end_a"], row["end_b"], row["behind_b"]) == (84, 42, 0)
    assert "before offset 42, and A before 84" in row["meaning"]
    assert difference(tmp_path / "b", tmp_path / "a")["findings"] == ["behind_a"]


def test_no_sentence_contradicts_another_one() -> None:
    """Some records differ, and equal ones lie in other batches."""
    row = difference(SAMPLES / "kafka-4.x" / "codecs-0", SAMPLES / "kafka-4.x" / "codecs-1")
    assert {"parted", "batches"} <= set(row["findings"])
    assert "The records differ at 63 offsets" in row["meaning"]
    assert "The records are the same" not in row["meaning"]
    assert "Other records are the same" in row["meaning"]
