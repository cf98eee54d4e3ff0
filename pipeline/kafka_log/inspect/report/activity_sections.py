"""Sections about what producers and consumers did: transactions, groups, throughput, batches and codecs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich import filesize

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.report.charts import (
    Bar,
    Span,
    add_axis,
    draw_bars,
    draw_share,
    draw_strip,
    make_legend,
)
from kafka_log.inspect.report.contents import Contents, Row, period_column
from kafka_log.inspect.report.html import Child, element, make_table, shorten
from kafka_log.inspect.report.origin import Origin
from kafka_log.inspect.report.section import (
    COUNTED_DAMAGE,
    DAMAGED,
    MAX_ROWS,
    MAX_STRIPS,
    SERIES,
    PlaceUrl,
    Section,
    format_length,
    format_minute,
    format_number,
    format_short_time,
    format_step,
    format_text,
    link_text,
    make_badge,
    make_command_hint,
    make_more_paragraph,
    no_url,
    sum_column,
)
from kafka_log.inspect.statistics.columns import PERIODS
from kafka_log.text.json_values import to_rows
from kafka_log.text.values import format_time

MAX_BARS = 96
"""Maximum number of bars of a chart over time."""

_MINUTE, _HOUR, _DAY = 60_000, PERIODS["hour"], PERIODS["day"]
_STEPS = (
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 182, 364)),
)
"""Lengths of time that a bar may stand for."""


def build_transactions(contents: Contents, origin: Origin, find_url: PlaceUrl = no_url) -> Section:
    """Return the section about transactions: their numbers by state, how many hang, a timeline, and
    tables of open ones and of the longest ended ones, with links by ``find_url`` and the commands
    that list all. Return a section with one sentence if there is none, or if they are not known
    (``contents.transactions`` is None).
    """
    table = contents.transactions
    if table is None or not table.num_rows:
        said = "There is no transaction."
        if table is None:
            said = f"Transactions are not known: {shorten(contents.missing['transactions'])}."
        return Section("transactions", "Transactions", [element("p", said)])
    states = Counter(table.column("state").to_pylist())
    said = ", ".join(
        f"{states[state]:,} {state}" for state in ("open", "committed", "aborted") if states[state]
    )
    said = f"{count_noun(table.num_rows, 'transaction', spec=',')}: {said}. Hanging: {contents.hanging:,}."
    unknown = table.column("hanging").null_count
    if unknown:
        said += f" Of {unknown:,} it cannot be known whether they hang."
    if contents.has_replicas:
        said += " Each copy of a partition has rows of its own, but a transaction that hangs in several copies counts once as hanging."
    is_open = pc.equal(table.column("state"), "open")
    running = table.filter(is_open)
    ended = table.filter(pc.invert(is_open)).sort_by([("duration_ms", "descending")])
    open_rows = to_rows(running.slice(0, MAX_ROWS))
    ended_rows = to_rows(ended.slice(0, max(MAX_STRIPS - len(open_rows), 10)))
    body: list[Child] = [element("p", said)]
    body += _make_timeline(contents, open_rows, ended_rows)
    if open_rows:
        body.append(element("h3", "Open transactions"))
        body.append(_make_transaction_table(contents, open_rows, find_url))
        body.append(
            make_more_paragraph(
                states["open"],
                len(open_rows),
                "open transaction",
                origin.write_command("txn", "--state open --wide"),
            )
        )
    if ended_rows:
        body.append(element("h3", "The longest transactions that ended"))
        body.append(_make_transaction_table(contents, ended_rows, find_url))
        body.append(
            make_more_paragraph(
                table.num_rows - states["open"],
                len(ended_rows),
                "ended transaction",
                origin.write_command("txn", "--format csv"),
            )
        )
    return Section("transactions", "Transactions", body)


def _make_timeline(
    contents: Contents, open_rows: Sequence[Row], ended_rows: Sequence[Row]
) -> list[Child]:
    """Return the elements of a timeline with a strip for each transaction that has timestamps;
    ``[]`` if none has. At most MAX_STRIPS open ones come first, drawn up to the newest record of
    their partitions (``contents.stat``), then all of ``ended_rows``; hanging ones have their own
    color. Transactions with a long gap between them have axes of their own.
    """
    rows = [
        row
        for row in [*open_rows[:MAX_STRIPS], *ended_rows]
        if row["first_timestamp"] is not None and row["last_timestamp"] is not None
    ]
    if not rows:
        return []
    newest: dict[tuple[str, int], int] = {}
    for row in contents.stat:
        if row["last_timestamp"] is not None:
            key = row["topic"], row["partition"]
            newest[key] = max(row["last_timestamp"], newest.get(key, row["last_timestamp"]))
    spans = []
    for row in rows:
        begin, end = row["first_timestamp"], row["last_timestamp"]
        if row["state"] == "open":
            end = newest.get((row["topic"], row["partition"]), end)
        spans.append((begin, max(begin, end)))
    groups = split_at_gaps(spans)
    lanes: list[Element] = []
    for group in groups:
        low, high = min(spans[i][0] for i in group), max(spans[i][1] for i in group)
        lanes += [_make_lane(rows[i], spans[i], low, high) for i in group]
        labels = dict.fromkeys([format_time(low), format_time(high)])
        axis = element("div", *(element("span", label) for label in labels), class_="axis")
        lanes.append(element("div", axis, class_="lane"))
    legend = make_legend(
        [
            ("hanging", "hanging"),
            ("open", "open"),
            ("committed", "committed"),
            ("aborted", "aborted"),
        ]
    )
    total = 0 if contents.transactions is None else contents.transactions.num_rows
    said = "Open transactions are drawn up to the newest record of their partitions. Times of records are those of producers' clocks."
    if len(groups) > 1:
        said += f" There are {len(groups)} axes, because of long times without a transaction."
    if len(rows) < total:
        said += f" {len(rows):,} of {total:,} transactions are drawn: not those without a record here, nor shorter ones beyond {MAX_STRIPS} strips."
    return [
        element("h3", "Timeline"),
        element("p", said),
        legend,
        element("div", *lanes, class_="lanes"),
    ]


def split_at_gaps(spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the indexes of ``spans`` (pairs of begin and end) in groups, each for one axis. A
    group is split at its longest gap if that gap is longer than half of the axis. Indexes ascend,
    and groups are ordered by their first index. ``spans`` must not be empty.
    """
    todo, groups = [list(range(len(spans)))], []
    while todo:
        group = todo.pop()
        ordered = sorted(group, key=lambda i: spans[i])
        low, reached = spans[ordered[0]][0], spans[ordered[0]][1]
        longest, split = 0, 0
        for n, i in enumerate(ordered):
            begin, end = spans[i]
            if begin - reached > longest:
                longest, split = begin - reached, n
            reached = max(reached, end)
        if longest > (reached - low) / 2:
            todo += [sorted(ordered[:split]), sorted(ordered[split:])]
        else:
            groups.append(group)
    return sorted(groups)


