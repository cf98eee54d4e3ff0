"""``kafka-log ls``: which partitions there are, and their segments, without reading them."""

from __future__ import annotations

import argparse

from kafka_log.cli.tables import add_table_arguments, show

HELP = "list partitions and segments by names and sizes"
EXAMPLES = """\
  kafka-log ls /var/lib/kafka
  kafka-log ls /var/lib/kafka --topic orders --segments
"""


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_table_arguments(command)
    command.add_argument("--segments", action="store_true", help="a line for each segment")


def run(options: argparse.Namespace) -> int:
    """Run the command. Returns the exit code."""
    return show(options, lambda log: log.ls(segments=options.segments), "no segments")
