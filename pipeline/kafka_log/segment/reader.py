"""Segments: any mix of versions, batch by batch, under a policy."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_log.segment.model import Batch, End, Lost, Policy, Tail, is_own_checksum
from kafka_log.segment.offsets_of_files import offsets_of
from kafka_log.segment.passes import SegmentPass
from kafka_log.segment.places import place_of
from kafka_log.segment.positioned_reads import (
    UnreadableError,
    open_segment,
    size_of,
)

# The codecs, and what stands on them, are imported where they are needed: the Arrow kernels may leave nothing to them.
if TYPE_CHECKING:
    from kafka_log.segment.reference import Engine

ENGINES = ("construct",)
"""The codecs that can read a log, by the name on the command line."""


class Batches(Protocol):
    """What gives the batches of one file, in their order; then ``end`` says how the file ended."""

    @property
    def path(self) -> Path: ...
    @property
    def listed_size(self) -> int | None: ...
    @property
    def end(self) -> End | None: ...
    def __iter__(self) -> Iterator[Batch]: ...


class SegmentReader:
    """Reads one file of batches: a segment (``.log``), or a KRaft snapshot (``.checkpoint``).

    Iterate to get :class:`Batch` objects in the order of the file; then ``end`` says how it ended. Memory holds
    one batch at a time. ``start`` and ``stop`` bound the bytes to read (``start`` must be the first byte of a batch;
    entries that begin before ``stop`` are read). ``records=False`` reads headers only. With ``check_rules`` the findings of batches name the
    rules of their layout that they break; ``strict`` raises these. ``tail`` says what may lie after the
    last whole batch: what is normal there is no error and not lost, and ``end.note`` names it.

    Under ``salvage`` what can be read of batches that are not good is given, and told; without ``rescue`` they are lost.

    ``size`` are the bytes that the file had when it was found: they are lost when it is gone. If it is shorter now, the bytes up to ``stop`` that it no longer
    has are lost, unless its batches still come as far as the offset ``reaches``: a broker cuts off what it made longer in advance, and a cleaner
    puts a shorter file in the place of a longer one. Without ``reaches`` that is where the next segment in the directory begins, and a file is only
    compared whose ``tail`` is rolled: brokers truncate the active one.

    ``is_removed`` is asked if a file that was found is gone: True says that nothing is lost by that, and the file is as good as empty.

    ``next_base`` is the first offset of the next segment, None where nobody says it: under ``salvage`` larger ones are not believed.

    Raises :class:`CodecError` for the first problem under ``strict``, FileNotFoundError for a file that was never there.
    What cannot be read of a file is a problem as any other: an :class:`UnreadableError`, which is an OSError too.
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
        rescue: bool = True,
        size: int | None = None,
        reaches: int | None = None,
        next_base: int | None = None,
        is_removed: Callable[[], bool] | None = None,
    ) -> None:
        self.path = place_of(path)
        self.policy = Policy(policy)
        self.limits = limits or Limits()
        if engine not in ENGINES:
            raise ValueError(f"no engine is called {engine!r}; known: {', '.join(ENGINES)}")
        self.start = start
        self.stop = stop
        self.records = records
        self.check_rules = check_rules
        self.tail = Tail(tail)
        self.rescue = rescue
        self.size = size
        self.reaches = reaches
        self.next_base = next_base
        self.is_removed = is_removed
        self.end: End | None = None

    @property
    def reads_plain(self) -> bool:
        """Whether batches are verified, and their records and the rules of their layouts left alone."""
        return not self.records and not self.check_rules and self.policy is not Policy.STRICT

    @property
    def listed_size(self) -> int | None:
        """Bytes of the file when it was found, if its broker does not write to it any more."""
        return self.size if self.tail is Tail.ROLLED else None

    @cached_property
    def engine(self) -> Engine:
        from kafka_log.segment.reference import construct_engine

        return construct_engine

    def batch_at(self, run: SegmentPass, position: int, size: int, *, records: bool) -> Batch:
        """Return the entry of ``size`` bytes at ``position``, with its records or without. Raises CodecError."""
        data = run.read(position, size)
        return self.engine(
            data, position, run.name, self.policy, self.limits, records, self.check_rules
        )

    def __iter__(self) -> Iterator[Batch]:
        with self.opened() as run:
            if run is not None:
                yield from run.batches()

    @contextmanager
    def opened(self) -> Iterator[SegmentPass | None]:
        """Open the file for one pass. The pass is None if the file cannot be opened: then ``end`` is set."""
        try:
            file = open_segment(self.path, is_listed=self.size is not None, size=self.listed_size)
        except UnreadableError as error:
            self._fail(error)
            yield None
            return
        with file:
            yield SegmentPass(self, file, size_of(file))

    def missing(self, size: int) -> range:
        """Return the positions of bytes that are to be read and that the file, which has ``size`` bytes now, no longer has."""
        if self.size is None or (self.reaches is None and self.tail is not Tail.ROLLED):
            return range(size, size)
        stop = self.size if self.stop is None else min(self.stop, self.size)
        if size >= stop:
            return range(size, size)
        reaches = _next_base(self.path) if self.reaches is None else self.reaches
        is_whole = reaches is not None and _comes_as_far_as(reaches, self.path)
        return range(size, size if is_whole else stop)

    def _fail(self, error: UnreadableError) -> None:
        """Note that the file cannot be opened."""
        if error.errno == errno.ENOENT:
            if self.size is None and error.__cause__ is not None:
                raise error.__cause__
            if self.is_removed is not None and self.is_removed():
                self.end = End(0, 0, self.start, self.start, 0, "eof")
                return
        size = _size_of(self.path) if self.size is None else self.size
        stop = size if self.stop is None else min(self.stop, size)
        start = min(self.start, stop)
        salvage = self.policy is Policy.SALVAGE
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
        if self.policy is Policy.STRICT:
            raise error


