"""Sections about damage: findings, and maps of damaged segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.catalog import CATALOG
from kafka_log.inspect.check.text import describe_place
from kafka_log.inspect.report.charts import Span, add_axis, draw_strip, make_legend
from kafka_log.inspect.report.contents import Contents, Row, merge_copies
from kafka_log.inspect.report.html import Child, element, make_table, shorten
from kafka_log.inspect.report.missing_ends import LostRange, describe_missing_size
from kafka_log.inspect.report.origin import Origin
from kafka_log.inspect.report.section import (
    Section,
    format_range,
    format_reason,
    format_sum,
    make_badge,
    make_more_paragraph,
)
from kafka_log.inspect.report.segment_maps import SegmentMap
from kafka_log.inspect.report.verdict import FindingGroup, get_level, group_findings

MAX_OF_KIND: Mapping[str, int] = {"error": 25, "warning": 15, "note": 5}
"""Maximum number of findings of one kind that are listed, by severity."""
MAX_RANGES = 20
"""Maximum number of lost ranges that are listed for a segment."""


def build_findings(contents: Contents, origin: Origin) -> Section:
    """Return the section about findings: a table with a row per kind, by severity, with hanging
    transactions after the errors, other open ones after the notes, and then an article on each kind with its
    places. Return a section with one sentence if there is neither.
    """
    groups = group_findings(contents.findings)
    transactions = merge_copies(contents.open_transactions)
    if not groups and not transactions:
        return Section("findings", "Findings", [element("p", "There is no finding.")])
    rows = [
        (
            make_badge(group.severity),
            element("a", group.title, href=f"#{group.anchor}"),
            group.code,
            f"{len(group.rows):,}",
            format_sum(row["records"] for row in group.rows),
        )
        for group in groups
    ]
    errors = sum(group.severity == "error" for group in groups)
    for level, title, at in (
        ("note", "Open transaction", len(rows)),
        ("error", "Hanging transaction", errors),
    ):
        found = [row for row in transactions if get_level(row) == level]
        if found:
            hidden = count_noun(count_hidden_offsets(found), "offset", spec=",")
            link = element("a", title, href="#transactions")
            rows.insert(at, (make_badge(level), link, "txn", f"{len(found):,}", f"{hidden} hidden"))
    headings = [
        "severity",
        "finding",
        "id or command",
        "places",
        "records lost or at risk, at most",
    ]
    body: list[Child] = [
        make_table(headings, rows, kinds="kwknn", caption="Findings by kind", has_cards=True),
        *(_make_group(group, origin) for group in groups),
    ]
    return Section("findings", f"Findings ({len(contents.findings) + len(transactions):,})", body)


def count_hidden_offsets(transactions: Sequence[Row]) -> int:
    """Return how many offsets open transactions hide: those of a partition count once."""
    hidden: dict[tuple[str, int], int] = {}
    for row in transactions:
        key = row["topic"], row["partition"]
        hidden[key] = max(row["hides"] or 0, hidden.get(key, 0))
    return sum(hidden.values())


def _make_group(group: FindingGroup, origin: Origin) -> Element:
    """Return the article on the findings of one kind. It has what the kind means in general, the
    remedy (at each place if they differ), the first places (at most ``MAX_OF_KIND`` of the
    severity), and how many more there are.
    """
    kind = CATALOG[group.code]
    most = MAX_OF_KIND[group.severity]
    listed = group.rows[:most]
    remedies = list(dict.fromkeys(row["remedy"] for row in group.rows))
    places = []
    for row in listed:
        name = None if row["topic"] is None else f"{row['topic']}-{row['partition']}"
        parts: list[Child] = [
            element("strong", shorten(name, 200)) if name is not None else None,
            element("span", shorten(describe_place(row)), class_="where"),
            element("span", shorten(row["meaning"])),
        ]
        if len(remedies) > 1:
            parts.append(element("span", element("strong", "Remedy: "), shorten(row["remedy"])))
        places.append(element("li", *parts))
    remedy = (
        element("p", element("strong", "Remedy: "), shorten(remedies[0], 1000))
        if len(remedies) == 1
        else None
    )
    return element(
        "article",
        element("h3", make_badge(group.severity), f" {group.title} ", element("code", group.code)),
        element("p", kind.explanation),
        remedy,
        element("ul", *places, class_="places"),
        make_more_paragraph(
            len(group.rows), len(listed), "place", origin.write_command("check", "--format csv")
        ),
        id=group.anchor,
    )


def build_maps(contents: Contents, origin: Origin) -> Section:
    """Return the section with a map of each damaged segment that ``contents.maps`` has, a legend,
    and how many more segments are damaged. Return a section with one sentence if none is damaged.
    """
    heading = f"Damaged segments ({contents.damaged_segments:,})"
    if not contents.damaged_segments:
        none = "No segment has an error or a warning at a position in the file, or is too short."
        return Section("segments", heading, [element("p", none)])
    body: list[Child] = [
        element(
            "p",
            "Each strip is a file, from its first byte to its last. Small ranges are drawn wider than they are, and missing batches as a line.",
        ),
        make_legend(
            [
                ("good", "valid batches"),
                ("lost", "no valid batch: consumers stop here"),
                ("refused", "valid checksum, but records that cannot be decoded"),
                ("tail", "incomplete end, as a crash leaves it"),
                ("missing", "place of missing batches"),
                ("mark", "position of a finding"),
            ]
        ),
        *(_make_map(one, origin) for one in contents.maps),
        make_more_paragraph(
            contents.damaged_segments,
            len(contents.maps),
            "damaged segment",
            origin.write_command("check", "--format csv"),
        ),
    ]
    return Section("segments", heading, body)


def _make_map(segment_map: SegmentMap, origin: Origin) -> Element:
    """Return the article on one damaged segment. It has the name, a strip of the file with lost
    ranges and places of findings, and a table of the first MAX_RANGES lost ranges, or without
    ranges a sentence. If the file cannot be read, it has only name and error.
    """
    name = element("h3", f"{shorten(segment_map.topic, 200)}-{segment_map.partition}")
    path = element("p", shorten(segment_map.path), class_="where")
    if segment_map.error is not None:
        return element(
            "article", name, path, element("p", f"The file cannot be read: {segment_map.error}.")
        )
    lost_bytes = sum(lost.end - lost.start for lost in segment_map.lost if lost.kind == "lost")
    said = f"{count_noun(segment_map.size, 'byte', spec=',')}; {count_noun(segment_map.batches, 'valid batch', 'valid batches', spec=',')} with {_describe_offsets(segment_map)}."
    if lost_bytes:
        said += f" {count_noun(lost_bytes, 'byte is', 'bytes are', spec=',')} no valid batch."
    if any(lost.kind == "missing" for lost in segment_map.lost):
        said += " Batches, or their last bytes, are missing in the file."
    spans = [Span(0, segment_map.size, "good", f"{count_noun(segment_map.size, 'byte', spec=',')}")]
    spans += [
        Span(
            lost.start,
            lost.end,
            lost.kind,
            f"{_describe_bytes(lost)}: {format_reason(lost.reason, 200)}",
        )
        for lost in segment_map.lost[: 10 * MAX_RANGES]
    ]
    missing = {lost.start for lost in segment_map.lost if lost.kind == "missing"}
    spans += [
        Span(at, at, "mark", f"finding at byte {at:,}")
        for at in segment_map.marks[: 10 * MAX_RANGES]
        if at not in missing
    ]
    strip = draw_strip(
        spans, 0, segment_map.size, f"Map of {count_noun(segment_map.size, 'byte')}: {said}"
    )
    chart = add_axis(strip, ["byte 0", f"{segment_map.size // 2:,}", f"{segment_map.size:,}"])
    rows = [
        (
            _describe_bytes(lost),
            describe_missing_size(lost) if lost.kind == "missing" else f"{lost.end - lost.start:,}",
            describe_missing(lost),
            format_reason(lost.reason),
        )
        for lost in segment_map.lost[:MAX_RANGES]
    ]
    headings = ["place", "bytes", "offsets lost or at risk", "reason"]
    table = (
        make_table(headings, rows, kinds="knkw", caption="Lost ranges", has_cards=True)
        if rows
        else None
    )
    if not rows:
        said += " Every batch is valid by itself; the findings say what contradicts what."
    more = make_more_paragraph(
        len(segment_map.lost), len(rows), "range", origin.write_command("stat", "--policy salvage")
    )
    return element("article", name, path, element("p", said), chart, table, more)


def _describe_offsets(segment_map: SegmentMap) -> str:
    """Return the ranges of offsets of valid batches as text, the first MAX_RANGES and the number of the others; ``no offsets`` without any."""
    if not segment_map.offsets:
        return "no offsets"
    said = ", ".join(format_range(*found) for found in segment_map.offsets[:MAX_RANGES])
    left = len(segment_map.offsets) - MAX_RANGES
    more = f" and {count_noun(left, 'other range', spec=',')}" if left > 0 else ""
    return f"offsets {said}{more}"


def _describe_bytes(lost: LostRange) -> str:
    """Return where a lost range lies: ``bytes N to M``, or ``at byte N`` if batches are missing there."""
    if lost.kind == "missing":
        return f"at byte {lost.start:,}"
    return f"bytes {lost.start:,} to {lost.end - 1:,}"


def describe_missing(lost: LostRange) -> str:
    """Return the offsets that a range has lost as words for a table cell: ``N`` or ``N to M``. If
    one end is unknown, it is ``from N on, if any`` or ``up to M``; if both are, ``none, or
    unknown``. For a refused batch it says that its records cannot be decoded. For missing bytes
    without offsets it says that the batch before them has these.
    """
    first, last = lost.first_offset, lost.last_offset
    if lost.kind == "refused":
        return f"records of offsets {first} to {last} cannot be decoded"
    if first is None and last is None:
        return "those of the incomplete batch" if lost.kind == "missing" else "none, or unknown"
    if last is None:
        return f"from {first} on, if any"
    if first is None:
        return f"up to {last}"
    return f"{first}" if first == last else f"{first} to {last}"