def _make_lane(row: Row, span: tuple[int, int], low: int, high: int) -> Element:
    """Return the strip of one transaction, drawn over ``span`` of an axis from ``low`` to ``high``,
    and its name.
    """
    kind = "hanging" if row["hanging"] else row["state"]
    end = "the end of the log" if row["state"] == "open" else format_time(span[1])
    label = f"{kind}: {format_time(span[0])} to {end}"
    name = [
        make_badge(kind) if kind in ("hanging", "open") else None,
        f" {shorten(row['topic'], 80)}-{row['partition']}, producer {row['producer_id']}",
    ]
    strip = draw_strip([Span(*span, kind, label)], low, high, label)
    return element("div", element("span", *name, class_="name"), strip, class_="lane")


def _make_transaction_table(contents: Contents, rows: Sequence[Row], find_url: PlaceUrl) -> Element:
    """Return a table of transactions, which are all open or all ended, as the first of ``rows`` (at
    least one) is. Open ones have the number of offsets that they hide and the reason why they hang
    or not, ended ones their duration. Several copies of a partition add a column for the directory.
    """
    are_open = rows[0]["state"] == "open"
    copies = ["directory"] if contents.has_replicas else []
    size = "hidden offsets" if are_open else "duration"
    end = "last record (UTC)" if are_open else "ended (UTC)"
    headings = ["partition", "state", "begun (UTC)", end, "offsets", size, "producer", "epoch", "records", "transactional id", *(["reason"] if are_open else []), *copies]  # fmt: skip
    cells = []
    for row in rows:
        offsets = f"{format_number(row['first_offset'])} to {format_number(row['last_offset'])}"
        cells.append(
            (
                link_text(f"{shorten(row['topic'], 200)}-{row['partition']}", find_url(row, None)),
                make_badge("hanging") if row["hanging"] else row["state"],
                format_short_time(row["first_timestamp"]),
                format_short_time(row["last_timestamp"]),
                link_text(offsets.strip(), find_url(row, row["first_offset"])),
                format_number(row["hides"]) if are_open else format_length(row["duration_ms"]),
                f"{row['producer_id']}",
                f"{row['producer_epoch']}",
                format_number(row["records"]),
                format_text(row["transactional_id"]),
                *([format_text(row["reason"])] if are_open else []),
                *([shorten(row["directory"], 300)] if copies else []),
            )
        )
    kinds = "..kkknnnn.ww" if are_open else "..kkkknnn.w"
    return make_table(headings, cells, kinds=kinds, caption="Transactions", has_cards=True)


