"""``kafka-log stat``: Count records and bytes by partition, topic, producer, codec, day, hour or minute, or list the largest batches."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from codecgen.runtime.located_bytes import Limits
from kafka_log.cli.common import COULD_NOT_RUN, PROBLEMS, add_reading, progress_of
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import argument_type, number_type
from kafka_log.cli.selection import BATCHES, selection_of, warn_of_no_match
from kafka_log.cli.tables import add_table_arguments, show, size_of
from kafka_log.logs.partitions import NotFoundError
from kafka_log.logs.replicas import find_duplicate
from kafka_log.segment.times import milliseconds

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.inspect.statistics.options import Asked
    from kafka_log.log_directory import LogDirectory

HELP = "count records and bytes by partition, topic, producer, codec or time"
EXAMPLES = """\
  kafka-log stat samples/kafka-4.x
  kafka-log stat samples/kafka-4.x --by topic --top 10
  kafka-log stat samples/kafka-4.x --topic codecs --by day,partition --deep
  kafka-log stat samples/kafka-4.x --largest 3 --by topic --deep
"""

_FILTERS = (*BATCHES, "deleted_records")
_DELETED_RECORDS = "count batches below the log start offset too (deleted with kafka-delete-records; default: only batches with an offset from it on)"
_MAX_ROWS = 10**18 - 1


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select batches and say how to read, ``--format``, ``--by``,
    ``--top``, ``--largest``, ``--deep`` and ``--now`` to the parser of ``kafka-log stat``.
    """
    add_table_arguments(command, _FILTERS, {"deleted_records": _DELETED_RECORDS})
    command.add_argument(
        "--by",
        action="append",
        metavar="KEY,...",
        help="what a row stands for: topic, partition, producer, codec, day, hour, minute, or several of these (default: partition);"
        " with --largest N: list N for each (default: N in total)",
    )
    command.add_argument(
        "--top",
        type=number_type("a number of rows", 1, _MAX_ROWS),
        metavar="N",
        help="only the N rows with the most bytes (default: all rows)",
    )
    command.add_argument(
        "--largest",
        type=number_type("a number of rows", 1, _MAX_ROWS),
        metavar="N",
        help="list the N largest batches (with --deep: records) instead of counting",
    )
    command.add_argument(
        "--deep",
        action="store_true",
        help="decode every record (default: only batch headers and checksums)",
    )
    command.add_argument(
        "--now",
        type=argument_type(milliseconds),
        metavar="TIME",
        help="report timestamps after this time as lying in the future; written as for --time (default: the present)",
    )
    add_reading(command)


def run_command(options: argparse.Namespace) -> int:
    """Print statistics of the selected batches, or with ``--largest`` the largest batches or
    records. Return 1 if a log is damaged or unreadable (the problems are printed), 2 for ``--top``
    with ``--largest``, else 0. Raise NotFoundError for an unknown ``--by`` key, topic or partition;
    DirectoryError without logs, or if two directories hold one partition, with ``--largest`` or
    without ``partition`` in ``--by``.
    """
    if options.largest is not None and options.top is not None:
        reason = "--top does not go with --largest: --largest N lists N rows, and --largest N --by KEY lists N for each key"
        print_message(reason)
        return COULD_NOT_RUN
    problems: list[str] = []
    total: pa.Table | None = None
    has_total = True  # a total would count a partition in two directories twice

    def report(line: str) -> None:
        """Print a problem and note it."""
        problems.append(line)
        print_message(line)

    def answer(log: LogDirectory) -> pa.Table:
        """Return the table to print; set the total."""
        nonlocal total, has_total
        from kafka_log.inspect.statistics.largest import largest_table
        from kafka_log.inspect.statistics.table import Stat, parse_by

        try:
            by = parse_by([word for by in options.by or ["partition"] for word in by.split(",")])
            largest_by = by if options.by else ()
        except ValueError as error:
            raise NotFoundError(str(error)) from None
        size = size_of(log)
        with progress_of("reading", size) as advance:
            asked = _make_options(options, report, advance)
            if options.largest is not None:
                found = log.refuse_duplicates(log.all_partitions)
                return largest_table(found, options.largest, largest_by, asked)
            found = (
                log.all_partitions
                if "partition" in by
                else log.refuse_duplicates(log.all_partitions)
            )
            stat = Stat(found, by, asked=asked)
        total = stat.total()
        if not problems and not sum(total.column("batches").to_pylist()):
            warn_of_no_match(options)
        has_total = log.replicas is not None or find_duplicate(found) is None
        return stat.table(options.top)

    def text(table: pa.Table, width: int | None) -> str:
        """Return the table as text."""
        from kafka_log.inspect.statistics.text import stat_text

        return stat_text(table, total, width, has_total=has_total)

    filtered = () if options.largest is not None else None
    code = show(
        options, answer, "no batches", text, has_bar=True, filtered=filtered, damage=problems
    )
    return PROBLEMS if problems else code


def _make_options(
    options: argparse.Namespace, report: Callable[[str], None], advance: Callable[[int], None]
) -> Asked:
    """Return the options of the command line as options of ``stat``; ``report`` is called with each
    problem, ``advance`` with bytes read. Without ``--now`` the present is the time after which
    timestamps lie in the future.
    """
    from kafka_log.inspect.statistics.options import Asked

    now = int(time.time() * 1000) if options.now is None else options.now
    limits = Limits(decompressed=options.max_decompressed, elements=options.max_elements)
    return Asked(options.deep, now, selection_of(options), options.engine, limits, report, advance)
