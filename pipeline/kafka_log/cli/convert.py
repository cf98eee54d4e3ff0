"""``kafka-log convert``: Copy logs with another compression codec, or with legacy messages (v0, v1) converted to record batches."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_codecs import Compression
from kafka_log.cli.common import COULD_NOT_RUN
from kafka_log.cli.messages import print_message
from kafka_log.cli.writing import add_writing_arguments, run_writing
from kafka_log.segment.versions import WRITTEN_BATCH_VERSIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "recompress logs, or convert legacy messages to record batches"
EXAMPLES = """\
  kafka-log convert samples/kafka-4.x --topic codecs --codec zstd --out compressed
  kafka-log convert samples/kafka-2.8 --topic v1 --out converted
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, ``--format``, ``--out``, ``--magic``, ``--codec``
    and ``--level`` to the parser of ``kafka-log convert``.
    """
    add_writing_arguments(command)
    command.add_argument(
        "--magic",
        type=int,
        choices=WRITTEN_BATCH_VERSIONS,
        help="batch version for older batches and messages (default: batches keep theirs, legacy messages get the newest that can be written)",
    )
    command.add_argument(
        "--codec",
        choices=[codec.label for codec in Compression],
        help="compression codec (default: batches stay unchanged, and legacy messages keep their codec)",
    )
    command.add_argument(
        "--level",
        type=int,
        metavar="N",
        help="compression level; also recompresses batches that have the codec already (default: the codec's own)",
    )


def run_command(options: argparse.Namespace) -> int:
    """Convert the selected partitions into ``--out`` and print the report. Return 0; 1 if anything
    was lost or refused; 2 if writing failed, or (printed) if an option has an impossible value or
    no topic or partition matches. Raise OutputError or OutputLockedError if ``--out`` must not be
    written to; DirectoryError if a path holds no log, or two directories hold one partition and
    ``--replicas`` is not given; Interrupted on Ctrl-C.
    """
    try:
        return run_writing(
            options,
            "converting",
            lambda log, advance: _convert_log(log, options, advance),
            text=None,
        )
    except ValueError as error:
        print_message(error)
        return COULD_NOT_RUN


def _convert_log(
    log: LogDirectory, options: argparse.Namespace, advance: Callable[[int], None]
) -> pa.Table:
    """Convert the selected partitions and return the report: a row per segment, one per refused
    partition or snapshot. It has no column ``reason`` if ``--format`` is text. Print to stderr why
    partitions were refused and which ends of segments were left out. Raise ValueError for an
    impossible codec, level or version; OutputError, OutputLockedError, DirectoryError or OSError as
    ``LogDirectory.convert`` does.
    """
    table = log.convert(
        options.out,
        codec=options.codec,
        level=options.level,
        magic=options.magic,
        advance=advance,
    )
    for row in table.to_pylist():
        if row["reason"] is not None and row["what"] != "left out":  # that is said of all at once
            verdict = "not converted: " if row["what"] == "refused" else ""
            print_message(f"{verdict}{row['topic']}-{row['partition']}: {row['reason']}")
    # A column of sentences has no room beside the numbers.
    return table.drop_columns("reason") if options.format == "text" else table
