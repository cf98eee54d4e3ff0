"""The command ``kafka-log export --spark``: Spark's tasks write tables of other formats. ``kafka_log.cli.export`` imports it by name."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from codecgen.runtime.nouns import count_noun
from kafka_log.cli.common import COULD_NOT_RUN, GOOD, PROBLEMS
from kafka_log.cli.interruption import Interrupted, format_message
from kafka_log.cli.messages import print_message
from kafka_log.logs.partitions import Partition
from kafka_log.read.selection import Selection
from kafka_log.segment.printable import escape_unprintable
from kafka_log.segment.ranges import counts_from_end
from pyspark_kafka_log.export import DataLossError, Exported, ExportError, TaskError, target_of
from pyspark_kafka_log.export.job import run_export
from pyspark_kafka_log.export.spark import SparkRunner
from pyspark_kafka_log.java import JavaNotFound, find_java
from pyspark_kafka_log.options import OptionError, Options
from pyspark_kafka_log.options.values import names
from pyspark_kafka_log.splits.filters import RowRanges

QUIET = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
"""
"""Spark's log of this process: nothing, as errors come as exceptions. Without an appender Spark takes its own settings."""


def export_by_spark(
    options: argparse.Namespace, selection: Selection, found: Sequence[Partition]
) -> int:
    """Export the partitions ``found`` to the table of the command line, and print the result.
    Return GOOD; PROBLEMS for lost, damaged or missed records, or a failed task; COULD_NOT_RUN, with
    the error printed, for invalid options, other export errors, a missing Java or an interruption.
    Raise CodecError for damage that planning meets; ModuleNotFoundError without the package for the
    format; DirectoryError without logs, while another process writes, or for a table inside of a
    log that is read or of a broker's log directory.
    """
    if counts_from_end(selection.offsets):
        print_message(
            "--offsets counts from the end of the log, which moves between exports to one table:"
            " with --spark give offsets from 0 on, or export without --spark"
        )
        return COULD_NOT_RUN
    try:
        target = target_of(options.out, options.format, options.catalog)
        query = RowRanges(offsets=selection.offsets, timestamps=selection.timestamps)
        wanted = Options(
            paths=tuple(options.paths),
            assign=frozenset((one.topic, one.partition) for one in found),
            selection=selection.but(
                topics=None,
                partitions=None,
                offsets=None,
                timestamps=None,
                on_damage=selection.damage,
            ),
            columns=None if options.columns is None else names("columns", options.columns),
            include_headers=True,
        )
        by = [name for name in options.partition_by.split(",") if name]
        with (
            tempfile.TemporaryDirectory() as scratch,
            warnings.catch_warnings(),
            _progress_bar() as bar,
        ):
            warnings.simplefilter("ignore", FutureWarning)  # PySpark's, of packages that it knows
            warnings.filterwarnings("ignore", "kafka-log: skipped")  # the command has said it
            task = bar.add_task("starting Spark", total=None)

            def show_progress(done: int, tasks: int) -> None:
                bar.update(task, description="tasks", completed=done, total=tasks)

            runner = SparkRunner(_session(options.master, Path(scratch)), show_progress)
            done = run_export(
                runner,
                wanted,
                target,
                by,
                query=query,
                parallelism=runner.parallelism,
                fail_on_data_loss=not options.ignore_data_loss,
                compression=options.compression,
            )
    except Interrupted as interrupt:
        print_message(format_message(interrupt))
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print_message("interrupted: nothing was added")
        return COULD_NOT_RUN
    except DataLossError as error:
        print_message(error)
        print_message("nothing was added; add --ignore-data-loss to export the records that remain")
        return PROBLEMS
    except TaskError as error:
        print_message(error)
        advice = "; add --policy salvage to continue after damage" if error.is_damage else ""
        print_message(f"nothing was added{advice}")
        return PROBLEMS
    except OptionError as error:
        print(escape_unprintable(str(error)), file=sys.stderr)  # it says kafka-log itself
        return COULD_NOT_RUN
    except (ExportError, JavaNotFound) as error:
        print_message(error)
        return COULD_NOT_RUN
    return _print_result(done)


def _print_result(done: Exported) -> int:
    """Print missed and lost records, and the number of rows and files added, to stderr. Return
    PROBLEMS if records were missed, lost, or come from damaged batches; else GOOD.
    """
    for line in (*done.missed, *done.lost):
        print_message(line)
    if done.lost_places:
        print_message(
            f"{count_noun(done.lost_bytes, 'byte', spec=',')} in {count_noun(done.lost_places, 'place', spec=',')} could not be read"
        )
    if done.damaged:
        print_message(
            f"{count_noun(done.damaged, 'row', spec=',')} from damaged batches: add problem to --columns to see which"
        )
    since = (
        f"; {count_noun(len(done.first), 'partition', spec=',')} continued from the last export"
        if done.first
        else ""
    )
    print(
        f"{escape_unprintable(done.target)}: added {count_noun(done.rows, 'row', spec=',')} in {count_noun(done.files, 'file', spec=',')}{since}",
        file=sys.stderr,
    )
    return PROBLEMS if done.lost_places or done.damaged or done.missed else GOOD


def _progress_bar() -> Progress:
    """Return a progress bar on stderr that shows finished and all tasks and the elapsed time. It is
    removed when it ends, and disabled if stderr is no terminal.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    """Return whether a log record comes from another package than Py4J, which logs the stack of a lost JVM. The command describes that in words."""
    return "py4j" not in Path(record.pathname).parts


def _session(master: str | None, scratch: Path) -> SparkSession:
    """Return a Spark session for ``master``, one that already exists in this process if there is
    one. If ``master`` is None, use Spark's own configuration if SPARK_CONF_DIR or SPARK_REMOTE is
    set. Else use a quiet local session on all cores that listens on loopback only, and set
    JAVA_HOME for it; raise JavaNotFound without a suitable Java.
    """
    builder = SparkSession.builder.appName("kafka-log export")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    logging.getLogger().addFilter(_is_not_from_py4j)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is not None:
        return builder.master(master).getOrCreate()
    if "SPARK_CONF_DIR" in os.environ or "SPARK_REMOTE" in os.environ:
        return builder.getOrCreate()
    os.environ["JAVA_HOME"] = str(find_java(os.environ, scratch).home)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = scratch / "log4j2.properties"
    quiet.write_text(QUIET, "ascii")
    return (
        builder.master("local[*]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet.as_uri()}")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
