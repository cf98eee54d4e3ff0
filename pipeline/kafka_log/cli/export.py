"""``kafka-log export``: Write the records of each partition to a file (Parquet, Arrow, JSON Lines, CSV), or with Spark to a table (Parquet,
Delta, Iceberg).
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from codecgen.runtime.nouns import count_noun
from kafka_log.cli.common import (
    COULD_NOT_RUN,
    GOOD,
    PROBLEMS,
    add_paths,
    add_policy,
    add_show_secrets,
    find_partitions,
    warn_of_deleted_records,
)
from kafka_log.cli.interruption import Interrupted, describe_on_interrupt
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import TimeRange, argument_type
from kafka_log.cli.schemas import add_decode, add_schema_version, add_schemas, reads_registry
from kafka_log.cli.selection import RECORDS, add_selection, selection_of, warn_of_no_match
from kafka_log.logs.partitions import Partition
from kafka_log.read.internal_topics import VIEWS
from kafka_log.read.parquet import Compression
from kafka_log.read.selection import Selection
from kafka_log.segment.paths import local_path, make_path
from kafka_log.segment.printable import escape_unprintable
from kafka_log.segment.urls import is_url

if TYPE_CHECKING:
    from kafka_log.read.schemas.registry import SchemaRegistry

FORMATS = ("parquet", "arrow", "jsonl", "csv")
TABLES = ("delta", "iceberg")
HELP = "write records to files (Parquet, Arrow, JSON Lines, CSV) or to a table"
EXAMPLES = """\
  kafka-log export samples/kafka-4.x --topic codecs --out orders
  kafka-log export samples/kafka-4.x --topic codecs --time 2020-01-01: --format jsonl --out recent
  kafka-log export samples/kafka-4.x --view offsets --out committed
  kafka-log export samples/schema-registry --topic customers --decode auto --out typed
  kafka-log export samples/kafka-4.x --topic codecs --spark --format delta --out orders-table
