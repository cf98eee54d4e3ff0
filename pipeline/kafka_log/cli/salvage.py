"""``kafka-log salvage``: Copy everything that can be read of a damaged log into a log that a broker loads, and report what was lost."""

from __future__ import annotations

import argparse

from kafka_log.cli.writing import add_writing_arguments, run_writing

HELP = "recover a damaged log into one that a broker loads"
EXAMPLES = """\
  kafka-log salvage samples/kafka-4.x --topic codecs --out recovered
  kafka-log salvage samples/kafka-4.x --topic transactions --flatten --out committed
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, ``--format``, ``--out``, ``--flatten`` and
    ``--keep-damaged`` to the parser of ``kafka-log salvage``.
    """
    output = add_writing_arguments(command)
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


def run_command(options: argparse.Namespace) -> int:
    """Write the readable records of the selected partitions into ``--out`` and print the report.
    Return 0; 1 if anything was lost or refused; 2 if writing failed. Raise OutputError if ``--out``
    must not be written to, NotFoundError or DirectoryError if no log matches the paths and options.
    """
    return run_writing(
        options,
        "salvaging",
        lambda log, advance: log.salvage(
            options.out,
            flatten=options.flatten,
            keep_damaged=options.keep_damaged,
            advance=advance,
        ),
    )
