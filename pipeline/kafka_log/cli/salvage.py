"""``kafka-log salvage``: Copy everything that can be read of a damaged log into a log that a broker loads, and report what was lost."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.common import COULD_NOT_RUN, PROBLEMS, progress_of
from kafka_log.cli.messages import print_message
from kafka_log.cli.tables import show, size_of
from kafka_log.cli.writing import add_writing_arguments, format_rewrite_report, run_writing

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "recover a damaged log into one that a broker loads"
EXAMPLES = """\
  kafka-log salvage samples/kafka-4.x --topic codecs --out recovered
  kafka-log salvage samples/kafka-4.x --topic transactions --flatten --out committed
  kafka-log salvage samples/kafka-4.x --repair --dry-run
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, ``--format``, ``--out``, ``--flatten``,
    ``--keep-damaged``, ``--repair`` and ``--dry-run`` to the parser of ``kafka-log salvage``.
    """
    output = add_writing_arguments(command, needs_out=False)
    output.add_argument(
        "--flatten",
        action="store_true",
        help="write only committed data: no transaction markers, no producer ids, no records of aborted or open transactions",
    )
    output.add_argument(
        "--keep-damaged",
        action="store_true",
        help="keep records of batches with a wrong checksum, and give them a new checksum; any byte of them may be wrong",
    )
    output.add_argument(
        "--repair",
        action="store_true",
        help="repair flipped bits first, from checksums and neighboring batches; the report states each repair and the probability of a wrong guess",
    )
    output.add_argument(
        "--dry-run",
        action="store_true",
        help="with --repair: print the repairs only; write nothing, and need no --out",
    )


def run_command(options: argparse.Namespace) -> int:
    """Write the readable records of the selected partitions into ``--out`` and print the report;
    with ``--dry-run`` print the repairs only. Return 0; 1 if anything was lost or refused, or with
    ``--dry-run`` not repaired; 2 if writing failed, or if ``--out`` or ``--repair`` is missing.
    Raise OutputError or OutputLockedError if ``--out`` must not be written to; NotFoundError if a
    topic or partition does not exist; DirectoryError if a path holds no log, or two directories
    hold one partition and ``--replicas`` is not given; Interrupted on Ctrl-C.
    """
    if options.dry_run:
        if not options.repair:
            print_message("--dry-run prints repairs: give --repair too")
            return COULD_NOT_RUN
        return _print_repairs(options)
    if options.out is None:
        print_message("--out is needed: the directory for what is written")
        return COULD_NOT_RUN
    return run_writing(
        options,
        "salvaging",
        lambda log, advance: log.salvage(
            options.out,
            flatten=options.flatten,
            keep_damaged=options.keep_damaged,
            repair=options.repair,
            advance=advance,
        ),
    )


def _print_repairs(options: argparse.Namespace) -> int:
    """Print the repairs of the selected partitions, and damaged batches without one, in
    ``--format``; write no file. Return 0; 1 if there is damage without a repair, or a partition
    that cannot be read. Raise NotFoundError or DirectoryError if no log matches the paths and
    options.
    """
    bad = False

    def answer(log: LogDirectory) -> pa.Table:
        """Return the repairs; note whether damage has none."""
        nonlocal bad
        with progress_of("looking for repairs", size_of(log)) as advance:
            table = log.repairs(advance=advance)
        bad = not {"lost", "not repaired"}.isdisjoint(table.column("what").to_pylist())
        return table

    code = show(options, answer, "nothing to repair", format_rewrite_report, has_bar=True)
    return PROBLEMS if bad else code
