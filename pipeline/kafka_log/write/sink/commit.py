"""Commit of staged rows: the segments that tasks wrote become part of the partitions of a log directory, all or none."""

from __future__ import annotations

import base64
import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from codecgen.runtime.editing import edit
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from kafka_codecs import PARTITION_METADATA
from kafka_codecs.columns.records import RECORDS
from kafka_codecs.rows.batches import BATCHES
from kafka_log.logs.broker_files import (
    find_topic_id,
    read_checkpoint,
    read_leader_epochs,
    read_producer_snapshot,
)
from kafka_log.logs.discovery import discover
from kafka_log.logs.listing import list_base_offsets
from kafka_log.logs.names import LEADER_EPOCHS, LOG_START, parse_live_partition_name
from kafka_log.logs.partitions import DirectoryError, Segment
from kafka_log.segment.batch_headers import entries
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.positioned_reads import read_exactly
from kafka_log.segment.scanner import Scanner
from kafka_log.segment.versions import columns_from, field_of, has_field
from kafka_log.write.checkpoints import PARTITION_METADATA as METADATA_FILE
from kafka_log.write.checkpoints import write_leader_epochs
from kafka_log.write.encoding import encode
from kafka_log.write.indexes import BatchRows, write_indexes
from kafka_log.write.output_files import (
    list_missing_directories,
    name_errors,
    open_output,
    remove_empty_directories,
    sync,
    write_file,
)
from kafka_log.write.producer_states import ProducerStates
from kafka_log.write.sink.commit_journal import (
    DECIDED,
    Move,
    lock_target,
    make_moves,
    recover,
    remove_job,
    write_journal,
)
from kafka_log.write.sink.log_format import FormatError, LogFormat, WriteJob
from kafka_log.write.sink.rows import SinkError
from kafka_log.write.sink.staging import Staged, job_directory
from kafka_log.write.staged_output import open_staged_file
from kafka_log.write.verification import DEFECT, NOT_READ_BACK, WrittenError


@dataclass(frozen=True, slots=True)
class AppendPosition:
    """Where a log continues: its next offset, its last leader epoch (None if unknown), and the
    bytes of the producer snapshot there (None without).

    Attributes:
        offset: The offset of the next record.
        epoch: The leader epoch of the last batch. None: no batch has one.
        producers: The producer snapshot at this offset. None: there is none.
    """

    offset: int = 0
    epoch: int | None = 0
    producers: bytes | None = None


def find_append_position(directory: Path, start: int) -> AppendPosition:
    """Return where a log continues: its next offset, at least ``start``, its last leader epoch
    (None: unknown), and the bytes of the producer snapshot at its end. The snapshot is None if
    there is no valid one, or ``start`` is beyond the end. Without live segments the log continues
    at ``start`` with leader epoch 0. Raise DirectoryError if the last live segment, the only one
    that is read, has damage (also a wrong checksum) or an incomplete batch, or the directory does
    not exist; OSError if it cannot be listed.
    """
    (partition,) = discover(directory)
    if partition.error is not None:
        raise partition.error
    live = [segment for segment in partition.segments if segment.state == "live"]
    if not live:
        return AppendPosition(start)
    last = live[-1]
    end, epoch = last.base_offset, None
    rows = BatchRows(replace(last, rolled=True), ("last_offset", "leader_epoch"))
    for offset, of_batch in rows:
        end = max(end, offset + 1)
        epoch = epoch if of_batch is None or of_batch < 0 else of_batch
    if rows.lost:
        at = rows.lost[0].start
        reason = f"it has no complete batch from byte {at} on: salvage the log before you add to it"
        raise DirectoryError(last.path, reason)
    said = read_leader_epochs(directory / LEADER_EPOCHS)
    if said:
        epoch = said[-1][0]
    elif epoch is None and end == 0:
        epoch = 0  # nothing was ever written
    snapshot = directory / f"{end:020d}.snapshot"
    producers = snapshot.read_bytes() if read_producer_snapshot(snapshot) is not None else None
    return AppendPosition(max(start, end), epoch, producers if end >= start else None)


def read_log_starts(target: Path) -> Mapping[tuple[str, int], int]:
    """Return the log start offsets in the checkpoint of a broker's directory, by topic and
    partition; ``{}`` without a checkpoint. Raise DirectoryError if the checkpoint cannot be parsed;
    OSError if it cannot be read.
    """
    path = target / LOG_START
    if not path.is_file():
        return {}
    try:
        return read_checkpoint(path)
    except CodecError as error:
        raise DirectoryError(
            path,
            f"the checkpoint cannot be parsed: {error}; nothing is written. kafka-log check says how to repair it",
        ) from None


