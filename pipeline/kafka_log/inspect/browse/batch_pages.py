"""Pages about the batches of a segment, and about one batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from kafka_codecs.columns.batches import BATCHES
from kafka_log.inspect.browse.batch_windows import (
    BatchWindow,
    Budget,
    Entry,
    Target,
    choose_segment,
    end_of,
    find_window,
    start_of,
)
from kafka_log.inspect.browse.document import (
    Page,
    Query,
    make_facts,
    make_go_to,
    make_link,
    make_links,
    make_notice,
    make_url,
)
from kafka_log.inspect.browse.field_docs import fields_of, shown_columns
from kafka_log.inspect.browse.listing import Listing, segment_id
from kafka_log.inspect.browse.overview_pages import find_log_end, name_partition
from kafka_log.inspect.browse.place import MAX_ENTRIES, Place
from kafka_log.inspect.browse.record_pages import make_failure_paragraphs, make_records_table
from kafka_log.inspect.browse.records import (
    RecordView,
    read_batch_rows,
)
from kafka_log.inspect.browse.transaction_states import TransactionStates, read_states
from kafka_log.inspect.dump.batch_rows import batch_rows
from kafka_log.inspect.report.damage_sections import describe_missing
from kafka_log.inspect.report.html import Child, element, make_table
from kafka_log.inspect.report.missing_ends import LostRange, describe_missing_size
from kafka_log.inspect.report.section import (
    format_range,
    format_reason,
    format_short_time,
    make_badge,
)
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import Segment
from kafka_log.segment.model import Batch, Policy, codec_label
from kafka_log.segment.reader import SegmentReader, damage
from kafka_log.text.json_values import to_rows
from kafka_log.text.values import format_time


def show_batches(listing: Listing, query: Query, partition_id: str, now: int | None) -> Page:
    """Return the page of at most MAX_ENTRIES batches of a partition: at the end of the log
    (``end``), from an offset or a time on, before a byte (``before``), or from a byte on; without
    these, the first ones. Batches of open and aborted transactions, and others that read_committed
    hides, are marked, as of ``now``. With ``segment`` it begins in that segment; bytes are of it,
    or of the first. Raise UnknownIdError if there is no such partition or segment, or the partition
    has no segment; ParameterError for an impossible number or time.
    """
    place = Place(listing, partition_id, query)
    target = _parse_target(query)
    if target.kind == "byte" and target.value >= place.segment.size:
        target = Target("end")
    indexed = [(i, segment, base) for i, (segment, base) in enumerate(place.segments)]
    if query.text("end") and not query.text("segment"):
        filled = [i for i, segment, _ in indexed if not segment.is_empty]
        place.index = max(filled, default=0)
    elif target.kind in ("offset", "time") and not query.text("segment"):
        place.index = choose_segment(place.partition.segments, target)
    is_search = target.kind in ("offset", "time")
    tried = indexed[place.index :] if is_search else indexed[place.index : place.index + 1]
    place.index, window = find_window(tried, target, MAX_ENTRIES, Budget())
    body = [
        make_facts(
            [
                ("file", os.fsdecode(os.fspath(place.segment.path))),
                ("bytes", f"{place.segment.size:,}"),
                ("shown", _describe_window(window)),
            ]
        ),
        _make_steps(place, window),
    ]
    if window.resume is not None:
        body.append(_make_resume_paragraph(place, target, window.resume))
    elif not window.entries:
        what = "There is no batch from here on." if is_search else "There is no batch here."
        body.append(element("p", what, *_describe_offsets(place)))
        last = make_url("partitions", place.partition_id, "batches", end=1)
        body.append(make_links(("Last batches", last)))
    else:
        batches = [entry for entry in window.entries if isinstance(entry, Batch)]
        states = read_states(
            listing,
            place.partition,
            now,
            has_transactions=any(one.is_transactional for one in batches),
        )
        rows = [_make_batch_row(place, entry, states) for entry in window.entries]
        headings = [
            "offsets",
            "byte",
            "bytes",
            "records",
            "newest (UTC)",
            "codec",
            "producer, epoch",
            "",
        ]
        body.append(make_table(headings, rows, kinds="knnnkkkw", caption="Batches", has_cards=True))
        body.append(_make_steps(place, window))
    if window.missing is not None:
        body.append(_make_missing_notice(window.missing))
    if window.note:
        body.append(
            element("p", f"{window.note}. That is normal in an active segment.", class_="more")
        )
    title = f"Batches of {name_partition(place.partition)}"
    return Page(title, [*body, make_go_to(place.partition_id, query)], place.path())


def _describe_offsets(place: Place) -> Sequence[Child]:
    """Return the range of offsets of a log as text; ``[]`` if its end is not known."""
    end = find_log_end(place.partition)
    first = max(place.partition.segments[0].base_offset, LogStarts().get(place.partition) or 0)
    if end is None:
        return []
    if end <= first:
        return [f" The log is empty; its next offset is {end:,}."]
    return [f" The log has offsets {first:,} to {end - 1:,}."]


def _make_missing_notice(missing: LostRange) -> Child:
    """Return the box about batches that are missing at the end of a segment."""
    said = f"Missing: {describe_missing_size(missing)}. Offsets lost or at risk: {describe_missing(missing)}."
    return make_notice(
        "error",
        f"Batches, or their last bytes, are missing after byte {missing.start:,}",
        element("p", said),
        element("p", format_reason(missing.reason), class_="where"),
    )


def _parse_target(query: Query) -> Target:
    """Return where the page begins, by the first of these parameters that is not empty: ``end``,
    ``offset``, ``time``, ``before``, ``byte``. Without any it is byte 0. Raise ParameterError for
    an impossible number or time.
    """
    resume = query.count("resume")
    if query.text("end"):
        return Target("end", 0, resume)
    offset, time = query.number("offset"), query.time("time")
    if offset is not None:
        return Target("offset", offset, resume)
    if time is not None:
        return Target("time", time, resume)
    before = query.number("before")
    if before is not None:
        return Target("before", before, resume)
    return Target("byte", query.count("byte"), resume)


def _describe_window(window: BatchWindow) -> str:
    """Return the range of bytes of a window; "" if it is empty."""
    if not window.entries:
        return ""
    return f"bytes {start_of(window.entries[0]):,} to {end_of(window.entries[-1]) - 1:,}"


def _make_resume_paragraph(place: Place, target: Target, resume: int) -> Child:
    """Return the paragraph that says up to which byte was read before the budget was spent, with a link to go on."""
    value = None if target.kind == "end" else target.value
    name = "end" if target.kind == "end" else target.kind
    href = place.make_url("batches", **{name: 1 if value is None else value, "resume": resume})
    said = f"The index of this segment does not lead there. Nothing up to byte {resume:,} of {place.segment.path.name}. "
    return element("p", said, make_link("Go on →", href), class_="next")


def _make_steps(place: Place, window: BatchWindow) -> Child:
    """Return links to the batches before and after a window, also in the segments before and after;
    None if there are neither.
    """
    before = after = None
    first = start_of(window.entries[0]) if window.entries else 0
    if first:
        before = place.make_url("batches", before=first)
    elif place.index:
        before = make_url(
            "partitions",
            place.partition_id,
            "batches",
            segment=segment_id(place.segments[place.index - 1][0]),
            end=1,
        )
    if window.following is not None:
        after = place.make_url("batches", byte=window.following)
    elif place.index + 1 < len(place.segments) and window.resume is None:
        following = segment_id(place.segments[place.index + 1][0])
        after = make_url("partitions", place.partition_id, "batches", segment=following)
    return make_links(("← Earlier", before), ("Later →", after))


def _make_batch_row(
    place: Place, entry: Entry, states: TransactionStates | None
) -> Sequence[Child]:
    """Return the eight cells of a row about a batch, with the state of its transaction if
    ``states`` are known. A damaged range or an incomplete end has only cells for place, size and
    reason.
    """
    href = place.make_url("batch", byte=start_of(entry))
    where = f"{start_of(entry):,}", f"{end_of(entry) - start_of(entry):,}"
    if isinstance(entry, LostRange):
        is_tail = entry.kind == "tail"
        badge = make_badge("note", "incomplete end") if is_tail else make_badge("error", "damaged")
        said = f"offsets lost or at risk: {describe_missing(entry)}; {format_reason(entry.reason, 400)}"
        if is_tail:
            said = f"normal in an active segment: a broker removes it when it starts; {format_reason(entry.reason, 400)}"
        return (
            element("span", badge, " ", make_link("details", href)),
            *where,
            "",
            "",
            "",
            "",
            said,
        )
    first = entry.base_offset if entry.has_base_offset else None
    offsets = format_range(entry.last_offset if first is None else first, entry.last_offset)
    producer = f"{entry.producer_id}, {entry.producer_epoch}" if entry.producer_id >= 0 else ""
    return (
        make_link(offsets, href),
        *where,
        "" if entry.record_count is None else f"{entry.record_count:,}",
        format_short_time(entry.max_timestamp) if entry.max_timestamp >= 0 else "",
        codec_label(entry.codec) or f"unknown ({entry.codec})",
        producer,
        element("span", *_describe_transaction(entry, states), ", ".join(_describe_flags(entry))),
    )


def _describe_transaction(batch: Batch, states: TransactionStates | None) -> Sequence[Child]:
    """Return the state of the transaction of a batch, and whether read_committed hides it; ``[]`` for
    control batches, and if nothing is known or to be said.
    """
    if states is None or batch.is_control:
        return []
    said = states.describe(
        batch.producer_id, batch.last_offset, is_transactional=batch.is_transactional
    )
    return [*said, ", " if batch.is_transactional and said else None]


def _describe_flags(batch: Batch) -> Iterator[str]:
    """Yield what is special about a batch: that it is a control batch, transactional, a legacy
    message (with its version), or has no record left. Yield nothing for other batches.
    """
    if batch.is_control:
        yield "control batch"
    if batch.is_transactional:
        yield "transactional"
    if batch.record_count is None:
        yield f"message of version {batch.magic}"
    if batch.record_count == 0:
        yield "no record left"


def _read_batch(segment: Segment, position: int) -> Batch | None:
    """Return the batch at a byte without its records, also if its checksum is wrong; None if its
    header cannot be read. Raise FileNotFoundError if the segment is gone.
    """
    reader = SegmentReader(
        segment.path, policy=Policy.KAFKA, start=position, stop=position + 1, records=False
    )
    return next(iter(reader), None)


def show_batch(listing: Listing, query: Query, partition_id: str, view: RecordView) -> Page:
    """Return the page of the batch at ``byte``: its header with the documentation of the schema,
    and at most MAX_ENTRIES records from the number ``record`` on. For damaged bytes say what is
    lost. Raise UnknownIdError if there is no such partition or segment, or no batch is found at the
    byte; FileNotFoundError if the file is gone; ParameterError for an impossible number. If the
    format of ``view`` needs schemas that cannot be used, raise a ValueError, DirectoryError,
    OSError or ModuleNotFoundError.
    """
    place = Place(listing, partition_id, query)
    entry = place.find_entry(query.count("byte"))
    position = start_of(entry)
    steps = place.path((f"byte {position:,}", place.make_url("batch", byte=position)))
    batch = _read_batch(place.segment, position)
    hexdump = make_links(
        ("Bytes beside their fields", place.make_url("bytes", byte=position)),
        ("← Earlier batches", place.make_url("batches", before=position) if position else None),
        ("Batches from here on", place.make_url("batches", byte=position)),
    )
    body: list[Child] = [hexdump]
    if isinstance(entry, LostRange):
        body.insert(0, _make_damage(place, entry, batch))
    if batch is None:
        is_tail = isinstance(entry, LostRange) and entry.kind == "tail"
        what = "Incomplete batch" if is_tail else "Damaged bytes, no batch"
        return Page(f"{what} at byte {position:,}", body, steps)
    (values,) = to_rows(batch_rows([batch]))
    rows = [
        (
            element("span", column.name, id=f"field-{column.name}"),
            _format_value(column.name, values[column.name], batch),
            column.doc,
            _link_bytes(place, position, column.name, batch),
        )
        for column in BATCHES.columns
        if column.name in shown_columns()
    ]
    body.append(
        make_table(
            ["field", "value", "meaning", "bytes"],
            rows,
            kinds="kkwk",
            caption="Header",
            has_cards=True,
        )
    )
    records = read_batch_rows(place.partition, place.segment, position)
    begin = min(query.count("record"), records.num_rows)
    shown = view.decode_rows(records.slice(begin, MAX_ENTRIES))
    heading = f"Records ({records.num_rows:,})"
    body += [element("h2", heading, class_="lead"), *make_failure_paragraphs(shown)]
    if records.num_rows:
        body.append(
            make_records_table(place, shown, (begin + i for i in range(shown.rows.num_rows)))
        )
    following = begin + MAX_ENTRIES
    body.append(
        make_links(
            (
                "← Previous records",
                place.make_url("batch", byte=position, record=max(begin - MAX_ENTRIES, 0))
                if begin
                else None,
            ),
            (
                "Next records →",
                place.make_url("batch", byte=position, record=following)
                if following < records.num_rows
                else None,
            ),
        )
    )
    offsets = format_range(
        batch.last_offset if values["base_offset"] is None else values["base_offset"],
        batch.last_offset,
    )
    title = f"Batch with offsets {offsets}"
    if isinstance(entry, LostRange):
        title = f"Damaged batch, offsets {offsets} by its header"
    return Page(title, body, steps)


def _make_damage(place: Place, lost: LostRange, batch: Batch | None) -> Child:
    """Return the box about a range of bytes that is no valid batch: a warning for an incomplete
    end, else an error with the lost offsets and the reasons, those of the range and of ``batch``,
    which was read from it nevertheless (None: none could be). An error has a link to its finding.
    """
    if lost.kind == "tail":
        return make_notice(
            "warning",
            "An incomplete batch at the end of the active segment",
            element("p", format_reason(lost.reason)),
            element(
                "p",
                "That is normal while a broker writes, and after a crash: the broker removes these bytes when it starts.",
            ),
        )
    wrong = [] if batch is None else damage(batch)
    reasons = dict.fromkeys([lost.reason, *map(str, wrong)])
    headline = f"Bytes {lost.start:,} to {lost.end - 1:,} are no valid batch"
    if batch is not None and not batch.is_valid:
        headline = (
            f"Wrong checksum: the batch in bytes {lost.start:,} to {lost.end - 1:,} is damaged"
        )
    elif wrong:
        headline = f"Records cannot be read: bytes {lost.start:,} to {lost.end - 1:,}"
    return make_notice(
        "error",
        headline,
        element("p", f"Offsets lost or at risk: {describe_missing(lost)}. Consumers stop here."),
        *(element("p", format_reason(reason), class_="where") for reason in reasons),
        element("p", _describe_reading(batch)) if batch is not None else None,
        place.link_finding(lost.start),
    )


def _describe_reading(batch: Batch) -> str:
    """Return what the records on the page of a damaged batch are worth, and what salvage does with
    them.
    """
    said = "Header and records below were read in spite of the damage: any of their bytes may be wrong."
    if batch.is_valid:
        return said
    return f"{said} kafka-log salvage leaves these records out; with --keep-damaged it writes them with a new checksum."


def _format_value(name: str, value: Any, batch: Batch) -> str:
    """Return a value of a batch header as text, with the names of codecs and dates of times;
    ``null`` for None, ``-1 (none)`` for the time -1.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if name == "codec":
        return f"{value} ({codec_label(value) or 'unknown'})"
    if name.endswith("timestamp") or name == "delete_horizon":
        milliseconds = getattr(batch, name, value)
        return (
            f"{milliseconds} ({format_time(milliseconds)})" if milliseconds != -1 else "-1 (none)"
        )
    return str(value)


def _link_bytes(place: Place, position: int, column: str, batch: Batch) -> Child:
    """Return links to the bytes of a column of the header; None if it is made of no field."""
    links = [
        make_link(name, place.make_url("bytes", byte=position) + f"#bytes-{name}")
        for name in fields_of(column, batch)
    ]
    if not links:
        return None
    separated: list[Child] = [links[0]]
    for link in links[1:]:
        separated += [", ", link]
    return element("span", *separated)
