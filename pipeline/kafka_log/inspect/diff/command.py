"""``kafka-log diff``: Compare two replicas of the same partitions, and find the offset and leader epoch where they diverge. Differences that come from
compaction, retention or a follower that lags are reported apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_log.cli.common import COULD_NOT_RUN, PROBLEMS, progress_of, warn_of_skipped_paths
from kafka_log.cli.damage import report_damage_after
from kafka_log.cli.messages import print_message
from kafka_log.cli.selection import INCLUDE_FOR_DIFF, PLACES
from kafka_log.cli.tables import show, size_of, warn_of_excluded_segments
from kafka_log.cli.writing import add_writing_arguments, run_writing
from kafka_log.logs.partitions import filter_by_topics

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "compare two replicas and find where they diverge"
EXAMPLES = """\
  kafka-log diff samples/kafka-2.8/codecs-0 samples/kafka-4.x/codecs-0
  kafka-log diff samples/kafka-2.8 samples/kafka-4.x --topic codecs --format jsonl
  kafka-log diff --only A --out only samples/kafka-2.8/codecs-0 samples/kafka-4.x/codecs-0
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the paths A and B, the options that select partitions and states, and ``--format`` to the
    parser of ``kafka-log diff``.
    """
    command.add_argument(
        "a", metavar="A", help="segment, partition directory or log directory of one replica"
    )
    command.add_argument("b", metavar="B", help="the same of the other replica, or of a copy")
    output = add_writing_arguments(
        command, PLACES, {"include": INCLUDE_FOR_DIFF}, needs_out=False, paths=False
    )
    output.add_argument(
        "--only",
        choices=("A", "B"),
        help="write the records that only this side has, or has with other values, to a log below --out, in whole batches",
    )


def run_command(options: argparse.Namespace) -> int:
    """Compare the logs A and B and print the differences. Return 1 if a verdict is ``parted``,
    ``missing`` or ``damaged``, or if a partition cannot be read (its error is printed); 2 if only
    one of ``--only`` and ``--out`` is given; else 0. With both, write what only one side has
    instead: return 1 if that side is damaged, 2 if writing failed; raise OutputError if ``--out``
    must not be written to. Raise DirectoryError if a path holds no log, or several directories of a
    side hold one partition; NotFoundError if a selected topic or partition does not exist;
    UnreadableError if retention deletes a segment meanwhile.
    """
    if (options.only is None) != (options.out is None):
        print_message("--only A or B and --out belong together: what to write, and where")
        return COULD_NOT_RUN
    options.paths = [options.a]
    if options.only is not None:
        return _write_unshared(options)
    bad = False
    damage: list[str] = []

    def answer(log: LogDirectory) -> pa.Table:
        nonlocal bad
        table, bad = _compare_logs(log, options, damage)
        return table

    with report_damage_after(damage):
        code = show(options, answer, "no partitions", _format_table, has_bar=True)
    return PROBLEMS if damage or bad else code


def _write_unshared(options: argparse.Namespace) -> int:
    """Write what only the side ``--only`` has to ``--out``, and print the report. Return 0, also if
    there is nothing; 1 if that side is damaged, or a partition cannot be read; 2 if writing failed.
    Raise OutputError if ``--out`` must not be written to, and what :func:`run_command` raises.
    """
    from kafka_log.log_directory import LogDirectory

    other = LogDirectory(
        options.b,
        topics=options.topic if options.only == "B" else None,
        partitions=options.partition if options.only == "B" else None,
        include=options.include,
        replicas=options.replicas,
    )
    damage: list[str] = []

    def job(log: LogDirectory, advance: Callable[[int], None]) -> pa.Table:
        warn_of_excluded_segments(options, other)
        warn_of_skipped_paths(filter_by_topics(other.skipped_paths, options.topic))
        sides = (log, other) if options.only == "A" else (other, log)
        return sides[0].write_unshared(
            sides[1], options.out, on_damage=damage.append, advance=advance
        )

    nothing = f"nothing to write: {options.only} has no records that the other side lacks"
    with report_damage_after(damage):
        code = run_writing(options, "comparing", job, others=[other], empty=nothing)
    return PROBLEMS if damage else code


def _compare_logs(
    log: LogDirectory, options: argparse.Namespace, damage: list[str]
) -> tuple[pa.Table, bool]:
    """Compare ``log`` with the one at ``options.b``, with a progress bar, and print what is skipped
    there. Return the table, and whether a verdict is ``parted``, ``missing`` or ``damaged``. Append
    a line to ``damage`` for each partition that cannot be read. Raise DirectoryError if
    ``options.b`` holds no log, or several directories of a side hold one partition; UnreadableError
    if retention deletes a segment meanwhile.
    """
    from kafka_log.inspect.diff.table import PROBLEMS as DIFFERENCES
    from kafka_log.log_directory import LogDirectory

    other = LogDirectory(options.b, include=options.include, replicas=options.replicas)
    warn_of_excluded_segments(options, other)
    warn_of_skipped_paths(filter_by_topics(other.skipped_paths, options.topic))
    total = size_of(log) + size_of(other)
    with progress_of("comparing", total) as advance:
        table = log.diff(other, on_damage=damage.append, advance=advance)
    return table, any(v in DIFFERENCES for v in table.column("verdict").to_pylist())


def _format_table(table: pa.Table, width: int | None) -> str:
    """Return the table of differences as paragraphs."""
    from kafka_log.inspect.diff.text import format_differences

    return format_differences(table, width)