class HeaderReader(SegmentReader):
    """Takes each batch for what its header says. Only its bytes are read, and no checksum is verified: but for a magic byte
    that no format has, and for a length that cuts the header off, which are judged as in :class:`SegmentReader`."""

    reads_plain = False

    def batch_at(self, run: SegmentPass, position: int, size: int, *, records: bool) -> Batch:
        from kafka_log.segment.framing import HEADER_BYTES
        from kafka_log.segment.reference import header_of

        data = run.read(position, min(size, HEADER_BYTES))
        found = header_of(data, position, size, run.name)
        return found or super().batch_at(run, position, size, records=records)


def _next_base(path: Path) -> int | None:
    """Return the first offset of the next live segment in the directory of a segment, by their names. None if there is none, or it is unknown."""
    own = offsets_of(path)
    try:
        bases = [
            o.start
            for other in path.parent.iterdir()
            if other.suffix == ".log" and (o := offsets_of(other))
        ]
    except OSError:
        return None
    return None if own is None else min((base for base in bases if base > own.start), default=None)


def _comes_as_far_as(offset: int, path: Path) -> bool:
    """Return whether the last batch of a file ends right before ``offset``, or later."""
    from kafka_log.segment.batch_headers import entries
    from kafka_log.segment.framing import HeaderColumns

    last = None
    with suppress(CodecError):  # zeros that nobody wrote yet
        for entry in entries(path):
            last = entry
    if last is None:
        return False
    return bool(HeaderColumns(("last_offset",), os.fspath(path)).read(last)[0] >= offset - 1)


def _size_of(path: Path) -> int:
    """Bytes of a file that cannot be opened; 0 where nobody knows."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def last_offset_at(path: Path, position: int, stated: int) -> int:
    """Return the largest offset of the batch at a position, by its records: for a header that contradicts itself.

    ``stated``, the last offset by the header, is returned if no record can be read.
    """
    batch = next(iter(SegmentReader(path, start=position)), None)
    records = [] if batch is None else batch.records
    return max((record.offset for record in records), default=stated)


def damage(batch: Batch) -> list[CodecError]:
    """Return the errors for which a consumer refuses a batch: wrong checksums, and parts that cannot be read. Empty if there is none."""
    inner = (
        [r.crc_error for r in batch.records if r.crc_error is not None] if batch.is_valid else []
    )
    return inner + batch_damage(batch)


def batch_damage(batch: Batch) -> list[CodecError]:
    """Return the errors of :func:`damage` without wrong checksums of single messages in a wrapper."""
    own = [] if batch.is_valid else list(filter(is_own_checksum, batch.findings))
    return own + [problem.error for problem in batch.problems]
