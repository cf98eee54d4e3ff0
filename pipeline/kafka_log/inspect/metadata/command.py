"""``kafka-log metadata``: Show topics, partitions, configs, brokers and more as of an offset of the metadata log (KRaft), or what changed between two offsets."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafka_log.cli.common import COULD_NOT_RUN, PROBLEMS, add_salvage_policy, add_show_secrets
from kafka_log.cli.damage import report_damage_after
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import MAX_INT64, number_type
from kafka_log.cli.selection import CHOICE
from kafka_log.cli.tables import add_table_arguments, show
from kafka_log.logs.partition_filters import find_unmatched_topics
from kafka_log.logs.partitions import make_missing_topic_error
from kafka_log.segment.model import Policy

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "show topics, partitions, configs and brokers from the metadata log"
EXAMPLES = """\
  kafka-log metadata samples/kafka-4.x
  kafka-log metadata samples/kafka-4.x --what partitions --topic codecs
  kafka-log metadata samples/kafka-4.x --what configs --changes :
"""

KINDS = (
    *("topics", "partitions", "configs", "brokers", "controllers", "features", "quotas", "acls"),
    *("scram", "tokens", "producer_ids"),
)

_OF_TOPICS = ("topics", "partitions")
"""Kinds whose rows all belong to a topic."""

_IN_TEXT: Mapping[str, tuple[str, ...]] = {
    "partitions": ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "eligible_leader_replicas"),
    "brokers": ("broker_id", "broker_epoch", "rack", "is_fenced", "is_in_controlled_shutdown", "listeners"),
}  # fmt: skip
"""Columns of text output, for kinds that have more."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, ``--topic``, ``--partition``, ``--format``, ``--what``, ``--as-of`` or
    ``--changes``, ``--policy`` and ``--show-secrets`` to the parser of ``kafka-log metadata``.
    """
    output = add_table_arguments(command, CHOICE)
    command.add_argument(
        "--what",
        choices=KINDS,
        default="topics",
        metavar="KIND",
        help=f"kind of metadata: {', '.join(KINDS)} (default %(default)s)",
    )
    when = command.add_mutually_exclusive_group()
    when.add_argument(
        "--as-of",
        type=number_type("an offset", -MAX_INT64, MAX_INT64),
        metavar="OFFSET",
        help="show the state after the record at this offset, -1 for the state before the first record (default: after the last record)",
    )
    when.add_argument(
        "--changes",
        type=_offsets,
        metavar="FROM:TO",
        help="show what changed between the states after the records at two offsets; FROM: ends and :TO begins with the log",
    )
    add_salvage_policy(
        command, "the metadata log, so that changes of lost or unknown records are missing"
    )
    add_show_secrets(output)


def run_command(options: argparse.Namespace) -> int:
    """Print the state of a kind of metadata, or its changes. Return 1 if records, snapshots or
    replicas were left out (the reasons are printed), 2 if a filter does not apply to the kind, else
    0. Raise NotFoundError if there is no metadata log, no such offset, or (without
    ``--changes``) no such topic; CodecError or DirectoryError if no state is readable.
    """
    if (reason := _find_useless_filter(options)) is not None:
        print_message(reason)
        return COULD_NOT_RUN
    damage: list[str] = []

    def table(log: LogDirectory) -> pa.Table:
        """Return the table to print; note damage."""
        how: dict[str, Any] = {
            "salvage": options.policy == Policy.SALVAGE,
            "on_damage": damage.append,
            "show_secrets": options.show_secrets,
        }
        if options.changes is not None:
            first, last = options.changes
            return changes(log.metadata_changes(first, last, options.what, **how))
        found = log.metadata(options.what, as_of=options.as_of, **how)
        if options.topic:
            name = "topic" if options.what in _OF_TOPICS else "resource_name"
            _refuse_unknown(options, set(found.column(name).to_pylist()))
        shown = list(_IN_TEXT.get(options.what, found.column_names))
        return found.select(shown) if options.format == "text" else found

    def changes(found: pa.Table) -> pa.Table:
        """Return changes in the form of the output format."""
        if options.format != "text":
            return found
        from kafka_log.inspect.metadata.changes import list_changed_columns

        rows = list_changed_columns(found)
        return rows.select([name for name in rows.column_names if name != "topic_id"])

    empty = f"no {options.what}" if options.changes is None else "no changes"
    given = [f"--{name}" for name in CHOICE if getattr(options, name)]
    with report_damage_after(damage):
        filtered = given if options.changes is None else None
        code = show(options, table, empty, filtered=filtered, damage=damage)
    return PROBLEMS if damage else code


def _find_useless_filter(options: argparse.Namespace) -> str | None:
    """Return a message if a filter does not apply to the kind ``--what``, None if all do.
    ``--topic`` applies to kinds of topics and to ``configs``, ``--partition`` to ``partitions``
    alone.
    """
    for name, kinds in (("topic", (*_OF_TOPICS, "configs")), ("partition", ("partitions",))):
        if getattr(options, name) and options.what not in kinds:
            return f"--{name} does not apply to --what {options.what}: it selects rows of {', '.join(kinds)}"
    return None


def _refuse_unknown(options: argparse.Namespace, found: set[str]) -> None:
    """Raise NotFoundError for a topic of ``--topic`` that is not in ``found`` and does not exist as
    of the offset; a topic that other filters dropped from ``found`` is no error.
    """
    if missing := find_unmatched_topics(options.topic, found):
        from kafka_log.log_directory import LogDirectory

        everything = LogDirectory(options.paths)
        salvage = options.policy == Policy.SALVAGE
        topics = everything.metadata("topics", as_of=options.as_of, salvage=salvage, on_damage=lambda _: None)  # fmt: skip
        names = topics.column("topic").to_pylist()
        if missing := find_unmatched_topics(missing, names):
            raise make_missing_topic_error(missing, names)


def _offsets(text: str) -> tuple[int | None, int | None]:
    """Return the offsets of ``FROM:TO``; a missing end is None. Raise ArgumentTypeError if the text
    is malformed or FROM is after TO.
    """
    found = re.fullmatch(r"(-?[0-9]{1,19})?:(-?[0-9]{1,19})?", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a range of offsets: write FROM:TO, FROM:, :TO or :"
        )
    first, last = (None if end is None else int(end) for end in found.groups())
    if first is not None and last is not None and first > last:
        raise argparse.ArgumentTypeError(
            f"the offset {first} is after {last}: write the lower one first"
        )
    return first, last
