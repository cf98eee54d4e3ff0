"""Sum up logs in one pass over their batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.inspect.header_pass import Piece
from kafka_log.inspect.statistics.columns import (
    BATCH_PERIODS,
    BY,
    NEEDED,
    TIME,
    By,
    has_files,
    stat_schema,
)
from kafka_log.inspect.statistics.hidden_records import select_in_partitions, warn_of_copies
from kafka_log.inspect.statistics.options import (
    Asked,
    OnProblem,
    describe_control_records,
    describe_end,
)
from kafka_log.inspect.statistics.totals import Sums, format_codec
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.incomplete_tails import find_end_losses
from kafka_log.logs.names import State
from kafka_log.logs.partitions import Partition, Segment, group_by_state
from kafka_log.read.arguments import tuple_of
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import End, describe_lost
from kafka_log.segment.similar_names import suggest_similar


@dataclass(slots=True)
class _Place:
    """Segments of a partition in one state, with the totals of their files."""

    partition: Partition
    state: State
    segments: Sequence[Segment]
    problems: int = 0
    first_problem: str | None = None
    trailing_bytes: int = 0
    lost_bytes: int = 0
    lines: OnProblem = field(default=lambda _: None)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(segment.size for segment in self.segments)

    def report(self, line: str) -> None:
        """Count a problem, keep the first one, and pass it on."""
        self.problems += 1
        self.first_problem = self.first_problem or line
        self.lines(line)

    def close(self, end: End, file: str) -> None:
        """Add the lost bytes and the bytes after the last batch of a file to the totals, and report
        the lost ranges and the error or incomplete tail at its end.
        """
        self.lost_bytes += sum(lost.end - lost.start for lost in end.lost)
        self.trailing_bytes += end.trailing_bytes
        for line in describe_end(end, file):
            self.report(line)


class Stat:
    """Totals of partitions, read in one pass when the object is created. ``by`` are the keys of the rows."""

    def __init__(
        self, partitions: Sequence[Partition], by: Sequence[By] = ("partition",), *, asked: Asked
    ) -> None:
        self.by = tuple(by)
        self.asked = asked
        self.places = [
            _Place(*found, lines=asked.on_problem) for found in group_by_state(partitions)
        ]
        self.topics = list(dict.fromkeys(utf8(place.partition.topic) for place in self.places))
        number = {topic: i for i, topic in enumerate(self.topics)}
        self.topic_numbers = [number[utf8(place.partition.topic)] for place in self.places]
        self.sums = Sums(self.by, self.topic_numbers, asked.deep)
        selections = select_in_partitions(partitions, asked.selection)
        of_partition = {id(p): found for p, found in zip(partitions, selections, strict=True)}
        self.wanted = [of_partition[id(p.partition)].for_state(p.state) for p in self.places]
        for partition in partitions:
            if partition.error is not None:
                next(p for p in self.places if p.partition is partition).report(
                    str(partition.error)
                )
        self._read()
        read_broker = cache(read_broker_files)
        for place in self.places:
            log = replace(place.partition, segments=tuple(place.segments))
            for path, lost in find_end_losses(log, read_broker):
                place.report(describe_lost(path, lost))
        warn_of_copies(partitions)

    def _read(self) -> None:
        """Read all segments, add up their selected batches, and report damage and files that cannot
        be read, which do not raise.
        """
        segments = [segment for place in self.places for segment in place.segments]
        owners = chain.from_iterable([i] * len(p.segments) for i, p in enumerate(self.places))
        pieces = self.asked.header_pass(segments, NEEDED, self.by)
        owner = -1
        begins = True
        for piece in pieces(segments):
            if begins:
                owner = next(owners)
            begins = piece.is_last
            self.sums.add(owner, self.asked.select_batches(piece.arrays, self.wanted[owner]))
            self._report_piece(self.places[owner], piece)
            self.asked.advance(piece.done)

    def _report_piece(self, place: _Place, piece: Piece) -> None:
        """Report the problems of the batches of a piece, also those of control records if records are
        decoded. For the last piece of a file report also
        its lost ranges, its end and the OSError that stopped reading, and add the lost and trailing
        bytes to the totals.
        """
        file = os.fspath(piece.segment.path)
        for line in piece.noted:
            place.report(f"{file}: {line}")
        if self.asked.deep:
            for line in describe_control_records(piece):
                place.report(line)
        if piece.end is not None:
            place.close(piece.end, file)
        if piece.error is not None:
            place.report(f"{file}: {piece.error.strerror or piece.error}")

    @property
    def problems(self) -> int:
        """Number of problems in all partitions."""
        return sum(place.problems for place in self.places)

    def table(self, top: int | None = None) -> pa.Table:
        """Return one row per combination of keys, sorted by the keys, null last, in the columns of
        :func:`~kafka_log.inspect.statistics.columns.stat_schema`. Topics and partitions are in the
        order of the given partitions. By these keys alone, rows without batches are included. With
        ``top`` return only this number of rows with the most bytes, largest first.
        """
        found = self._make_table(self.sums.table(), self.by)
        if top is None:
            return found
        size = "bytes" if has_files(self.by) else "batch_bytes"
        order = np.argsort(-np.asarray(found.column(size)), kind="stable")[:top]
        return found.take(pa.array(order))

    def total(self) -> pa.Table:
        """Return one row for all batches (sums are 0 without any), without the columns of keys,
        offsets and epochs. It has the columns of files if every file belongs to one row of
        :meth:`table`, and lacks ``producers`` or ``codecs`` if that is a key.
        """
        return self._make_table(self.sums.table(()), ()).select(
            [n for n in stat_schema(self.by, self.asked.deep).names if n in stat_schema(()).names]
            + [f for f in _FILE_COLUMNS if has_files(self.by)]
        )

    # ------------------------------------------------------------ from sums to rows

    def _make_table(self, sums: pa.Table, by: Sequence[By]) -> pa.Table:
        """Return the table by ``by`` from sums, with columns of keys, means and ratios added. By
        topic and partition alone it has columns of files, and rows without batches too; without
        keys it has columns of files and exactly one row. Unless records were decoded, their bytes
        and the ratio are null.
        """
        columns = {name: sums.column(name) for name in sums.column_names}
        rows = len(sums)
        if has_files(by) or not by:
            if "partition" in by:
                key, numbers = "place", list(range(len(self.places)))
            elif by:
                key, numbers = "topic_number", self.topic_numbers
            else:
                key, numbers = "all", [0] * len(self.places)
            at = {value: i for i, value in enumerate(sums.column(key).to_pylist())}
            rows = max(numbers, default=-1) + 1 if by else 1
            order = pa.array([at.get(i) for i in range(rows)], pa.int64())
            columns = {name: column.take(order) for name, column in columns.items()}
            columns |= self._files(numbers, rows)
        columns |= self._keys(columns, by, rows)
        batches = columns["batches"]
        mean = pc.divide(columns["batch_bytes"].cast(pa.float64()), batches)
        columns["mean_batch"] = pc.if_else(pc.equal(batches, 0), None, mean)
        ratio = pc.divide(columns["record_bytes"].cast(pa.float64()), columns["stored_bytes"])
        columns["ratio"] = pc.if_else(pc.equal(columns["stored_bytes"], 0), None, ratio)
        for name in ("record_bytes", "stored_bytes"):
            columns[name] = columns[name].fill_null(0) if self.asked.deep else pa.nulls(rows)
        if not self.asked.deep:
            columns["ratio"] = pa.nulls(rows)
        schema = stat_schema(by, self.asked.deep)
        if not by:
            schema = pa.schema(
                [*schema, *(f for f in stat_schema(("topic",)) if f.name in _FILE_COLUMNS)]
            )
        return pa.table([_cast_column(columns[f.name], f) for f in schema], schema)

    def _files(self, numbers: Sequence[int], rows: int) -> dict[str, Any]:
        """Return the columns about files, by name: numbers of problems, segments, bytes, trailing
        bytes and lost bytes of each of ``rows`` rows, and its first problem (null without any).
        ``numbers`` has the row number of each of ``places``; a place is the segments of a partition
        in one state.
        """
        found: dict[str, Any] = {name: [0] * rows for name in _FILE_COLUMNS}
        first: list[str | None] = [None] * rows
        for i, place in zip(numbers, self.places, strict=True):
            found["problems"][i] += place.problems
            found["segments"][i] += len(place.segments)
            found["bytes"][i] += place.size
            found["trailing_bytes"][i] += place.trailing_bytes
            found["lost_bytes"][i] += place.lost_bytes
            if first[i] is None and place.first_problem is not None:
                first[i] = utf8(place.first_problem)
        found["first_problem"] = first
        return {name: pa.array(values) for name, values in found.items()}

    def _keys(self, columns: dict[str, Any], by: Sequence[By], rows: int) -> dict[str, Any]:
        """Return the key columns that numbers in ``columns`` stand for, by name: ``topic``,
        ``partition``, ``state`` and ``directory`` for the key ``partition``; ``topic`` for
        ``topic``; ``codec``; ``batch_hour`` and the like for ``hour``, unless records are decoded.
        Other keys are in ``columns`` already. By topic and partition only, row ``i`` is topic or place ``i``.
        """
        made: dict[str, Any] = {}
        places = None
        if "partition" in by:
            alone = has_files(by)
            numbers = range(rows) if alone else columns["place"].to_pylist()
            places = [self.places[i] for i in numbers]
            made["topic"] = [utf8(p.partition.topic) for p in places]
            made["partition"] = [p.partition.partition for p in places]
            made["state"] = [p.state for p in places]
            made["directory"] = [utf8(os.fspath(p.partition.directory)) for p in places]
        elif "topic" in by:
            alone = has_files(by)
            numbers = range(rows) if alone else columns["topic_number"].to_pylist()
            made["topic"] = [self.topics[i] for i in numbers]
        if "codec" in by:
            made["codec"] = list(map(format_codec, columns["codec_key"].to_pylist()))
        for name in () if self.asked.deep else by:
            if (field := BATCH_PERIODS.get(name)) is not None:
                made[field.name] = columns[name].to_pylist()
        return {name: pa.array(values) for name, values in made.items()}


_FILE_COLUMNS = ("problems", "first_problem", "segments", "bytes", "trailing_bytes", "lost_bytes")


def _cast_column(column: Any, wanted: pa.Field) -> Any:
    """Cast a column to the type of a field; null becomes 0 or "" if the field is not nullable."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not wanted.nullable and found.null_count:
        found = found.fill_null("" if pa.types.is_string(found.type) else 0)
    if wanted.type == TIME and found.type != TIME:
        found = found.cast(pa.int64()).cast(TIME)
    return found if found.type == wanted.type else found.cast(wanted.type)


