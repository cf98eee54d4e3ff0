"""``kafka-log reindex``: make the index files of segments anew, beside what is there."""

from __future__ import annotations

import argparse

from kafka_log.cli.writing import add_writing_arguments, run_writing

HELP = "make .index, .timeindex, .txnindex and .snapshot of segments anew"
EXAMPLES = """\
  kafka-log reindex /var/lib/kafka --topic orders --out indexes
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_writing_arguments(command)
    command.add_argument(
        "--index-interval",
        type=_parse_nonnegative,
        default=4096,
        metavar="BYTES",
        help="the topic's index.interval.bytes (default %(default)s)",
    )


def _parse_nonnegative(text: str) -> int:
    """Return the integer in a text. Raise ArgumentTypeError if it is negative; ValueError if the
    text is no integer.
    """
    found = int(text)
    if found < 0:
        raise argparse.ArgumentTypeError("it must not be below 0")
    return found


def run_command(options: argparse.Namespace) -> int:
    """Rebuild indexes, and return the exit code: 1 if anything was lost or refused, 2 if writing
    failed.
    """
    return run_writing(
        options,
        "indexing",
        lambda log, advance: log.reindex(
            options.out, interval_bytes=options.index_interval, advance=advance
        ),
    )
