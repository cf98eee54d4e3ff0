"""``kafka-log cut``: write a part of a log as a log of its own, in whole batches."""

from __future__ import annotations

import argparse

from kafka_log.cli.common import COULD_NOT_RUN
from kafka_log.cli.messages import print_message
from kafka_log.cli.selection import PLACES
from kafka_log.cli.writing import add_writing_arguments, run_writing
from kafka_log.segment.times import TIMES

HELP = "write a part of a log, by offsets or times, as a log of its own"
EXAMPLES = """\
  kafka-log cut /var/lib/kafka --topic orders --partition 3 --offsets 1000:2000 --out part
  kafka-log cut /var/lib/kafka --topic orders --time 2026-11-21T10:00:00:2026-11-21T11:00:00 --out hour
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    helps = {
        "offsets": "batches with an offset from A up to, but not with, B; A: and :B are open",
        "time": f"batches with a record from time A up to, but not with, B; each is {TIMES}",
    }
    add_writing_arguments(command, (*PLACES, *helps), helps)


def run_command(options: argparse.Namespace) -> int:
    """Write the selected batches, and return the exit code: 1 if anything was lost or refused, 2 if
    writing failed.
    """
    if options.offsets is None and options.time is None:
        print_message("cut where? --offsets A:B or --time A:B says it")
        return COULD_NOT_RUN
    return run_writing(
        options,
        "cutting",
        lambda log, advance: log.cut(options.out, options.offsets, options.time, advance=advance),
    )
