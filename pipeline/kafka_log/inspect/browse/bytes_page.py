"""Page of the bytes of a batch beside their fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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
from kafka_log.inspect.browse.records import RecordView, read_batch_rows
from kafka_log.inspect.hexdump.byte_fields import Piece, Stream
from kafka_log.inspect.hexdump.segment_bytes import hexdump_batches
from kafka_log.inspect.report.html import Child, element, make_table, shorten
from kafka_log.inspect.report.section import CHECKSUMS, format_reason, link_text, make_badge

_PLACE = re.compile(r"\((\S+), byte (\d+)[ ,)]")
"""Field and byte in the text of an error."""
_NUMBER = re.compile(r"\[(\d+)\]")
"""Number of a record in the path of a field."""
MAX_PIECE_BYTES = 64
"""Maximum number of bytes that are shown of one field."""


def show_bytes(listing: Listing, query: Query, partition_id: str, view: RecordView) -> Page:
    """Return the page of the bytes of the batch at ``byte``, or of a damaged range, beside their
    fields, with at most MAX_ENTRIES records, from ``offset`` on. The record with this offset is
    marked, and the title names it. The bytes of records are left out if the topic may hold secrets.
    Raise UnknownIdError if there is no such partition or segment, or no batch is found at the byte;
    ParameterError for an impossible number.
    """
    place = Place(listing, partition_id, query)
    byte, offset = query.count("byte"), query.number("offset")
    secret = view.hides_bytes(place.partition.topic)
    (part,) = hexdump_batches(
        place.segment.path,
        at=byte,
        offset=offset,
        records=0 if secret else MAX_ENTRIES,
        start=start_of(place.find_entry(byte)),
    )
    position = part.streams[0].origin if part.streams else byte
    streams = part.streams[:1] if secret else part.streams
    batch = place.make_url("batch", byte=position)
    asked = _find_record(place, position, offset, view)
    title = part.heading if asked is None else asked.title
    body: list[Child] = [
        make_notice(
            "error",
            "Damaged",
            *(element("p", format_reason(line), class_="where") for line in part.damage),
            place.link_finding(position),
        )
        if part.damage
        else None,
        element("p", part.heading, class_="where") if title != part.heading else None,
        *(element("p", make_badge("note"), " ", shorten(line)) for line in part.notes),
        make_links(("Header and records", batch)),
        element("p", f"Bytes of records are {HIDDEN}.", class_="more") if secret else None,
    ]
    for stream in streams:
        if stream.heading:
            body.append(element("h2", stream.heading, class_="lead"))
        body.append(_make_bytes_table(stream, batch, part.damage, asked, is_hidden=secret))
    return Page(title, body, place.path((f"byte {position:,}", batch)))


@dataclass(frozen=True, slots=True)
class _AskedRecord:
    """The record that a page of bytes was asked for.

    Attributes:
        title: Its offset and key.
        number: Its number in the batch, from 0.
        before: URL of the page with the records before those that are shown; None without any.
        after: URL of the page with the records after them; None without any.
    """

    title: str
    number: int
    before: str | None
    after: str | None


def _find_record(
    place: Place, position: int, offset: int | None, view: RecordView
) -> _AskedRecord | None:
    """Return the record with ``offset`` in the batch at byte ``position``; None without an offset, and
    if there is none.
    """
    if offset is None:
        return None
    rows = read_batch_rows(place.partition, place.segment, position)
    offsets = rows.column("offset").to_pylist()
    if offset not in offsets:
        return None
    number = offsets.index(offset)
    (key,) = view.decode_rows(rows.slice(number, 1)).keys
    following = number + MAX_ENTRIES

    def find_url(at: int) -> str:
        """Return the URL of the page that begins with a record."""
        return place.make_url("bytes", byte=position, offset=offsets[at])

    return _AskedRecord(
        f"Bytes of the record at offset {offset}, key {'null' if key is None else shorten(key, 80)}",
        number,
        find_url(max(number - MAX_ENTRIES, 0)) if number else None,
        find_url(following) if following < len(offsets) else None,
    )


def _make_bytes_table(
    stream: Stream,
    batch: str,
    damage: Sequence[str],
    asked: _AskedRecord | None,
    *,
    is_hidden: bool,
) -> Child:
    """Return a table with a row for each field: position, bytes, name, value and documentation. If
    ``is_hidden``, only fields of the batch header have bytes. ``batch`` is the URL of the batch.
    Fields that ``damage`` names are marked, with the computed checksum, and those of the ``asked``
    record. Omitted records around it are links.
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
        element_number = _NUMBER.search(piece.path)
        is_asked = (
            asked is not None
            and element_number is not None
            and int(element_number[1]) == asked.number
        )
        rows.append(
            (
                f"{stream.origin + piece.start}",
                make_code("" if hides else _format_hex(stream, piece), "hex"),
                name,
                element(
                    "span",
                    link_text(_format_omitted(piece), _find_omitted(piece, asked)),
                    *wrong.get((piece.path, stream.origin + piece.start), ()),
                    class_="asked" if is_asked else None,
                ),
                document_field(piece.path),
            )
        )
    headings = ["byte", "bytes", "field", "value", "meaning"]
    return make_table(
        headings, rows, kinds="nkk.w", caption=stream.heading or "Bytes", has_cards=True
    )


def _find_omitted(piece: Piece, asked: _AskedRecord | None) -> str | None:
    """Return the URL of the page of omitted records; None for other pieces, and if there is none."""
    if asked is None or not piece.omitted:
        return None
    return asked.before if piece.value.endswith(" before") else asked.after


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