_SAID = [c for c in BATCHES.columns if c not in ("crc", "position", "size")]
_ROWS = [c.name for c in RECORDS.columns if c.name not in ("position", "base_offset")]


def rebase(path: Path, shift: int, epoch: int | None, written: LogFormat) -> None:
    """Add ``shift`` to the offsets of a segment that this package wrote, in place. Set the leader
    epoch of its batches unless ``epoch`` is None or the version has none. Compressed legacy
    messages are encoded again. Raise OSError if the segment cannot be read or written; CodecError
    if a batch is damaged (also a wrong checksum), or would not read the same with the new offsets.
    An error may leave the segment changed in part.

    The segment and its indexes keep their names, and index entries stay relative to them. The caller syncs the files.
    """
    is_batch = has_field(written.magic, "record_count")
    if shift and written.codec != "none" and not is_batch:
        _rewrite(path, shift, written)
        return
    if not has_field(written.magic, "leader_epoch"):
        epoch = None
    offset = field_of(written.magic, "base_offset" if is_batch else "last_offset")
    moved_too = columns_from(written.magic, offset) & set(_SAID)
    columns = HeaderColumns(_SAID, os.fspath(path))
    session = Session(strict=False, file=os.fspath(path))
    with name_errors(path), path.open("r+b", buffering=0) as file:
        for entry in entries(path):
            before = dict(zip(_SAID, columns.read(entry), strict=True))
            changes: dict[str, int] = {}
            if shift:
                changes[offset] = before["last_offset" if not is_batch else "base_offset"] + shift
            if epoch is not None:
                changes[field_of(written.magic, "leader_epoch")] = epoch
            data = read_exactly(file, entry.position, entry.frame.size)
            source = Source(data, session, origin=entry.position)
            moved = edit(entry.frame.layout, source, changes)
            after = columns.read(entry._replace(data=moved))
            wanted = before | {n: before[n] + shift for n in moved_too if before[n] is not None}
            wanted |= {} if epoch is None else {"leader_epoch": epoch}
            if len(moved) != len(data) or after != tuple(wanted.values()):
                reason = (
                    f"the batch with the last offset {before['last_offset']} has other values in its header after it"
                    f" was moved by {count_noun(shift, 'offset')}; {DEFECT}"
                )
                raise WrittenError(reason, source.where(0))
            file.seek(entry.position)
            file.write(moved)


def _rewrite(path: Path, shift: int, written: LogFormat) -> None:
    """Encode a segment of compressed legacy messages again with ``shift`` added to its offsets, and
    rebuild its indexes; all keep their file names. Remove producer snapshots beside it. Raise
    OSError if a file cannot be written, or what was written cannot be read again; CodecError if a
    message is damaged or an index is wrong.
    """
    scanner = Scanner(path, _ROWS)
    schema = scanner.schema
    at = schema.get_field_index("offset")

    def moved(rows: pa.RecordBatch) -> pa.RecordBatch:
        offsets = pa.array(rows.column(at).to_numpy() + shift, schema.field(at).type)
        return rows.set_column(at, schema.field(at), offsets)

    stream = pa.RecordBatchReader.from_batches(schema, map(moved, scanner))
    beside = path.with_suffix(".moved")
    with open_output(beside) as file:
        for piece in encode(stream, level=written.level, batch_bytes=written.batch_bytes):
            file.write(piece)
    beside.replace(path)
    base = int(path.stem) + shift
    moved_segment = Segment(path, "", 0, base, path.stat().st_size, rolled=True)
    if write_indexes([moved_segment], path.parent):
        raise OSError(f"{path}: {NOT_READ_BACK}")
    for end in (".index", ".timeindex"):  # under the names that the segment still has
        (path.parent / f"{base:020d}{end}").replace(path.with_suffix(end))
    for snapshot in path.parent.glob("*.snapshot"):
        snapshot.unlink()


BATCHES_DONE = ".kafka-log-batches.json"
"""Which micro-batches of which queries are there: the last one of each."""

_SYNCS = 16
_FILES = (".index", ".timeindex", ".log")
"""The segment itself comes last: a reader that sees it sees its indexes too."""


class Micro(NamedTuple):
    """The identity of a micro-batch: its query and its number."""

    query: str
    batch: int


