"""``kafka-log coordinator``: Show which partition of __consumer_offsets or __transaction_state coordinates a group or transactional id."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.common import PROBLEMS, add_output
from kafka_log.cli.damage import report_damage_after
from kafka_log.cli.ranges import number_type
from kafka_log.cli.tables import show
from kafka_log.logs.partition_filters import MAX_PARTITION

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "show which partition coordinates a group or transactional id"
EXAMPLES = """\
  kafka-log coordinator billing --partitions 50
  kafka-log coordinator billing --name payments samples/kafka-4.x
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add names, paths, ``--name``, ``--partitions`` and ``--format`` to the parser of ``kafka-log
    coordinator``.
    """
    command.add_argument("first_name", metavar="NAME", help="group or transactional id")
    command.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="log directory or partition to look in (default: none)",
    )
    command.add_argument(
        "--name",
        dest="more_names",
        action="append",
        default=[],
        metavar="NAME",
        help="another group or transactional id; may be repeated",
    )
    command.add_argument(
        "--partitions",
        type=number_type("a number of partitions", 1, MAX_PARTITION),
        metavar="N",
        help="number of partitions of the internal topics (default: as in __cluster_metadata if PATH has it, else 50)",
    )
    add_output(command)


def run_command(options: argparse.Namespace) -> int:
    """Print the partition that coordinates each name. Return 1 if ``--partitions`` is not given and
    the metadata log cannot be read to its end (its error is printed), else 0. The numbers of
    partitions are then those before its first unreadable record, or 50. Raise NotFoundError if a
    name is not valid UTF-8, or a directory exists whose partition number is not below the number of
    partitions; DirectoryError if a path holds no log.
    """
    damage: list[str] = []

    def table(log: LogDirectory) -> pa.Table:
        """Return the table to print; text without PATH has no columns about directories."""
        found = log.coordinator(
            [options.first_name, *options.more_names],
            partitions=options.partitions,
            on_damage=damage.append,
        )
        has_no_paths = not options.paths and options.format == "text"
        return found.drop_columns(["known", "directories"]) if has_no_paths else found

    with report_damage_after(damage):
        code = show(options, table, "no names")
    return PROBLEMS if damage else code