"""

_PARTITION_BY, _COMPRESSION = "topic,date", "zstd"
"""Defaults of options for tables that Spark writes."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select records, the output options and the options of ``--spark`` to
    the parser of ``kafka-log export``.
    """
    add_paths(command)
    add_selection(command, *RECORDS, types={"time": TimeRange.parse})
    output = command.add_argument_group("output")
    output.add_argument(
        "--out",
        required=True,
        type=argument_type(_parse_target),
        metavar="DIR",
        help="directory for the files, created if it is missing; with --spark the directory or s3:// URL of the table",
    )
    output.add_argument(
        "--format",
        choices=(*FORMATS, *TABLES),
        default="parquet",
        help="format of the files; delta and iceberg need --spark (default %(default)s)",
    )
    output.add_argument(
        "--columns",
        metavar="NAME,...",
        help="columns to write (default: topic, partition, and the columns of a record)",
    )
    output.add_argument(
        "--view",
        metavar="NAME",
        help="decode the records of an internal topic into columns: "
        + ", ".join(VIEWS)
        + " (default: keys and values as bytes)",
    )
    add_decode(output)
    add_schemas(output)
    add_schema_version(output)
    add_show_secrets(output)
    output.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files that another export wrote (default: exit with 2)",
    )
    add_policy(command.add_argument_group("reading"))
    tables = command.add_argument_group(
        "with Spark",
        "one table, to which each run appends new records",
    )
    tables.add_argument(
        "--spark",
        action="store_true",
        help="write with Spark to the table at --out (default: write files without Spark)",
    )
    tables.add_argument(
        "--master", metavar="URL", help="Spark master (default: this machine, all cores)"
    )
    tables.add_argument(
        "--partition-by",
        default=_PARTITION_BY,
        metavar="NAME,...",
        help="partition columns of the table, of topic, partition and date (default %(default)s)",
    )
    tables.add_argument(
        "--compression",
        choices=get_args(Compression),
        default=_COMPRESSION,
        help="compression of the table's files (default %(default)s, the smallest; lz4 is the fastest)",
    )
    tables.add_argument(
        "--ignore-data-loss",
        action="store_true",
        help="continue if records were deleted or truncated before they were exported (default: exit with 1)",
    )
    tables.add_argument(
        "--catalog",
        metavar="NAME",
        help="Iceberg catalog, as named in PyIceberg's configuration",
    )


def _parse_target(text: str) -> Path | str:
    """Return a local path, or the URL of a table as it is. Raise ValueError if the text is empty."""
    if not text:
        raise ValueError("the name of the output is empty: name a directory, or the URL of a table")
    return text if is_url(text) else local_path(text)


def run_command(options: argparse.Namespace) -> int:
    """Write one file per partition in the format of ``--format``, or with ``--spark`` one table.
    Return 0; 1 if rows were lost, damaged or not decoded, or damage stopped the export; 2 if it
    could not run (the reason is printed). Raise Interrupted on Ctrl-C; NotFoundError if a topic or
    partition does not exist; DirectoryError if a path holds no log, two directories hold one
    partition, or ``--out`` lies in a path or is in use; ModuleNotFoundError if ``--spark`` is not
    installed.
    """
    if options.spark:
        return _export_by_spark(options)
    with describe_on_interrupt(lambda: "no file is complete yet; run the same command again"):
        return _export_files(options)


def _export_files(options: argparse.Namespace) -> int:
    """Write one file per partition, and print each. Return 0; 1 if rows were lost, damaged or not
    decoded, or damage stopped the export; 2 if an option, the output directory or a file does not
    allow the export. Raise Interrupted on Ctrl-C; OSError if standard output fails, or before the
    output directory exists; NotFoundError or DirectoryError if no log matches; OutputError or
    OutputLockedError (DirectoryErrors) if ``--out`` lies in a path or is in use.
    """
    from codecgen.runtime.errors import CodecError
    from kafka_log.inspect.export import ExportError, export
    from kafka_log.write.staged_output import refuse_inside

    if options.format in TABLES:
        print_message(
            f"--format {options.format} needs --spark: add --spark, or use --format parquet"
        )
        return COULD_NOT_RUN
    only_with_spark = {
        "--master": options.master is not None,
        "--partition-by": options.partition_by != _PARTITION_BY,
        "--compression": options.compression != _COMPRESSION,
        "--ignore-data-loss": options.ignore_data_loss,
        "--catalog": options.catalog is not None,
    }
    for name, given in only_with_spark.items():
        if given:
            print_message(f"{name} is for tables that Spark writes: add --spark, or leave it out")
            return COULD_NOT_RUN
    if is_url(options.out):
        reason = "without --spark files are written to local directories only: add --spark, or name a local directory"
        print_message(f"{options.out}: {reason}")
        return COULD_NOT_RUN
    partitions, request = find_partitions(options), _ExportRequest.from_options(options)
    selection = request.selection
    refuse_inside(options.out, [make_path(path) for path in options.paths if not is_url(path)])
    topic = VIEWS.get(options.view)
    try:
        registry = _read_schemas(options)
    except ValueError as error:
        print_message(error)
        return COULD_NOT_RUN
    warn_of_deleted_records([p for p in partitions if topic in (None, p.topic)], selection)
    request.print_resumed()
    done = made = rows = bad = 0
    undecoded: Counter[tuple[str, str]] = Counter()
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with (
        ExitStack() as closed_at_end,
        Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        ) as progress,
    ):
        task = progress.add_task("")

        def describe_progress() -> str:
            """Describe how many files are complete, for the message after an interruption."""
            return f"{done} of {len(partitions)} files are complete, with {count_noun(rows, 'row', spec=',')}; run the same command again to continue"

        def show_rows(partition: Partition, count: int) -> None:
            """Show the number of rows written so far, and record when the export began."""
            request.record_begin()
            name = escape_unprintable(f"{partition.topic}-{partition.partition}")
            progress.update(
                task,
                description=f"{done + 1} of {len(partitions)}: {name}, {count_noun(count, 'row', spec=',')}",
            )

        try:
            written = export(
                _view_partitions(partitions, options.view),
                options.out,
                options.format,
                overwrite=options.overwrite,
                progress=show_rows,
                columns=None if options.columns is None else options.columns.split(","),
                view=options.view,
                show_secrets=options.show_secrets,
                selection=selection,
                decode=options.decode,
                schemas=registry,
                schema_version=options.schema_version,
            )
            for file in closed_at_end.enter_context(closing(written)):
                done, made, rows = done + 1, made + file.made, rows + file.rows
                bad += len(file.lost) + file.damaged
                for line in file.lost:
                    print_message(line)
                for reason, number in file.undecoded.items():
                    undecoded[file.partition.topic, reason] += number
                kept = "" if file.made else " (already complete)"
                hurt = (
                    f", {file.damaged:,} of them from damaged batches (see the column damage)"
                    if file.damaged
                    else ""
                )
                progress.console.print(
                    f"{escape_unprintable(str(file.path))}: {count_noun(file.rows, 'row', spec=',')}{hurt}{kept}",
                    highlight=False,
                    soft_wrap=True,
                    markup=False,
                )
        except KeyboardInterrupt:
            raise Interrupted(describe_progress()) from None
        except (ExportError, ValueError) as error:
            print_message(error)
            return COULD_NOT_RUN
        except CodecError as error:
            print_message(error)
            print_message(
                f"{done} of {len(partitions)} files are complete; to continue after damage, add --policy salvage"
                " and another --out or --overwrite"
            )
            return PROBLEMS
        except OSError as error:
            if (
                error.filename is None or not options.out.is_dir()
            ):  # of the standard output, or nothing is begun
                raise
            print_message(error)
            print_message(describe_progress())
            return COULD_NOT_RUN
    request.remove_begin()
    for (name, text), number in sorted(undecoded.items(), key=lambda item: (-item[1], item[0])):
        part, _, reason = text.partition(": ")
        count = count_noun(number, part if reason else "key or value", spec=",")
        print_message(f"topic {name}: {count} not decoded, bytes kept: {reason or text}")
    if not rows and not bad:
        warn_of_no_match(options)
    print(
        f"{count_noun(done, 'file')}, {count_noun(rows, 'row', spec=',')}: {made} written, {done - made} already complete",
        file=sys.stderr,
    )
    return PROBLEMS if bad or undecoded else GOOD


def _read_schemas(options: argparse.Namespace) -> SchemaRegistry | None:
    """Return the schemas that ``--decode`` uses, and print problems of their source. Return None if
    it uses none. Raise ValueError for ``--schemas`` or ``--schema-version`` then, and if the source is
    invalid; DirectoryError if the source has no schemas; OSError if it cannot be read.
    """
    if not reads_registry(options.decode, options.schemas, options.schema_version):
        return None
    from kafka_log.logs.discovery import survey
    from kafka_log.read.schemas.sources import read_registry

    there = survey(options.paths, (), unreadable_raises=False).partitions
    registry = read_registry(there, options.schemas)
    for problem in registry.problems:
        print_message(problem)
    return registry


class _ExportRequest:
    """Request of an export. Relative times such as ``-1h:`` refer to the time when the export began, also if it was interrupted
    and continues.
    """

    def __init__(
        self, out: Path, asked: dict[str, Any], times: TimeRange | None, selection: Selection
    ) -> None:
        from kafka_log.inspect.export import read_begin_time

        self._out = out
        self._asked = asked
        self._times = times if times is not None and times.is_relative else None
        self._begun = None if self._times is None else read_begin_time(out, asked)
        self._is_noted = self._begun is not None
        self.selection = selection
        if times is not None:
            now = times.now if self._begun is None else self._begun
            self.selection = selection.but(timestamps=times.resolve(now))

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> _ExportRequest:
        """Return the request that the options of the command describe, with its selection. Set
        ``options.time`` to None; the request resolves relative times, with the begin of an
        interrupted export of the same request if there is one. Raise OSError if the record of that
        export cannot be read.
        """
        times, options.time = options.time, None
        selection = selection_of(options)
        asked = {
            "paths": [str(p) if is_url(p) else str(local_path(p).resolve()) for p in options.paths],
            "time": None if times is None else times.text,
            **{
                name: getattr(options, name)
                for name in (
                    "format",
                    "columns",
                    "view",
                    "show_secrets",
                    "decode",
                    "schema_version",
                )
            },
            **selection.to_keywords(),
        }
        return cls(Path(options.out), asked, times, selection)

    def print_resumed(self) -> None:
        """Print a line to stderr if an interrupted export with relative times continues; else print
        nothing.
        """
        if self._times is not None and self._begun is not None:
            from kafka_log.text.values import format_time

            print_message(
                f"continues the export that began at {format_time(self._begun)}:"
                f" --time {self._times.text} is relative to that time; use another --out for a new export"
            )

    def record_begin(self) -> None:
        """Record in the output directory when the export began. Do nothing after the first call, if
        its times are not relative, or if an interrupted export of the same request continues, whose
        record stays. Raise OSError if the file cannot be written.
        """
        if self._times is not None and not self._is_noted:
            from kafka_log.inspect.export import record_begin

            record_begin(self._out, self._asked, self._times.now)
            self._is_noted = True

    def remove_begin(self) -> None:
        """Remove the record of the begin, now that the export is complete; do nothing if its times
        are not relative. Raise OSError if the file cannot be changed.
        """
        if self._times is not None:
            from kafka_log.inspect.export import remove_begin

            remove_begin(self._out, self._asked)


def _export_by_spark(options: argparse.Namespace) -> int:
    """Export with Spark and return its exit code: 1 for losses or damage, 2 if it failed. Return 2
    with a message if ``--view``, ``--overwrite``, ``--show-secrets``, ``--decode``, ``--schemas``,
    ``--schema-version`` or the format does not go with ``--spark``. Raise ModuleNotFoundError if
    the Spark package is missing; NotFoundError or DirectoryError if no log matches; CodecError for
    damage that planning meets.
    """
    wrong = {
        f"--format {options.format}": options.format not in ("parquet", *TABLES),
        "--view": options.view is not None,
        "--overwrite": options.overwrite,
        "--show-secrets": options.show_secrets,
        "--decode": options.decode is not None,
        "--schemas": options.schemas is not None,
        "--schema-version": options.schema_version is not None,
    }
    for name, given in wrong.items():
        if given:
            print_message(f"{name} does not go with --spark")
            return COULD_NOT_RUN
    # By name: this layer does not know Spark.
    command = importlib.import_module("pyspark_kafka_log.export.command")
    if options.time is not None:
        options.time = options.time.resolve(options.time.now)
    partitions, selection = find_partitions(options), selection_of(options)
    topic = VIEWS.get(options.view)
    warn_of_deleted_records([p for p in partitions if topic in (None, p.topic)], selection)
    return int(command.export_by_spark(options, selection, partitions))


def _view_partitions(partitions: list[Partition], view: str | None) -> list[Partition]:
    """Return the partitions of the topic that a view reads; all if ``view`` is None. Raise
    ValueError if the view is unknown, or none of its partitions is there.
    """
    if view is None:
        return partitions
    from kafka_log.read.topic_views import topic_view

    return topic_view(view, None).partitions(partitions)
