"""``kafka-log ls``: List partitions and segments from their file names and sizes, to see what a directory holds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.common import PROBLEMS
from kafka_log.cli.messages import print_message
from kafka_log.cli.tables import add_table_arguments, show

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "list partitions and segments by names and sizes"
EXAMPLES = """\
  kafka-log ls samples/kafka-4.x
  kafka-log ls samples/kafka-4.x --topic codecs --segments
  kafka-log ls samples/kafka-4.x --topic 'c*,trimmed' --partition 0-1
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, ``--format`` and ``--segments`` to the parser of
    ``kafka-log ls``.
    """
    output = add_table_arguments(command)
    output.add_argument(
        "--segments", action="store_true", help="one row per segment (default: one per partition)"
    )


def run_command(options: argparse.Namespace) -> int:
    """Print the table of partitions, or with ``--segments`` of segments. Return 1 if a partition
    cannot be read, whose error is printed, else 0. Raise NotFoundError or DirectoryError if no log
    matches the paths and options.
    """
    bad = 0

    def answer(log: LogDirectory) -> pa.Table:
        """Print the errors of unreadable partitions, and return the table."""
        nonlocal bad
        for partition in log.all_partitions:
            if partition.error is not None:
                print_message(partition.error)
                bad += 1
        return log.ls(segments=options.segments)

    code = show(options, answer, "no segments")
    return PROBLEMS if bad else code
