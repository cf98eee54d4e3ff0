"""``kafka-log cut``: Copy the batches in a range of offsets or times into a log of its own. Batches are copied whole."""

from __future__ import annotations

import argparse

from kafka_log.cli.common import COULD_NOT_RUN
from kafka_log.cli.messages import print_message
from kafka_log.cli.selection import PLACES
from kafka_log.cli.writing import add_writing_arguments, run_writing
from kafka_log.segment.times import TIMES

HELP = "copy a range of offsets or times into a log of its own"
EXAMPLES = """\
  kafka-log cut samples/kafka-4.x --topic codecs --partition 3 --offsets 10:20 --out part
  kafka-log cut samples/kafka-4.x --topic codecs --time 2020-01-01:now --out recent
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, ``--offsets``, ``--time``, ``--format`` and
    ``--out`` to the parser of ``kafka-log cut``.
    """
    helps = {
        "offsets": "batches with an offset from A (included) to B (excluded); A: and :B are open"
        "; negative offsets count from the end of the log: -5: selects the last 5",
        "time": f"batches with a timestamp from A (included) to B (excluded); each is {TIMES}",
    }
    add_writing_arguments(command, (*PLACES, *helps), helps)


def run_command(options: argparse.Namespace) -> int:
    """Copy the selected batches into ``--out`` and print the report. Return 0; 1 if anything was
    lost or refused; 2 if writing failed, or neither ``--offsets`` nor ``--time`` is given. Raise
    OutputError or OutputLockedError if ``--out`` must not be written to; NotFoundError if a topic
    or partition does not exist; DirectoryError if a path holds no log, or two directories hold one
    partition and ``--replicas`` is not given; Interrupted on Ctrl-C.
    """
    if options.offsets is None and options.time is None:
        print_message("cut needs a range: add --offsets A:B or --time A:B")
        return COULD_NOT_RUN
    return run_writing(
        options,
        "cutting",
        lambda log, advance: log.cut(options.out, options.offsets, options.time, advance=advance),
    )
