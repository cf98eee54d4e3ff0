"""Page of the bytes of a batch beside their fields."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.browse.batch_windows import (
    start_of,
)
from kafka_log.inspect.browse.document import (
    Page,
    Query,
    make_code,
    make_links,
    make_notice,
)
from kafka_log.inspect.browse.field_docs import columns_of, document_field, shown_columns
from kafka_log.inspect.browse.listing import Listing
from kafka_log.inspect.browse.place import HIDDEN, MAX_ENTRIES, Place
from kafka_log.inspect.browse.records import (
    RecordView,
)
from kafka_log.inspect.hexdump.byte_fields import Piece, Stream
from kafka_log.inspect.hexdump.segment_bytes import hexdump_batches
from kafka_log.inspect.report.html import Child, element, make_table, shorten
from kafka_log.inspect.report.section import CHECKSUMS, format_reason, make_badge

_PLACE = re.compile(r"\((\S+), byte (\d+)[ ,)]")
"""Field and byte in the text of an error."""
MAX_PIECE_BYTES = 64
"""Maximum number of bytes that are shown of one field."""


def show_bytes(listing: Listing, query: Query, partition_id: str, view: RecordView) -> Page:
    """Return the page of the bytes of the batch at ``byte``, or of a damaged range, beside their
    fields, with at most MAX_ENTRIES records, from ``offset`` on. The bytes of records are left out
    if the topic may hold secrets. Raise UnknownIdError if there is no such partition or segment, or
    no batch is found at the byte; ParameterError for an impossible number.
    """
    place = Place(listing, partition_id, query)
    byte = query.count("byte")
    secret = view.hides_bytes(place.partition.topic)
    (part,) = hexdump_batches(
        place.segment.path,
        at=byte,
        offset=query.number("offset"),
        records=0 if secret else MAX_ENTRIES,
        start=start_of(place.find_entry(byte)),
    )
    position = part.streams[0].origin if part.streams else byte
    streams = part.streams[:1] if secret else part.streams
    batch = place.make_url("batch", byte=position)
    body: list[Child] = [
        make_notice(
            "error",
            "Damaged",
            *(element("p", format_reason(line), class_="where") for line in part.damage),
            place.link_finding(position),
        )
        if part.damage
        else None,
        *(element("p", make_badge("note"), " ", shorten(line)) for line in part.notes),
        make_links(("Header and records", batch)),
        element("p", f"Bytes of records are {HIDDEN}.", class_="more") if secret else None,
    ]
    for stream in streams:
        if stream.heading:
            body.append(element("h2", stream.heading, class_="lead"))
        body.append(_make_bytes_table(stream, batch, part.damage, is_hidden=secret))
    return Page(part.heading, body, place.path((f"byte {position:,}", batch)))


def _make_bytes_table(
    stream: Stream, batch: str, damage: Sequence[str], *, is_hidden: bool
) -> Child:
    """Return a table with a row for each field: position, bytes, name, value and documentation. If
    ``is_hidden``, only fields of the batch header have bytes. ``batch`` is the URL of the batch.
    Fields that ``damage`` names are marked, with the computed checksum.
    """
    wrong = {} if stream.heading else _find_damaged_fields(damage)
    seen: set[str] = set()
    rows = []
    for piece in stream.pieces:
        anchor = None if piece.path in seen or not piece.path else f"bytes-{piece.path}"
        seen.add(piece.path)
        columns = columns_of(piece.path)
        name: Child = element("span", piece.path, id=anchor)
        if columns and columns[0] in shown_columns():
            name = element("a", piece.path, id=anchor, href=f"{batch}#field-{columns[0]}")
        hides = is_hidden and not columns
        rows.append(
            (
                f"{stream.origin + piece.start}",
                make_code("" if hides else _format_hex(stream, piece), "hex"),
                name,
                element(
                    "span",
                    _format_omitted(piece),
                    *wrong.get((piece.path, stream.origin + piece.start), ()),
                ),
                document_field(piece.path),
            )
        )
    headings = ["byte", "bytes", "field", "value", "meaning"]
    return make_table(headings, rows, kinds="nkk.w", caption=stream.heading or "Bytes")


def _find_damaged_fields(damage: Sequence[str]) -> dict[tuple[str, int], Sequence[Child]]:
    """Return badges for the fields that errors name, by path and byte: the computed checksum, or
    that the field is wrong.
    """
    found: dict[tuple[str, int], Sequence[Child]] = {}
    for line in damage:
        if place := _PLACE.search(line):
            sums = CHECKSUMS.search(line)
            said = "wrong" if sums is None else f"computed {int(sums[2]):#010x}"
            found[place[1], int(place[2])] = " ", make_badge("error", said)
    return found


def _format_omitted(piece: Piece) -> str:
    """Return the value of a field, with its size if its bytes are not shown."""
    size = f", {count_noun(piece.end - piece.start, 'byte', spec=',')}" if piece.omitted else ""
    return shorten(piece.value, 300) + size


def _format_hex(stream: Stream, piece: Piece) -> str:
    """Return the first MAX_PIECE_BYTES bytes of a field, which ``stream`` holds, in hexadecimal,
    eight on a line, and a line with the number of further ones, if any; "" if the field is
    ``omitted``. No file is read.
    """
    if piece.omitted:
        return ""
    data = stream.data[piece.start : min(piece.end, piece.start + MAX_PIECE_BYTES)]
    lines = [data[i : i + 8].hex(" ") for i in range(0, len(data), 8)]
    left = piece.end - piece.start - len(data)
    return "\n".join([*lines, *([f"... {left:,} bytes more"] if left else [])])
