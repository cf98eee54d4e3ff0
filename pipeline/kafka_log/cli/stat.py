"""``kafka-log stat``: partitions in numbers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kafka_log.cli.common import (
    GOOD,
    PROBLEMS,
    add_common,
    found,
    opener,
    progress_of,
    screen_width,
)
from kafka_log.disk.directory import Partition
from kafka_log.report.printing import printable
from kafka_log.report.summary import Summary, summarize
from kafka_log.report.text_layout import lay_out, text_column

if TYPE_CHECKING:
    from kafka_log.report.table_output import Output

HELP = "sum up partitions: records, offsets, codecs, problems"
EXAMPLES = """\
  kafka-log stat /var/lib/kafka
  kafka-log stat /var/lib/kafka/orders-0 --deep --output json
"""


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_common(command, "text", ["text", "json", "jsonl", "csv", "parquet", "arrow"])
    command.add_argument(
        "--deep",
        action="store_true",
        help="decode every record too, not headers and checksums only",
    )


def run(options: argparse.Namespace) -> int:
    """Run the command. Returns the exit code."""
    partitions = found(options)
    total = sum(segment.size for p in partitions for segment in p.segments)
    with progress_of("reading", total) as advance:
        summaries = summarize(
            partitions,
            opener(options, partitions, options.deep),
            advance,
        )
    whole = Summary("total")
    for summary in summaries:
        whole.merge(summary)
    if options.output == "json":
        objects = [s.as_object() for s in summaries]
        print(
            json.dumps(
                {"partitions": objects, "total": whole.as_object()}, indent=2, ensure_ascii=False
            )
        )
    elif options.output != "text":
        _write_table(options.output, partitions, summaries)
    else:
        _print_summaries(summaries, whole)
    return PROBLEMS if whole.problems else GOOD


def _write_table(
    output: Output, partitions: Sequence[Partition], summaries: Sequence[Summary]
) -> None:
    from kafka_log.report.summary_table import summary_table
    from kafka_log.report.table_output import write

    sys.stdout.flush()
    write(summary_table(partitions, summaries), output, sys.stdout.buffer)
    sys.stdout.buffer.flush()


_COLUMNS = (
    ("partition", False),
    ("problems", True),
    ("segments", True),
    ("bytes", True),
    ("batches", True),
    ("records", True),
    ("offsets", True),
    ("from", False),
    ("to", False),
    ("magic", False),
    ("codecs", False),
    ("producers", True),
    ("control", True),
)
"""Columns, and which of them are numbers."""


def _print_summaries(summaries: list[Summary], whole: Summary) -> None:
    rows = [_row(s) for s in [*summaries, *([whole] if len(summaries) != 1 else [])]]
    cells = [list(map(printable, column)) for column in zip(*rows, strict=True)]
    columns = [
        text_column(name, column, right=is_number, whole=is_number or name in ("from", "to"))
        for (name, is_number), column in zip(_COLUMNS, cells, strict=True)
    ]
    print(lay_out(columns, screen_width(), keys=1), end="")
    for problem in whole.problems:
        print(f"!! {printable(problem)}")


def _row(s: Summary) -> list[str]:
    offsets = "" if s.first_offset is None else f"{s.first_offset}..{s.last_offset}"
    magics = " ".join(f"v{m}" for m in sorted(s.magics))
    codecs = " ".join(f"{name}:{n}" for name, n in sorted(s.codecs.items()))
    numbers = [str(n) for n in (len(s.problems), s.segments, s.size, s.batches, s.records)]
    ends = [_time(s.first_timestamp), _time(s.last_timestamp)]
    rest = [str(n) for n in (len(s.producers), s.control_batches)]
    return [s.name, *numbers, offsets, *ends, magics, codecs, *rest]


def _time(timestamp: int | None) -> str:
    if timestamp is None:
        return ""
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(timestamp)