def stat_table(
    partitions: Sequence[Partition],
    by: By | Iterable[By] = "partition",
    *,
    top: int | None = None,
    asked: Asked | None = None,
) -> pa.Table:
    """Return the totals of partitions by ``by``, one row per combination of keys, sorted by them;
    with ``top`` only this number of rows with the most bytes, largest first. ``asked`` selects
    batches and says how to read (None: all batches, by headers and checksums). Damage and
    unreadable files go to its ``on_problem``, and are not raised. Batches with a wrong checksum are
    counted unless under ``strict``. Warn if batches below the log start offset are left out, or
    records are counted twice. Raise ValueError for an unknown key, and for none.
    """
    wanted = parse_by(by)
    return Stat(partitions, wanted, asked=asked or Asked()).table(top)


def _check_key(_: str, name: Any) -> Any:
    """Return the key ``name``. Raise ValueError if it is not one of :data:`BY`. The first argument
    is ignored.
    """
    if not (isinstance(name, str) and name in BY):
        hint = suggest_similar(name, BY) if isinstance(name, str) else ""
        raise ValueError(f"there are no totals by {name!r}; known: {', '.join(BY)}{hint}")
    return name


def parse_by(by: By | Iterable[By]) -> tuple[By, ...]:
    """Return the keys, each once, in the order given; ``by`` is one key or several. Raise
    ValueError if one is unknown or there are none.
    """
    wanted: tuple[By, ...] = tuple_of(str, _check_key)("by", by) or ()
    if not wanted:
        raise ValueError(f"by is empty; known: {', '.join(BY)}")
    return wanted
