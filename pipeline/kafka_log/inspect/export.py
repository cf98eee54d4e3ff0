"""Partitions as files of their own: Parquet, Arrow, JSON lines, CSV. What is whole stays, and is not made again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, Unpack

import pyarrow as pa

from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import DirectoryError, Partition
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.scanning import scan
from kafka_log.read.selection import RowFilters, Selection, change_selection
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.row_damage import COLUMNS as ROW_DAMAGE
from kafka_log.text.lines import encode_csv_header, encode_csv_lines, encode_json_lines
from kafka_log.write.manifest import Manifest
from kafka_log.write.output_lock import MAX_NAME, locked_output
from kafka_log.write.staged_output import (
    describe_difference,
    describe_source,
    is_same_source,
    manifest_name,
    open_staged_file,
    refuse_inside,
)

Format = Literal["parquet", "arrow", "jsonl", "csv"]
MANIFEST = manifest_name("export")
"""Beside the files: what each was made of."""


class ExportError(DirectoryError):
    """Something stands in the way of an export. ``path`` is where."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A file. ``made`` is False when it was there already, made of the same segments in the same way. ``lost`` says what of the
    segments could not be read, and is not in it; ``damaged`` counts the rows that are, but of which the column ``damage`` says something.
    """

    path: Path
    partition: Partition
    rows: int
    made: bool
    lost: tuple[str, ...] = ()
    damaged: int = 0


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
    policy: Policy | str | None = None,
    **filters: Unpack[RowFilters],
) -> Generator[Exported, None, None]:
    """Write a file for each partition into a directory, one after the other: ``TOPIC-PARTITION.KIND``.

    ``columns``, ``view``, ``show_secrets``, and the ``selection`` or its keywords are as in :func:`kafka_log.scan`; without columns, topic and partition
    come before the others, so that the files can be read together, and under ``salvage`` ``crc_ok`` and ``damage`` after them.
    Each file is written beside and renamed when it is whole. What was made of the same log (:mod:`kafka_log.logs.log_identity`) with the
    same segments, from the same start, with the same options, is kept; any other file in its place is an error unless ``overwrite``. ``progress`` is told of the
    rows that are written so far. Memory holds one row group. The directory is locked until this is exhausted or closed.

    Raises :class:`~kafka_log.write.output_lock.OutputLockedError` while another process writes there, :class:`ExportError`, :class:`~kafka_log.write.staged_output.OutputError` for a place inside of a partition, and what scan raises; files that are
    whole stay. The error of a directory that cannot be read comes after the files of all others; ``salvage`` counts it as lost.
    """
    partitions = merge_tiered_segments(partitions)
    places = _places(partitions, out, kind)
    refuse_inside(out, [p.directory for p in partitions if isinstance(p.directory, Path)])
    selection = change_selection(selection, policy, filters)
    # Which partitions and states, the caller has said.
    selection = selection.but(topics=None, partitions=None, include=())
    asked = {"columns": columns and list(columns), "view": view} | selection.to_keywords()
    if show_secrets:
        asked["show_secrets"] = True
    starts = LogStarts()
    ordered = list(places.items())
    if selection.policy is not Policy.SALVAGE:
        # What cannot be read stops nothing that can.
        ordered.sort(key=lambda place: place[1].error is not None)
    with locked_output(out):
        manifest = Manifest(out / MANIFEST, ("rows", "lost", "damaged", "made_of"))
        for path, partition in ordered:
            if partition.error is not None and selection.policy is not Policy.SALVAGE:
                raise partition.error
            start = None if selection.deleted_records else starts.get(partition)
            now = describe_source(partition, asked, start)
            before, is_there = manifest.get(path.name), path.exists()
            if is_there and before is not None and is_same_source(before["made_of"], now):
                yield Exported(
                    path, partition, before["rows"], False, tuple(before["lost"]), before["damaged"]
                )
                continue
            if is_there and not overwrite:
                why = (
                    "nobody knows of what"
                    if before is None
                    else describe_difference(before["made_of"], now)
                )
                reason = f"is there, made of something else ({why}): choose another directory, or --overwrite"
                raise ExportError(path, reason)
            counts = 0, 0
            lost = [] if partition.error is None else [str(partition.error)]
            if is_there:
                # If the process dies before the new line, the file is of unknown origin, never taken for the old one.
                manifest.add(path.name, {"rows": 0, "lost": [], "damaged": 0, "made_of": None})
            with (
                open_staged_file(path) as file,
                closing(
                    _written(partition, file, kind, columns, view, show_secrets, selection, lost)
                ) as written,
            ):
                for counts in written:
                    progress(partition, counts[0])
            rows, damaged = counts
            try:
                manifest.add(
                    path.name, {"rows": rows, "lost": lost, "damaged": damaged, "made_of": now}
                )
            except OSError:
                path.unlink(missing_ok=True)  # nobody would know of what it is
                raise
            yield Exported(path, partition, rows, True, tuple(lost), damaged)


def _places(partitions: Sequence[Partition], out: Path, kind: Format) -> dict[Path, Partition]:
    """Where each partition goes. Raises ExportError for two that would go to one place, as replicas would."""
    found: dict[Path, Partition] = {}
    for partition in partitions:
        path = out / _name(partition, kind)
        if path in found:
            both = f"{found[path].directory} and {partition.directory}"
            reason = f"it would be made of two directories, {both}: export one of them, or each into a directory of its own"
            raise ExportError(path, reason)
        found[path] = partition
    return found


def _name(partition: Partition, kind: Format) -> str:
    state = "" if partition.state == "live" else f".{partition.state}"
    end = f"-{partition.partition}{state}.{kind}"
    topic = os.fsencode(partition.topic)
    if len(topic) + len(end) <= MAX_NAME:
        return partition.topic + end
    # Kafka takes names that leave no room for an ending. What is cut off is told apart by the digest.
    end = f"~{hashlib.sha256(topic).hexdigest()[:16]}{end}"
    return topic[: MAX_NAME - len(end)].decode("utf-8", "ignore") + end


def _written(
    partition: Partition,
    file: BinaryIO,
    kind: Format,
    columns: Sequence[str] | None,
    view: str | None,
    show_secrets: bool,
    selection: Selection,
    lost: list[str],
) -> Generator[tuple[int, int], None, None]:
    """The rows that are in the file, and those of them that are damaged, after each batch. What is passed over is added to ``lost``."""

    def on_lost(path: Path, of: Lost) -> None:
        lost.append(f"{path}: bytes {of.start} to {of.end} are lost: {of.reason}")

    if not columns and view is None:
        columns = ["topic", "partition", *_columns(selection)]
    found = [replace(partition, error=None)]  # the caller has told of it
    with (
        scan(
            found,
            columns,
            selection=selection,
            view=view,
            show_secrets=show_secrets,
            on_lost=on_lost,
        ) as batches,
        closing(_WRITERS[kind](batches, file)) as written,
    ):
        done = damaged = 0
        yield done, damaged
        for batch in written:
            done += batch.num_rows
            if "damage" in batch.schema.names:
                damaged += batch.num_rows - batch.column("damage").null_count
            yield done, damaged


def _columns(selection: Selection) -> list[str]:
    from kafka_codecs.columns.records import RECORDS

    columns = [column.name for column in RECORDS.columns if not column.on_request]
    if selection.policy is Policy.SALVAGE:
        columns += ROW_DAMAGE
    return columns


Written = Generator[pa.RecordBatch, None, None]
"""The batches that are in a file, each after it was written."""


def _parquet(batches: pa.RecordBatchReader, file: BinaryIO) -> Written:
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


def _arrow(batches: pa.RecordBatchReader, file: BinaryIO) -> Written:
    writer = pa.ipc.new_file(file, batches.schema)
    for batch in batches:
        writer.write_batch(batch)
        yield batch
    writer.close()  # not after an error: it would write the end of a whole file


def _jsonl(batches: pa.RecordBatchReader, file: BinaryIO) -> Written:
    for batch in batches:
        file.writelines(encode_json_lines(batch))
        yield batch


def _csv(batches: pa.RecordBatchReader, file: BinaryIO) -> Written:
    file.write(encode_csv_header(batches.schema.names))
    for batch in batches:
        file.writelines(encode_csv_lines(batch))
        yield batch


_WRITERS: Mapping[str, Callable[[pa.RecordBatchReader, BinaryIO], Written]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "jsonl": _jsonl,
    "csv": _csv,
}
FORMATS: tuple[str, ...] = tuple(_WRITERS)


__all__ = ["FORMATS", "MANIFEST", "ExportError", "Exported", "Format", "export"]


NOTES = "kafka-log-export-unfinished.json"
"""Beside the files while such an export is not finished: what was asked for, and when (milliseconds since 1970)."""


def begun_at(out: Path, asked: Mapping[str, Any]) -> int | None:
    """When an export that is not finished was begun that asked for the same; None where there is none."""
    return next((time for known, time in _read(out) if known == _plain(asked)), None)


def note_begun(out: Path, asked: Mapping[str, Any], time: int) -> None:
    """Note that an export was begun. Raises OSError."""
    _write(out, [*_others(out, asked), (_plain(asked), time)])


def note_finished(out: Path, asked: Mapping[str, Any]) -> None:
    """Forget an export that has been finished. Raises OSError."""
    before = _read(out)
    rest = _others(out, asked)
    if len(rest) < len(before):
        _write(out, rest)


_Note = tuple[Any, int]


def _others(out: Path, asked: Mapping[str, Any]) -> list[_Note]:
    return [note for note in _read(out) if note[0] != _plain(asked)]


def _read(out: Path) -> list[_Note]:
    try:
        found = json.loads((out / NOTES).read_bytes())
        return [(note["asked"], int(note["begun"])) for note in found]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (ValueError, TypeError, KeyError):
        return []  # not ours, or cut: nobody knows what was begun


def _write(out: Path, notes: list[_Note]) -> None:
    path = out / NOTES
    if not notes:
        path.unlink(missing_ok=True)
        return
    with open_staged_file(path) as file:
        text = json.dumps([{"asked": asked, "begun": time} for asked, time in notes], indent=1)
        file.write(text.encode("ascii"))


def _plain(asked: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(asked, default=str, sort_keys=True))
