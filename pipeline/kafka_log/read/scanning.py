"""Logs as streams of Arrow record batches, and as tables: a segment, a partition, a broker's directory, or several."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.columns.batches import BATCHES
from kafka_codecs.columns.records import RECORDS
from kafka_log.logs.discovery import survey, warn_if_all_excluded
from kafka_log.logs.partitions import (
    Partition,
    Segment,
    describe_skipped,
    filter_by_topics,
    pair_with_next_base_offset,
    select_partitions,
)
from kafka_log.logs.removed_segments import read_options
from kafka_log.logs.replicas import select_replicas
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.arguments import flag
from kafka_log.read.isolation import PartitionRows
from kafka_log.read.losses import OnLost, tell_lost
from kafka_log.read.output import Output
from kafka_log.read.selection import Filters, Selection, changed, within, within_offsets
from kafka_log.segment.columnar import BatchScanner, Scanner
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Batch, End, Lost, Policy

if TYPE_CHECKING:
    from kafka_log.read.topic_views import TopicView

Place = str | os.PathLike[str]
Paths = Place | Iterable[Place | Partition]
Open = Callable[[Partition, Segment, Sequence[str]], Scanner]
"""What reads columns of a segment."""


class Watch(Protocol):
    """Is told of what a scan meets, in its place between the rows."""

    def unreadable(self, error: CodecError) -> None:
        """A partition's directory cannot be read."""

    def batch(self, batch: Batch) -> None:
        """There is something to say of a batch; its rows follow."""

    def end(self, segment: Segment, end: End | None) -> None:
        """A segment was read. None: not to its end."""


class ScanOptions(Filters, total=False):
    """The keywords of :func:`scan`: the filters of a :class:`~kafka_log.Selection`, and how files are read."""

    view: str | None
    on_lost: OnLost | None
    binary_view: bool
    chunk_bytes: int
    limits: Limits | None
    engine: Engine
    indexes: bool
    watch: Watch | None
    show_secrets: bool


class BatchOptions(Filters, total=False):
    """The keywords of :func:`scan_batches`."""

    on_lost: OnLost | None
    limits: Limits | None
    engine: Engine
    mmap: bool


