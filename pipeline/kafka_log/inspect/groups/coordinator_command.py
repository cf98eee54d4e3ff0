"""``kafka-log coordinator``: the partition of Kafka's own topics that a group or a transactional id belongs to."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.damage import say_damage
from kafka_log.cli.tables import add_output, show

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "where a group or a transactional id is kept"
EXAMPLES = """\
  kafka-log coordinator billing --partitions 50
  kafka-log coordinator billing /var/lib/kafka
  kafka-log coordinator billing --name payments /var/lib/kafka
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
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
        help="one more group or transactional id; may be repeated",
    )
    command.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="partitions of the topic (default: what __cluster_metadata says, if it is there, else 50)",
    )
    add_output(command)


def run_command(options: argparse.Namespace) -> int:
    """Run the command and return the exit code: 1 when the metadata log cannot be read."""
    damage: list[str] = []

    def table(log: LogDirectory) -> pa.Table:
        found = log.coordinator(
            [options.first_name, *options.more_names],
            partitions=options.partitions,
            on_damage=damage.append,
        )
        none = not options.paths and options.format == "text"
        return found.drop_columns(["known", "directories"]) if none else found

    code = show(options, table, "no names")
    return say_damage(damage) or code
