"""Logs as streams of Arrow record batches, and as tables: a segment, a partition, a broker's directory, or several."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import choose, schema_of
from codecgen.runtime.arrow.view import View
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.arrow.batches import BATCHES
from kafka_codecs.arrow.records import RECORDS
from kafka_log.disk.directory import (
    DirectoryError,
    Partition,
    Segment,
    State,
    chosen,
    discover,
    parse_name,
    utf8,
)
from kafka_log.segment.columnar import (
    CHUNK_BYTES,
    BatchScanner,
    Engine,
    OnDamage,
    Scanner,
    checked_range,
)
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.row_damage import COLUMNS as ROW_DAMAGE
from kafka_log.segment.row_selection import Aborted, Range
from kafka_log.tables.columns import check_columns

if TYPE_CHECKING:
    from kafka_log.tables.topic_views import TopicView

Place = str | os.PathLike[str]
Paths = Place | Iterable[Place]
MAX_OFFSET = (1 << 63) - 1
OnLost = Callable[[Path, Lost], None]
Isolation = Literal["read_uncommitted", "read_committed"]

_TEXT = pa.dictionary(pa.int32(), pa.string())
_PLACES: Mapping[str, tuple[Any, Callable[[Segment], str | int]]] = {
    "topic": (_TEXT, lambda segment: utf8(segment.topic)),
    "partition": (pa.int32(), lambda segment: segment.partition),
    "segment": (_TEXT, lambda segment: utf8(os.fspath(segment.path))),
    "state": (_TEXT, lambda segment: segment.state),
}
"""Columns with one value for a whole segment."""

_BY_DEFAULT = ("topic", "partition")
"""Those of them that are there without being asked for when more than one partition is read."""


def scan(
    path: Paths,
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    view: str | None = None,
    offsets: Range | None = None,
    timestamps: Range | None = None,
    isolation: Isolation | None = None,
    control_records: bool = False,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    include: Collection[State] = (),
    on_damage: OnDamage | None = None,
    on_lost: OnLost | None = None,
    binary_view: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
    limits: Limits | None = None,
    engine: Engine = "auto",
    indexes: bool = True,
) -> pa.RecordBatchReader:
    """The records of logs as a stream of Arrow record batches, in bounded memory, partition by partition.

    A path is a segment file, a partition's directory, or a directory of these (a broker's log directory).

    ``columns`` are those of the view records, ``topic``, ``partition``, ``segment`` and ``state``, and what is wrong with a row:
    ``crc_ok`` (None: the checksum is over bytes that are not there) and ``damage`` (text, None: nothing). None stands for all that need
    not be asked for, with topic and partition when more than one partition is read.
    ``offsets`` and ``timestamps`` (milliseconds) are ranges: the first is in, the end is not, None is open.
    Under ``kafka`` segments that lie outside are not read, and reading begins where their index files say, as far as
    these can be trusted (``indexes=False``: at the first byte), so damage outside of a range may stay unseen.
    ``isolation`` is as consumers have it, ``read_uncommitted`` by default: with ``read_committed`` the records of aborted
    transactions are left out, and all from the last stable offset on (see :func:`kafka_log.disk.transactions.transactions`).
    ``control_records`` adds what brokers write for themselves: transaction markers and the like, which no consumer gets.
    ``view`` gives the rows of one of Kafka's own topics (``offsets``, ``groups``, ...; see :mod:`kafka_log.tables.topic_views`) in the
    place of its records, without what transactions wrote that were aborted or are open, unless ``isolation`` says otherwise.
    ``topics`` and ``partitions`` choose among what is there. Segments that are not live (deleted, stray, ...) are left out but for those
    whose state is in ``include`` (see :data:`kafka_log.disk.directory.State`); the column ``state`` says which they are. Their records may
    be there twice.
    ``on_lost`` is called with a path and a :class:`~kafka_log.Lost` for each run of bytes that is passed over, and each directory, where damage
    is no error. ``binary_view`` gives keys, values and headers as views. The rest is as in :class:`Scanner`.

    Raises :class:`DirectoryError` when there is no log, ValueError for what cannot be asked for, and from the stream
    :class:`CodecError` for damage, with file, byte and field.
    """
    found = _find(path, topics, partitions, include)
    wanted = checked_range("offsets", offsets)
    low, begin = wanted[0], checked_range("timestamps", timestamps)[0]
    begins = low is not None or begin is not None
    seeks = indexes and begins and Policy(policy) is Policy.KAFKA
    if isolation is not None and isolation not in get_args(Isolation):
        known = ", ".join(get_args(Isolation))
        raise ValueError(f"isolation is {isolation!r}; known: {known}")
    wants_committed = isolation == "read_committed" or (view is not None and isolation is None)
    committed = (
        _Committed(Policy(policy), engine, whole=isolation is None) if wants_committed else None
    )

    def scanner(partition: Partition, segment: Segment, names: Sequence[str]) -> Scanner:
        start = 0
        if seeks:
            from kafka_log.disk.index_files import (
                first_position,  # layouts of indexes: not for other scans
            )

            start = first_position(segment, low, begin, engine)
        end, aborted = (
            (wanted[1], None) if committed is None else committed.of(partition, wanted[1])
        )
        return Scanner(
            segment.path,
            names,
            policy,
            offsets=(low if end is None or low is None else min(low, end), end),
            timestamps=timestamps,
            control_records=control_records,
            aborted=aborted,
            on_damage=on_damage,
            chunk_bytes=chunk_bytes,
            limits=limits,
            engine=engine,
            start=start,
            tail=segment.tail,
            size=segment.size,
        )

    # What cannot be asked for is refused here, not where the first row would be.
    keep = Scanner(
        "", None, policy, on_damage=on_damage, chunk_bytes=chunk_bytes, engine=engine
    ).keep
    if view is not None:
        # Codecs of all that it has: not for other scans.
        from kafka_log.tables.topic_views import topic_view

        return _scan_view(topic_view(view, columns), found, wanted, scanner, engine, keep, on_lost)
    segments = [(p, list(_within(p.segments, wanted))) for p in found]
    return _stream(_Output(RECORDS, found, columns, binary_view), segments, scanner, keep, on_lost)


def read_table(
    path: Paths,
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    view: str | None = None,
    offsets: Range | None = None,
    timestamps: Range | None = None,
    isolation: Isolation | None = None,
    control_records: bool = False,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    include: Collection[State] = (),
    on_damage: OnDamage | None = None,
    on_lost: OnLost | None = None,
    binary_view: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
    limits: Limits | None = None,
    engine: Engine = "auto",
    indexes: bool = True,
) -> pa.Table:
    """Like :func:`scan`, all of it as a table. Memory holds it as a whole. Raises as :func:`scan` does."""
    return scan(
        path,
        columns,
        policy,
        view=view,
        offsets=offsets,
        timestamps=timestamps,
        isolation=isolation,
        control_records=control_records,
        topics=topics,
        partitions=partitions,
        include=include,
        on_damage=on_damage,
        on_lost=on_lost,
        binary_view=binary_view,
        chunk_bytes=chunk_bytes,
        limits=limits,
        engine=engine,
        indexes=indexes,
    ).read_all()


def scan_batches(
    path: Paths,
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    topics: str | Iterable[str] | None = None,
    partitions: int | Iterable[int] | None = None,
    include: Collection[State] = (),
    on_damage: OnDamage | None = None,
    limits: Limits | None = None,
    engine: Engine = "auto",
    mmap: bool = False,
) -> pa.RecordBatchReader:
    """The record batches and messages of logs, one row each, from their headers alone.

    ``columns`` are those of the view batches, and those of :func:`scan` that say where. See :class:`BatchScanner`, also
    for ``mmap``: it is faster, and must not be used on files that others truncate. Raises as :func:`scan` does.
    """
    found = _find(path, topics, partitions, include)

    def scanner(_: Partition, segment: Segment, names: Sequence[str]) -> Scanner:
        return BatchScanner(
            segment.path,
            names,
            policy,
            on_damage=on_damage,
            limits=limits,
            engine=engine,
            tail=segment.tail,
            size=segment.size,
            mmap=mmap,
        )

    keep = BatchScanner("", None, policy, on_damage=on_damage, engine=engine).keep
    segments = [(p, p.segments) for p in found]
    return _stream(_Output(BATCHES, found, columns, False), segments, scanner, keep)


# ---------------------------------------------------------------- what is read


class _Committed:
    """What a consumer that reads committed records gets of a partition; of one partition at a time. ``whole`` is what brokers
    take of their own topics: nothing of transactions that have not ended, but all that others wrote after they began."""

    def __init__(self, policy: Policy, engine: Engine, *, whole: bool) -> None:
        self._whole = whole
        self._policy = policy
        self._engine = engine
        self._partition: Partition | None = None
        self._stable: int | None = None
        self._aborted = Aborted()

    def of(self, partition: Partition, end: int | None) -> tuple[int | None, Aborted]:
        """The offset at which reading ends, not later than ``end``, and the transactions to leave out."""
        if partition is not self._partition:
            from kafka_log.disk.transactions import transactions  # the codecs: not for other scans

            found = transactions(
                partition.segments,
                self._policy,
                damage_raises=self._policy is not Policy.SALVAGE,
                engine=self._engine,
            )
            aborted = [(t.producer_id, t.first_offset, t.last_offset) for t in found.aborted]
            if self._whole:
                aborted += [(producer, first, MAX_OFFSET) for producer, first in found.begun]
            self._aborted = Aborted(aborted)
            self._stable = None if self._whole else found.last_stable_offset
            self._partition = partition
        ends = [n for n in (end, self._stable) if n is not None]
        return min(ends, default=None), self._aborted


def _find(
    path: Paths,
    topics: str | Iterable[str] | None,
    partitions: int | Iterable[int] | None,
    include: Collection[State],
) -> list[Partition]:
    found = chosen(discover(path, include, unreadable_raises=False), topics, partitions)
    _check_places(found)
    return found


def _check_places(found: Sequence[Partition]) -> None:
    """Refuse partitions that lie in two directories, and numbers that have no place in the column."""
    seen: dict[tuple[str, int, State], Partition] = {}
    for partition in found:
        directory = partition.directory
        if partition.partition >= 1 << 31:
            raise DirectoryError(
                directory, f"{partition.partition} is more than a partition's number can be"
            )
        if parse_name(directory.resolve()) is None:
            continue  # the name is not known, only that of the file
        other = seen.setdefault((partition.topic, partition.partition, partition.state), partition)
        if other is not partition:
            reason = f"the same partition lies in {other.directory}: its records would come twice"
            raise DirectoryError(directory, reason)


def _within(segments: Sequence[Segment], offsets: Range) -> Iterator[Segment]:
    """The segments that may have some of the offsets, by their names."""
    low, high = offsets
    for i, segment in enumerate(segments):
        if segment.is_named:
            if high is not None and segment.base_offset >= high:
                continue
            following = segments[i + 1 : i + 2]
            ends = [other.base_offset for other in following if other.is_named]
            if low is not None and ends and ends[0] <= low:
                continue
        yield segment


def _scan_view(
    view: TopicView,
    found: Sequence[Partition],
    wanted: Range,
    scanner: Callable[[Partition, Segment, Sequence[str]], Scanner],
    engine: Engine,
    keep: bool,
    on_lost: OnLost | None,
) -> pa.RecordBatchReader:
    there = view.partitions(found)
    size = sum(segment.size for partition in there for segment in partition.segments)

    def batches() -> Iterator[pa.RecordBatch]:
        for partition in there:
            _check_partition(partition, keep, on_lost)
            for segment in _within(partition.segments, wanted):
                records = scanner(partition, segment, view.needed)
                yield from view.batches(
                    iter(records),
                    segment,
                    view.schema,
                    strict=records.policy is Policy.STRICT,
                    keep=records.keep,
                    limits=records.limits,
                    size=size,
                    engine=engine,
                )
                _tell_lost(records, on_lost)

    return pa.RecordBatchReader.from_batches(view.schema, batches())


# ---------------------------------------------------------------- what comes out


@dataclass(frozen=True)
class _Made:
    """A column with one value for a whole segment, and its values by segment: the dictionary is the same all along."""

    type: Any
    get: Callable[[Segment], Any]
    numbers: Mapping[Any, int]
    dictionary: Any

    def array(self, segment: Segment, rows: int) -> Any:
        value = self.get(segment)
        if self.dictionary is None:
            return pa.array(np.full(rows, value, np.int32))
        indices = pa.array(np.full(rows, self.numbers[value], np.int32))
        return pa.DictionaryArray.from_arrays(indices, self.dictionary)


class _Output:
    """The columns of a stream, from the batches of each segment."""

    def __init__(
        self,
        view: View,
        found: Sequence[Partition],
        columns: Sequence[str] | None,
        binary_view: bool,
    ) -> None:
        told = ROW_DAMAGE if view is RECORDS else {}
        known = (*_PLACES, *told, *(column.name for column in view.columns))
        if columns is None:
            places = _BY_DEFAULT if len(found) > 1 else ()
            columns = (*places, *(c.name for c in view.columns if not c.on_request))
        check_columns(columns, known)
        segments = [segment for partition in found for segment in partition.segments]
        self.names = tuple(columns)
        self.made = {name: _made(name, segments) for name in self.names if name in _PLACES}
        # Batches of Arrow without columns have no rows: one column is there to be counted.
        self.own = [n for n in self.names if n not in _PLACES] or [view.columns[0].name]
        of_view = [n for n in self.own if n not in told]
        fields = {f.name: f for f in schema_of(choose(view, of_view))} if of_view else {}
        fields.update({n: told[n].field for n in self.own if n in told})
        if binary_view:
            fields = {name: f.with_type(viewed(f.type)) for name, f in fields.items()}
        fields.update({name: pa.field(name, made.type, False) for name, made in self.made.items()})
        self.schema = pa.schema([fields[name] for name in self.names])

    def batch(self, batch: pa.RecordBatch, segment: Segment) -> pa.RecordBatch:
        arrays = []
        for field in self.schema:
            made = self.made.get(field.name)
            if made is not None:
                arrays.append(made.array(segment, batch.num_rows))
                continue
            array = batch.column(field.name)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _made(name: str, segments: Sequence[Segment]) -> _Made:
    kind, get = _PLACES[name]
    if kind is not _TEXT:
        return _Made(kind, get, {}, None)
    values = sorted({get(segment) for segment in segments})
    numbers = {value: i for i, value in enumerate(values)}
    return _Made(kind, get, numbers, pa.array(values, pa.string()))


def viewed(kind: Any) -> Any:
    """A type with views in the place of binary and strings, also inside of lists and structs."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(viewed(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(viewed(field.type)) for field in kind])
    return {pa.binary(): pa.binary_view(), pa.string(): pa.string_view()}.get(kind, kind)