def scan(
    path: Paths,
    columns: Sequence[str] | None = None,
    policy: Policy | str | None = None,
    *,
    selection: Selection | None = None,
    **options: Unpack[ScanOptions],
) -> pa.RecordBatchReader:
    """The records of logs as a stream of Arrow record batches, in bounded memory, partition by partition.

    A path is a segment file, a partition's directory, a broker's log directory, or a directory above log directories; or a partition
    that :func:`kafka_log.discover` has found.

    ``columns`` are those of the view records, ``topic``, ``partition``, ``segment`` and ``state``, and what is wrong with a row:
    ``crc_ok`` (None: the checksum is over bytes that are not there) and ``damage`` (text, None: nothing). None stands for all that need
    not be asked for, with topic and partition when more than one partition is read.

    Which records come, and what becomes of damage, a ``selection`` says, or the keywords of one
    (:class:`~kafka_log.Selection` has them all): ``topics``, ``partitions``, ``offsets``, ``timestamps``, ``keys``,
    ``headers``, ``producers``, ``isolation``, ``control_records``, ``deleted_records``, ``include``, ``replicas``, ``policy``, ``on_damage``. Those that are given beside a
    selection take the place of its own. Of segments that ``include`` takes in, records may be there twice, and the column ``state`` says
    which they are; of ``remote`` ones come the records that are not in live ones, each once.

    Under the policy ``kafka`` segments that lie outside of the ranges are not read, and reading begins at the first batch that may have
    rows of them by its header (``indexes=False``: at the first byte), so damage outside may stay unseen. Of files in a store index
    files say where. Whole batches that no record is wanted of are not decompressed where their headers say so, but under ``strict``. A header
    that contradicts itself rules nothing out.

    ``view`` gives the rows of one of Kafka's own topics (``offsets``, ``groups``, ...; see :mod:`kafka_log.read.topic_views`) in the
    place of its records, without what transactions wrote that were aborted or are open, unless ``isolation`` says otherwise. Passwords and
    other secrets are ``(redacted)`` there unless ``show_secrets``; in the bytes of records they are as they are.
    ``on_lost`` is called with a path and a :class:`~kafka_log.Lost` for each run of bytes that is passed over, and each directory, where damage
    is no error. With a ``watch``, which needs ``on_damage="keep"``, errors of a file or a directory are told to it and not raised, and
    the next one is read. ``binary_view`` gives keys, values and headers as views. ``chunk_bytes``, ``limits`` and ``engine`` are as in
    :class:`~kafka_log.segment.columnar.Scanner`.

    Raises :class:`DirectoryError` when there is no log, ValueError for what cannot be asked for, and from the stream
    :class:`CodecError` for damage, with file, byte and field.
    """
    view, on_lost = options.pop("view", None), options.pop("on_lost", None)
    binary_view = flag("binary_view", options.pop("binary_view", False))
    indexes = flag("indexes", options.pop("indexes", True))
    engine, watch = options.get("engine", "auto"), options.pop("watch", None)
    show_secrets = flag("show_secrets", options.pop("show_secrets", False))
    reading = _taken(options, "chunk_bytes", "limits", "engine")
    wanted = changed(selection, policy, options)
    found = _find(path, wanted)
    begin = wanted.timestamps[0]
    seeks = indexes and wanted.policy is Policy.KAFKA
    rows = PartitionRows(wanted, engine, of_view=view is not None, lists_again=True)
    following: dict[Segment, int | None] = {}
    if wanted.policy is Policy.SALVAGE:
        following = dict(
            pair for partition in found for pair in pair_with_next_base_offset(partition.segments)
        )

    def open_segment(partition: Partition, segment: Segment, names: Sequence[str]) -> Scanner:
        start = 0
        here = within(rows.of(partition, segment.state), segment)
        low = here.offsets[0]
        if seeks and (low is not None or begin is not None):
            from kafka_log.logs.index_files import (
                find_start_position,
            )  # layouts of indexes: not for other scans

            start = find_start_position(segment, low, begin, engine)
        return Scanner(
            segment.path,
            names,
            wanted.policy,
            selection=here,
            on_damage=wanted.on_damage,
            start=start,
            next_base=following.get(segment),
            **read_options(segment),
            **reading,
        )

    # What cannot be asked for is refused here, not where the first row would be.
    Scanner("", None, wanted.policy, on_damage=wanted.on_damage, **reading)
    keep = not wanted.raises
    if view is not None:
        # Codecs of all that it has: not for other scans.
        from kafka_log.read.topic_views import topic_view

        of_topic = topic_view(view, columns, show_secrets=show_secrets)
        segments = [(p, rows.segments(p)) for p in of_topic.partitions(found)]
        return _scan_view(of_topic, segments, open_segment, engine, keep, on_lost)
    segments = [(p, rows.segments(p)) for p in found]
    output = Output(RECORDS, found, columns, binary_view)
    return _stream(output, segments, open_segment, keep, on_lost, watch)


def read_table(
    path: Paths,
    columns: Sequence[str] | None = None,
    policy: Policy | str | None = None,
    *,
    selection: Selection | None = None,
    **options: Unpack[ScanOptions],
) -> pa.Table:
    """Like :func:`scan`, all of it as a table. Memory holds it as a whole. Raises as :func:`scan` does."""
    return scan(path, columns, policy, selection=selection, **options).read_all()


