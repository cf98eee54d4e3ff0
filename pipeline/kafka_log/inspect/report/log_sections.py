"""Sections about the logs themselves: partitions, retention, leader epochs, versions and settings, and how the page was made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from codecgen.runtime.version import RELEASE
from kafka_log.inspect.report.charts import Span, draw_share, draw_strip
from kafka_log.inspect.report.contents import POLICY, Contents, Row
from kafka_log.inspect.report.html import Child, element, make_table, shorten
from kafka_log.inspect.report.origin import Origin
from kafka_log.inspect.report.section import (
    COUNTED_DAMAGE,
    DAMAGED,
    MAX_ROWS,
    MAX_STRIPS,
    MAX_TOPICS,
    SERIES,
    Section,
    format_counts,
    format_length,
    format_number,
    format_range,
    format_short_time,
    format_text,
    list_lines,
    make_more_paragraph,
    sum_column,
)
from kafka_log.inspect.report.verdict import get_level
from kafka_log.segment.arrow_text import utf8
from kafka_log.text.values import format_time

MAX_PARTITIONS = 300

_RETENTION = ("cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes", "segment.ms")
"""Settings of topics that limit their logs."""


def build_partitions(contents: Contents, origin: Origin) -> Section:
    """Return the section with a table of at most MAX_TOPICS topics, in the order of
    ``contents.topics`` (most bytes first), and one of at most MAX_PARTITIONS partitions, each with
    a line about the rows left out (:func:`make_more_paragraph`). The number of copies is shown only if a
    partition has several, the state only if one is not live.
    """
    most = max((row["bytes"] for row in contents.topics), default=0)
    listed = contents.topics[:MAX_TOPICS]
    has_states = any(row["state"] != "live" for row in contents.topics)
    copies = contents.has_replicas
    headings = ["topic", "partitions", "segments", "bytes", "", *(["copies", "bytes of the largest copies"] if copies else [])]  # fmt: skip
    rows: list[Sequence[Child]] = [
        (
            shorten(row["topic"], 200) + (f" ({row['state']})" if has_states else ""),
            f"{row['partitions']:,}",
            f"{row['segments']:,}",
            f"{row['bytes']:,}",
            draw_share(row["bytes"], most),
            *([f"{row['replicas']:,}", f"{row['largest_replica_bytes']:,}"] if copies else []),
        )
        for row in listed
    ]
    body: list[Child] = [
        make_table(headings, rows, kinds=".nnn.nn", caption="Topics"),
        make_more_paragraph(
            len(contents.topics), len(listed), "topic", origin.write_command("ls", "--by topic")
        ),
        element("h3", "Partitions"),
        *_make_partitions(contents, origin),
    ]
    return Section(
        "partitions", f"Topics and partitions ({len({p.key for p in contents.partitions}):,})", body
    )


def _count_findings(contents: Contents) -> list[Counter[str]]:
    """Return the numbers of errors, warnings and notes for each row of ``stat``. Findings about the
    directory of the row and files in it count, those about its partition in files beside the
    directory, and its open transactions.
    """
    places = [(row, Path(row["file"]).parent) for row in contents.findings]
    places += [(row, Path(row["directory"])) for row in contents.open_transactions]
    counts: dict[tuple[str, int, Path], Counter[str]] = defaultdict(Counter)
    for row, path in places:
        counts[row["topic"], row["partition"], path][get_level(row)] += 1

    def count(row: Row) -> Counter[str]:
        """Return the numbers for a row of ``stat``."""
        directory, place = Path(row["directory"]), (row["topic"], row["partition"])
        return counts[(*place, directory)] + counts[(*place, directory.parent)]

    return [count(row) for row in contents.stat]


def _make_partitions(contents: Contents, origin: Origin) -> list[Child]:
    """Return a sentence and the table of at most MAX_PARTITIONS rows of ``contents.stat``, in its
    order. If there are more, rows with errors or warnings are chosen before others, and those with
    more bytes before smaller ones. Each copy of a partition has a row.
    """
    stat, counts = contents.stat, _count_findings(contents)
    order = sorted(
        range(len(stat)),
        key=lambda i: (not (counts[i]["error"] + counts[i]["warning"]), -stat[i]["bytes"]),
    )
    chosen = sorted(order[:MAX_PARTITIONS])
    largest = max((row["bytes"] for row in stat), default=0)
    has_states = any(row["state"] != "live" for row in stat)
    copies = contents.has_replicas
    damaged = sum_column(stat, "invalid_batches") > 0
    headings = ["partition", *(["directory"] if copies else []), *(["state"] if has_states else []), "findings", "segments", "bytes", "", "batches", "records", *([DAMAGED] if damaged else []), "offsets", "oldest record (UTC)", "newest record (UTC)", "epochs", "codecs"]  # fmt: skip
    rows = [
        (
            f"{shorten(row['topic'], 200)}-{row['partition']}",
            *([shorten(row["directory"], 300)] if copies else []),
            *([row["state"]] if has_states else []),
            format_counts(counts[i]),
            f"{row['segments']:,}",
            f"{row['bytes']:,}",
            draw_share(row["bytes"], largest),
            f"{row['batches']:,}",
            f"{row['records']:,}",
            *([f"{row['invalid_batches']:,}"] if damaged else []),
            format_range(row["first_offset"], row["last_offset"]),
            format_short_time(row["first_timestamp"]),
            format_short_time(row["last_timestamp"]),
            format_range(row["first_epoch"], row["last_epoch"]),
            row["codecs"],
        )
        for i, row in ((i, stat[i]) for i in chosen)
    ]
    kinds = (
        f".{'w' if copies else ''}{'k' if has_states else ''}nnn.nn{'n' if damaged else ''}kkkkk"
    )
    said = (
        f"Counts are those of kafka-log stat --policy {POLICY}: batches after damage are counted."
    )
    if damaged:
        said += f" {COUNTED_DAMAGE}"
    if contents.has_replicas:
        said += " Several directories hold the same partition: each copy has its row."
    if len(chosen) < len(contents.stat):
        said += (
            " Partitions with errors or warnings are chosen before others, larger before smaller."
        )
    command = origin.write_command("stat", f"--policy {POLICY} --format csv")
    return [
        element("p", said),
        make_table(headings, rows, kinds=kinds, caption="Partitions"),
        make_more_paragraph(len(contents.stat), len(chosen), "row", command),
    ]


def build_retention(contents: Contents, origin: Origin) -> Section:
    """Return the section with the oldest and newest record time, the largest partition and the
    retention settings of each topic with live segments, most bytes first: at most MAX_TOPICS, with
    a line about others (:func:`make_more_paragraph`). It says so if the settings are not known, because the
    cluster metadata was not read.
    """
    spans: dict[str, list[Row]] = defaultdict(list)
    for row in contents.stat:
        if row["state"] == "live":
            spans[row["topic"]].append(row)
    settings: dict[str, dict[str, str]] = defaultdict(dict)
    for row in contents.cluster.get("configs", ()):
        if row["resource_type"] == "topic" and row["name"] in _RETENTION:
            settings[row["resource_name"]][row["name"]] = row["value"]
    ordered = sorted(spans, key=lambda topic: -sum_column(spans[topic], "bytes"))
    listed = ordered[:MAX_TOPICS]
    rows = []
    for topic in listed:
        firsts = [r["first_timestamp"] for r in spans[topic] if r["first_timestamp"] is not None]
        lasts = [r["last_timestamp"] for r in spans[topic] if r["last_timestamp"] is not None]
        rows.append(
            (
                shorten(topic, 200),
                format_short_time(min(firsts, default=None)),
                format_short_time(max(lasts, default=None)),
                format_length(max(lasts) - min(firsts)) if firsts and lasts else "",
                f"{max(row['bytes'] for row in spans[topic]):,}",
                shorten(", ".join(f"{n} = {value}" for n, value in settings[topic].items())),
            )
        )
    known = (
        "Settings are those of the topic in __cluster_metadata; others have the default of the brokers."
        if "configs" in contents.cluster
        else f"Settings are not known: {shorten(contents.missing.get('cluster', 'they were not read'))}."
    )
    headings = ["topic", "oldest record (UTC)", "newest record (UTC)", "span", "largest partition, bytes", "settings"]  # fmt: skip
    body: list[Child] = [
        element("p", f"Brokers delete whole segments, by their newest record. {known}"),
        make_table(headings, rows, kinds=".kkknw", caption="Retention"),
        make_more_paragraph(
            len(ordered),
            len(listed),
            "topic",
            origin.write_command("stat", "--by topic", one_copy=True),
        ),
    ]
    return Section("retention", "Retention", body)


def build_epochs(contents: Contents, origin: Origin) -> Section:
    """Return the section with a strip of leader epochs for each partition whose
    leader-epoch-checkpoint has several, in the order of the partitions: at most MAX_STRIPS, of the
    partitions with most epochs, with a line about others (:func:`make_more_paragraph`). Without such a
    partition it is only a sentence with the number of partitions that have epochs.
    """
    changed = {i: epochs for i, epochs in contents.epochs.items() if len(epochs) > 1}
    said = f"{len(contents.epochs):,} of {len(contents.partitions):,} partition directories have leader epochs in leader-epoch-checkpoint; in {len(changed):,} of them the leader changed."
    if not changed:
        return Section("epochs", "Leader epochs", [element("p", said)])
    order = sorted(changed, key=lambda i: (-len(changed[i]), i))[:MAX_STRIPS]
    ends: dict[str, int] = {}
    for row in contents.stat:
        if row["last_offset"] is not None:
            ends[row["directory"]] = max(row["last_offset"] + 1, ends.get(row["directory"], 0))
    lanes = []
    for i in sorted(order):
        partition, epochs = contents.partitions[i], changed[i]
        directory = utf8(str(partition.directory))
        low = epochs[0][1]
        high = max(ends.get(directory, low), low)
        stops = [min(start, high) for _, start in epochs[1:]] + [high]
        spans = [
            Span(start, stop, f"s{n % SERIES}", f"epoch {epoch}: offsets {start:,} to {stop - 1:,}")
            for n, ((epoch, start), stop) in enumerate(zip(epochs, stops, strict=True))
            if start < stop
        ][-MAX_ROWS:]
        numbers = [
            f"{epoch} from {start:,}{'' if start < stop else ' (no record)'}"
            for (epoch, start), stop in zip(epochs, stops, strict=True)
        ]
        text = ", ".join(numbers[-10:])
        if len(numbers) > 10:
            text = f"{len(numbers) - 10:,} earlier ones, {text}"
        name = f"{shorten(utf8(partition.topic), 80)}-{partition.partition}"
        if contents.has_replicas:
            name += f" in {shorten(utf8(str(partition.directory.parent)), 200)}"
        lanes.append(
            element(
                "div",
                element("span", name, class_="name"),
                draw_strip(spans, low, high, f"Leader epochs: {text}", min_width=2),
                element("span", f"epochs {text}", class_="detail"),
                class_="lane",
            )
        )
    body: list[Child] = [
        element(
            "p",
            f"{said} Each color is an epoch, over the offsets that its leader wrote. The columns first_epoch and last_epoch of stat are the lowest and highest epoch of a partition.",
        ),
        element("div", *lanes, class_="lanes"),
        make_more_paragraph(
            len(changed),
            len(order),
            "partition",
            origin.write_command("stat", "--format csv"),
        ),
    ]
    return Section("epochs", "Leader epochs", body)


def build_cluster(contents: Contents, origin: Origin) -> Section:
    """Return the section about log directories (cluster, node, clean shutdown, running broker) and
    the cluster metadata. If the metadata was read, it has a table of feature versions, brokers,
    topics and settings each, unless empty, with sensitive values hidden; else it says why not. Each
    table has at most MAX_ROWS rows, then a line with the number of rows left out and the command
    that prints all.
    """
    listed = contents.brokers[:MAX_ROWS]
    running = {True: "yes", False: "no", None: "unknown"}
    rows = [
        (
            shorten(utf8(str(one.path)), 300),
            format_text(one.cluster_id),
            format_number(one.node_id),
            format_text(one.directory_id),
            "yes" if one.was_clean_shutdown else "no",
            running[one.is_running],
        )
        for one in listed
    ]
    headings = [
        "directory",
        "cluster id",
        "node id",
        "directory id",
        "shut down cleanly",
        "a broker runs here",
    ]
    body: list[Child] = [
        make_table(headings, rows, caption="Log directories"),
        make_more_paragraph(
            len(contents.brokers), len(listed), "directory", origin.write_command("ls")
        ),
    ]
    if "cluster" in contents.missing:
        body.append(
            element(
                "p",
                f"Metadata of the cluster are not known: {shorten(contents.missing['cluster'])}.",
            )
        )
    tables: list[tuple[str, str, list[str], Callable[[Row], Sequence[Child]]]] = [
        (
            "features",
            "Feature versions",
            ["feature", "level"],
            lambda r: (format_text(r["feature"]), str(r["level"])),
        ),
        ("brokers", "Brokers", ["broker", "rack", "fenced", "listeners"], _make_broker_row),
        (
            "topics",
            "Topics in the metadata",
            ["topic", "partitions", "replicas", "without a leader", "under-replicated"],
            _make_topic_row,
        ),
        ("configs", "Settings", ["of", "name", "setting", "value"], _make_config_row),
    ]
    for kind, heading, names, convert in tables:
        found = contents.cluster.get(kind)
        if not found:
            continue
        if kind == "topics":
            found = sorted(found, key=lambda row: (-row["no_leader"], -row["under_replicated"]))
        shown = found[:MAX_ROWS]
        body.append(element("h3", heading))
        body.append(make_table(names, map(convert, shown), caption=heading))
        body.append(
            make_more_paragraph(
                len(found), len(shown), "row", origin.write_command("metadata", f"--what {kind}")
            )
        )
    if contents.cluster.get("configs"):
        body.append(element("p", "Values of sensitive settings are hidden."))
    return Section("cluster", "Versions and settings", body)


def _make_broker_row(row: Row) -> Sequence[Child]:
    """Return the cells of a broker for the table of the cluster: id, rack, whether it is fenced,
    and its listeners, shortened.
    """
    listeners = ", ".join(row["listeners"])
    return (
        str(row["broker_id"]),
        format_text(row["rack"]),
        "yes" if row["is_fenced"] else "no",
        shorten(listeners, 300),
    )


def _make_topic_row(row: Row) -> Sequence[Child]:
    """Return the cells of a topic in the cluster metadata: name, and numbers of partitions,
    replicas, partitions without a leader and under-replicated ones.
    """
    numbers = (
        f"{row[name]:,}" for name in ("partitions", "replicas", "no_leader", "under_replicated")
    )
    return shorten(row["topic"], 200), *numbers


def _make_config_row(row: Row) -> Sequence[Child]:
    """Return the cells of a setting."""
    return tuple(
        format_text(row[name]) for name in ("resource_type", "resource_name", "name", "value")
    )


def build_made(contents: Contents, origin: Origin) -> Section:
    """Return the section about how the page was made: when the logs were read, the command line,
    and, if there are any, the lists of what could not be read and of remarks.
    """
    body: list[Child] = [
        element(
            "p",
            f"kafka-log {RELEASE} read the logs from {format_time(origin.begun_ms)} to {format_time(origin.ended_ms)}."
            " If a broker wrote meanwhile, sections may differ by what it wrote. No file was changed.",
        ),
        element(
            "pre", element("code", shorten(origin.write_own_command(), 2000)), class_="command"
        ),
        element(
            "p",
            "Lists are limited: where one is, a line below it says how many rows are left out, and which command prints all. The page has no script and loads nothing.",
        ),
    ]
    if contents.unread:
        body.append(list_lines("Not read", contents.unread, origin))
    if contents.remarks:
        body.append(list_lines("Remarks", contents.remarks, origin))
    return Section("made", "How this page was made", body)