def _check_partition(partition: Partition, keep: bool, on_lost: OnLost | None) -> None:
    """A directory that cannot be read is an error, or lost."""
    if partition.error is None:
        return
    if not keep:
        raise partition.error
    if on_lost is not None:
        on_lost(partition.directory, Lost(0, 0, str(partition.error)))


def _tell_lost(records: Scanner, on_lost: OnLost | None) -> None:
    end = records.end
    if on_lost is None or end is None:
        return
    for lost in end.lost:
        on_lost(records.reader.path, lost)
    if end.error is not None and records.keep:
        on_lost(
            records.reader.path,
            Lost(end.iterated_bytes, end.iterated_bytes + end.trailing_bytes, str(end.error)),
        )


def _stream(
    output: _Output,
    segments: Sequence[tuple[Partition, Sequence[Segment]]],
    scanner: Callable[[Partition, Segment, Sequence[str]], Scanner],
    keep: bool,
    on_lost: OnLost | None = None,
) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for partition, there in segments:
            _check_partition(partition, keep, on_lost)
            for segment in there:
                records = scanner(partition, segment, output.own)
                for batch in records:
                    yield output.batch(batch, segment)
                _tell_lost(records, on_lost)

    return pa.RecordBatchReader.from_batches(output.schema, batches())
