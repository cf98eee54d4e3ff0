"""Pages about records: tables of them, one record, and the search."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.browse.batch_windows import (
    Budget,
    Target,
    choose_segment,
    find_window,
    start_of,
)
from kafka_log.inspect.browse.document import (
    Page,
    ParameterError,
    Query,
    make_code,
    make_facts,
    make_go_to,
    make_link,
    make_links,
    make_notice,
)
from kafka_log.inspect.browse.listing import Listing, UnknownIdError
from kafka_log.inspect.browse.overview_pages import name_partition, path_to
from kafka_log.inspect.browse.place import HIDDEN, MAX_ENTRIES, Place
from kafka_log.inspect.browse.records import (
    DecodedRows,
    RecordView,
    read_batch_rows,
    search_records,
)
from kafka_log.inspect.browse.transaction_states import TransactionStates, read_states
from kafka_log.inspect.report.html import Child, element, make_table, shorten
from kafka_log.inspect.report.section import format_reason, make_badge
from kafka_log.text.json_values import to_rows
from kafka_log.text.values import format_time

MAX_SHOWN_BYTES = 4096
"""Maximum number of bytes of a key or value that are shown in hexadecimal."""
MAX_TEXT = 64 << 10
"""Maximum number of characters of a key or value on the page of its record."""


def make_failure_paragraphs(shown: DecodedRows) -> Iterator[Child]:
    """Yield a paragraph for each kind of key or value that could not be decoded."""
    for line in shown.failures:
        yield element("p", make_badge("note"), " ", shorten(line))


def make_records_table(place: Place, shown: DecodedRows, numbers: Iterable[int | None]) -> Child:
    """Return a table of records. ``numbers`` has the number of each in its batch (0 is the first),
    for its link; None links to the record by its offset. Raise ValueError if there are not as many
    numbers as records.
    """
    rows = []
    for i, (number, row) in enumerate(zip(numbers, to_rows(shown.rows), strict=True)):
        damaged = row["crc_ok"] is not True or row["damage"] is not None
        href = place.make_url(
            "record",
            byte=row["position"],
            record=number,
            offset=row["offset"] if number is None else None,
        )
        state = "control" if row["is_control"] else ""
        rows.append(
            (
                make_link(f"{row['offset']}", href),
                format_time(row["timestamp"]) if row["timestamp"] >= 0 else "",
                element("code", _shorten_value(shown.keys[i])),
                element("code", _shorten_value(shown.values[i])),
                ", ".join(shorten(header["key"], 60) for header in row["headers"][:8]),
                make_badge("error", "damaged") if damaged else state,
            )
        )
    headings = ["offset", "timestamp", "key", "value", "headers", ""]
    return make_table(headings, rows, kinds="kkww.", caption="Records", has_cards=True)


def _shorten_value(text: str | None) -> str:
    """Return a key or value as text, shortened; ``null`` for None."""
    return "null" if text is None else shorten(text, 200)


def show_record(
    listing: Listing, query: Query, partition_id: str, view: RecordView, now: int | None
) -> Page:
    """Return the page of a record in the batch at ``byte``: the one with the number ``record`` (0
    is the first), else the first one with ``offset``. Its transaction is judged as of ``now``.
    Bytes are left out if the topic may hold secrets. Raise UnknownIdError if there is no such
    partition, segment or record, also if the file is gone; ParameterError for an impossible number.
    If the format of ``view`` needs schemas that cannot be used, raise a ValueError, DirectoryError,
    OSError or ModuleNotFoundError.
    """
    place = Place(listing, partition_id, query)
    byte, number, offset = query.count("byte"), query.number("record"), query.number("offset")
    rows = read_batch_rows(place.partition, place.segment, byte)
    if number is None:
        number = next(
            (i for i, at in enumerate(rows.column("offset").to_pylist()) if at == offset), None
        )
    if number is None or number >= rows.num_rows:
        raise UnknownIdError(
            f"{place.segment.path}: the batch at byte {byte} has no such record, or no longer: open the batch again"
        )
    shown = view.decode_rows(rows.slice(number, 1))
    (row,) = to_rows(shown.rows)
    secret = view.hides_bytes(place.partition.topic)
    batch = place.make_url("batch", byte=byte)
    damaged = None
    if row["crc_ok"] is not True or row["damage"] is not None:
        why = format_reason(row["damage"] or "Its checksum was not verified.")
        finding = place.link_finding(byte)
        damaged = make_notice("error", "Damaged", element("p", why, class_="where"), finding)
    states = read_states(
        listing, place.partition, now, has_transactions=bool(row["is_transactional"])
    )
    body: list[Child] = [
        damaged,
        make_facts(
            [
                ("offset", f"{row['offset']}"),
                ("timestamp", format_time(row["timestamp"]) if row["timestamp"] >= 0 else "none"),
                ("sequence", str(row["sequence"]) if row["sequence"] >= 0 else None),
                (
                    "producer",
                    f"{row['producer_id']}, epoch {row['producer_epoch']}"
                    if row["producer_id"] >= 0
                    else None,
                ),
                ("transaction", _describe_transaction(row, states)),
                ("control record", "yes" if row["is_control"] else None),
            ]
        ),
        make_links(
            ("Its batch", batch),
            ("Bytes beside their fields", place.make_url("bytes", byte=byte, offset=row["offset"])),
            (
                "← Previous record",
                place.make_url("record", byte=byte, record=number - 1) if number else None,
            ),
            (
                "Next record →",
                place.make_url("record", byte=byte, record=number + 1)
                if number + 1 < rows.num_rows
                else None,
            ),
        ),
        *make_failure_paragraphs(shown),
    ]
    for name, decoded in (("key", shown.keys[0]), ("value", shown.values[0])):
        raw = shown.rows.column(name)[0].as_py()
        body += _show_value(name, raw, decoded, is_hidden=secret)
    if row["headers"]:
        headers = shown.rows.column("headers")[0].as_py()[:MAX_ENTRIES]
        cells = [
            (
                shorten(header["key"], 200),
                element("code", _format_header(header["value"], is_hidden=secret)),
            )
            for header in headers
        ]
        body += [
            element("h2", f"Headers ({len(row['headers']):,})", class_="lead"),
            make_table(["name", "value"], cells, kinds=".w", caption="Headers"),
        ]
    steps = place.path((f"byte {byte:,}", batch))
    return Page(f"Record at offset {row['offset']}", body, steps)


def _describe_transaction(
    row: Mapping[str, Any], states: TransactionStates | None
) -> Element | None:
    """Return the state of the transaction of a record, with its offsets, and whether read_committed
    consumers do not get it; None if there is nothing to say.
    """
    if row["is_control"]:
        return None
    offset, producer_id, transactional = row["offset"], row["producer_id"], row["is_transactional"]
    if states is None:
        said = "state not looked up, because the partition is large or cannot be read: kafka-log txn shows it"
        return element("span", said) if transactional else None
    words = states.describe(producer_id, offset, is_transactional=bool(transactional))
    found = states.find(producer_id, offset) if transactional else None
    if found is not None:
        words.append(f"; offsets {found['first_offset'] or 0} to {found['last_offset']}")
    elif words:
        words.append(f": an open transaction begins at offset {states.stable_offset}")
    return element("span", *words) if words else None


def _format_header(value: bytes | None, *, is_hidden: bool) -> str:
    """Return the value of a record header as text, or in hexadecimal if it is not UTF-8, shortened;
    ``null`` for None. If ``is_hidden``, return a sentence that says so instead.
    """
    if is_hidden or value is None:
        return HIDDEN if is_hidden else "null"
    try:
        return shorten(value.decode("utf-8"), MAX_SHOWN_BYTES)
    except UnicodeDecodeError:
        return shorten(value.hex(" "), MAX_SHOWN_BYTES)


def _show_value(
    name: str, raw: bytes | None, decoded: str | None, *, is_hidden: bool
) -> Iterator[Child]:
    """Yield the heading with the size of a key or value, its decoded form unless that is None, and
    its first MAX_SHOWN_BYTES bytes in hexadecimal and ASCII. If ``is_hidden``, a sentence stands in
    place of the bytes; null has none. The decoded form is JSON; raise ValueError if it is not.
    """
    size = "null" if raw is None else count_noun(len(raw), "byte", spec=",")
    yield element("h2", f"{name.capitalize()} ({size})", class_="lead")
    if decoded is not None:
        yield element("pre", make_code(shorten(_indent_json(decoded), MAX_TEXT)), class_="value")
    if raw is None:
        return
    if is_hidden:
        yield element("p", f"Its bytes are {HIDDEN}.", class_="more")
        return
    lines = [
        f"{i:>6}  {raw[i : i + 16].hex(' '):<47}  {''.join(chr(b) if 32 <= b < 127 else '.' for b in raw[i : i + 16])}"
        for i in range(0, min(len(raw), MAX_SHOWN_BYTES), 16)
    ]
    if len(raw) > MAX_SHOWN_BYTES:
        lines.append(f"... {len(raw) - MAX_SHOWN_BYTES:,} bytes more")
    yield element("pre", make_code("\n".join(lines)), class_="value")


def _indent_json(text: str) -> str:
    """Return JSON with indentation. A JSON string becomes its plain text, or indented JSON if that
    text is a JSON object or array. Return ``text`` if it has more than MAX_TEXT characters. Raise
    ValueError if it is not JSON.
    """
    if len(text) > MAX_TEXT:
        return text
    value = json.loads(text)
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except (ValueError, RecursionError):
            return value
        value = inner if isinstance(inner, dict | list) else value
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def show_search(listing: Listing, query: Query, partition_id: str, view: RecordView) -> Page:
    """Return the page of records in which ``text`` occurs: as many as a request finds in bounded
    work, at most MAX_ENTRIES, and a link to go on. The search begins at ``offset``, else at
    ``byte`` of the segment, after the offset ``after``. Raise UnknownIdError if there is no such
    partition or segment; ParameterError if ``text`` is missing or a number is impossible. If the
    format of ``view`` needs schemas that cannot be used, raise a ValueError, DirectoryError,
    OSError or ModuleNotFoundError.
    """
    place = Place(listing, partition_id, query)
    text = query.text("text")
    if not text:
        raise ParameterError("no text was given: enter the text to search for")
    offset, after = query.number("offset"), query.number("after", -1)
    begin = place.index, query.count("byte")
    budget = Budget()
    if offset is not None:
        target = Target("offset", offset)
        index = choose_segment(place.partition.segments, target)
        tried = [(i, segment, base) for i, (segment, base) in enumerate(place.segments)][index:]
        index, window = find_window(tried, target, 1, Budget())
        begin = (
            index,
            start_of(window.entries[0]) if window.entries else place.segments[index][0].size,
        )
        after = offset - 1
    found = search_records(
        place.partition,
        text,
        view,
        begin=begin,
        after=after,
        max_hits=MAX_ENTRIES,
        budget=budget,
    )
    body: list[Child] = [
        make_go_to(partition_id, query),
    ]
    for index, rows in found.hits:
        place.index = index
        shown = view.decode_rows(rows)
        body.append(make_records_table(place, shown, [None] * rows.num_rows))
    hits = found.count
    end = "the end of the log" if found.resume is None else f"offset {found.last_offset}"
    if found.last_offset is None and found.resume is not None:
        end = f"byte {found.resume[1]:,} of {place.segments[found.resume[0]][0].path.name}"
    said = (
        f"{count_noun(hits, 'record', spec=',')} up to {end}." if hits else f"Nothing up to {end}."
    )
    more: list[Child] = [said]
    if found.resume is not None:
        place.index = found.resume[0]
        href = place.make_url(
            "search",
            text=text,
            byte=found.resume[1],
            after=found.last_offset if hits >= MAX_ENTRIES else None,
        )
        more += [" ", make_link("Go on →", href)]
    body.insert(1, element("p", *more, class_="next"))
    if found.lost:
        lines = [element("li", format_reason(line, 400)) for line in found.lost[:20]]
        left = len(found.lost) - len(lines)
        if left:
            lines.append(element("li", f"and {left:,} other ranges"))
        body.append(
            make_notice(
                "error",
                "Damaged, so that records may be missing here or wrong",
                element("ul", *lines),
            )
        )
    return Page(
        f"Search in {name_partition(place.partition)}", body, path_to(place.partition, partition_id)
    )
