"""Text of the overview."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Sequence

import pyarrow as pa
from rich import filesize

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.listing import append_total, topic_table
from kafka_log.inspect.overview.quick_check import QuickCheck
from kafka_log.logs.clusters import ClusterIds
from kafka_log.logs.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    INTERNAL_TOPICS,
    TRANSACTION_STATE,
)
from kafka_log.logs.partition_filters import is_topic_pattern
from kafka_log.logs.partitions import Partition
from kafka_log.logs.replicas import find_duplicate
from kafka_log.read.schemas.sources import SCHEMAS_TOPIC
from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.text_table import format_table
from kafka_log.text.values import format_time

MAX_TOPICS = 5
"""Number of topics that are listed."""
MAX_PROBLEMS = 10
"""Number of problems that are listed."""

_NOT_CHECKED = "Not checked: checksums, records, batches between both ends, indexes and checkpoints. The times are those of the headers that were read."


def format_overview(
    partitions: Sequence[Partition], found: QuickCheck, paths: Sequence[str], width: int | None
) -> str:
    """Return the overview as text that ends with a newline: totals, the five largest topics if
    there are several, the quick check with at most ten problems, and commands for the same paths.
    Lines are wrapped at ``width`` (None: not), except commands.
    """
    topics = topic_table(partitions)
    parts = [
        _format_totals(partitions, found),
        _format_topics(topics, width),
        _format_check(partitions, found, width),
        "Next:\n" + "\n".join(f"  {line}" for line in suggest_commands(partitions, found, paths)),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _format_totals(partitions: Sequence[Partition], found: QuickCheck) -> str:
    """Return the lines with numbers of topics, partitions, segments and bytes; that of partition
    directories only if some partition has several, first and last time only if they are known.
    """
    names = {partition.topic for partition in partitions}
    internal = len(names & set(INTERNAL_TOPICS))
    keys = {partition.key for partition in partitions}
    size = sum(partition.size for partition in partitions)
    rows = [("topics", f"{len(names):,}" + (f" ({internal} internal)" if internal else ""))]
    rows.append(("partitions", f"{len(keys):,}"))
    of_all = ""
    if len(partitions) != len(keys):
        rows.append(("replicas", f"{len(partitions):,} partition directories"))
        of_all = " in all replicas"
    rows.append(("segments", f"{sum(len(p.segments) for p in partitions):,}{of_all}"))
    exact = f"{size:,} ({filesize.decimal(size)})" if size >= 1000 else f"{size}"
    rows.append(("bytes", f"{exact}{of_all}"))
    if found.first_ms is not None and found.last_ms is not None:
        rows.append(("first time", format_time(found.first_ms)))
        rows.append(("last time", format_time(found.last_ms)))
    return "\n".join(f"{name:<12}{value}" for name, value in rows)


def _format_topics(topics: pa.Table, width: int | None) -> str:
    """Return the table of the largest topics, with a total of all, and how many are left out.
    Return ``""`` for a table of fewer than two rows.
    """
    if topics.num_rows < 2:
        return ""
    every = append_total(topics)
    shown = pa.concat_tables(
        [every.slice(0, min(MAX_TOPICS, topics.num_rows)), every.slice(topics.num_rows)]
    )
    names = ["topic", "partitions", "segments", "bytes"]
    if topics.column("replicas") != topics.column("partitions"):
        names.insert(2, "replicas")
    if set(topics.column("state").to_pylist()) != {"live"}:
        names.append("state")
    text = format_table(shown.select(names), width)
    left = topics.num_rows - MAX_TOPICS
    return (
        text if left <= 0 else f"{text.rstrip()}\nand {count_noun(left, 'other topic', spec=',')}"
    )


def _format_check(partitions: Sequence[Partition], found: QuickCheck, width: int | None) -> str:
    """Return lines about the quick check: how many partitions were checked, at most MAX_PROBLEMS
    problems and how many more, how many partitions were left out for lack of time, and what a quick
    check never checks. ``width`` is that of the lines; None does not wrap.
    """
    lines = []
    directories = count_noun(
        len(partitions), "partition directory", "partition directories", spec=","
    )
    some = f"{len(partitions) - found.skipped:,} of " if found.skipped else ""
    every = "all " if not found.skipped and len(partitions) > 1 else some
    said = f"Quick check of the first and last batch headers of {every}{directories}: "
    if not found.problems:
        lines.append(said + "no problem.")
    else:
        lines.append(said + f"{count_noun(len(found.problems), 'problem', spec=',')}.")
        lines += [f"- {escape_unprintable(line)}" for line in found.problems[:MAX_PROBLEMS]]
        if (left := len(found.problems) - MAX_PROBLEMS) > 0:
            lines.append(f"- {left:,} more")
    if found.skipped:
        lines.append(
            f"Left out, because the time was over, the end of a log is too far from its last index entry, or retention deleted it meanwhile: {count_noun(found.skipped, 'partition directory', 'partition directories', spec=',')}."
        )
    lines.append(_NOT_CHECKED)
    if width is None:
        return "\n".join(lines)
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="  " if line[0] == "-" else "")
        for line in lines
    )


def suggest_commands(
    partitions: Sequence[Partition], found: QuickCheck, paths: Sequence[str]
) -> list[str]:
    """Return commands for the same paths, ``kafka-log help`` last. They are ``ls`` and ``check``
    (``check`` first if there are problems), ``dump`` of the last records of the largest live
    partition that is not internal and whose topic needs no quotes, and one command for each of four
    internal topics that exists; for logs of several clusters, only commands that read all of them.
    """
    given = " ".join(map(shlex.quote, paths))
    replicas = " --replicas newest" if find_duplicate(partitions) is not None else ""
    topics = {partition.topic for partition in partitions}
    ids = ClusterIds()
    is_mixed = len({ids.get(partition) for partition in partitions} - {None}) > 1
    commands = (
        [f"kafka-log ls {given} --by topic"] if len(topics) > 1 else [f"kafka-log ls {given}"]
    )
    commands.insert(0 if found.problems else 1, f"kafka-log check {given}")
    own = [
        p
        for p in partitions
        if p.state == "live"
        and p.size
        and p.topic not in (*INTERNAL_TOPICS, SCHEMAS_TOPIC)
        and _is_plain(p.topic)
    ]
    if own:
        largest = max(own, key=lambda p: p.size)
        one = f"{given} --topic={largest.topic} --partition {largest.partition}"
        if is_mixed and replicas:
            one, replicas = shlex.quote(os.fspath(largest.directory)), ""
        commands.append(f"kafka-log dump {one} --last 5{replicas}")
    for topic, command in (
        (CONSUMER_OFFSETS, f"kafka-log groups {given}"),
        (TRANSACTION_STATE, f"kafka-log txn {given} --state open"),
        (SCHEMAS_TOPIC, f"kafka-log schemas {given}{replicas}"),
        (CLUSTER_METADATA, f"kafka-log metadata {given} --what brokers"),
    ):
        if topic in topics and (not is_mixed or topic == TRANSACTION_STATE):
            commands.append(command)  # the others answer for one cluster
    return [*map(escape_unprintable, commands), "kafka-log help"]


def _is_plain(topic: str) -> bool:
    """Return whether a topic can be written on a command line as it is."""
    return shlex.quote(topic) == topic and "," not in topic and not is_topic_pattern(topic)
