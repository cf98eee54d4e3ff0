"""Read indexes, producer snapshots and checkpoints byte by byte."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import kafka_codecs
from codecgen.runtime.errors import CodecError, TrailingError, Where
from codecgen.runtime.located_bytes import Limits
from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.hexdump.byte_fields import (
    Piece,
    Stream,
    fill_gaps,
    format_value,
    read_elements,
    read_streams,
)
from kafka_log.inspect.hexdump.segment_bytes import NoSuchPlace, Part
from kafka_log.logs.broker_files import TooLargeError, read_small_file
from kafka_log.logs.names import LEADER_EPOCHS
from kafka_log.segment.regular_files import open_regular

INDEXES = {
    ".index": ("offset_index", kafka_codecs.OFFSET_INDEX_ENTRY),
    ".timeindex": ("time_index", kafka_codecs.TIME_INDEX_ENTRY),
    ".txnindex": ("transaction_index", kafka_codecs.TRANSACTION_INDEX_ENTRY),
}
TEXTS = {
    LEADER_EPOCHS: kafka_codecs.LEADER_EPOCH_CHECKPOINT,
    "replication-offset-checkpoint": kafka_codecs.OFFSET_CHECKPOINT,
    "recovery-point-offset-checkpoint": kafka_codecs.OFFSET_CHECKPOINT,
    "log-start-offset-checkpoint": kafka_codecs.OFFSET_CHECKPOINT,
    "cleaner-offset-checkpoint": kafka_codecs.OFFSET_CHECKPOINT,
    "partition.metadata": kafka_codecs.PARTITION_METADATA,
    "meta.properties": kafka_codecs.META_PROPERTIES,
}
SEGMENTS = (".log", ".checkpoint")
SNAPSHOT = ".snapshot"
_STATE_SUFFIXES = re.compile(r"(\.deleted|\.swap|\.cleaned|\.tmp|\.part)+\Z")


def file_kind(path: Path) -> str:
    """Return the kind of a file by its name alone, without state suffixes such as ``.deleted``. It
    is the suffix of a segment, index or snapshot (``.log``, ``.index``), or the whole name of a
    checkpoint or properties file. Raise NoSuchPlace for an unknown name.
    """
    name = _STATE_SUFFIXES.sub("", path.name)
    suffix = Path("0" + name).suffix
    for known in (name, suffix):
        if known in TEXTS or known in INDEXES or known in (*SEGMENTS, SNAPSHOT):
            return known
    names = ", ".join([*SEGMENTS, *INDEXES, SNAPSHOT, *TEXTS])
    raise NoSuchPlace(f"the name of {path} does not tell its format: add --as with one of {names}")


def hexdump_file(path: Path, kind: str, at: int | None, max_entries: int, limits: Limits) -> Part:
    """Return the bytes of an index, producer snapshot, checkpoint or properties file, with their
    fields; what cannot be parsed is damage, not raised. ``at``, for indexes only, is a byte of the
    first entry shown. ``max_entries`` limits entries of indexes and snapshots. Raise NoSuchPlace if
    an index has no byte ``at``, or another file is given ``at`` or too large; OSError if
    unreadable.

    Args:
        path: The file.
        kind: Result of :func:`file_kind`, but not that of a segment.
        at: Only for indexes: the byte whose entry is shown first. None is the first byte.
        max_entries: Number of index or snapshot entries that are shown.
        limits: Limits of the parser.
    """
    if kind in INDEXES:
        return _dump_index(path, *INDEXES[kind], at or 0, max_entries)
    if at is not None:
        raise NoSuchPlace(
            f"--byte applies to segments and indexes only: {path} is always shown from its first byte"
        )
    try:
        data = read_small_file(path)
    except TooLargeError as error:
        raise NoSuchPlace(str(error)) from None
    if kind == SNAPSHOT:
        return _dump_snapshot(path, data, max_entries, limits)
    return _dump_text(path, TEXTS[kind], data, limits)


def _dump_index(path: Path, name: str, entry: Any, at: int, max_entries: int) -> Part:
    """Return the entries of an index, at most ``max_entries``, from the one that contains byte
    ``at`` on; the number of later ones is a piece. ``entry`` is their codec; ``name`` begins the
    heading. An unreadable entry and an incomplete one at the end are damage. Raise NoSuchPlace if
    the file has no such byte (byte 0 of an empty file is accepted), OSError if it cannot be read.
    """
    codec = next(iter(entry.cases.values())) if hasattr(entry, "cases") else entry
    step = codec.size
    with open_regular(path, -1) as file:
        size = file.seek(0, os.SEEK_END)
        if at and at >= size:
            raise NoSuchPlace(
                f"{path} has {count_noun(size, 'byte')}, so that it has no byte {at}: positions count from 0"
            )
        first = at // step
        count = max(min(max_entries, size // step - first), 0)
        file.seek(first * step)
        data = file.read(count * step)
    base = int(path.name[:20]) if re.match(r"\d{20}\.", path.name) else None

    def note(field: str, values: Any, _: Any) -> str | None:
        if field == "relative_offset" and base is not None:
            return f"offset {base + values.relative_offset}"
        return None

    stream, error = read_elements(entry, data, first * step, first, "entries", note)
    damage = [] if error is None else [str(error)]
    pieces = list(stream.pieces)
    whole_end = size - size % step
    shown_end = first * step + len(data)
    if whole_end > shown_end:
        more = f"{(whole_end - shown_end) // step} more"
        pieces.append(_omitted_piece(shown_end, whole_end, first * step, "entries", more))
    if size > whole_end:
        pieces.append(_omitted_piece(whole_end, size, first * step, "", "not read"))
        reason = f"{count_noun(size - whole_end, 'byte at the end is', 'bytes at the end are')} not a complete entry"
        where = Where(position=whole_end, file=os.fspath(path))
        damage.append(str(TrailingError(reason, where)))
    heading = f"{name}, {count_noun(size, 'byte')}, {count_noun(size // step, 'entry', 'entries')}"
    return Part(heading, (Stream(data, first * step, tuple(pieces)),), damage=tuple(damage))


def _omitted_piece(start: int, end: int, origin: int, path: str, value: str) -> Piece:
    """Return a piece for the bytes ``start`` to ``end`` of the file that are counted but not shown."""
    return Piece(start - origin, end - origin, path, value, omitted=True)


def _dump_snapshot(path: Path, data: bytes, max_entries: int, limits: Limits) -> Part:
    """Return the fields of a producer snapshot, with at most ``max_entries`` of its entries. What
    its lenient parser tolerates are notes; errors and wrong checksums are damage, and are not
    raised.
    """
    layout = next(iter(kafka_codecs.PRODUCER_SNAPSHOT.cases.values()))
    found, error = read_streams(layout, data, 0, limits, max_entries, lambda *_: None)
    notes, damage = _find_problems(kafka_codecs.PRODUCER_SNAPSHOT, path, data, limits)
    if error is not None and not damage:
        damage = (str(error),)
    return Part(f"producer_snapshot, {count_noun(len(data), 'byte')}", tuple(found), notes, damage)


def _dump_text(path: Path, text: Any, data: bytes, limits: Limits) -> Part:
    """Return the fields of a checkpoint or properties file, which the codec ``text`` parses from
    ``data``; ``path`` is only named in errors. What the codec tolerates are notes; errors and wrong
    checksums are damage, and are not raised.
    """
    trace: list[tuple[str, int, int, bool]] = []
    notes, damage = _find_problems(text, path, data, limits, trace)
    pieces = [
        Piece(start, end, name, format_value(data[start:end]), kind="text")
        for name, start, end, _ in sorted(trace, key=lambda span: span[1])
    ]
    found = Stream(data, 0, fill_gaps(pieces, 0, len(data), ""))
    return Part(f"{text.text_name}, {count_noun(len(data), 'byte')}", (found,), notes, damage)


def _find_problems(
    codec: Any, path: Path, data: bytes, limits: Limits, trace: Any = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two tuples of messages: what a lenient parser tolerates (notes), and what Kafka
    rejects (damage): wrong checksums and the CodecError that ended the parsing, which is not
    raised. ``trace`` receives the byte range of each field.
    """
    findings: list[Any] = []
    damage: list[str] = []
    try:
        codec.parse(
            data,
            file=os.fspath(path),
            strict=False,
            limits=limits,
            findings=findings,
            trace=trace,
        )
    except CodecError as error:
        damage.append(str(error))
    wrong = [f for f in findings if type(f).__name__ == "ChecksumError"]
    notes = tuple(str(finding) for finding in findings if finding not in wrong)
    return notes, (*map(str, wrong), *damage)
