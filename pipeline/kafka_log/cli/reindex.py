"""``kafka-log reindex``: Rebuild the index files of segments (.index, .timeindex, .txnindex, .snapshot) in another directory."""

from __future__ import annotations

import argparse

from kafka_log.cli.ranges import number_type
from kafka_log.cli.writing import add_writing_arguments, run_writing

HELP = "rebuild .index, .timeindex, .txnindex and .snapshot files"
EXAMPLES = """\
  kafka-log reindex samples/kafka-4.x --topic codecs --out indexes
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, ``--format``, ``--out`` and ``--index-interval``
    to the parser of ``kafka-log reindex``.
    """
    add_writing_arguments(command)
    command.add_argument(
        "--index-interval",
        type=number_type("a number of bytes"),
        default=4096,
        metavar="BYTES",
        help="setting index.interval.bytes of the topic (default %(default)s)",
    )


def run_command(options: argparse.Namespace) -> int:
    """Write rebuilt indexes and producer snapshots of the selected partitions into ``--out`` and
    print the report. Return 0; 1 if anything was lost or refused; 2 if writing failed. Raise
    OutputError or OutputLockedError if ``--out`` must not be written to; NotFoundError if a topic
    or partition does not exist; DirectoryError if a path holds no log, or two directories hold one
    partition and ``--replicas`` is not given; Interrupted on Ctrl-C.
    """
    return run_writing(
        options,
        "indexing",
        lambda log, advance: log.reindex(
            options.out, interval_bytes=options.index_interval, advance=advance
        ),
    )
