"""Readers of segments with any mix of format versions, batch by batch, under a policy."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_log.segment.model import Batch, End, Lost, Policy, Tail, is_own_checksum
from kafka_log.segment.passes import PassOptions, SegmentPass
from kafka_log.segment.paths import make_path
from kafka_log.segment.positioned_reads import (
    UnreadableError,
    open_segment,
    size_of,
)

ENGINES = ("construct",)
"""The codecs that can read a log, by the name on the command line."""


class Batches(Protocol):
    """Iterable of the batches of one file in order. After the last batch ``end`` says how the file ended."""

    @property
    def path(self) -> Path:
        """Return the path of the file."""

    @property
    def listed_size(self) -> int | None:
        """Return the size in bytes that a listing gave for the file, or None."""

    @property
    def end(self) -> End | None:
        """Return how the file ended; None before the last batch was iterated."""

    def __iter__(self) -> Iterator[Batch]: ...


class SegmentReader:
    """Reader of one file of batches: a segment (``.log``), or a KRaft snapshot (``.checkpoint``).

    Iterate to get :class:`Batch` objects in file order; then ``end`` says how the file ended. Memory holds one batch at a time.

    Args:
        path: Path or URL of the file.
        policy: Strictness of the reader.
        limits: Limits of memory and nesting; by default those of the schemas.
        engine: ``construct``, the reference codecs, is the only one.
        start: Position of the first byte to read, which must be the first byte of a batch.
        stop: Entries that begin before this position are read. None reads to the end of the file.
        records: False reads headers and verifies checksums only.
        check_rules: Report in the findings of each batch which rules of its layout the batch breaks. ``strict`` raises these.
        tail: Expected bytes after the last complete batch. Expected ones are neither an error nor lost, and ``end.note`` names them.
        salvage_records: Under ``salvage``, yield the readable records of damaged batches; False reports these batches as lost.
        size: Size of the file when it was listed. All bytes are lost if the file is gone, and the missing ones up to ``stop`` if it
            became shorter and its batches do not come as far as ``reaches``. (A broker truncates a preallocated file, and a cleaner
            replaces a file by a shorter one: neither loses bytes.)
        reaches: First offset after the file. None takes the base offset of the next segment in the directory, and compares sizes
            only if ``tail`` is rolled, since brokers truncate the active segment.
        next_base: First offset of the next segment, None if unknown. ``salvage`` treats offsets from there on as invalid.
        is_removed: Called if a listed file is gone. If it returns True, nothing is lost and the file counts as empty.

    Raises:
        CodecError: For the first problem under ``strict``. Bytes that cannot be read are a problem too: an :class:`UnreadableError`,
            which is also an OSError.
        FileNotFoundError: If the file does not exist and ``size`` is None.
        ValueError: If the engine is unknown.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        policy: Policy | str = Policy.KAFKA,
        limits: Limits | None = None,
        engine: str = "construct",
        start: int = 0,
        stop: int | None = None,
        records: bool = True,
        check_rules: bool = False,
        tail: Tail | str = Tail.REFERENCE,
        salvage_records: bool = True,
        size: int | None = None,
        reaches: int | None = None,
        next_base: int | None = None,
        is_removed: Callable[[], bool] | None = None,
    ) -> None:
        """Store the options; nothing is opened yet. Raises ValueError for an unknown engine, policy or tail."""
        if engine not in ENGINES:
            raise ValueError(f"there is no engine {engine!r}; known: {', '.join(ENGINES)}")
        self.options = PassOptions(
            path=make_path(path),
            policy=Policy(policy),
            limits=limits or Limits(),
            start=start,
            stop=stop,
            records=records,
            check_rules=check_rules,
            tail=Tail(tail),
            salvage_records=salvage_records,
            size=size,
            reaches=reaches,
            next_base=next_base,
        )
        self.is_removed = is_removed
        self.end: End | None = None

    @property
    def path(self) -> Path:
        """Path or URL of the file."""
        return self.options.path

    @property
    def reads_plain(self) -> bool:
        """Whether batches are only verified: records, rules of layouts and strict checks are not needed."""
        options = self.options
        is_strict = options.policy is Policy.STRICT
        return not options.records and not options.check_rules and not is_strict

    @property
    def listed_size(self) -> int | None:
        """Bytes of the file when it was found, if its broker does not write to it any more."""
        return self.options.size if self.options.tail is Tail.ROLLED else None

    def batch_at(self, run: SegmentPass, position: int, size: int, *, records: bool) -> Batch:
        """Read the entry of ``size`` bytes at byte ``position`` and return it, without its records
        if ``records`` is False (a legacy message keeps its own). Raise CodecError if its bytes
        cannot be read or its header cannot be parsed, and for any problem under ``strict``. Else
        problems are in the batch; a wrong checksum makes ``is_valid`` False.
        """
        from kafka_log.segment.reference import construct_engine  # kernels may need no codecs

        data = run.read(position, size)
        options = self.options
        return construct_engine(
            data,
            position,
            run.name,
            options.policy,
            options.limits,
            records,
            options.check_rules,
        )

    def __iter__(self) -> Iterator[Batch]:
        """Yield all batches in file order, then set ``end``. Iterating raises CodecError for the
        first problem under ``strict``, and FileNotFoundError for a missing file whose size was not
        listed.
        """
        with self.opened() as run:
            if run is not None:
                yield from run.batches()

    @contextmanager
    def opened(self) -> Iterator[SegmentPass | None]:
        """Open the file for the ``with`` block, and give a new pass over it; set ``end``
        afterwards, if the pass has ended. If the file cannot be opened, give None, with ``end``
        set; raise UnreadableError under ``strict``, and FileNotFoundError if it does not exist and
        was not listed. A listed file that its broker removed (``is_removed``) counts as empty under
        each policy.
        """
        try:
            file = open_segment(
                self.path, is_listed=self.options.size is not None, size=self.listed_size
            )
        except UnreadableError as error:
            self._fail(error)
            yield None
            return
        with file:
            run = SegmentPass(
                self.options,
                file,
                size_of(file),
                self.batch_at,
                reads_plain=self.reads_plain,
            )
            try:
                yield run
            finally:
                self.end = run.end or self.end

    def _fail(self, error: UnreadableError) -> None:
        """Set ``end`` for a file that cannot be opened: all of its bytes are lost under
        ``salvage``, else ``end`` has the error. Raise ``error`` under ``strict``, and
        FileNotFoundError if the file does not exist and was not listed. If ``is_removed`` says that
        a broker removed a listed file, ``end`` is that of an empty file, and nothing is raised.
        """
        options = self.options
        if error.errno == errno.ENOENT:
            if options.size is None and error.__cause__ is not None:
                raise error.__cause__
            if self.is_removed is not None and self.is_removed():
                self.end = End(0, 0, options.start, options.start, 0, "eof")
                return
        size = _size_of(self.path) if options.size is None else options.size
        stop = size if options.stop is None else min(options.stop, size)
        start = min(options.start, stop)
        salvage = options.policy is Policy.SALVAGE
        at = stop if salvage else start
        self.end = End(
            batches=0,
            records=0,
            valid_bytes=start,
            iterated_bytes=at,
            trailing_bytes=size - at,
            stop="eof" if salvage else "error",
            error=None if salvage else error,
            lost=(Lost(start, stop, str(error)),) if salvage else (),
        )
        if options.policy is Policy.STRICT:
            raise error


