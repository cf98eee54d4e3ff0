"""``kafka-log txn``: List open, committed, aborted and hanging transactions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.common import PROBLEMS, progress_of, screen_width
from kafka_log.cli.damage import report_damage_after
from kafka_log.cli.ranges import argument_type, number_type
from kafka_log.cli.selection import BATCHES
from kafka_log.cli.tables import add_table_arguments, add_wide, show, size_of, with_directory
from kafka_log.segment.times import TIMES, milliseconds
from kafka_log.text.folding import fold_cell

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "list transactions and find hanging ones"
EXAMPLES = """\
  kafka-log txn samples/kafka-4.x
  kafka-log txn samples/kafka-4.x --state open --now 2026-11-22
  kafka-log txn samples/kafka-4.x --topic transactions --format jsonl
"""
STATES = ("open", "aborted", "committed", "hanging")
MINUTES = 15
OF_TEXT = (
    "topic",
    "partition",
    "state",
    "hanging",
    "producer_id",
    "transactional_id",
    "first_offset",
    "hides",
)
"""Columns of text output without ``--wide``."""

_RANGES = {
    "offsets": "transactions with an offset from A (included) to B (excluded); A: and :B are open"
    "; negative offsets count from the end of the log: -5: selects the last 5",
    "time": f"transactions open at some time from A (included) to B (excluded); each is {TIMES}",
}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select batches, ``--format``, ``--wide``, ``--state``, ``--now`` and
    ``--max-transaction-timeout`` to the parser of ``kafka-log txn``.
    """
    add_wide(add_table_arguments(command, BATCHES, help_texts=_RANGES))
    command.add_argument(
        "--state",
        action="append",
        choices=STATES,
        help="only transactions in this state; hanging includes those that may hang; may be repeated (default: all)",
    )
    command.add_argument(
        "--now",
        type=argument_type(milliseconds),
        metavar="TIME",
        help="time at which the log was in this state, written as for --time; if given, the age of an open transaction alone can"
        " make it hanging (default: the present)",
    )
    command.add_argument(
        "--max-transaction-timeout",
        type=number_type("a number of minutes"),
        default=MINUTES,
        metavar="MINUTES",
        help="timeout of transactions whose own timeout is unknown (default %(default)s)",
    )


def run_command(options: argparse.Namespace) -> int:
    """Print the transactions of the selected partitions. Return 1 if a printed transaction hangs
    (not if it only may hang), the log is damaged or a file or directory cannot be read, else 0.
    Raise NotFoundError if a topic or partition does not exist, DirectoryError if a path holds no
    log, UnreadableError if the file of a transaction marker disappears meanwhile.
    """
    damage: list[str] = []
    notes: list[str] = []
    found: list[bool] = []
    is_text = options.format == "text"

    def answer(log: LogDirectory) -> pa.Table:
        """Return the table to print; note damage, reasons and whether any transaction hangs."""
        with progress_of("reading", size_of(log)) as advance:
            table = log.txn(
                states=options.state or (),
                producers=options.producer,
                offsets=options.offsets,
                timestamps=options.time,
                now=options.now,
                max_timeout_ms=options.max_transaction_timeout * 60_000,
                on_damage=damage.append,
                advance=advance,
            )
        found.extend(table.column("hanging").unique().to_pylist())
        if not is_text or options.wide:
            return table
        notes.extend(_reasons(table))
        return table.select(with_directory(log, OF_TEXT))

    with report_damage_after(damage):
        code = show(
            options,
            answer,
            "no transactions",
            has_bar=True,
            filtered=["--state"] if options.state else (),
            damage=damage,
        )
        for note in notes:
            for line in fold_cell(note, screen_width() or len(note), whole=True):
                print(line.rstrip())
    return PROBLEMS if damage or any(found) else code


def _reasons(table: pa.Table) -> list[str]:
    """Return an empty line and then a line per open transaction of ``table``, which has them before
    all others. A line says whether it hangs, why, and how to end a hanging one. Return ``[]`` if
    none is open.
    """
    columns = ("directory", "first_offset", "hanging", "reason", "state", "topic", "partition")
    lines = []
    # Open ones come first.
    for directory, offset, hanging, reason, state, topic, partition in zip(
        *(table.column(name).to_pylist() for name in columns), strict=True
    ):
        if state != "open":
            break
        says = "hanging" if hanging else "open"
        line = f"{directory} from offset {offset}: {says}: {reason}"
        if hanging:
            line += f". To end it in a running cluster: kafka-transactions.sh abort --topic {topic} --partition {partition} --start-offset {offset}"
        lines.append(line)
    return ["", *lines] if lines else []
