"""``kafka-log dump``: every batch and record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice

from kafka_log.cli.common import GOOD, PROBLEMS, add_common, found, opener
from kafka_log.report import json_dump, text_dump
from kafka_log.segment.model import Batch, End
from kafka_log.segment.reader import Batches
from kafka_log.tables.own_topics import OWN_TOPICS, own_topic

HELP = "show every batch and record"
EXAMPLES = """\
  kafka-log dump 00000000000000000000.log
  kafka-log dump /var/lib/kafka/orders-0 --output jsonl --policy salvage > orders.jsonl
  kafka-log dump /var/lib/kafka/__consumer_offsets-7
"""

LINES = 500
"""Lines that are written at a time: each write costs as much as a line."""


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_common(command, "text", ["text", "jsonl"])
    command.add_argument(
        "--digest", action="store_true", help="batches only, with digests of their records"
    )
    command.add_argument(
        "--width",
        type=int,
        default=text_dump.MAX_SHOWN,
        metavar="BYTES",
        help="show at most this much of a key, value or header in text (default %(default)s)",
    )
    command.add_argument(
        "--decode",
        choices=["auto", "none", *OWN_TOPICS],
        default="auto",
        metavar="TOPIC",
        help="show what the records of Kafka's own topics say, as of this topic; auto: by the name of the directory; none: as"
        f" bytes. Topics: {', '.join(OWN_TOPICS)} (default %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the command. Returns the exit code."""
    partitions = found(options)
    worst = GOOD
    out = sys.stdout
    open_segment = opener(options, partitions, True)
    for partition in partitions:
        if partition.error is not None:
            show = json_dump if options.output == "jsonl" else text_dump
            out.write(show.error_line(partition.error) + "\n")
            worst = PROBLEMS
        for segment in partition.segments:
            watch = _Watch(open_segment(segment))
            named = segment.topic if options.decode == "auto" else options.decode
            decode = own_topic(named)
            if options.output == "jsonl":
                lines = json_dump.lines(watch, records=not options.digest, decode=decode)
            else:
                lines = text_dump.lines(
                    watch, data=not options.digest, width=options.width, decode=decode
                )
            while some := list(islice(lines, LINES)):
                out.write("\n".join(some) + "\n")
            worst = max(worst, PROBLEMS if watch.found_problems() else GOOD)
    out.flush()
    return worst


class _Watch:
    """A reader that notices problems as they pass."""

    def __init__(self, reader: Batches) -> None:
        self.reader = reader
        self.path = reader.path
        self.failed = False

    @property
    def end(self) -> End | None:
        return self.reader.end

    def found_problems(self) -> bool:
        """Whether anything was wrong, now that the file has been read."""
        end = self.reader.end
        return self.failed or end is None or not end.is_normal

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.reader:
            self.failed |= bool(batch.problems) or not batch.is_valid
            yield batch
