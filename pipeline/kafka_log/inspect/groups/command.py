"""``kafka-log groups``: Show committed offsets of consumer groups and their lag, from __consumer_offsets, now or at an earlier time."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from kafka_log.cli.common import PROBLEMS, add_salvage_policy
from kafka_log.cli.damage import report_damage_after, run_with_damage
from kafka_log.cli.ranges import argument_type, parse_plain_offset_range
from kafka_log.cli.selection import CHOICE
from kafka_log.cli.tables import add_table_arguments, show
from kafka_log.logs.partition_filters import find_unmatched_topics
from kafka_log.logs.partitions import make_missing_topic_error, make_not_found_error
from kafka_log.segment.model import Policy
from kafka_log.segment.times import TIMES, milliseconds

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "show committed offsets of consumer groups and their lag"
EXAMPLES = """\
  kafka-log groups samples/kafka-4.x
  kafka-log groups samples/kafka-4.x --states --as-of now
  kafka-log groups samples/kafka-4.x --topic codecs --partition 0
"""

_COMMITS = (
    "group",
    "topic",
    "partition",
    "committed_offset",
    "log_end_offset",
    "lag",
    "commit_time",
)
_STATES = ("group", "group_type", "epoch", "members", "partitions", "lag", "last_commit_time")
_SHORT = {"committed_offset": "committed", "log_end_offset": "log_end"}
"""Columns of text output, and shorter headings for some."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, selection options, ``--format``, ``--group``, ``--as-of``, ``--states`` and
    ``--policy`` to the parser of ``kafka-log groups``.
    """
    helps = {
        "offsets": "committed offsets from A (included) to B (excluded); A: and :B are open",
        "time": f"commits made from time A (included) to B (excluded); each is {TIMES}",
    }
    output = add_table_arguments(
        command, (*CHOICE, *helps), helps, types={"offsets": parse_plain_offset_range}
    )
    command.add_argument(
        "--group",
        action="append",
        metavar="NAME",
        help="only this group; may be repeated (default: all)",
    )
    command.add_argument(
        "--as-of",
        type=argument_type(milliseconds),
        metavar="TIME",
        help="state at this time, written as for --time (default: the end of the log)",
    )
    output.add_argument(
        "--states",
        action="store_true",
        help="one row per group (default: one per committed offset)",
    )
    add_salvage_policy(command, "__consumer_offsets, so that newer commits may be missing")


def run_command(options: argparse.Namespace) -> int:
    """Print committed offsets (``--states``: groups). Return 1 if a directory cannot be read or
    __consumer_offsets is damaged or lost records at its end, else 0; after damage, only ``--policy salvage`` prints what is
    readable. Raise NotFoundError if a group or topic of the options, or __consumer_offsets, does
    not exist; DirectoryError if a path holds no log, or copies of a partition of __consumer_offsets
    state different topic ids.
    """
    damage: list[str] = []

    def table(log: LogDirectory, salvage: bool) -> pa.Table:
        """Return the table to print."""
        found = log.groups(
            names=options.group,
            at=options.as_of,
            offsets=options.offsets,
            timestamps=options.time,
            states=options.states,
            salvage=salvage,
            on_damage=damage.append,
        )
        _refuse_unknown(options, found, salvage)
        if options.format != "text":
            return found
        shown = found.select(list(_STATES if options.states else _COMMITS))
        return shown.rename_columns([_SHORT.get(name, name) for name in shown.column_names])

    def ask(salvage: bool) -> int:
        """Print the table and return the exit code."""
        empty = "no groups" if options.states else "no committed offsets"
        filtered = [
            f"--{name.replace('_', '-')}"
            for name in ("group", "as_of", *CHOICE)
            if getattr(options, name) is not None
        ]
        return show(
            options, lambda log: table(log, salvage), empty, filtered=filtered, damage=damage
        )

    salvage = (lambda: ask(True)) if options.policy == Policy.SALVAGE else None
    with report_damage_after(damage):
        code = run_with_damage(lambda: ask(False), salvage)
    return PROBLEMS if damage else code


def _refuse_unknown(options: argparse.Namespace, found: pa.Table, salvage: bool) -> None:
    """Raise NotFoundError for a group of ``--group`` or a topic of ``--topic`` that does not exist.
    A group exists if it is in ``found``, or is there at the end of the log; a topic if it is in
    ``found``, has commits then or has a partition directory. ``salvage`` skips damage in this
    second reading, which raises CodecError otherwise. Directories that cannot be read are skipped:
    the reading of ``found`` has reported those of __consumer_offsets.
    """
    from kafka_log.log_directory import LogDirectory

    everything = LogDirectory(options.paths)
    how: dict[str, Any] = {"salvage": salvage, "on_damage": lambda line: None}
    if set(options.group or ()) - set(found.column("group").to_pylist()):
        groups = set(everything.groups(states=True, **how).column("group").to_pylist())
        if missing := set(options.group) - groups:
            raise make_not_found_error("group", missing, groups)
    if find_unmatched_topics(options.topic or (), _committed_topics(found)):
        committed = everything.groups(**how).column("topic").to_pylist()
        topics = {*committed, *(partition.topic for partition in everything.all_partitions)}
        if missing_topics := find_unmatched_topics(options.topic, topics):
            raise make_missing_topic_error(missing_topics, topics)


def _committed_topics(found: pa.Table) -> set[str]:
    """Return the topics of a table of commits; an empty set for a table of groups."""
    return set(found.column("topic").to_pylist()) if "topic" in found.column_names else set()