def scan_batches(
    path: Paths,
    columns: Sequence[str] | None = None,
    policy: Policy | str | None = None,
    *,
    selection: Selection | None = None,
    **options: Unpack[BatchOptions],
) -> pa.RecordBatchReader:
    """The record batches and messages of logs, one row each, from their headers alone.

    ``columns`` are those of the view batches, and those of :func:`scan` that say where. A ``selection``, or its keywords, are as of
    :func:`scan`, but for what only records have: ``keys``, ``headers`` and ``isolation`` are refused, and markers are always there. Those
    batches come that may hold a record in the ranges, as far as their headers say. ``on_lost`` is as there. See :class:`BatchScanner`, also for
    ``mmap``: it is faster, and must not be used on files that others truncate. Raises as :func:`scan` does.
    """
    on_lost = options.pop("on_lost", None)
    reading = _taken(options, "limits", "engine", "mmap")
    wanted = changed(selection, policy, options)
    wanted.but(offsets=None).batches()  # refuses what headers do not say
    found = _find(path, wanted)
    of = {id(partition): wanted.resolve_offsets(partition.segments) for partition in found}

    def open_segment(partition: Partition, segment: Segment, names: Sequence[str]) -> Scanner:
        return BatchScanner(
            segment.path,
            names,
            wanted.policy,
            selection=within(of[id(partition)].batches(), segment),
            on_damage=wanted.on_damage,
            **read_options(segment),
            **reading,
        )

    BatchScanner("", None, wanted.policy, on_damage=wanted.on_damage, **reading)
    segments = [(p, within_offsets(p.segments, of[id(p)].offsets)) for p in found]
    output = Output(BATCHES, found, columns, False)
    return _stream(output, segments, open_segment, not wanted.raises, on_lost)


# ---------------------------------------------------------------- what is read


def _taken(options: Any, *names: str) -> Any:
    """Those of the options, which are taken away."""
    return {name: options.pop(name) for name in names if name in options}


def _find(path: Paths, wanted: Selection) -> list[Partition]:
    places = [path] if isinstance(path, str | os.PathLike) else list(path)
    found = [place for place in places if isinstance(place, Partition)]
    rest = [place for place in places if not isinstance(place, Partition)]
    left_out: list[Segment] = []
    if rest or not found:
        there = survey(rest, wanted.include, unreadable_raises=False)
        found += there.partitions
        if beside := filter_by_topics(there.skipped_paths, wanted.topics):
            warnings.warn(f"kafka-log: {describe_skipped(beside)}", stacklevel=3)
        left_out = [s for s in there.excluded_segments if s.topic in (wanted.topics or (s.topic,))]
    found = select_partitions(found, wanted.topics, wanted.partitions, left_out)
    warn_if_all_excluded(found, left_out, stacklevel=3)
    return merge_tiered_segments(select_replicas(found, wanted.replicas))


def _scan_view(
    view: TopicView,
    segments: Sequence[tuple[Partition, Sequence[Segment]]],
    open_segment: Open,
    engine: Engine,
    keep: bool,
    on_lost: OnLost | None,
) -> pa.RecordBatchReader:
    size = sum(segment.size for partition, _ in segments for segment in partition.segments)

    def batches() -> Iterator[pa.RecordBatch]:
        for partition, there in segments:
            _check_partition(partition, keep, on_lost)
            for segment in there:
                records = open_segment(partition, segment, view.needed)
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
                tell_lost(records, on_lost)

    return pa.RecordBatchReader.from_batches(view.schema, batches())


def _check_partition(partition: Partition, keep: bool, on_lost: OnLost | None) -> None:
    """A directory that cannot be read is an error, or lost."""
    if partition.error is None:
        return
    if not keep:
        raise partition.error
    if on_lost is not None:
        on_lost(partition.directory, Lost(0, 0, str(partition.error)))


def _stream(
    output: Output,
    segments: Sequence[tuple[Partition, Sequence[Segment]]],
    open_segment: Open,
    keep: bool,
    on_lost: OnLost | None = None,
    watch: Watch | None = None,
) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for partition, there in segments:
            if watch is not None and partition.error is not None:
                watch.unreadable(partition.error)
            else:
                _check_partition(partition, keep, on_lost)
            for segment in there:
                records = open_segment(partition, segment, output.own)
                if watch is not None:
                    records.on_batch = watch.batch
                try:
                    for batch in records:
                        yield output.batch(batch, segment)
                except CodecError:
                    if watch is None:
                        raise
                tell_lost(records, on_lost)
                if watch is not None:
                    watch.end(segment, records.end)

    return pa.RecordBatchReader.from_batches(output.schema, batches())
