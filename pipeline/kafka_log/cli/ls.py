"""``kafka-log ls``: List partitions, segments or topics from file names and sizes, to see what a directory holds and what takes the space."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.common import PROBLEMS
from kafka_log.cli.messages import print_message
from kafka_log.cli.tables import add_table_arguments, show

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "list partitions, segments and disk usage per topic by names and sizes"
EXAMPLES = """\
  kafka-log ls samples/kafka-4.x
  kafka-log ls samples/kafka-4.x --topic codecs --segments
  kafka-log ls samples/kafka-4.x --by topic
  kafka-log ls samples/kafka-4.x --topic 'c*,trimmed' --partition 0-1
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, ``--format``, ``--segments`` and ``--by`` to
    the parser of ``kafka-log ls``.
    """
    output = add_table_arguments(command)
    rows = output.add_mutually_exclusive_group()
    rows.add_argument(
        "--segments", action="store_true", help="one row per segment (default: one per partition)"
    )
    rows.add_argument(
        "--by",
        choices=("partition", "topic"),
        default="partition",
        help="topic: disk usage per topic, most bytes first, with replicas told apart (default %(default)s)",
    )


def _format_topics(table: pa.Table, width: int | None) -> str:
    """Return the table of topics as text that fits ``width`` (None: unlimited), with a last row of
    totals if there are several topics. Names are folded; if that does not suffice, each row becomes
    a paragraph. Numbers are never cut, so lines may exceed a ``width`` below 40.
    """
    from kafka_log.inspect.listing import append_total
    from kafka_log.text.text_table import format_table

    return format_table(append_total(table), width)


def run_command(options: argparse.Namespace) -> int:
    """Print the table of partitions, or with ``--segments`` of segments, ``--by topic`` of topics. Return 1 if a partition
    or segment cannot be read, whose error is printed, else 0. Raise NotFoundError or DirectoryError
    if no log matches the paths and options.
    """
    bad = 0

    def answer(log: LogDirectory) -> pa.Table:
        """Print the errors of unreadable partitions and segments, and return the table."""
        nonlocal bad
        for partition in log.all_partitions:
            problems = [f"{s.problem}: it cannot be read ({s.path})" for s in partition.segments if s.problem]  # fmt: skip
            for problem in filter(None, (partition.error, *problems)):
                print_message(problem)
                bad += 1
        return log.ls(by=options.by, segments=options.segments)

    code = show(options, answer, "no segments", _format_topics if options.by == "topic" else None)
    return PROBLEMS if bad else code
