"""``kafka-log check``: what is wrong in a log directory, where, and what to do next. Nothing is changed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kafka_log.cli.common import PROBLEMS, progress_of
from kafka_log.cli.selection import CHOICE
from kafka_log.cli.tables import add_table_arguments, show, size_of
from kafka_log.disk.directory import NotThere
from kafka_log.segment.kernels import ENGINES
from kafka_log.segment.times import TIMES

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "find damage: batches, offsets, indexes, checkpoints, names"
EXAMPLES = """\
  kafka-log check /var/lib/kafka
  kafka-log check /var/lib/kafka --topic orders --output jsonl
"""


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    helps = {
        "offsets": "only what concerns offsets from A up to, but not with, B, or nobody knows which",
        "time": f"the same of batches from time A up to, but not with, B; each is {TIMES}",
        "producer": "the same of batches of this producer id (-1: of none); may be repeated",
    }
    add_table_arguments(command, (*CHOICE, "include", *helps), helps)
    command.add_argument(
        "--deep", action="store_true", help="decode every record too, not headers and checksums"
    )
    command.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="who reads; the findings are the same (default %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the command. Returns the exit code: 1 when there is an error or a warning, 2 when there are segments, and none of them was checked."""
    bad = 0

    def answer(log: LogDirectory) -> pa.Table:
        nonlocal bad
        skipped = any(segment.state != "snapshot" for segment in log.left_out)
        if skipped and not any(partition.segments for partition in log.found):
            raise NotThere("no segment was checked: none of those that are there is live")
        table = _with_progress(log, options)
        bad = sum(severity != "note" for severity in table.column("severity").to_pylist())
        return table

    code = show(options, answer, _said_of_nothing, _text, has_bar=True, filtered=None)
    return PROBLEMS if bad else code


def _said_of_nothing(log: LogDirectory) -> str:
    """Say what was checked when there is no finding."""
    count = sum(len(partition.segments) for partition in log.found)
    return (
        "nothing is wrong"
        if count
        else "there is no segment yet: nothing was checked but files beside segments"
    )


def _text(table: pa.Table, width: int | None) -> str:
    from kafka_log.report.check.finding_text import as_paragraphs

    return as_paragraphs(table, width)


def _with_progress(log: LogDirectory, options: argparse.Namespace) -> pa.Table:
    total = size_of(log)
    with progress_of("checking", total) as advance:
        return log.check(
            deep=options.deep,
            offsets=options.offsets,
            timestamps=options.time,
            producers=options.producer,
            engine=options.engine,
            advance=advance,
        )
