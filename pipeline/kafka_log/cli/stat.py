"""``kafka-log stat``: partitions in numbers."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from kafka_log.cli.common import GOOD, PROBLEMS, add_common, opener
from kafka_log.disk.directory import discover
from kafka_log.report.summary import Summary, summarize

HELP = "sum up partitions: records, offsets, codecs, problems"
EXAMPLES = """\
  kafka-log stat /var/lib/kafka
  kafka-log stat /var/lib/kafka/orders-0 --deep --output json
"""


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_common(command, "text", ["text", "json"])
    command.add_argument(
        "--deep",
        action="store_true",
        help="decode every record too, not headers and checksums only",
    )


def run(options: argparse.Namespace) -> int:
    """Run the command. Returns the exit code."""
    partitions = discover(options.paths, unreadable_raises=False)
    total = sum(segment.size for p in partitions for segment in p.segments)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("reading", total=total)
        summaries = summarize(
            partitions,
            opener(options, partitions, options.deep),
            lambda n: progress.update(task, advance=n),
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
    else:
        _print_summaries(summaries, whole)
    return PROBLEMS if whole.problems else GOOD


def _print_summaries(summaries: list[Summary], whole: Summary) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = [
        "partition",
        "segments",
        "bytes",
        "batches",
        "records",
        "offsets",
        "from",
        "to",
        "magic",
        "codecs",
    ]
    columns += ["producers", "control", "problems"]
    for name in columns:
        left = name in ("partition", "from", "to", "magic", "codecs")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for s in [*summaries, *([whole] if len(summaries) != 1 else [])]:
        table.add_row(*_row(s))
    console = Console(width=None if sys.stdout.isatty() else 240, highlight=False, markup=False)
    console.print(table)
    for problem in whole.problems:
        console.print(f"!! {problem}", soft_wrap=True)


def _row(s: Summary) -> list[str]:
    offsets = "" if s.first_offset is None else f"{s.first_offset}..{s.last_offset}"
    magics = " ".join(f"v{m}" for m in sorted(s.magics))
    codecs = " ".join(f"{name}:{n}" for name, n in sorted(s.codecs.items()))
    numbers = [str(n) for n in (s.segments, s.size, s.batches, s.records)]
    ends = [_time(s.first_timestamp), _time(s.last_timestamp)]
    rest = [str(n) for n in (len(s.producers), s.control_batches, len(s.problems))]
    return [s.name, *numbers, offsets, *ends, magics, codecs, *rest]


def _time(timestamp: int | None) -> str:
    if timestamp is None:
        return ""
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(timestamp)