def new_job(
    target: str | os.PathLike[str],
    log_format: LogFormat,
    *,
    overwrite: bool = False,
    passed: Iterable[str] = (),
) -> WriteJob:
    """Return a job that writes to a log directory, which may not exist yet, with each topic's
    number of partitions there (the highest partition number plus 1). Nothing is created yet.
    ``overwrite`` lets the commit replace the partitions of written topics; ``passed`` are columns
    that rows may have and that are not written. Raise DirectoryError if ``target`` holds segments
    itself or is no directory; OSError if it cannot be listed.
    """
    path = Path(target).absolute()
    counts: dict[str, int] = {}
    if path.exists():
        if not path.is_dir() or list_base_offsets(path):
            reason = "a log directory is needed, in which partitions have directories of their own"
            raise DirectoryError(path, reason)
        for child in path.iterdir():
            name = parse_live_partition_name(child)
            if name is not None and child.is_dir():
                counts[name[0]] = max(counts.get(name[0], 0), name[1] + 1)
    missing = tuple(map(str, list_missing_directories(path)))
    return WriteJob(str(path), log_format, overwrite, counts, tuple(passed), missing)


def make_batch_job(job: WriteJob, batch: int) -> WriteJob:
    """Return the job of one micro-batch of a stream."""
    return replace(job, id=f"{job.id}-{batch}")


def commit(job: WriteJob, staged: Sequence[Sequence[Staged]], micro: Micro | None = None) -> None:
    """Make the segments that the tasks of a job wrote (``staged``, by task) part of the logs, in the
    order of given offsets, else lowest task first. Drop them if the micro-batch ``micro``, or a
    later one of its query, was committed before. Raise SinkError for offsets that do not ascend;
    FormatError for another topic id; CodecError for a segment that cannot get its offsets; OSError
    if a file cannot be read or written. Raise DirectoryError for logs that cannot be appended to,
    for a topic id that is hidden by damage or is not that of another partition, while a broker
    runs, after a minute in which another job holds the lock, and for a missing staged file or a
    damaged checkpoint, list of micro-batches or journal of an interrupted job. Call :func:`abort` after an error.
    """
    target = Path(job.target)
    place = job_directory(job)
    with lock_target(target):
        recover(target, place)
        done = _read_done_batches(target)
        if micro is not None and done.get(micro.query, -1) >= micro.batch:
            remove_job(place)
            return
        place.mkdir(parents=True, exist_ok=True)
        prepared = _Commit(job, place)
        moves = prepared.moves([one for task in staged for one in task])
        with ThreadPoolExecutor(_SYNCS) as pool:  # the disk takes many at once
            for _ in pool.map(sync, prepared.made):
                pass
        if micro is not None:
            made = place / BATCHES_DONE
            with open_staged_file(made) as file:
                file.write(json.dumps({**done, micro.query: micro.batch}).encode())
            moves.append(Move(_relative_path(target, made), BATCHES_DONE))
        if not moves:
            remove_job(place)
            return
        write_journal(target, place, moves)
        make_moves(target, place)


def abort(job: WriteJob) -> None:
    """Remove what a job wrote if it is not committed, also the target and its parents if they are
    new and empty: without a lock, and errors are ignored. Otherwise complete its interrupted commit.
    Then raise DirectoryError if a broker runs in the directory, another job holds its lock for a
    minute, or a journal is damaged; OSError if a file cannot be moved.
    """
    target = Path(job.target)
    place = job_directory(job)
    if not (place / DECIDED).exists():
        remove_job(place)
        remove_empty_directories(map(Path, job.missing))
        return
    with lock_target(target):
        recover(target)


def _read_done_batches(target: Path) -> dict[str, int]:
    """Return the number of the last micro-batch that was committed, by the id of its query; ``{}``
    if the file does not exist. Raise DirectoryError if it is invalid; OSError if it cannot be read.
    """
    path = target / BATCHES_DONE
    try:
        found = json.loads(path.read_bytes())
        return {str(query): int(batch) for query, batch in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError):
        reason = (
            "it does not say which micro-batches were written: nothing can be written exactly once"
        )
        raise DirectoryError(path, reason) from None


def _relative_path(target: Path, path: Path) -> str:
    """Return the path of a file relative to the target, with slashes."""
    return path.relative_to(target).as_posix()


