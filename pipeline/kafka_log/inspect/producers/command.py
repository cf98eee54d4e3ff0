"""``kafka-log producers``: List idempotent and transactional producers, with gaps and duplicates in their sequence numbers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.common import PROBLEMS, progress_of
from kafka_log.cli.damage import report_damage_after
from kafka_log.cli.selection import BATCHES
from kafka_log.cli.tables import add_table_arguments, add_wide, show, size_of, with_directory

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "list producers with gaps and duplicates in their sequence numbers"
EXAMPLES = """\
  kafka-log producers samples/kafka-4.x
  kafka-log producers samples/kafka-4.x --topic idempotent --format jsonl
"""
OF_TEXT = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "records",
    "last_sequence",
    "gaps",
    "duplicates",
)
"""Columns of text output without ``--wide``."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_wide(add_table_arguments(command, BATCHES))


def run_command(options: argparse.Namespace) -> int:
    """Print the producers of the selected partitions. Return 1 if the log is damaged or a file or
    directory cannot be read (the errors are printed), else 0. Raise NotFoundError if a topic or
    partition does not exist, DirectoryError if a path holds no log.
    """
    damage: list[str] = []
    is_narrow = options.format == "text" and not options.wide

    def answer(log: LogDirectory) -> pa.Table:
        """Return the table to print."""
        with progress_of("reading", size_of(log)) as advance:
            table = log.producers(
                producers=options.producer,
                offsets=options.offsets,
                timestamps=options.time,
                on_damage=damage.append,
                advance=advance,
            )
        return table.select(with_directory(log, OF_TEXT)) if is_narrow else table

    with report_damage_after(damage):
        code = show(options, answer, "no producers", has_bar=True, damage=damage)
    return PROBLEMS if damage else code
