"""Logs as streams of Arrow record batches, and as tables: a segment, a partition, a broker's directory, or several."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.columns.batches import BATCHES
from kafka_codecs.columns.records import RECORDS
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.discovery import survey, warn_if_all_excluded
from kafka_log.logs.incomplete_tails import find_losses
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.logs.partitions import (
    Partition,
    Segment,
    describe_skipped,
    filter_by_topics,
    filter_segments,
    pair_with_next_base_offset,
    select_partitions,
)
from kafka_log.logs.replicas import select_replicas
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.arguments import flag, optional_number
from kafka_log.read.isolation import PartitionFilters
from kafka_log.read.output import Output
from kafka_log.read.plan import ReadPlan, RowFormat, Split
from kafka_log.read.reader import LostRange, PlanReader
from kafka_log.read.schemas.registry import SchemaRegistry
from kafka_log.read.selection import (
    Filters,
    Selection,
    change_selection,
    limit_to_segment,
)
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Batch, End, Lost, Policy, describe_lost
from kafka_log.segment.paths import path_list
from kafka_log.segment.scanner import Flagged

if TYPE_CHECKING:
    from kafka_log.read.schemas.decoding import Decoding

Place = str | os.PathLike[str]
Paths = Place | Iterable[Place | Partition]
OnLost = Callable[[Path, Lost], None]
"""Called with the path of a file or directory, and with what of it is lost."""


class Watch(Protocol):
    """Receiver of what a scan meets between the rows, in file order."""

    def unreadable(self, error: CodecError) -> None:
        """Report that the directory of a partition cannot be read."""

    def missing(self, path: Path, lost: Lost) -> None:
        """Report selected offsets that no segment has, with the segment after them."""

    def batch(self, batch: Batch) -> None:
        """Report a batch with damage or findings. Its rows follow."""

    def end(self, segment: Segment, end: End | None) -> None:
        """Report that a segment was read. ``end`` is None if reading stopped before its end."""


class ScanOptions(Filters, total=False):
    """The keywords of :func:`scan`: the filters of a :class:`~kafka_log.Selection`, and how files are read."""

    view: str | None
    on_lost: OnLost | None
    binary_view: bool
    zero_copy: bool
    chunk_bytes: int
    limits: Limits | None
    engine: Engine
    indexes: bool
    watch: Watch | None
    show_secrets: bool
    decode: Decoding | None
    schemas: SchemaRegistry | str | os.PathLike[str] | None
    schema_version: int | None


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
    """Return the selected records of logs, or rows of a view, as a stream of Arrow record batches,
    partition by partition. ``policy`` and filters in ``options`` replace those of ``selection``
    (None: all). Raise DirectoryError if there is no log, or a partition lies in two directories and
    ``replicas`` is ``error``; NotFoundError for a missing topic or partition; OSError if a
    directory cannot be listed. Raise ValueError for unknown columns, views and values of options,
    TypeError for an unknown option. Reading it raises CodecError for damage, also a wrong checksum,
    unless ``on_damage`` accepts it, under ``strict`` always; so does the call for damage that it
    meets while it resolves offsets that count from the end. Warn of skipped paths, and of offsets that no segment has although tiered storage should if
    there is no ``on_lost``. Without paths the stream of records is empty.

    Under the policy ``kafka`` reading begins at the first batch that may hold selected rows, by the index and the headers, and ends
    after the last one, so damage outside the ranges may go unnoticed. Batches without selected records are not
    decompressed, except under ``strict``. A header that contradicts itself excludes nothing.

    Args:
        path: A segment file, a partition directory, a log directory of a broker, a directory above log directories, or a
            partition that :func:`kafka_log.discover` returned; or several of these.
        columns: Columns of the view records; ``topic``, ``partition``, ``segment`` and ``state``; ``crc_ok`` (None if bytes that
            the checksum covers are missing) and ``damage`` (None if nothing is wrong). Default: all columns of the view that are not on request,
            and topic and partition if more than one partition is read.
        policy: What counts as damage: ``kafka`` (default), ``strict`` or ``salvage``.
        selection: Which records are read, and what is done about damage. Its filters may be given as keywords instead
            (:class:`~kafka_log.Selection` lists them); keywords replace those of ``selection``. Records of segments that
            ``include`` adds may come twice: the column ``state`` tells them apart. Of ``remote`` segments come the records
            that no live segment has, each once.
        view: Rows of an internal topic in place of its records (``offsets``, ``groups``, ...; see
            :mod:`kafka_log.read.topic_views`), without records of aborted and open transactions unless ``isolation`` says otherwise.
        show_secrets: Show passwords and other secrets in rows of a view. Default: they are ``(redacted)``.
        on_lost: Called with a path and a :class:`~kafka_log.Lost` for each lost range, and for each directory that cannot be read, if
            damage is no error; always for offsets that no copy in tiered storage and no live segment has, with the path of the
            segment after them and no bytes.
        watch: Receives damage and ends of files between the rows. Errors of a file or a directory are not raised then, and
            the next one is read. It needs ``on_damage="keep"``.
        decode: Decode keys and values of one topic into typed columns with the schemas of a schema registry: ``avro``,
            ``json-schema``, ``protobuf``, or ``auto``, which takes the type of each schema, and leaves a key or value without a schema as it is
            (:mod:`kafka_log.read.schemas.decoding`). ``PACKAGE:LAYOUT`` decodes values by the layout of a package that codecgen
            generated, with its sensitive fields redacted unless ``show_secrets``. The columns ``value_schema_id``, ``value_undecoded`` (bytes that could not be decoded) and ``value_problem`` follow ``value``, and the
            same ``key``. Default: None, keys and values are bytes.
        schemas: Source of the schemas: a path, a URL (see :func:`kafka_log.read.schemas.sources.read_registry`), or a registry.
            Default: the topic ``_schemas`` in the paths, or in the log directories of the partitions.
        schema_version: Resolve values to this version of the subject, with its defaults. Default: columns of all versions.
        binary_view: Return keys, values and headers as Arrow's view types. Default: False.
        zero_copy: Return keys and values as views of the bytes that were read or decompressed, without a copy of each value. An array keeps
            8 MiB of the file (``chunk_bytes``), or 16 MiB of decompressed sections, in memory. It does not go with ``view`` and ``decode``.
            Default: False.
        indexes: Use index files to find where reading begins. Default: True.
        chunk_bytes, limits, engine: As in :class:`~kafka_log.segment.scanner.Scanner`.

    Returns:
        The stream. It raises :class:`CodecError` for damage that is an error, with file, byte and field.

    Raises:
        DirectoryError: If there is no log, or a partition lies in two directories and ``replicas`` is ``error``.
        NotFoundError: For a missing topic or partition.
        OSError: If a directory cannot be listed.
        TypeError: For an unknown option.
        ValueError: For unknown columns, views and values of options.
    """
    view, on_lost = options.pop("view", None), options.pop("on_lost", None)
    binary_view = flag("binary_view", options.pop("binary_view", False))
    zero_copy = flag("zero_copy", options.pop("zero_copy", False))
    indexes = flag("indexes", options.pop("indexes", True))
    engine, watch = options.get("engine", "auto"), options.pop("watch", None)
    show_secrets = flag("show_secrets", options.pop("show_secrets", False))
    reading = _pop_options(options, "chunk_bytes", "limits", "engine")
    decode, schemas = options.pop("decode", None), options.pop("schemas", None)
    schema_version = optional_number("schema_version", options.pop("schema_version", None), 1)
    wanted = change_selection(selection, policy, options)
    found = _find(path, wanted)
    begin = wanted.timestamps[0]
    seeks = indexes and wanted.policy is Policy.KAFKA
    starts, read_broker = LogStarts(), cache(read_broker_files)
    rows = PartitionFilters(
        wanted, engine, of_view=view is not None, starts=starts, lists_again=True
    )
    following = dict(
        pair for partition in found for pair in pair_with_next_base_offset(partition.segments)
    )

    decoder = None
    check_decoding(decode, view, schemas, schema_version)
    if zero_copy and (view is not None or decode is not None):
        raise ValueError(
            "zero_copy does not go with view and decode, which decode keys and values: leave it out"
        )
    if decode is not None:
        from kafka_log.read.schemas.decoding import TopicDecoder
        from kafka_log.read.schemas.layout_names import is_layout_name
        from kafka_log.read.schemas.sources import read_registry

        names = Output(RECORDS, found, columns).names
        registry = SchemaRegistry() if is_layout_name(decode) else schemas
        if not isinstance(registry, SchemaRegistry):
            registry = read_registry([*found, *_survey_paths(path)], registry)
        decoder = TopicDecoder.of_partitions(
            found, registry, names, decode, schema_version, show_secrets
        )
        columns = decoder.needed
    if view is None:
        output: RowFormat = Output(
            RECORDS, found, columns, binary_view=binary_view, zero_copy=zero_copy
        )
    else:
        from kafka_log.read.topic_views import (
            ViewRows,
            topic_view,
        )  # codecs of all that a view has: not for other scans

        of_topic = topic_view(view, columns, show_secrets=show_secrets)
        found = of_topic.partitions(found)
        size = sum(segment.size for partition in found for segment in partition.segments)
        output = ViewRows(
            of_topic,
            of_topic.schema,
            is_strict=wanted.policy is Policy.STRICT,
            keeps_damage=not wanted.raises,
            limits=reading.get("limits") or Limits(),
            engine=engine,
            size=size,
        )
    segments = [(partition, rows.segments(partition)) for partition in found]

    def splits() -> Iterator[Split]:
        """Yield the splits in reading order. Errors of directories, and of the search for transactions, come when their partition does."""
        for partition, selected in segments:
            report_partition(partition)
            losses = find_losses(
                partition, rows.selected_offsets(partition), starts, read_broker, wanted.policy
            )
            losses = chain(losses, rows.find_transaction_losses(partition))
            _report_losses(losses, on_lost, watch)
            for segment in selected:
                start = 0
                of_segment = limit_to_segment(rows.filter_for(partition, segment.state), segment)
                low = of_segment.offsets[0]
                if seeks and (low is not None or begin is not None):
                    from kafka_log.logs.index_files import (
                        find_start_position,
                    )  # layouts of indexes: not for other scans

                    start = find_start_position(segment, low, begin, engine)
                yield Split(segment, start, None, of_segment, following.get(segment))

    def report_partition(partition: Partition) -> None:
        """Report a partition directory that cannot be read to ``watch``, or else raise its error or report it as lost."""
        if watch is not None and partition.error is not None:
            watch.unreadable(partition.error)
        else:
            _check_partition(partition, wanted, on_lost)

    plan = ReadPlan(
        splits(),
        output,
        wanted.policy,
        wanted.on_damage,
        "raise" if watch is None else "next_file",
        zero_copy=zero_copy,
        expects_removal=True,
        **reading,
    )
    rows_read = _stream(output.schema, plan, on_lost, watch)
    return rows_read if decoder is None else decoder.decode_rows(rows_read)


def check_decoding(
    decode: Decoding | None, view: str | None, schemas: Any, schema_version: int | None
) -> None:
    """Raise ValueError if ``decode`` is unknown, a layout that cannot be loaded, or given with a
    view, or if ``schemas`` or ``schema_version`` is given without it or with a layout. Return nothing
    otherwise.
    """
    if decode is None:
        if schemas is not None or schema_version is not None:
            raise ValueError(
                "schemas and schema_version need decode: add decode, or leave them out"
            )
        return
    if view is not None:
        raise ValueError(
            "decode does not go with a view, whose columns are decoded already: leave out decode"
        )
    from kafka_log.read.schemas.decoding import parse_decoding
    from kafka_log.read.schemas.layout_names import is_layout_name

    if (
        is_layout_name(parse_decoding("decode", decode))
        and (schemas, schema_version) != (None,) * 2
    ):
        raise ValueError(
            "schemas and schema_version are for values of a schema registry: leave them out, or change decode"
        )


def read_table(
    path: Paths,
    columns: Sequence[str] | None = None,
    policy: Policy | str | None = None,
    *,
    selection: Selection | None = None,
    **options: Unpack[ScanOptions],
) -> pa.Table:
    """Return the selected records of logs, or rows of a view, as one Arrow table in memory.
    Warn of skipped paths. Raise what :func:`scan` raises, and CodecError for damage, also a wrong
    checksum, unless ``on_damage`` accepts it, under ``strict`` always. DirectoryError means that
    there is no log, or a partition lies in two directories and ``replicas`` is ``error``.

    Args:
        path: As for :func:`scan`.
        columns: As for :func:`scan`.
        policy: As for :func:`scan`.
        selection: As for :func:`scan`.
        options: As for :func:`scan`.

    Returns:
        The table. It is empty if no record is selected.

    Raises:
        CodecError: For damage that is an error, with file, byte and field.
        DirectoryError: If there is no log, or a partition lies in two directories and ``replicas`` is ``error``.
        NotFoundError: For a missing topic or partition.
        OSError: If a directory cannot be listed.
        TypeError: For an unknown option.
        ValueError: For unknown columns, views and values of options.
    """
    return scan(path, columns, policy, selection=selection, **options).read_all()


def scan_batches(
    path: Paths,
    columns: Sequence[str] | None = None,
    policy: Policy | str | None = None,
    *,
    selection: Selection | None = None,
    **options: Unpack[BatchOptions],
) -> pa.RecordBatchReader:
    """Return the batches and legacy messages of logs, control batches included, as a stream with
    one row each, by their headers alone: no checksum is verified. ``policy`` and filters in
    ``options`` replace those of ``selection`` (None: all). Raise DirectoryError if there is no log,
    or a partition lies in two directories and ``replicas`` is ``error``; NotFoundError for a
    missing topic or partition; OSError if a directory cannot be listed. Raise ValueError for
    unknown columns, values of options, and filters that headers cannot answer, TypeError for an
    unknown option. Reading it raises CodecError for damage unless it is accepted, under ``strict``
    always; so does the call for damage that it meets while it resolves offsets that count from the
    end. Warn of skipped paths.

    A batch is returned if it may hold a record in the ranges, as far as its header says.

    Args:
        path: As in :func:`scan`.
        columns: Columns of the view batches; ``topic``, ``partition``, ``segment`` and ``state``.
        policy: As in :func:`scan`.
        selection: As in :func:`scan`, or its filters as keywords, without ``keys``, ``headers`` and ``read_committed``.
        on_lost: As in :func:`scan`.
        limits, engine, mmap: As in :func:`~kafka_log.segment.scanner.header_scanner`. ``mmap`` is faster; do not use it on files that
            another process may truncate.

    Returns:
        The stream. It raises :class:`CodecError` for damage that is an error.

    Raises:
        DirectoryError: If there is no log, or a partition lies in two directories and ``replicas`` is ``error``.
        NotFoundError: For a missing topic or partition.
        OSError: If a directory cannot be listed.
        TypeError: For an unknown option.
        ValueError: For unknown columns and values of options, and for filters that headers cannot answer.
    """
    on_lost = options.pop("on_lost", None)
    reading = _pop_options(options, "limits", "engine", "mmap")
    flag("mmap", reading.get("mmap", False))
    wanted = change_selection(selection, policy, options)
    wanted.but(offsets=None).batches()  # refuses what headers do not say
    found = _find(path, wanted)
    resolved = [(partition, wanted.resolve_offsets(partition.segments)) for partition in found]
    output = Output(BATCHES, found, columns)
    starts, read_broker = LogStarts(), cache(read_broker_files)

    def splits() -> Iterator[Split]:
        """Yield the splits in reading order. Raises the error of a directory that cannot be read, if damage is an error."""
        for partition, selection in resolved:
            _check_partition(partition, wanted, on_lost)
            losses = find_losses(partition, selection.offsets, starts, read_broker, wanted.policy)
            _report_losses(losses, on_lost)
            for segment in within_offsets(partition.segments, selection.offsets):
                yield Split(segment, rows=limit_to_segment(selection.batches(), segment))

    plan = ReadPlan(
        splits(),
        output,
        wanted.policy,
        wanted.on_damage,
        of_batches=True,
        expects_removal=True,
        **reading,
    )
    return _stream(output.schema, plan, on_lost)


# ---------------------------------------------------------------- what is read


def _pop_options(options: Any, *names: str) -> Any:
    """Remove the options with these names, and return them."""
    return {name: options.pop(name) for name in names if name in options}


def _split_paths(path: Paths) -> tuple[list[Partition], list[Place]]:
    """Return the partition objects among the paths, and the others. Raise ValueError for anything else than these."""
    if isinstance(path, str | bytes | os.PathLike) or not isinstance(path, Iterable):
        return [], path_list("path", path)
    places = list(path)
    rest = [place for place in places if not isinstance(place, Partition)]
    return [place for place in places if isinstance(place, Partition)], path_list("path", rest)


def _survey_paths(path: Paths) -> list[Partition]:
    """Return all partitions below those of the paths that are no partition objects; ``[]`` if there
    are none. Raise DirectoryError if a path does not exist or holds no log; OSError if one cannot
    be listed.
    """
    _, rest = _split_paths(path)
    return survey(rest, (), unreadable_raises=False).partitions if rest else []


def _find(path: Paths, selection: Selection) -> list[Partition]:
    """Return the selected partitions of the paths, with tiers merged and replicas selected; one
    whose directory cannot be listed has an ``error``. Warn about skipped paths and if all segments
    are excluded. Raise DirectoryError if a path does not exist, there is no log, or a partition
    lies in two directories and ``replicas`` is ``error``; NotFoundError for a missing topic or
    partition; PatternError for an invalid pattern; OSError if a path itself, or a directory above
    partitions, cannot be listed.
    """
    found, rest = _split_paths(path)
    left_out: list[Segment] = []
    if rest or not found:
        there = survey(rest, selection.include, unreadable_raises=False)
        found += there.partitions
        if skipped := filter_by_topics(there.skipped_paths, selection.topics):
            warnings.warn(f"kafka-log: {describe_skipped(skipped)}", stacklevel=3)
        left_out = filter_segments(there.excluded_segments, selection.topics)
    found = select_partitions(found, selection.topics, selection.partitions, left_out)
    left_out = filter_segments(left_out, None, selection.partitions)
    warn_if_all_excluded(found, left_out, stacklevel=3)
    return merge_tiered_segments(select_replicas(found, selection.replicas))


def _check_partition(partition: Partition, selection: Selection, on_lost: OnLost | None) -> None:
    """Raise UnreadableError if the directory of a partition could not be read and damage is an
    error. If damage is accepted, report the directory as an empty lost range to ``on_lost`` (if
    given). Do nothing for a readable one.
    """
    if partition.error is None:
        return
    if selection.raises:
        raise partition.error
    if on_lost is not None:
        on_lost(partition.directory, Lost(0, 0, str(partition.error)))


def _report_losses(
    losses: Iterable[tuple[Path, Lost]], on_lost: OnLost | None, watch: Watch | None = None
) -> None:
    """Report what is lost without damage that a reader meets (:func:`find_losses`) to ``watch``,
    else to ``on_lost``, else by a warning. Losses raise no error: compaction before the segments
    were copied may have removed offsets.
    """
    for path, lost in losses:
        if watch is not None:
            watch.missing(path, lost)
        elif on_lost is not None:
            on_lost(path, lost)
        else:
            warnings.warn(f"kafka-log: {describe_lost(path, lost)}", stacklevel=2)


def _stream(
    schema: pa.Schema, plan: ReadPlan, on_lost: OnLost | None, watch: Watch | None = None
) -> pa.RecordBatchReader:
    """Return the rows of a plan as a stream that reports lost ranges to ``on_lost``, damaged
    batches and ends of files to ``watch``, each if given. Raise ValueError for an unknown option of
    the plan, and for an ``on_lost`` that is no function. Reading the stream raises CodecError for damage unless the plan accepts it.
    """
    if on_lost is not None and not callable(on_lost):
        raise ValueError(f"on_lost is {on_lost!r}: a function is expected")
    reader = PlanReader(plan)

    def batches() -> Iterator[pa.RecordBatch]:
        """Yield the rows, and report lost ranges, flagged batches and ends of files between them."""
        for event in reader:
            if isinstance(event, pa.RecordBatch):
                yield event
            elif isinstance(event, LostRange):
                if on_lost is not None:
                    on_lost(event.split.segment.path, event.lost)
            elif watch is not None:
                if isinstance(event, Flagged):
                    watch.batch(event.batch)
                else:
                    watch.end(event.split.segment, event.end)

    return pa.RecordBatchReader.from_batches(schema, batches())
