"""``kafka-log export``: a file for each partition, as Parquet, Arrow, JSON lines or CSV."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kafka_log.cli.common import (
    COULD_NOT_RUN,
    GOOD,
    PROBLEMS,
    found,
)
from kafka_log.cli.selection import RECORDS, add_selection, selection_of
from kafka_log.disk.directory import Partition
from kafka_log.segment.model import Policy

HELP = "write each partition to a file: Parquet, Arrow, JSON lines, CSV"
EXAMPLES = """\
  kafka-log export /var/lib/kafka --topic orders --out orders
  kafka-log export /var/lib/kafka --topic orders --time 2026-11-21:2026-11-22 --format jsonl --out day
  kafka-log export /var/lib/kafka --view offsets --out committed
"""


def arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    command.add_argument(
        "paths", nargs="+", metavar="PATH", help="segment, partition or log directory"
    )
    command.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="where the files go; made if need be"
    )
    command.add_argument(
        "--format",
        choices=("parquet", "arrow", "jsonl", "csv"),
        default="parquet",
        help="default %(default)s",
    )
    add_selection(command, *RECORDS)
    command.add_argument(
        "--columns",
        metavar="NAME,...",
        help="these only (default: topic, partition, and those of a record)",
    )
    command.add_argument(
        "--view",
        metavar="NAME",
        help="what the records of one of Kafka's own topics say: offsets, groups, topics, ...",
    )
    command.add_argument(
        "--policy",
        choices=[p.value for p in Policy],
        default=Policy.KAFKA.value,
        help="as of dump (default %(default)s)",
    )
    command.add_argument(
        "--overwrite", action="store_true", help="also over files that were made of something else"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command. Returns the exit code."""
    from codecgen.runtime.errors import CodecError
    from kafka_log.report.export import ExportError, export

    partitions = found(options)
    done = made = rows = bad = 0
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("")

        def told(partition: Partition, count: int) -> None:
            name = f"{partition.topic}-{partition.partition}"
            progress.update(
                task, description=f"{done + 1} of {len(partitions)}: {name}, {count:,} rows"
            )

        try:
            for file in export(
                _of_view(partitions, options.view),
                options.out,
                options.format,
                overwrite=options.overwrite,
                progress=told,
                columns=options.columns.split(",") if options.columns else None,
                view=options.view,
                selection=selection_of(options),
            ):
                done, made, rows = done + 1, made + file.made, rows + file.rows
                bad += len(file.lost) + file.damaged
                for line in file.lost:
                    progress.console.print(
                        f"kafka-log: {line}", highlight=False, soft_wrap=True, markup=False
                    )
                kept = "" if file.made else " (was there)"
                hurt = (
                    f", {file.damaged:,} of damaged batches: see column damage"
                    if file.damaged
                    else ""
                )
                progress.console.print(
                    f"{file.path}: {file.rows:,} rows{hurt}{kept}", highlight=False, soft_wrap=True
                )
        except KeyboardInterrupt:
            print(
                f"kafka-log: interrupted: {done} of {len(partitions)} files are whole, the same command goes on",
                file=sys.stderr,
            )
            return COULD_NOT_RUN
        except (ExportError, ValueError) as error:
            print(f"kafka-log: {error}", file=sys.stderr)
            return COULD_NOT_RUN
        except CodecError as error:
            print(f"kafka-log: {error}", file=sys.stderr)
            print(
                f"kafka-log: {done} of {len(partitions)} files are whole; --policy salvage goes on after damage",
                file=sys.stderr,
            )
            return PROBLEMS
    print(
        f"{done} files, {rows:,} rows: {made} written, {done - made} as they were", file=sys.stderr
    )
    return PROBLEMS if bad else GOOD


def _of_view(partitions: list[Partition], view: str | None) -> list[Partition]:
    """Those of the topic of a view."""
    if view is None:
        return partitions
    from kafka_log.tables.topic_views import topic_view

    return topic_view(view, None).partitions(partitions)
