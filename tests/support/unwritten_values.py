"""Values of fields that the view ``records`` does not write, in damaged batches that salvage encodes again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import ChecksumError, CodecError
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.records import RECORDS
from kafka_log import LogDirectory
from kafka_log.segment.framing import frame_of
from tests.support.segment_files import put
from tests.support.writer_faults import change, format_path, list_fields, stored_values


def stored_of(data: bytes) -> tuple[Layout, Any]:
    """The layout and the fields of an entry, whatever its checksum."""
    layout = frame_of(data, 0, "").layout
    return layout, layout.read(Source(data, Session(strict=False)), None)


def unwritten_values(data: bytes) -> dict[str, Any]:
    """The values of an entry's fields that the view does not write, and that builders do not compute, by their paths."""
    layout, parsed = stored_of(data)
    found = {}
    for path in list_fields(layout, parsed):
        value = parsed
        for name in path:
            value = value[name]
        text = format_path(path)
        case = RECORDS.case(layout, parsed)
        assert case is not None
        plain = re.sub(r"\[\d+\]", "", text)
        if not any(f"{one}.".startswith(f"{plain}.") for one in case.writes):
            found[text] = value
    return found


def with_unwritten_values(data: bytes) -> bytes:
    """The entry with another value in each of these fields."""
    layout, parsed = stored_of(data)
    values = stored_values(layout, parsed)
    wanted = unwritten_values(data)
    for path in list_fields(layout, parsed):
        if format_path(path) in wanted:
            change(values, path)
    return bytes(layout.build(values, strict=False))


def salvage_damaged(data: bytes, directory: Path) -> tuple[bytes, list[dict[str, Any]]]:
    """What salvage writes for an entry with a wrong checksum if damaged records are kept, and its report."""
    layout, _ = stored_of(data)
    source = put(directory / "t-0", (0, next(_damage(data, layout.offset_of("crc")))))
    rows = LogDirectory(source).salvage(directory / "out", keep_damaged=True).to_pylist()
    (written,) = (directory / "out" / "t-0").glob("*.log")
    return written.read_bytes(), [row for row in rows if row["what"] != "kept" or row["batches"]]


def _damage(data: bytes, start: int) -> Iterator[bytes]:
    """The entry with a flipped bit in its checksum, which may mask some of its bits."""
    for bit in range(64):
        damaged = bytearray(data)
        damaged[start + bit // 8] ^= 1 << bit % 8
        with suppress(CodecError):
            session = Session(strict=False)
            LOG_ENTRY.read(Source(bytes(damaged), session), None)
            if any(isinstance(one, ChecksumError) for one in session.findings):
                yield bytes(damaged)


def keeps_unwritten_values(magic: int, data: bytes, directory: Path) -> None:
    """Salvage keeps a value in each field that no view writes."""
    changed = with_unwritten_values(data)
    wanted = unwritten_values(changed)
    assert (
        wanted != unwritten_values(data) and LOG_ENTRY.parse(changed, strict=False).magic == magic
    )
    written, rows = salvage_damaged(changed, directory)
    assert {row["what"] for row in rows} == {"rewritten"}, rows
    assert unwritten_values(written) == wanted