def build_groups(contents: Contents, origin: Origin, find_url: PlaceUrl = no_url) -> Section:
    """Return the section about consumer groups: groups and committed offsets, each at most MAX_ROWS
    with the largest lag first (unknown lag counts as 0), with links by ``find_url`` and the
    commands that list all. Return a section with one sentence if there is no group, or if groups
    are not known.
    """
    if contents.groups is None or contents.commits is None:
        why = contents.missing.get("groups", "they were not read")
        return Section(
            "groups", "Consumer groups", [element("p", f"Groups are not known: {shorten(why)}.")]
        )
    groups = sorted(contents.groups, key=lambda row: -(row["lag"] or 0))
    commits = sorted(contents.commits, key=lambda row: -(row["lag"] or 0))
    if not groups:
        return Section("groups", "Consumer groups", [element("p", "There is no group.")])
    most = max((row["lag"] or 0 for row in groups), default=0)
    listed = groups[:MAX_ROWS]
    rows = [
        (
            shorten(row["group"], 200),
            format_text(row["group_type"]),
            format_number(row["members"]),
            format_number(row["partitions"]),
            format_number(row["lag"]),
            draw_share(row["lag"] or 0, most),
            format_short_time(row["last_commit_time"]),
        )
        for row in listed
    ]
    headings = ["group", "type", "members", "partitions", "lag", "", "last commit (UTC)"]
    shown = commits[:MAX_ROWS]
    places = [
        (
            shorten(row["group"], 200),
            link_text(f"{shorten(row['topic'], 200)}-{row['partition']}", find_url(row, None)),
            link_text(
                format_number(row["committed_offset"]),
                find_url(row, row["committed_offset"]) if row["lag"] else None,
            ),
            format_number(row["log_end_offset"]),
            format_number(row["lag"]),
            format_short_time(row["commit_time"]),
        )
        for row in shown
    ]
    body: list[Child] = [
        element(
            "p",
            "Lag is the number of offsets between the commit and the end of the log on this disk. It is empty if the partition is not here.",
        ),
        make_table(headings, rows, kinds="..nnn.k", caption="Groups"),
        make_more_paragraph(
            len(groups),
            len(listed),
            "group",
            origin.write_command("groups", "--states --format csv"),
        ),
        element("h3", "Committed offsets, largest lag first"),
        make_table(
            ["group", "partition", "committed", "end of log", "lag", "commit time (UTC)"],
            places,
            kinds="..nnnk",
            caption="Committed offsets",
            has_cards=True,
        ),
        make_more_paragraph(
            len(commits),
            len(shown),
            "committed offset",
            origin.write_command("groups", "--format csv"),
        ),
    ]
    return Section("groups", f"Consumer groups ({len(groups):,})", body)


@dataclass(frozen=True, slots=True)
class _Traffic:
    """Counts over time, as arrays of one length.

    Attributes:
        times: Begin of the period, in milliseconds since 1970.
        records: Number of records.
        sizes: Bytes of batches.
        series: Index in ``codecs``.
        codecs: Names of the codecs.
    """

    times: Any
    records: Any
    sizes: Any
    series: Any
    codecs: Sequence[str]


