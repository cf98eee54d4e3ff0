"""Recognition of a log that changes while it is read: whether the records that were read are still in it.

A log that only grows, is rolled, is compacted or loses its first segments keeps what was read:

- The file with the last batch that was read has that batch at its place, unless it is no longer the active one: brokers compact rolled
  segments only.
- The cleaner removes batches and changes their size and checksum, but not their leader epochs. A truncation begins a new epoch: whatever is
  written again below the offset that was read has another one.
- A topic that is created anew has another topic id. Brokers before Kafka 2.8 store none; then it has another directory.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_log.logs.broker_files import find_epoch, read_leader_epochs, read_topic_id
from kafka_log.logs.index_files import find_position_by_index
from kafka_log.logs.listing import list_segment_files
from kafka_log.logs.names import LEADER_EPOCHS
from kafka_log.logs.partitions import Segment
from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.scanner import Scanner, header_scanner
from kafka_log.segment.versions import absent_value

_COLUMNS = ("position", "size", "base_offset", "last_offset", "leader_epoch", "crc")
_NO_EPOCH = absent_value("leader_epoch")

_MAX_PINNED = 256
"""Maximum number of directories that are held open."""

_SWAP_S = 10
"""Seconds within which a broker renames the files of the cleaner."""

_SETTLED_NS = 2_000_000_000
"""Age of a modification time, in nanoseconds, after which a file with the same time has not changed: more than the resolution of any file
system.
"""


class FileChanged(Exception):
    """A listed file is gone or was replaced. The next listing tells where its records are."""


class LogChange(Enum):
    """What happened to a log since it was read."""

    TRUNCATED = auto()
    """Records that were read are no longer in the log."""
    TRUNCATED_UNREAD = auto()
    """The log was truncated after the last batch that was read."""
    REPLACED = auto()
    """The log of another topic with the same name lies there."""
    MAYBE_TRUNCATED = auto()
    """The last batch is gone, and its leader epoch is unknown, or whether this is the same topic: the log was compacted, or truncated or
    replaced and written again.
    """
    MAYBE_REPLACED = auto()
    """The last batch is gone, the directory is another one or its topic id appeared or vanished, so that no id tells: the log was replaced,
    or moved and changed."""


class BatchHeader(NamedTuple):
    """Place of a batch, and values of its header that tell it from others."""

    file: str
    position: int
    size: int
    base_offset: int | None
    last_offset: int
    leader_epoch: int
    crc: int

    @property
    def end(self) -> int:
        """Position after the batch."""
        return self.position + self.size


@dataclass
class _Anchor:
    """A batch that was read, and the stamp of the file in which it was looked up
    last, if a change of that file would show.
    """

    header: BatchHeader
    checked: _Stamp | None = None


_PINNED: weakref.WeakSet[_DirectoryIdentity] = weakref.WeakSet()


class _DirectoryIdentity:
    """Identity of a directory. As long as it is held open, no other directory gets its number.

    Args:
        directory: The directory.
        holds_open: Whether to hold it open, if there are not too many.

    Raises:
        OSError: If the directory cannot be examined.
    """

    def __init__(self, directory: Path, *, holds_open: bool) -> None:
        status = directory.stat()
        flag = getattr(os, "O_DIRECTORY", None)
        self.is_unique = flag is None  # on Windows, a number does not return soon
        if holds_open and flag is not None and len(_PINNED) < _MAX_PINNED:
            with suppress(OSError):
                descriptor = os.open(directory, os.O_RDONLY | flag)
                weakref.finalize(self, os.close, descriptor)
                status = os.fstat(descriptor)
                self.is_unique = True
                _PINNED.add(self)
        self._identity = status.st_dev, status.st_ino

    def is_at(self, directory: Path) -> bool:
        """Return whether this directory lies at a path. Raise OSError if nothing lies there."""
        status = directory.stat()
        return (status.st_dev, status.st_ino) == self._identity


class FollowedLog:
    """The log of a partition, as far as it was read. At most 256 directories without a topic id are held open meanwhile.

    Attributes:
        is_noted: Whether the last batch that was read was noted, or that there is none.
    """

    def __init__(self) -> None:
        self._topic_id: bytes | None = None
        self._directory: _DirectoryIdentity | None = None
        self._anchors: list[_Anchor] = []
        self._active_base = 0
        self.is_noted = False

    @property
    def next_offset(self) -> int | None:
        """Offset after the last batch that was noted, None if there is none."""
        return self._anchors[-1].header.last_offset + 1 if self._anchors else None

    def note(self, header: BatchHeader) -> None:
        """Note the last batch that was read.

        Beside it, one batch is kept until the next comparison: the last one of that, or the first one that is noted. It shows if the log
        changed between a comparison and the reading after it.
        """
        self._anchors = [*self._anchors[:1], _Anchor(header)]
        self.is_noted = True

    def note_end(self, segments: Sequence[Segment], next_offset: int) -> None:
        """Note the last batch before ``next_offset`` that the log has now, or that it has none, in
        place of what was noted before. Raise FileNotFoundError if a file is gone.
        """
        before = _find_neighbors(segments, next_offset - 1)[0]
        self._anchors = [] if before is None else [_Anchor(before)]
        self.is_noted = True

    def forget(self) -> None:
        """Forget what was noted, because another log lies there."""
        self._anchors, self.is_noted = [], False

    def compare(
        self, directory: Path, segments: Sequence[Segment], next_offset: int | None
    ) -> LogChange | None:
        """Compare the log with what was noted. Return what happened; None if what was read is still there, or was
        compacted or deleted by retention.

        Args:
            directory: The partition directory.
            segments: Its live segments, by a new listing.
            next_offset: Offset after the last one that was read or skipped, None before anything was.

        Raises:
            FileChanged: If a file was changed since the listing, or the cleaner is about to put one in its place.
            FileNotFoundError: If a file or the directory is gone.
        """
        topic_id, before = read_topic_id(directory), self._topic_id
        found = self._directory
        if found is None or next_offset is None or not found.is_at(directory):
            found = _DirectoryIdentity(directory, holds_open=topic_id is None)
        change = None
        if topic_id is not None and before is not None and topic_id != before:
            change = LogChange.REPLACED if next_offset is not None else None
        elif next_offset is not None and segments:
            has_ids = topic_id is not None and topic_id == before
            is_other = not has_ids and (found is not self._directory or topic_id != before)
            is_certain = has_ids or found.is_unique
            change = self._find_change(directory, segments, next_offset, is_other, is_certain)
        is_replaced = change in (LogChange.REPLACED, LogChange.MAYBE_REPLACED)
        if segments and (next_offset is None or is_replaced):
            check_swaps(directory, segments[-1].base_offset)
        if not found.is_at(directory):
            raise FileChanged
        self._directory = found
        self._topic_id = topic_id if is_replaced else topic_id or before
        self._anchors = self._anchors[-1:]
        if segments:
            self._active_base = segments[-1].base_offset
        return change

    def _find_change(
        self,
        directory: Path,
        segments: Sequence[Segment],
        next_offset: int,
        is_other: bool,
        is_certain: bool,
    ) -> LogChange | None:
        """Return what happened to a log that may be the same. ``is_other`` tells that it lies in
        another directory and has no topic id, ``is_certain`` that it is the same topic if not.
        Raise as :meth:`compare` does.
        """
        is_shorter = segments[-1].base_offset < self._active_base
        if not self._anchors:
            if is_other and next_offset > 0:
                return LogChange.MAYBE_REPLACED
            if is_shorter:
                return LogChange.TRUNCATED
            is_unread = self.is_noted and _find_neighbors(segments, next_offset - 1)[0] is not None
            return LogChange.TRUNCATED_UNREAD if is_unread else None
        is_there = False
        for anchor in self._anchors:
            is_there = _is_at_place(segments, anchor)
            if not is_there:
                change = _judge_missing(directory, segments, anchor, is_other, is_certain)
                if change is not None:
                    return change
        last = self._anchors[-1]
        if not is_there or last.header.last_offset + 1 >= next_offset:
            return None
        is_later = is_shorter or _has_later_batch(segments, last, next_offset)
        return LogChange.TRUNCATED_UNREAD if is_later else None


def _is_at_place(segments: Sequence[Segment], anchor: _Anchor) -> bool:
    """Return whether a batch is at its place, the file was looked at before and has not changed, or
    the system cannot read it any more. Raise FileNotFoundError or FileChanged if its file is gone
    or was replaced.
    """
    header = anchor.header
    path = next((s.path for s in segments if s.path.name == header.file), None)
    if path is None:
        return False
    stamp = _read_stamp(path)
    if stamp == anchor.checked:
        return True
    if stamp.size < header.end:
        return False
    found, damage = find_last_header(path, header.position, header.position + 1)
    if found != header and not isinstance(damage, UnreadableError):
        return False
    _note_checked(anchor, path, stamp)
    return True


def _judge_missing(
    directory: Path,
    segments: Sequence[Segment],
    anchor: _Anchor,
    is_other: bool,
    is_certain: bool,
) -> LogChange | None:
    """Return what happened to a log in which a batch is not at its place; None if it lies elsewhere
    (then note where), or retention or the cleaner removed it. For the arguments and errors see
    :meth:`FollowedLog._find_change`.
    """
    wanted = anchor.header
    chain = segments[sum(s.base_offset <= wanted.last_offset for s in segments) - 1 :]
    if segments[0].base_offset > wanted.last_offset:
        check_swaps(directory, wanted.last_offset)
        return None
    path = chain[0].path
    stamp = _read_stamp(path)
    if stamp == anchor.checked:
        return None
    before, after = _find_neighbors(segments, wanted.last_offset)
    if before is not None and before[2:] == wanted[2:]:
        anchor.header = before
        _note_checked(anchor, path, stamp)
        return None
    if is_other:
        return LogChange.MAYBE_REPLACED
    check_swaps(directory, wanted.last_offset)
    _check_active(directory, segments)
    if len(chain) == 1 or _contradicts(directory, wanted, before, after):
        return LogChange.TRUNCATED
    if wanted.leader_epoch == _NO_EPOCH or not is_certain:
        return LogChange.MAYBE_TRUNCATED
    _note_checked(anchor, path, stamp)
    return None


def _contradicts(
    directory: Path, wanted: BatchHeader, before: BatchHeader | None, after: BatchHeader | None
) -> bool:
    """Return whether the offset of a missing batch was written again: another batch has it, or the
    leader epochs say so, in the batches before and after it or in the file that lists them.
    """
    epoch = wanted.leader_epoch
    if epoch == _NO_EPOCH:
        return False
    if before is not None and before.leader_epoch > epoch:
        return True
    if after is not None and after.base_offset is not None:
        is_inside = after.base_offset <= wanted.last_offset
        if is_inside or _NO_EPOCH < after.leader_epoch < epoch:
            return True
    epochs = read_leader_epochs(directory / LEADER_EPOCHS) or []
    if after is not None and find_epoch(epochs, after.last_offset) != after.leader_epoch:
        return False  # the file is older than the log: brokers write it later
    return find_epoch(epochs, wanted.last_offset) not in (None, epoch)


def _check_active(directory: Path, segments: Sequence[Segment]) -> None:
    """Raise FileChanged if ``segments`` no longer end with the active segment. Raise
    FileNotFoundError if the directory is gone.
    """
    files = list_segment_files(directory)
    bases = (file.base_offset for file in files if file.state == "live")
    if max(bases, default=None) != segments[-1].base_offset:
        raise FileChanged


def check_swaps(directory: Path, offset: int) -> None:
    """Raise FileChanged if the log cleaner is about to put a file with ``offset`` or a lower one
    into a directory: it has a new ``.swap`` file. Raise FileNotFoundError if the directory or that
    file is gone.
    """
    for file in list_segment_files(directory):
        if file.state != "swap" or file.base_offset > offset:
            continue
        if time.time() - file.path.stat().st_ctime < _SWAP_S:  # a killed broker leaves older ones
            raise FileChanged


def _has_later_batch(segments: Sequence[Segment], anchor: _Anchor, next_offset: int) -> bool:
    """Return whether a rolled file has a batch below ``next_offset`` right after the last one that
    was read. Raise FileNotFoundError if the file is gone.
    """
    path = next(s.path for s in segments if s.path.name == anchor.header.file)
    end = anchor.header.end
    if path == segments[-1].path or path.stat().st_size <= end:
        return False
    found = find_last_header(path, end, end + 1)[0]
    return found is not None and found.last_offset < next_offset


class _Stamp(NamedTuple):
    """Name, identity, size and modification time of a file."""

    name: str
    device: int
    number: int
    size: int
    modified_ns: int


def _read_stamp(path: Path) -> _Stamp:
    """Return the stamp of a file. Raise FileNotFoundError if it is gone."""
    status = path.stat()
    return _Stamp(path.name, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _note_checked(anchor: _Anchor, path: Path, stamp: _Stamp) -> None:
    """Note that a batch was looked up in the file that had ``stamp`` before. Raise FileChanged or
    FileNotFoundError if another file or none lies there now.
    """
    now = _read_stamp(path)
    if (now.device, now.number) != (stamp.device, stamp.number):
        raise FileChanged
    if time.time_ns() - stamp.modified_ns > _SETTLED_NS:
        anchor.checked = stamp


def _find_neighbors(
    segments: Sequence[Segment], offset: int
) -> tuple[BatchHeader | None, BatchHeader | None]:
    """Return the last batch of a log that ends at or before ``offset``, and the first one after it;
    None if there is none. Files without ``offset`` are read only if the other ones have none.
    """
    count = sum(segment.base_offset <= offset for segment in segments)
    before = after = None
    for segment in reversed(segments[:count]):
        before, later = _find_neighbors_in(segment, offset)
        after = later or after
        if before is not None:
            break
    for segment in segments[count:]:
        if after is not None:
            break
        after = _find_neighbors_in(segment, offset)[1]
    return before, after


def _find_neighbors_in(
    segment: Segment, offset: int
) -> tuple[BatchHeader | None, BatchHeader | None]:
    """Return the last batch of a file that ends at or before ``offset``, and the first one after
    it; None if there is none before the end of the file or damage.
    """
    indexed = find_position_by_index(segment, offset, None)
    for start in (indexed, 0) if indexed else (0,):
        before = after = None
        for found in _read_undamaged(_scan_headers(segment.path, start, None)):
            count = pc.sum(pc.less_equal(found.column("last_offset"), offset)).as_py()
            if count:
                before = _header_at(segment.path, found, count - 1)
            if count < found.num_rows:
                after = _header_at(segment.path, found, count)
                break
        if before is not None:
            break
    return before, after


def find_last_header(
    path: Path, start: int, stop: int | None
) -> tuple[BatchHeader | None, CodecError | None]:
    """Return the last batch that begins between two positions of a file, by the headers, and the
    damage that ended the reading; None if there is no batch before it, or no damage. ``stop`` None:
    up to the end. A file that its broker is about to delete is read under its new name.
    """
    found = None
    headers = _scan_headers(path, start, stop)
    for batch in _read_undamaged(headers):
        found = _header_at(path, batch, batch.num_rows - 1)
    return found, None if headers.end is None else headers.end.error


def _scan_headers(path: Path, start: int, stop: int | None) -> Scanner:
    """Return a scanner of the batches that begin between two positions of a file."""
    return header_scanner(
        path, _COLUMNS, on_damage="keep", start=start, stop=stop, tail=Tail.ACTIVE
    )


def _read_undamaged(headers: Scanner) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a scanner that have rows, up to the first damage."""
    with suppress(CodecError):
        yield from (batch for batch in headers if batch.num_rows)


def _header_at(path: Path, batch: pa.RecordBatch, row: int) -> BatchHeader:
    """Return the header in a row of the columns of a file."""
    return BatchHeader(path.name, *(batch.column(name)[row].as_py() for name in _COLUMNS))