class _Commit:
    """Prepares the moves of a commit. Nothing outside of the job's own directory changes."""

    def __init__(self, job: WriteJob, place: Path) -> None:
        self._job = job
        self._target = Path(job.target)
        self._place = place
        self._starts = read_log_starts(self._target)
        self._ids: dict[str, uuid.UUID] = {}
        self.made: list[Path] = []
        """Files and directories that are to be on the disk before all is decided."""

    def moves(self, staged: Sequence[Staged]) -> list[Move]:
        """Return the moves that make staged segments part of the logs, after building their files
        in the job's directory. Partitions of the setting ``partitions`` that do not exist, or
        partition 0 of a new topic without rows, are created empty. With ``overwrite`` existing
        partitions of the written topics are moved away and built anew; the topic of the settings
        counts as written, also without rows. Raise SinkError for offsets that do not follow,
        FormatError for another topic id, DirectoryError for a log that cannot be appended to, a topic
        id that is hidden by damage or is not that of another partition, or a missing staged file,
        CodecError for a segment that cannot get its offsets, OSError if a file cannot be read or
        written.
        """
        by_partition = {
            key: sorted(found, key=_by_offset)
            for key, found in groupby(sorted(staged, key=_key), key=_key)
        }
        topics = {topic for topic, _ in by_partition}
        if self._job.format.topic is not None:
            topics.add(self._job.format.topic)
        there = self._find_partitions(topics)
        self._ids = self._choose_ids(topics, there)
        out: list[Move] = []
        if self._job.overwrite:
            for directory in there.values():
                away = self._place / "replaced" / directory.name
                away.parent.mkdir(exist_ok=True)
                out.append(Move(directory.name, _relative_path(self._target, away), away=True))
        for topic in sorted(topics):
            for number in self._number_partitions(topic, by_partition, there):
                found = by_partition.get((topic, number), [])
                old = None if self._job.overwrite else there.get((topic, number))
                out += (
                    self._build_partition(topic, number, found)
                    if old is None
                    else self._build_segments(old, found)
                )
        return out

    def _find_partitions(self, topics: set[str]) -> dict[tuple[str, int], Path]:
        """Return the directories of live partitions of some topics in the target, by topic and
        number. Raise OSError if the target cannot be listed.
        """
        found: dict[tuple[str, int], Path] = {}
        for child in sorted(self._target.iterdir()):
            name = parse_live_partition_name(child)
            if name is not None and name[0] in topics and child.is_dir():
                found[name] = child
        return found

    def _number_partitions(
        self, topic: str, written: Iterable[tuple[str, int]], there: Iterable[tuple[str, int]]
    ) -> list[int]:
        """Return the numbers of the partitions of a topic that the commit creates or changes,
        ascending. These are those with rows, and all of the setting ``partitions``, or, without the
        setting, of the old topic if it is overwritten. Return ``[0]`` for a new topic without
        either, ``[]`` for an old one.
        """
        wanted = {number for of, number in written if of == topic}
        old = {number for of, number in there if of == topic}
        if self._job.format.partitions is not None:
            wanted |= set(range(self._job.format.partitions))
        elif self._job.overwrite:
            wanted |= old
        if not wanted and not old:
            wanted = {0}
        return sorted(wanted)

    def _build_partition(self, topic: str, number: int, staged: Sequence[Staged]) -> list[Move]:
        """Build the directory of a partition that is new or replaces another one, with an empty
        segment if nothing is staged, and return its move in a list. Raise SinkError if given
        offsets do not ascend, or begin below the log start offset in the target's checkpoint;
        DirectoryError if a staged file is missing; CodecError if a segment cannot get its offsets;
        OSError if a file cannot be written.
        """
        directory = self._place / "new" / f"{topic}-{number}"
        directory.mkdir(parents=True)
        at = AppendPosition(
            self._starts.get((topic, number), 0), 0, bytes(ProducerStates().snapshot())
        )
        bases, end = self._place_staged(at, staged, directory)
        if not bases:
            bases = [at.offset]
            for name in _FILES:
                (directory / f"{at.offset:020d}{name}").touch()
        for base in (*bases[1:], *([end] if staged else [])):
            assert at.producers is not None
            write_file(directory / f"{base:020d}.snapshot", at.producers)
        if has_field(self._job.format.magic, "leader_epoch") and staged:
            write_leader_epochs(directory, directory, [(0, bases[0])], bases[0], end)
        built = PARTITION_METADATA.build({"topic_id": self._ids[topic]})
        write_file(directory / METADATA_FILE, bytes(built))
        self.made += [*directory.iterdir(), directory]
        return [Move(_relative_path(self._target, directory), directory.name)]

    def _build_segments(self, old: Path, staged: Sequence[Staged]) -> list[Move]:
        """Build segments that follow those of the partition directory ``old``, and return a move
        for each file; ``[]`` if nothing is staged. Raise DirectoryError if the log does not end
        with a complete batch, or a staged file is missing; SinkError if given offsets do not follow
        it; CodecError if a segment cannot get its offsets; OSError if a file cannot be read or
        written.
        """
        if not staged:
            return []
        name = parse_live_partition_name(old)
        assert name is not None
        at = find_append_position(old, self._starts.get(name, 0))
        directory = self._place / "added" / old.name
        directory.mkdir(parents=True)
        bases, end = self._place_staged(at, staged, directory)
        names = [f"{base:020d}{suffix}" for base in bases for suffix in _FILES]
        if at.producers is not None:
            for base in (*bases, end):
                if base > at.offset:
                    write_file(directory / f"{base:020d}.snapshot", at.producers)
                    names.insert(0, f"{base:020d}.snapshot")
        self.made += [*directory.iterdir(), directory]
        return [Move(_relative_path(self._target, directory / n), f"{old.name}/{n}") for n in names]

    def _place_staged(
        self, at: AppendPosition, staged: Sequence[Staged], directory: Path
    ) -> tuple[list[int], int]:
        """Move staged segments into ``directory`` under their final offsets and names: given
        offsets, or new ones after ``at``. Return their base offsets, and the offset after the last
        record. Raise SinkError if given offsets do not follow the log; DirectoryError if a staged
        file is missing; OSError or CodecError if a segment cannot be changed.
        """
        epoch = None if at.epoch == 0 else -1 if at.epoch is None else at.epoch
        bases: list[int] = []
        end = at.offset
        for one in staged:
            shift = 0 if one.given else end - one.first
            if one.given and one.first < end:
                reason = (
                    f"{one.first} in {one.topic}-{one.partition} is not after {end - 1}, the last offset there:"
                    " leave out the column offset for new ones"
                )
                raise SinkError(reason, column="offset")
            for base in one.bases:
                source = self._place / one.directory / f"{base:020d}"
                if not source.with_suffix(".log").exists():
                    reason = (
                        "a task has written this file, and it is not there: the task's machine sees another directory of this name,"
                        " or somebody has removed the file. Let all machines see the same directory, and write again"
                    )
                    raise DirectoryError(source.with_suffix(".log"), reason)
                if shift or epoch is not None:
                    rebase(source.with_suffix(".log"), shift, epoch, self._job.format)
                for suffix in _FILES:
                    source.with_suffix(suffix).rename(directory / f"{base + shift:020d}{suffix}")
                bases.append(base + shift)
            end = one.end + shift
        return bases, end

    def _choose_ids(
        self, topics: set[str], there: Mapping[tuple[str, int], Path]
    ) -> dict[str, uuid.UUID]:
        """Return the id of each topic: that of its existing partitions, else the id in the settings,
        else a new random one. Raise DirectoryError if damage hides the id of an existing partition,
        or it is not that of the partitions before; FormatError if the id in the settings differs.
        """
        stated: dict[str, bytes] = {}
        for (topic, _), directory in there.items():
            found, error = find_topic_id(directory)
            if error is not None:
                reason = (
                    f"its topic id is not known ({error.reason}), so that it can be neither kept nor compared: restore the file, which is"
                    " the same in all partitions of a topic, or remove it to give the partition the id of the others, or a new one"
                )
                raise DirectoryError(directory / METADATA_FILE, reason)
            if found is not None and found != stated.setdefault(topic, found):
                reason = (
                    f"its topic id, {_format_id(found)}, is not that of another partition of the topic, {_format_id(stated[topic])}:"
                    " move the partitions of one of the two topics to another directory"
                )
                raise DirectoryError(directory / METADATA_FILE, reason)
        wanted = self._job.format.topic_id
        asked = None if wanted is None else base64.urlsafe_b64decode(f"{wanted}==")
        for topic, old in stated.items():
            if asked not in (None, old):
                raise FormatError(
                    "topic_id",
                    f"the topic {topic!r} exists in the directory with the id {_format_id(old)}, not {wanted}:"
                    " leave topic_id out, or write to another directory",
                )
        ids = {topic: stated.get(topic, asked) for topic in topics}
        return {
            topic: uuid.uuid4() if one is None else uuid.UUID(bytes=one)
            for topic, one in ids.items()
        }


def _format_id(topic_id: bytes) -> str:
    """Return a topic id as Kafka spells it: URL-safe Base64 without padding."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _key(one: Staged) -> tuple[str, int]:
    """Return topic and partition of staged segments."""
    return one.topic, one.partition


def _by_offset(one: Staged) -> int:
    """Return the sort key of staged segments of one partition: the first offset if rows gave it, else 0, which keeps the order of tasks."""
    return one.first if one.given else 0