def _read_traffic(contents: Contents) -> _Traffic | None:
    """Return times, records, bytes and codecs of the batch counts over time, without those that
    have no timestamp. Codecs beyond the first ``SERIES`` share the last series. Return None if
    nothing was counted, or no batch has a timestamp.
    """
    if contents.traffic is None:
        return None
    column = period_column(contents)
    table = contents.traffic.filter(pc.is_valid(contents.traffic.column(column)))
    if not table.num_rows:
        return None
    encoded = table.column("codec").combine_chunks().dictionary_encode()
    return _Traffic(
        table.column(column).cast(pa.int64()).to_numpy(),
        table.column("records").to_numpy(),
        table.column("batch_bytes").to_numpy(),
        np.minimum(encoded.indices.to_numpy(), SERIES - 1),
        encoded.dictionary.to_pylist(),
    )


def build_traffic(contents: Contents, origin: Origin) -> Section:
    """Return the section with charts of records, and of bytes by codec, over time, by the newest
    timestamp in batch headers. Batches with times far from the others are left out of the charts
    and counted in a sentence. Return a section with one sentence if no batch has a timestamp.
    """
    traffic = _read_traffic(contents)
    if traffic is None or contents.traffic is None:
        why = _describe_missing_traffic(contents) or "No batch has a timestamp."
        return Section("traffic", "Throughput", [element("p", why)])
    low, high = _choose_window(traffic.times, traffic.sizes)
    length = PERIODS[contents.period]
    step = _choose_step(high + length - low, length)
    start = low - low % step
    count = (high - start) // step + 1
    is_inside = (traffic.times >= low) & (traffic.times <= high)
    at = (traffic.times[is_inside] - start) // step
    records = np.zeros(count, np.int64)
    np.add.at(records, at, traffic.records[is_inside])
    sizes = np.zeros((count, SERIES), np.int64)
    np.add.at(sizes, (at, traffic.series[is_inside]), traffic.sizes[is_inside])
    begins = [format_minute(start + i * step) for i in range(count)]
    name = format_step(step)
    axis = [begins[0], begins[count // 2], begins[-1]] if count > 2 else begins
    most, largest = int(records.argmax()), int(sizes.sum(axis=1).argmax())
    of_copies = "one copy of each partition" if contents.has_replicas else "all partitions"
    body: list[Child] = [
        element(
            "p",
            f"Each bar is {name} (UTC), by the newest timestamp in the batch headers of {of_copies}. Control records are not counted.",
        ),
        element("h3", f"Records: at most {records[most]:,} in {name}, from {begins[most]}"),
        add_axis(
            draw_bars(
                [
                    Bar(f"{t}: {count_noun(n, 'record', spec=',')}", [n])
                    for t, n in zip(begins, records.tolist(), strict=True)
                ],
                f"Records over time, {begins[0]} to {begins[-1]}",
            ),
            axis,
        ),
        element(
            "h3",
            f"Bytes by codec: at most {filesize.decimal(int(sizes[largest].sum()))} in {name}, from {begins[largest]}",
        ),
        make_legend([(f"s{i}", codec) for i, codec in enumerate(traffic.codecs[:SERIES])]),
        add_axis(
            draw_bars(
                [
                    Bar(f"{t}: {count_noun(sum(n), 'byte', spec=',')}", n)
                    for t, n in zip(begins, sizes.tolist(), strict=True)
                ],
                f"Bytes over time, {begins[0]} to {begins[-1]}",
            ),
            axis,
        ),
    ]
    if sum(contents.traffic.column("invalid_batches").to_pylist()):
        body.append(element("p", COUNTED_DAMAGE))
    if not is_inside.all():
        others = traffic.times[~is_inside]
        ends = dict.fromkeys([format_time(int(others.min())), format_time(int(others.max()))])
        left = int(traffic.records[~is_inside].sum())
        body.append(
            element(
                "p",
                f"Not in the charts: {count_noun(left, 'record', spec=',')} with times far from the others: {' to '.join(ends)}.",
            )
        )
    command = origin.write_command(
        "stat", f"--by topic,{contents.period} --format csv", one_copy=True
    )
    body.append(make_command_hint("Numbers", command))
    return Section("traffic", "Throughput", body)


def _describe_missing_traffic(contents: Contents) -> str | None:
    """Return the sentence that says why ``traffic`` is not known, None if it is."""
    why = contents.missing.get("traffic")
    return (
        None
        if why is None
        else f"Counts of one copy of each partition are not known: {shorten(why)}."
    )


def _choose_window(times: Any, weights: Any) -> tuple[int, int]:
    """Return the first and last of ``times`` that a chart shows. Times far outside of the middle 98
    percent of ``weights`` are left out if a chart with them would be more than four times as long,
    plus four hours; else all are shown. ``times`` (in milliseconds) must not be empty.
    """
    order = np.argsort(times)
    ordered, reached = times[order], np.cumsum(weights[order] + 1)
    low = int(ordered[np.searchsorted(reached, reached[-1] * 0.01)])
    high = int(ordered[np.searchsorted(reached, reached[-1] * 0.99)])
    margin = max((high - low) // 2, _HOUR)
    first, last = int(ordered[0]), int(ordered[-1])
    bounds = max(low - margin, first), min(high + margin, last)  # a sum may have more than 64 bits
    inside = ordered[(ordered >= bounds[0]) & (ordered <= bounds[1])]
    everything = first, last
    narrow = int(inside[0]), int(inside[-1])
    is_spot = everything[1] - everything[0] > 4 * (narrow[1] - narrow[0] + _HOUR)
    return narrow if is_spot else everything


def _choose_step(span: int, period: int) -> int:
    """Return the milliseconds that a bar stands for: the shortest of _STEPS that is a multiple of
    ``period`` and with which MAX_BARS bars cover ``span``; for a longer span as many whole days as
    needed.
    """
    for step in _STEPS:
        if step % period == 0 and span <= step * (MAX_BARS - 1):
            return step
    return -(-span // (MAX_BARS - 1) // _DAY) * _DAY


def build_batches(contents: Contents, origin: Origin) -> Section:
    """Return the section with a table of codecs, most bytes first: batches, records, bytes, and
    smallest, mean and largest batch; compression ratios only if records were decoded
    (``contents.deep``). Return a section with one sentence if there is no batch.
    """
    if contents.traffic is None or not contents.traffic.num_rows:
        why = _describe_missing_traffic(contents) or "There is no batch."
        return Section("batches", "Batches and codecs", [element("p", why)])
    sums = ["batches", "records", "batch_bytes", "stored_bytes", "record_bytes", "invalid_batches"]
    wanted = [(name, "sum") for name in sums]
    wanted += [("smallest_batch", "min"), ("largest_batch", "max")]
    found = to_rows(contents.traffic.group_by("codec").aggregate(wanted))
    total = sum_column(found, "batch_bytes_sum")
    damaged = sum_column(found, "invalid_batches_sum") > 0
    rows = []
    for row in sorted(found, key=lambda row: -row["batch_bytes_sum"]):
        batches, size = row["batches_sum"], row["batch_bytes_sum"]
        ratio = (
            row["record_bytes_sum"] / row["stored_bytes_sum"] if row["stored_bytes_sum"] else None
        )
        rows.append(
            (
                row["codec"],
                f"{batches:,}",
                f"{row['records_sum']:,}",
                f"{size:,}",
                draw_share(size, total),
                format_number(row["smallest_batch_min"]),
                f"{size / batches:,.0f}" if batches else "",
                format_number(row["largest_batch_max"]),
                *([f"{row['invalid_batches_sum']:,}"] if damaged else []),
                *([f"{ratio:.2f}" if ratio is not None else ""] if contents.deep else []),
            )
        )
    headings = ["codec", "batches", "records", "bytes", "", "smallest batch", "mean batch", "largest batch"]  # fmt: skip
    if damaged:
        headings.append(DAMAGED)
    if contents.deep:
        headings.append("compression ratio")
    of_copies = " One copy of each partition is counted." if contents.has_replicas else ""
    of_damage = f" {COUNTED_DAMAGE}" if damaged else ""
    ratio_needs = "" if contents.deep else " Compression ratios need --deep."
    command = origin.write_command("stat", "--by topic,codec --format csv", one_copy=True)
    body: list[Child] = [
        element(
            "p",
            f"Sizes are those of batches as stored, with their headers, in bytes.{of_copies}{ratio_needs}{of_damage}",
        ),
        make_table(headings, rows, kinds="knnn.nnnnn", caption="Codecs"),
        make_command_hint("By topic", command),
    ]
    return Section("batches", "Batches and codecs", body)
