"""``kafka-log merge``: Write one log from several damaged replicas of the same partitions: each batch from a replica in which it is whole. Where replicas
diverge, the log with the later leader epoch is written. Offsets that no replica has whole are reported as lost.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafka_log.cli.common import COULD_NOT_RUN, GOOD, progress_of, warn_of_skipped_paths
from kafka_log.cli.messages import print_message
from kafka_log.cli.tables import show, size_of
from kafka_log.cli.writing import (
    add_writing_arguments,
    exit_code_of,
    format_rewrite_report,
    run_writing,
)
from kafka_log.logs.partitions import filter_by_topics

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "make one whole log of several damaged replicas"
EXAMPLES = """\
  kafka-log merge samples/kafka-4.x/codecs-0 samples/kafka-4.x/codecs-0 --dry-run
  kafka-log merge samples/kafka-4.x samples/kafka-4.x --topic codecs --out merged
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the paths of the replicas, the options that select partitions, ``--format``, ``--out`` and
    ``--dry-run`` to the parser of ``kafka-log merge``.
    """
    command.add_argument(
        "a", metavar="A", help="partition directory or log directory of one replica"
    )
    command.add_argument(
        "others", nargs="+", metavar="B", help="the same of each other replica, or of a copy"
    )
    output = add_writing_arguments(command, ("topic", "partition"), needs_out=False, paths=False)
    output.add_argument(
        "--dry-run",
        action="store_true",
        help="print the report only; write nothing, and need no --out",
    )


def run_command(options: argparse.Namespace) -> int:
    """Merge the replicas into ``--out`` and print the report; with ``--dry-run`` print the report
    only. Return 0; 1 if offsets are lost, records of a replica diverge, or a replica cannot be
    read; 2 if writing failed, or ``--out`` is missing. Raise OutputError or OutputLockedError if
    ``--out`` must not be written to; NotFoundError or DirectoryError if no log matches the paths
    and options; DirectoryError if two directories below one path hold the same partition;
    Interrupted on Ctrl-C.
    """
    from kafka_log.log_directory import LogDirectory

    options.paths = [options.a]
    others = [LogDirectory(path) for path in options.others]
    if options.dry_run:
        return _print_plan(options, others)
    if options.out is None:
        print_message("--out is needed: the directory for what is written; --dry-run needs none")
        return COULD_NOT_RUN

    def job(log: LogDirectory, advance: Callable[[int], None]) -> pa.Table:
        _warn_of_skipped_paths(options, others)
        return log.merge(others, options.out, advance=advance)

    return run_writing(options, "merging", job, others=others)


def _warn_of_skipped_paths(options: argparse.Namespace, others: Sequence[LogDirectory]) -> None:
    """Print lines to stderr about the paths that are skipped in other replicas."""
    for other in others:
        warn_of_skipped_paths(filter_by_topics(other.skipped_paths, options.topic))


def _print_plan(options: argparse.Namespace, others: Sequence[LogDirectory]) -> int:
    """Print the report of a merge without writing. Return 0; 1 if offsets are lost, records of a
    replica diverge, or a replica cannot be read. Raise NotFoundError or DirectoryError if no log
    matches the paths and options.
    """
    code = GOOD

    def answer(log: LogDirectory) -> pa.Table:
        """Return the report, and note its exit code."""
        nonlocal code
        _warn_of_skipped_paths(options, others)
        total = sum(map(size_of, (log, *others)))
        with progress_of("planning", total) as advance:
            table = log.merge_plan(others, advance=advance)
        code = exit_code_of(table)
        return table

    show(options, answer, "nothing to merge", format_rewrite_report, has_bar=True)
    return code
