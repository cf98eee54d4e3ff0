"""Write partitions to files: Parquet, Arrow, JSON lines, CSV. Complete files are kept and not written again."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Unpack

import pyarrow as pa

from codecgen.runtime.file_lock import MAX_NAME
from codecgen.runtime.nouns import count_noun
from kafka_codecs.columns.records import RECORDS
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import DirectoryError, Partition
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.output import Output
from kafka_log.read.scanning import check_decoding, scan
from kafka_log.read.schemas.registry import SchemaRegistry
from kafka_log.read.selection import RowFilters, Selection, change_selection
from kafka_log.segment.model import Lost, Policy, describe_lost
from kafka_log.segment.row_damage import COLUMNS as ROW_DAMAGE
from kafka_log.text.lines import encode_csv_header, encode_csv_lines, encode_json_lines
from kafka_log.write.manifest import Manifest
from kafka_log.write.output_lock import locked_output
from kafka_log.write.staged_output import (
    describe_difference,
    describe_source,
    is_same_source,
    manifest_name,
    open_staged_file,
    refuse_inside,
)

if TYPE_CHECKING:
    from kafka_log.read.schemas.decoding import Decoding

__all__ = ["FORMATS", "MANIFEST", "ExportError", "ExportedFile", "Format", "export"]

Format = Literal["parquet", "arrow", "jsonl", "csv"]
MANIFEST = manifest_name("export")
"""Name of the manifest, which records what each file was made of."""


class ExportError(DirectoryError):
    """Raised if an export cannot write a file. ``path`` is the file."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """Output file of one partition.

    Attributes:
        path: The file.
        partition: Partition that was exported.
        rows: Number of rows in the file.
        made: False if the file existed, made of the same segments with the same options.
        lost: Ranges of the segments that could not be read, and are missing from the file.
        damaged: Number of rows with text in the column ``damage``.
        undecoded: Number of keys and values that could not be decoded, by ``key`` or ``value`` and the reason, such as
            ``value: no schema with id 7 is registered``. After :data:`MAX_REASONS` reasons, ``other reasons`` counts the rest.
    """

    path: Path
    partition: Partition
    rows: int
    made: bool
    lost: tuple[str, ...] = ()
    damaged: int = 0
    undecoded: Mapping[str, int] = field(default_factory=dict)


MAX_REASONS = 20
"""Maximum number of reasons that are counted apart in a file."""

_OTHER_REASONS = "other reasons"


def export(
    partitions: Sequence[Partition],
    out: Path,
    kind: Format = "parquet",
    *,
    columns: Sequence[str] | None = None,
    view: str | None = None,
    show_secrets: bool = False,
    selection: Selection | None = None,
    overwrite: bool = False,
    progress: Callable[[Partition, int], None] = lambda partition, rows: None,
    decode: Decoding | None = None,
    schemas: SchemaRegistry | None = None,
    schema_version: int | None = None,
    policy: Policy | str | None = None,
    **filters: Unpack[RowFilters],
) -> Generator[ExportedFile, None, None]:
    """Write one file per partition, ``TOPIC-PARTITION.KIND``, and yield each when it is complete.
    Nothing is written before the first one is requested. The file of an equal earlier export is
    kept, and yielded as not written. Raise at once ValueError for an invalid argument, ExportError
    if two directories hold one partition, OutputError if ``out`` lies in a partition or a broker's
    log directory. Raise while iterating ExportError for a file of another export or one that was
    changed since (unless ``overwrite``), OutputLockedError if another process writes to ``out``,
    CodecError at damage and for an unreadable directory; ValueError for schemas that do not fit a
    topic; OSError if a file cannot be written. Under ``salvage`` damage does not raise: readable
    records are rows, also with a wrong checksum, and ``lost`` names the other bytes.

    Each file is written under a temporary name and renamed when it is complete. Complete files stay after an error. A file
    is kept if it was made of the same log (:mod:`kafka_log.logs.log_identity`) with the same segments, start and options, and has
    the size that it was written with.
    Memory holds one row group. The directory is locked until the generator is exhausted or closed.

    Args:
        partitions: Partitions to export.
        out: Output directory, outside of all partitions.
        kind: Format of the files.
        columns: As of :func:`kafka_log.scan`. By default topic and partition come first, so that files can be read together;
            under ``salvage`` ``crc_ok`` and ``damage`` come last.
        view: As of :func:`kafka_log.scan`.
        show_secrets: As of :func:`kafka_log.scan`.
        selection: As of :func:`kafka_log.scan`.
        overwrite: Replace files that were made of something else.
        progress: Called with a partition and the number of its rows written so far.
        decode: As of :func:`kafka_log.scan`. Partitions of several topics get columns of their own topic.
        schemas: The schemas that ``decode`` uses.
        schema_version: As of :func:`kafka_log.scan`.
        policy: As of :func:`kafka_log.scan`.
        **filters: As of :func:`kafka_log.scan`.

    Raises:
        OutputLockedError: If another process writes to the directory.
        ExportError: If a file exists that was made of something else or has changed, or two directories hold one partition.
        OutputError: If the output directory lies in a partition or a broker's log directory.
        CodecError: At damage, and for a directory that cannot be read, after all other partitions. Not under ``salvage``,
            which reports both as lost.
        ValueError: If an argument is not one of the documented values.
        OSError: If a file cannot be read or written.
    """
    partitions = merge_tiered_segments(partitions)
    places = _target_paths(partitions, out, kind)
    refuse_inside(out, [p.directory for p in partitions if isinstance(p.directory, Path)])
    selection = change_selection(selection, policy, filters)
    # The caller selected the partitions and states.
    selection = selection.but(topics=None, partitions=None, include=())
    check_decoding(decode, view, schemas, schema_version)
    if view is not None:
        from kafka_log.read.topic_views import topic_view  # codecs of all that a view has

        topic_view(view, columns, show_secrets=show_secrets)
    elif columns is not None:
        Output(RECORDS, partitions, columns, False)
    asked = {"columns": columns and list(columns), "view": view} | selection.to_keywords()
    if show_secrets:
        asked["show_secrets"] = True
    decoding: dict[str, Any] = {}
    if decode is not None:
        decoding = {"decode": decode, "schemas": schemas, "schema_version": schema_version}
        asked |= decoding | {"schemas": None if schemas is None else schemas.digest}
    options = {"show_secrets": show_secrets, **decoding}

    def write(
        partition: Partition, file: BinaryIO, lost: list[str], undecoded: Counter[str]
    ) -> Generator[tuple[int, int], None, None]:
        """Write the rows of a partition, as :func:`_write_rows` does."""
        return _write_rows(
            partition, file, kind, columns, view, selection, lost, undecoded, options
        )

    return _write_files(places, out, asked, selection, overwrite, progress, write)


def _write_files(
    places: Mapping[Path, Partition],
    out: Path,
    asked: Mapping[str, Any],
    selection: Selection,
    overwrite: bool,
    progress: Callable[[Partition, int], None],
    write: Callable[..., Generator[tuple[int, int], None, None]],
) -> Generator[ExportedFile, None, None]:
    """Write the file of each partition by ``write``, and yield it when it is complete. The file of
    an equal earlier export (same log, options ``asked`` and size) is kept. Iterating raises
    ExportError for another existing file unless ``overwrite``; OutputLockedError if another process
    writes to ``out``; what ``write`` raises; and, unless the policy is ``salvage``, the error of an
    unreadable partition after all readable ones.
    """
    starts = LogStarts()
    ordered = list(places.items())
    if selection.policy is not Policy.SALVAGE:
        # Export unreadable directories last, so that their error does not stop the others.
        ordered.sort(key=lambda place: place[1].error is not None)
    with locked_output(out):
        manifest = Manifest(out / MANIFEST, ("rows", "lost", "damaged", "undecoded", "made_of"))
        for path, partition in ordered:
            if partition.error is not None and selection.policy is not Policy.SALVAGE:
                raise partition.error
            start = None if selection.deleted_records else starts.get(partition)
            now = describe_source(partition, asked, start)
            before, is_there = manifest.get(path.name), path.exists()
            problem = _describe_existing(path, before, now) if is_there else None
            if is_there and before is not None and problem is None:
                yield ExportedFile(
                    path,
                    partition,
                    before["rows"],
                    False,
                    tuple(before["lost"]),
                    before["damaged"],
                    before["undecoded"],
                )
                continue
            if problem is not None and not overwrite:
                reason = f"{problem}: choose another --out, or add --overwrite to replace it"
                raise ExportError(path, reason)
            counts = 0, 0
            lost = [] if partition.error is None else [str(partition.error)]
            undecoded: Counter[str] = Counter()
            if is_there:
                # If the process dies before the new line, the file is of unknown origin, never taken for the old one.
                unknown = {"rows": 0, "lost": [], "damaged": 0, "undecoded": {}, "made_of": None}
                manifest.add(path.name, unknown)
            with (
                open_staged_file(path) as file,
                closing(write(partition, file, lost, undecoded)) as written,
            ):
                for counts in written:
                    progress(partition, counts[0])
                rows, damaged = counts
                said = {
                    "rows": rows,
                    "lost": lost,
                    "damaged": damaged,
                    "undecoded": undecoded,
                    "made_of": now,
                    "size": file.tell(),
                }
                if (
                    not is_there
                ):  # said before it is there: the origin of what is there is always known
                    manifest.add(path.name, said)
            if is_there:
                try:
                    manifest.add(path.name, said)
                except OSError:
                    path.unlink(missing_ok=True)  # its origin would be unknown
                    raise
            yield ExportedFile(path, partition, rows, True, tuple(lost), damaged, undecoded)


def _describe_existing(
    path: Path, before: Mapping[str, Any] | None, now: Mapping[str, Any]
) -> str | None:
    """Return why the file at ``path`` is not the complete result of the export ``now``; None if it
    is. ``before`` is its line in the manifest (None: there is none).
    """
    if before is None:
        return "the file exists and is the result of another export (its origin is unknown)"
    if not is_same_source(before["made_of"], now):
        why = describe_difference(before["made_of"], now)
        return f"the file exists and is the result of another export ({why})"
    size = path.stat().st_size
    written = before.get("size", size)
    if size != written:
        return f"the file was changed after it was exported: it has {count_noun(size, 'byte')}, but {count_noun(written, 'was', 'were')} written"
    return None


def _target_paths(
    partitions: Sequence[Partition], out: Path, kind: Format
) -> dict[Path, Partition]:
    """Return the partitions by their output paths. Raise ExportError if two directories hold the
    same partition in the same state.
    """
    found: dict[Path, Partition] = {}
    for partition in partitions:
        path = out / _file_name(partition, kind)
        if path in found:
            both = f"{found[path].directory} and {partition.directory}"
            reason = f"two directories hold this partition, {both}: export one of them, or each to its own --out"
            raise ExportError(path, reason)
        found[path] = partition
    return found


def _file_name(partition: Partition, kind: Format) -> str:
    """Return the file name of a partition: ``TOPIC-PARTITION.KIND``, with the state before KIND
    unless it is live. If the name would exceed MAX_NAME bytes, the topic is truncated, and ``~``
    and 16 digits of its SHA-256 follow it.
    """
    state = "" if partition.state == "live" else f".{partition.state}"
    end = f"-{partition.partition}{state}.{kind}"
    topic = os.fsencode(partition.topic)
    if len(topic) + len(end) <= MAX_NAME:
        return partition.topic + end
    # Topic names may leave no room for a suffix. The digest distinguishes truncated names.
    end = f"~{hashlib.sha256(topic).hexdigest()[:16]}{end}"
    return topic[: MAX_NAME - len(end)].decode("utf-8", "ignore") + end


def _write_rows(
    partition: Partition,
    file: BinaryIO,
    kind: Format,
    columns: Sequence[str] | None,
    view: str | None,
    selection: Selection,
    lost: list[str],
    undecoded: Counter[str],
    options: dict[str, Any],
) -> Generator[tuple[int, int], None, None]:
    """Write the rows of a partition to ``file``, of ``view`` or with ``columns`` (None: the default
    ones). Yield the numbers of rows and of damaged rows so far: first zeros, then after each batch.
    Append a message to ``lost`` for each range that could not be read, and count keys and values
    that could not be decoded in ``undecoded``. Raise CodecError at damage or an unreadable file,
    unless the policy is ``salvage``; ValueError for an unknown column or view; OSError if ``file``
    cannot be written.
    """

    def on_lost(path: Path, lost_range: Lost) -> None:
        lost.append(describe_lost(path, lost_range))

    if columns is None and view is None:
        columns = ["topic", "partition", *_default_columns(selection)]
    found = [replace(partition, error=None)]  # the caller reported the error
    with (
        scan(
            found,
            columns,
            selection=selection,
            view=view,
            on_lost=on_lost,
            **options,
        ) as batches,
        closing(_WRITERS[kind](batches, file)) as written,
    ):
        done = damaged = 0
        yield done, damaged
        for batch in written:
            done += batch.num_rows
            if "damage" in batch.schema.names:
                damaged += batch.num_rows - batch.column("damage").null_count
            for part in ("key", "value") if "decode" in options else ():
                if f"{part}_problem" in batch.schema.names:
                    count_reasons(part, batch.column(f"{part}_problem"), undecoded)
            yield done, damaged


def count_reasons(part: str, problems: Any, undecoded: Counter[str]) -> None:
    """Add the number of rows with each of ``problems`` to ``undecoded``, under ``PART: PROBLEM``.
    ``problems`` is an array of texts (null is no problem), ``part`` is ``key`` or ``value``. If
    ``undecoded`` has MAX_REASONS entries, new problems are counted under ``other reasons``.
    """
    if problems.null_count == len(problems):
        return
    for found in problems.drop_null().value_counts().to_pylist():
        reason = f"{part}: {found['values']}"
        is_kept = reason in undecoded or len(undecoded) < MAX_REASONS
        undecoded[reason if is_kept else _OTHER_REASONS] += found["counts"]


def _default_columns(selection: Selection) -> list[str]:
    """Return the columns of records that are included by default, with the damage columns under ``salvage``."""
    from kafka_codecs.columns.records import RECORDS

    columns = [column.name for column in RECORDS.columns if not column.on_request]
    if selection.policy is Policy.SALVAGE:
        columns += ROW_DAMAGE
    return columns


WrittenBatches = Generator[pa.RecordBatch, None, None]
"""Batches of a file, each yielded after it was written."""


def _write_parquet(batches: pa.RecordBatchReader, file: BinaryIO) -> WrittenBatches:
    """Write batches as a Parquet file, and yield each after it was written. The footer follows the
    last one; after an error, or if the generator is closed early, there is none. Raise OSError if
    ``file`` cannot be written, and what reading ``batches`` raises.
    """
    from kafka_log.read.parquet import GroupedWriter

    writer = GroupedWriter(file, batches.schema)
    try:
        for batch in batches:
            writer.write(batch)
            yield batch
        writer.close()
    except BaseException:
        writer.abandon()
        raise


def _write_arrow(batches: pa.RecordBatchReader, file: BinaryIO) -> WrittenBatches:
    """Write batches as an Arrow IPC file, and yield each after it was written. The footer follows
    the last one; after an error, or if the generator is closed early, there is none. Raise OSError
    if ``file`` cannot be written, and what reading ``batches`` raises.
    """
    writer = pa.ipc.new_file(file, batches.schema)
    for batch in batches:
        writer.write_batch(batch)
        yield batch
    writer.close()  # not after an error: a footer would make the file look complete


def _write_jsonl(batches: pa.RecordBatchReader, file: BinaryIO) -> WrittenBatches:
    """Write batches as JSON lines, and yield each after it was written. Raise OSError if ``file``
    cannot be written, and what reading ``batches`` raises.
    """
    for batch in batches:
        file.writelines(encode_json_lines(batch))
        yield batch


def _write_csv(batches: pa.RecordBatchReader, file: BinaryIO) -> WrittenBatches:
    """Write a header and batches as CSV, and yield each after it was written. Raise OSError if
    ``file`` cannot be written, and what reading ``batches`` raises.
    """
    file.write(encode_csv_header(batches.schema.names))
    for batch in batches:
        file.writelines(encode_csv_lines(batch))
        yield batch


_WRITERS: Mapping[str, Callable[[pa.RecordBatchReader, BinaryIO], WrittenBatches]] = {
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "jsonl": _write_jsonl,
    "csv": _write_csv,
}
FORMATS: tuple[str, ...] = tuple(_WRITERS)


NOTES = "kafka-log-export-unfinished.json"
"""Name of the file in the output directory with the requests and begin times of unfinished exports."""


def read_begin_time(out: Path, asked: Mapping[str, Any]) -> int | None:
    """Return when an unfinished export with the same request began, in milliseconds since 1970;
    None if none is recorded in ``out``, or the record is damaged. Raise OSError if the record
    exists and cannot be read.
    """
    return next((time for known, time in _read_notes(out) if known == _normalize(asked)), None)


def record_begin(out: Path, asked: Mapping[str, Any], time: int) -> None:
    """Record in ``out`` that an export with this request began at ``time``, in milliseconds since
    1970; it replaces an earlier time of the request, and a damaged record. Raise OSError if the
    file of the record cannot be read or written.
    """
    _write_notes(out, [*_other_notes(out, asked), (_normalize(asked), time)])


def remove_begin(out: Path, asked: Mapping[str, Any]) -> None:
    """Remove the begin time of the export ``asked``, which is finished, from the notes file in
    ``out``, and the file if no other is left. Do nothing if there is none for these arguments.
    Raise OSError if the file cannot be read or changed.
    """
    before = _read_notes(out)
    rest = _other_notes(out, asked)
    if len(rest) < len(before):
        _write_notes(out, rest)


_Note = tuple[Any, int]


def _other_notes(out: Path, asked: Mapping[str, Any]) -> list[_Note]:
    """Return the recorded requests that differ from ``asked``. Raise OSError if the record cannot
    be read.
    """
    return [note for note in _read_notes(out) if note[0] != _normalize(asked)]


def _read_notes(out: Path) -> list[_Note]:
    """Return the recorded requests with their begin times; ``[]`` if the file is missing or its
    content is not such a record. Raise OSError if it cannot be read otherwise.
    """
    try:
        found = json.loads((out / NOTES).read_bytes())
        return [(note["asked"], int(note["begun"])) for note in found]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (ValueError, TypeError, KeyError):
        return []  # damaged, or of another program


def _write_notes(out: Path, notes: list[_Note]) -> None:
    """Replace the recorded requests by ``notes``; if there are none, remove the file. Raise OSError
    if the file cannot be written.
    """
    path = out / NOTES
    if not notes:
        path.unlink(missing_ok=True)
        return
    with open_staged_file(path) as file:
        text = json.dumps([{"asked": asked, "begun": time} for asked, time in notes], indent=1)
        file.write(text.encode("ascii"))


def _normalize(asked: Mapping[str, Any]) -> Any:
    """Return a request as the JSON value that its record has."""
    return json.loads(json.dumps(asked, default=str, sort_keys=True))