class HeaderReader(SegmentReader):
    """Reader of batch headers alone: no other bytes are read, and no checksum is verified.

    An entry with an unknown magic byte, or one that is too short for its header, is read as by :class:`SegmentReader`.
    """

    reads_plain = False

    def batch_at(self, run: SegmentPass, position: int, size: int, *, records: bool) -> Batch:
        """Read the header of the entry at byte ``position``, and return the entry without records,
        unverified. One with an unknown magic byte or an incomplete header is parsed in full, with
        its checksum, as by :class:`SegmentReader`. Raise CodecError if it cannot be read or parsed.
        """
        from kafka_log.segment.framing import HEADER_BYTES
        from kafka_log.segment.reference import header_of

        data = run.read(position, min(size, HEADER_BYTES))
        found = header_of(data, position, size, run.name)
        return found or super().batch_at(run, position, size, records=records)


def _size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if the system cannot tell."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def last_offset_at(path: Path, position: int, stated: int) -> int:
    """Return the largest offset of the records in the batch at byte ``position``, read under the
    policy ``kafka``, also if its checksum is wrong. Return ``stated`` if no record can be read,
    also if the file cannot be opened. Raise FileNotFoundError if the file does not exist.
    """
    batch = next(iter(SegmentReader(path, start=position)), None)
    records = [] if batch is None else batch.records
    return max((record.offset for record in records), default=stated)


def damage(batch: Batch) -> list[CodecError]:
    """Return the errors for which a consumer rejects a batch: its wrong checksum, those of messages
    in a valid wrapper, and parts that cannot be read. Return ``[]`` if there are none. Findings
    that Kafka tolerates are not damage.
    """
    inner = (
        [r.crc_error for r in batch.records if r.crc_error is not None] if batch.is_valid else []
    )
    return inner + batch_damage(batch)


def batch_damage(batch: Batch) -> list[CodecError]:
    """Return the errors for which a consumer rejects a batch: its wrong checksum, and parts that
    cannot be read; ``[]`` if there are none. Wrong checksums of single messages in a wrapper are
    left out, which :func:`damage` includes.
    """
    own = [] if batch.is_valid else list(filter(is_own_checksum, batch.findings))
    return own + [problem.error for problem in batch.problems]
