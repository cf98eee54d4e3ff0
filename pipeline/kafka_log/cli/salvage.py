"""``kafka-log salvage``: write what can be read of a log as a log that a broker loads. What is lost is said."""

from __future__ import annotations

import argparse

from kafka_log.cli.writing import add_writing_arguments, run_writing

HELP = "write what can be read of a log as one that a broker loads"
EXAMPLES = """\
  kafka-log salvage /mnt/dead/kafka --topic orders --out /var/tmp/orders
  kafka-log salvage /mnt/dead/kafka --topic orders --flatten --out /var/tmp/committed
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_writing_arguments(command)
    command.add_argument(
        "--flatten",
        action="store_true",
        help="committed data only: no markers, no producers, nothing of transactions that were aborted or have not ended",
    )
    command.add_argument(
        "--keep-damaged",
        action="store_true",
        help="also records whose checksum is wrong: any byte of them may be, and they get new checksums",
    )


def run_command(options: argparse.Namespace) -> int:
    """Write the readable records, and return the exit code: 1 if anything was lost or refused, 2 if
    writing failed.
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
