"""Merges of damaged replicas: each batch that is whole somewhere is written as it was, and what is whole nowhere is named."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafka_codecs import LEADER_EPOCH_CHECKPOINT
from kafka_log import LogDirectory, read_table
from tests.shares import examples
from tests.support.replicas import TIME, Entry, Log, compacted, end, logs, write
from tests.support.salvage_rows import rows, said

Damage = set[int]
"""Numbers of damaged batches of a replica."""

HEADER = 21
"""Bytes of a batch before the attributes: offset, length, leader epoch, version and checksum."""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merge")


def put(directory: Path, log: Log, rolls: Sequence[int]) -> Path:
    """A partition directory with the leader epochs that a broker keeps beside segments."""
    write(directory, log, rolls)
    starts: dict[int, int] = {}
    for entry in log:
        starts.setdefault(entry.epoch, entry.base)
    epochs = [{"epoch": epoch, "start_offset": start} for epoch, start in starts.items()]
    made = LEADER_EPOCH_CHECKPOINT.build({"epochs": epochs})
    (directory / "leader-epoch-checkpoint").write_bytes(made)
    return directory


def hurt(directory: Path, log: Log, damage: Damage, data: st.DataObject) -> None:
    """Flip a bit, or overwrite the middle, of some batches of a replica. No byte that is covered by no checksum changes."""
    places = {entry.base: i for i, entry in enumerate(log)}
    for path in sorted(directory.glob("*.log")):
        out = bytearray(path.read_bytes())
        at, i = 0, places[int(path.stem)]
        while at < len(out):
            size = len(log[i].built())
            if i in damage:
                where = data.draw(st.integers(at + HEADER - 4, at + size - 1))
                count = data.draw(st.sampled_from([1, 1, 12]))
                for k in range(where, min(where + count, at + size)):
                    out[k] ^= 1 << data.draw(st.integers(0, 7))
            at, i = at + size, i + 1
        path.write_bytes(out)


@st.composite
def replicas(draw: st.DrawFn, log: Log, *, whole_somewhere: bool) -> list[Damage]:
    """Damage of two or three replicas; each batch is whole in one of them if asked for."""
    count = draw(st.integers(2, 3))
    hurts = [draw(st.sets(st.integers(0, len(log) - 1))) for _ in range(count)]
    if whole_somewhere:
        for i in range(len(log)):
            hurts[draw(st.integers(0, count - 1))].discard(i)
    return hurts


def built(scratch: Path, log: Log, rolls: Sequence[int], hurts: Sequence[Damage], data: st.DataObject) -> list[Path]:  # fmt: skip
    """Directories of replicas with damage."""
    shutil.rmtree(scratch, ignore_errors=True)
    out = []
    for number, damage in enumerate(hurts):
        out.append(put(scratch / f"{number}" / "t-0", log, rolls))
        hurt(out[-1], log, damage, data)
    return out


def digests(root: Path) -> dict[Path, str]:
    return {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in root.rglob("*") if p.is_file()}


def merged(directories: Sequence[Path], out: Path) -> pa.Table:
    """The report of a merge, which is that of the plan, and changes no input."""
    first, *others = (LogDirectory(one) for one in directories)
    before = [digests(one) for one in directories]
    plan = first.merge_plan(others)
    table = first.merge(others, out)
    assert [digests(one) for one in directories] == before
    made = [row for row in table.to_pylist() if row["what"] != "open"]
    assert made == plan.to_pylist()
    return table


def logs_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.log")}


ROLLS = st.lists(st.integers(1, 12), max_size=3)


@pytest.mark.slow
@given(logs(), ROLLS, st.data())
@examples(30)
def test_what_is_whole_somewhere_is_as_it_was(
    scratch: Path, log: Log, rolls: list[int], data: st.DataObject
) -> None:
    hurts = data.draw(replicas(log, whole_somewhere=True))
    directories = built(scratch, log, rolls, hurts, data)
    whole = put(scratch / "whole" / "t-0", log, rolls)
    table = merged(directories, scratch / "out")
    assert logs_of(scratch / "out" / "t-0") == logs_of(whole)
    assert not {"lost", "diverged", "absent", "twice"} & set(table.column("what").to_pylist())
    epochs = scratch / "out" / "t-0" / "leader-epoch-checkpoint"
    assert epochs.read_bytes() == (whole / epochs.name).read_bytes()


def lost_offsets(table: pa.Table, stop: int) -> Iterator[int]:
    for row in said(table, "lost"):
        last = stop - 1 if row["last_offset"] is None else row["last_offset"]
        yield from range(row["first_offset"], last + 1)


@pytest.mark.slow
@given(logs(), ROLLS, st.data())
@examples(30)
def test_what_is_whole_nowhere_is_lost(
    scratch: Path, log: Log, rolls: list[int], data: st.DataObject
) -> None:
    hurts = data.draw(replicas(log, whole_somewhere=False))
    directories = built(scratch, log, rolls, hurts, data)
    table = merged(directories, scratch / "out")
    lost = set.intersection(*hurts)
    kept = [entry for i, entry in enumerate(log) if i not in lost]
    found = b"".join(data for _, data in sorted(logs_of(scratch / "out" / "t-0").items()))
    assert found == b"".join(entry.built() for entry in kept)
    expected = {o for i in lost for o in range(log[i].base, log[i].last + 1)}
    assert list(lost_offsets(table, end(log))) == sorted(expected)
    assert not said(table, "diverged")


@pytest.mark.slow
@given(logs(), ROLLS, st.data())
@examples(30)
def test_any_byte_of_one_replica(
    scratch: Path, log: Log, rolls: list[int], data: st.DataObject
) -> None:
    """Also offsets and leader epochs, which no checksum covers: the merge is right, or says that it may not be."""
    directories = built(scratch, log, rolls, [set(), set()], data)
    hurt_one = data.draw(st.integers(0, 1))
    path = data.draw(st.sampled_from(sorted(directories[hurt_one].glob("*.log"))))
    out = bytearray(path.read_bytes())
    starts = [0]
    for entry in log[[e.base for e in log].index(int(path.stem)) :]:
        starts.append(starts[-1] + len(entry.built()))
    starts = [at for at in starts if at < len(out)]
    for _ in range(data.draw(st.integers(1, 3))):
        near = st.sampled_from(starts).flatmap(lambda at: st.integers(at, at + HEADER))
        at = data.draw(st.one_of(near, st.integers(0, len(out) - 1)))
        out[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(out)
    table = merged(directories, scratch / "out")
    whole = directories[1 - hurt_one]
    problems = {"lost", "diverged"} & set(table.column("what").to_pylist())
    if not problems:
        assert logs_of(scratch / "out" / "t-0") == logs_of(whole)
    found, wanted = rows(scratch / "out"), rows(whole)
    assert len({row[0] for row in found}) == len(found)
    assert problems or found == wanted


@pytest.mark.slow
@given(logs(least=3), st.data())
@examples(20)
def test_replicas_that_begin_and_end_elsewhere(
    scratch: Path, log: Log, data: st.DataObject
) -> None:
    """Retention and lag are no conflict: the longest log is written."""
    middle = data.draw(st.integers(1, len(log) - 2))
    shutil.rmtree(scratch, ignore_errors=True)
    late = put(scratch / "a" / "t-0", log[middle:], [])
    short = put(scratch / "b" / "t-0", log[: middle + 1], [middle])
    table = merged([late, short], scratch / "out")
    found = b"".join(data for _, data in sorted(logs_of(scratch / "out" / "t-0").items()))
    assert found == b"".join(entry.built() for entry in log)
    assert not said(table, "lost") and not said(table, "diverged")
    (row,) = said(table, "absent")
    assert (row["first_offset"], row["last_offset"]) == (log[0].base, log[middle].base - 1)


def test_entries_begin_as_the_law_says() -> None:
    """The strategy relies on where the attributes of a batch are."""
    one = Entry(0, 0, 0, ())
    assert one.built()[HEADER:][:2] == bytes(2)


@dataclass(frozen=True)
class Copy:
    """A replica of a log: what is left of it, and what was done to it.

    Attributes:
        log: Its batches.
        damage: Those with a bit flipped that a checksum covers.
        flips: Bits flipped that no checksum covers: the batch, the byte in it, and the bit.
    """

    log: Log
    damage: Damage
    flips: tuple[tuple[int, int, int], ...]

    @property
    def sound(self) -> set[int]:
        """Offsets of the records that are whole, and stand where they were written."""
        moved = {i for i, byte, _ in self.flips if byte < 8}
        kept = (entry for i, entry in enumerate(self.log) if i not in self.damage | moved)
        return {record.offset for entry in kept for record in entry.records}

    def put(self, directory: Path, rolls: Sequence[int], data: st.DataObject) -> Path:
        """Write it as a partition directory."""
        put(directory, self.log, rolls)
        hurt(directory, self.log, self.damage, data)
        for path in sorted(directory.glob("*.log")):
            out = bytearray(path.read_bytes())
            at, i = 0, [entry.base for entry in self.log].index(int(path.stem))
            while at < len(out):
                for batch, byte, bit in self.flips:
                    out[at + byte] ^= 1 << bit if batch == i else 0
                at, i = at + len(self.log[i].built()), i + 1
            path.write_bytes(out)
        return directory


@st.composite
def copies(draw: st.DrawFn, log: Log) -> Copy:
    """A replica that lags or not, is compacted or not, and is damaged. One base offset and one leader epoch has a bit flipped, or none."""
    own = log[: draw(st.one_of(st.just(len(log)), st.integers(1, len(log))))]
    if draw(st.integers(0, 3)) == 0:
        own = compacted(own, draw(st.integers(0, end(own)))) or own
    number = st.integers(0, len(own) - 1)
    offset = st.tuples(number, st.sampled_from([5, 6, 6, 7, 7, 7]), st.integers(0, 7))
    epoch = st.tuples(number, st.sampled_from([12, 15, 15]), st.integers(0, 7))
    flips = draw(st.lists(offset, max_size=1)) + draw(st.lists(epoch, max_size=1))
    beside = st.sampled_from([i - 1 for i, _, _ in flips if i] or [0])
    damage = draw(st.sets(st.one_of(number, beside), max_size=3))
    return Copy(own, damage, tuple(flips))


@pytest.mark.slow
@given(logs(least=3), st.lists(st.integers(1, 12), max_size=2), st.data())
@examples(60)
def test_no_record_stands_twice_or_where_another_replica_contradicts(
    scratch: Path, log: Log, rolls: list[int], data: st.DataObject
) -> None:
    """Replicas of one history with any lag, compaction and damage, also of offsets and epochs, which no checksum covers; but not of
    those of one batch twice. The timestamp of a record says at which offset it was written.
    """
    found = data.draw(st.lists(copies(log), min_size=2, max_size=3))
    flipped = [one.log[i].base for one in found for i, _, _ in one.flips]
    assume(len(set(flipped)) == len(flipped))
    shutil.rmtree(scratch, ignore_errors=True)
    places = [one.put(scratch / f"{n}" / "t-0", rolls, data) for n, one in enumerate(found)]
    table = merged(places, scratch / "out")
    out = read_table(scratch / "out", ["offset", "timestamp"], control_records=True)
    offsets = out.column("offset").to_pylist()
    written_at = [t - TIME for t in out.column("timestamp").cast(pa.int64()).to_pylist()]
    assert offsets == sorted(set(offsets))
    assert len(set(written_at)) == len(written_at)
    known = set().union(*(one.sound for one in found))
    assert not [w for o, w in zip(offsets, written_at, strict=True) if o != w and w in known]
    if not {"lost", "diverged", "left out"} & set(table.column("what").to_pylist()):
        assert known <= set(written_at)
