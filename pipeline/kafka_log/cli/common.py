"""Options and messages that commands share: paths, policies, engines, progress, exit codes."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from codecgen.runtime.extras import INSTALL
from codecgen.runtime.located_bytes import Limits
from kafka_log.cli.interruption import describe_on_interrupt
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import number_type
from kafka_log.inspect.statistics.hidden_records import list_before_log_start
from kafka_log.logs.discovery import Survey, survey
from kafka_log.logs.names import STATES, parse_partition_name
from kafka_log.logs.partitions import (
    Partition,
    Segment,
    SkippedPath,
    describe_skipped,
    filter_by_topics,
    filter_segments,
    select_partitions,
)
from kafka_log.logs.removed_segments import read_options
from kafka_log.logs.replicas import select_replicas
from kafka_log.read.selection import Selection
from kafka_log.segment.kernels import (
    ENGINES,
    KERNEL_MIN_BYTES,
    KERNEL_MIN_BYTES_OF_HEADERS,
    use_kernels,
)
from kafka_log.segment.model import Policy
from kafka_log.segment.reader import Batches, SegmentReader

GOOD, PROBLEMS, COULD_NOT_RUN = 0, 1, 2
FORMATS = ("text", "jsonl", "csv", "parquet", "arrow")
"""Output formats of tables."""

Group = argparse._ArgumentGroup
"""Group of options in a help text."""

EXIT_CODES = "exit codes: 0 no problem; 1 damage or another problem was found; 2 could not run, or was interrupted"
"""Last line of the help of every command."""


class EngineError(Exception):
    """Raised if the requested engine is not installed."""


def warn_of_skipped_segments(segments: Sequence[Segment]) -> None:
    """Print one line to stderr about excluded segments (:func:`describe_skipped_segments`). Print nothing if
    there are none.
    """
    if segments:
        print_message(describe_skipped_segments(segments))


def describe_skipped_segments(segments: Sequence[Segment]) -> str:
    """Return one line about excluded segments: number and size by state, and the value of
    ``--include`` that reads them.
    """
    from rich import filesize  # takes time to load

    parts = []
    for state in STATES:
        sizes = [segment.size for segment in segments if segment.state == state]
        if sizes:
            parts.append(f"{len(sizes)} {state} ({filesize.decimal(sum(sizes))})")
    states = ",".join(state for state in STATES if any(s.state == state for s in segments))
    return f"segments that are not live were skipped: {', '.join(parts)}; add --include {states} to read them"


def warn_of_skipped_paths(found: Sequence[SkippedPath]) -> None:
    """Print one line to stderr about files and directories that are not read, the first five by
    name, with the reasons; print nothing if there are none.
    """
    if found:
        print_message(describe_skipped(found))


def warn_of_deleted_records(partitions: Sequence[Partition], selection: Selection) -> None:
    """Print one line to stderr about the partitions that may have selected records below the log
    start offset, the first five by name. Print nothing if there are none, or if the selection
    includes such records. Raise OSError if the directory of a checkpoint may not be searched.
    """
    if not selection.deleted_records and (places := list_before_log_start(partitions, selection)):
        print_message(
            f"records below the log start offset were skipped: {places}; add --deleted-records to read them"
        )


def find_partitions(options: argparse.Namespace) -> list[Partition]:
    """Return the partitions that the options select, by topic and number, and print what is skipped
    to stderr; ``[]`` if all segments are excluded by their state. A partition that cannot be read
    is returned with its ``error``. Raise NotFoundError if a topic, pattern or partition number
    selects nothing; DirectoryError if a path holds no log, or two directories hold the same
    partition and ``--replicas`` is neither keep nor newest, or is newest and they have different
    topic ids; OSError if a log directory cannot be listed.
    """
    there = survey(options.paths, options.include, unreadable_raises=False)
    partitions = _select(options, there)
    warn_of_skipped_segments(filter_segments(there.excluded_segments, options.topic))
    warn_of_skipped_paths(filter_by_topics(there.skipped_paths, options.topic))
    return partitions


def list_partitions(options: argparse.Namespace) -> list[Partition]:
    """Return the partitions that the options select now, and print nothing. Raise what
    :func:`find_partitions` raises.
    """
    return _select(options, survey(options.paths, options.include, unreadable_raises=False))


def _select(options: argparse.Namespace, there: Survey) -> list[Partition]:
    """Return the partitions of a survey that the options select. Raise what :func:`find_partitions` raises."""
    partitions = select_partitions(
        there.partitions, options.topic, options.partition, there.excluded_segments
    )
    return select_replicas(partitions, options.replicas or "error")


def may_get_partitions(paths: Sequence[str]) -> bool:
    """Return whether paths (at least one) may hold further partitions later. Return False if the
    only path is the directory of a partition, or no directory.
    """
    if len(paths) > 1:
        return True
    path = Path(paths[0])
    return path.is_dir() and parse_partition_name(path.resolve()) is None


def add_paths(command: argparse.ArgumentParser) -> None:
    """Add the positional argument PATH, one or more times, as ``paths``."""
    command.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="segment, partition directory, log directory, or directory above log directories",
    )


def add_output(command: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> Group:
    """Add ``--format`` with the choices ``formats`` (default ``text``) in the group "output" of the
    help. Return the group, for further options.
    """
    output = command.add_argument_group("output")
    output.add_argument(
        "--format",
        choices=formats,
        default="text",
        help="output format: text for people, the others for programs (default %(default)s)",
    )
    return output


def add_reading(command: argparse.ArgumentParser) -> None:
    """Add the options that say how batches are read, in the group "reading" of the help:
    ``--policy``, ``--engine``, and the limits ``--max-decompressed`` and ``--max-elements``.
    """
    reading = command.add_argument_group("reading")
    add_policy(reading)
    add_engine(reading)
    reading.add_argument(
        "--max-decompressed",
        type=number_type("a number of bytes"),
        metavar="BYTES",
        help="maximum size of a compressed section after decompression (default: 256 MiB, the limit of the schema)",
    )
    reading.add_argument(
        "--max-elements",
        type=number_type("a number of records"),
        default=Limits().elements,
        metavar="N",
        help="maximum number of records in a batch (default %(default)s)",
    )


def add_policy(reading: Group) -> None:
    """Add the option ``--policy`` with all policies as choices; the default is ``kafka``."""
    reading.add_argument(
        "--policy",
        choices=[p.value for p in Policy],
        default=Policy.KAFKA.value,
        help="what to accept. strict: only what the formats allow; kafka: what Apache Kafka's reader accepts; "
        "salvage: also complete records of torn batches, and continue after damage (default %(default)s)",
    )


def add_engine(reading: Group) -> None:
    """Add the option ``--engine`` with the choices ``auto`` (default), ``construct`` and ``arrow``."""
    reading.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="decoder; the output is the same. construct: the reference codecs; arrow: compiled kernels, which need numba;"
        " auto: kernels for large inputs (default %(default)s)",
    )


def add_salvage_policy(command: argparse.ArgumentParser, damaged: str) -> None:
    """Add the option ``--policy`` with the choices kafka (default) and salvage, in the group
    "reading" of the help. ``damaged`` ends the help text of salvage: the log whose damage it skips,
    and what the answer lacks then.

    Args:
        command: Parser of the command.
        damaged: Log whose damage salvage skips, and what the answer lacks then.
    """
    command.add_argument_group("reading").add_argument(
        "--policy",
        choices=[Policy.KAFKA.value, Policy.SALVAGE.value],
        default=Policy.KAFKA.value,
        help=f"kafka: stop at damage; salvage: continue after damage in {damaged} (default %(default)s)",
    )


def add_show_secrets(output: Group) -> None:
    """Add the option ``--show-secrets``, False by default, to a group of the help."""
    output.add_argument(
        "--show-secrets",
        action="store_true",
        help="show passwords and other secrets in records of internal topics (default: hidden)",
    )


Open = Callable[[Segment], Batches]


def make_opener(options: argparse.Namespace, partitions: list[Partition], records: bool) -> Open:
    """Return a function that gives a reader of a segment's batches, with records or (``records``
    False) headers only. It uses kernels if ``--engine`` is ``arrow``, or if it is ``auto`` and they
    are loaded, or installed and worth loading for the total size of ``partitions``; else the
    reference codecs. Raise EngineError if ``--engine`` is ``arrow`` and numpy or pyarrow is
    missing.
    """
    limits = Limits(decompressed=options.max_decompressed, elements=options.max_elements)
    size = sum(segment.size for p in partitions for segment in p.segments)
    if not use_kernels(
        size, options.engine, KERNEL_MIN_BYTES if records else KERNEL_MIN_BYTES_OF_HEADERS
    ):
        return lambda segment: SegmentReader(
            segment.path,
            policy=options.policy,
            limits=limits,
            records=records,
            **read_options(segment),
        )
    try:
        from kafka_log.segment.block_reader import BlockReader
    except ImportError as error:
        raise EngineError(
            f"--engine arrow needs numpy, pyarrow and numba ({error}): use --engine construct, or install them with "
            + INSTALL.format("fast")
        ) from None
    return lambda segment: BlockReader(
        segment.path,
        policy=options.policy,
        limits=limits,
        engine=options.engine,
        records=records,
        **read_options(segment),
    )


QUIET_SECONDS = 1.0
"""Delay before a bar appears."""


@contextmanager
def progress_of(
    what: str,
    total: int | None,
    *,
    shown: bool = True,
    describe_done: Callable[[], str] = lambda: "nothing was printed",
) -> Iterator[Callable[[int], None]]:
    """Give a function that counts bytes done, and show a progress bar with the label ``what`` on
    stderr after a second. There is no bar if ``shown`` is False or stderr is not a terminal. Turn a
    KeyboardInterrupt in the ``with`` block into Interrupted with ``describe_done()`` and, if
    ``total`` is known, the bytes read.

    Args:
        what: Label of the bar.
        total: Number of bytes to read; None if unknown.
        shown: False shows no bar. There is none either if stderr is not a terminal.
        describe_done: Returns what was done so far, for the message after Ctrl-C.

    Yields:
        Function to call with each number of bytes that are done.
    """
    done = 0

    def count(n: int) -> None:
        nonlocal done
        done += n

    def describe_interruption() -> str:
        """Describe what was done, with the number of bytes read if the total is known."""
        from rich import filesize

        if total is None:
            return describe_done()
        return f"{describe_done()}; read {filesize.decimal(done)} of {filesize.decimal(total)} of the segments"

    with describe_on_interrupt(describe_interruption):
        if not (shown and sys.stderr.isatty()):
            yield count
            return
        with _bar(what, total) as advance:

            def count_and_advance(n: int) -> None:
                count(n)
                advance(n)

            yield count_and_advance


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield the function that advances a bar on stderr by a number of bytes. ``what`` is its label,
    ``total`` its size (None: unknown). The bar appears after QUIET_SECONDS and is removed at the
    end of the ``with`` block.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(what, total=total)
    # Not when bytes are done: the first of them may take long.
    later = threading.Timer(QUIET_SECONDS, progress.start)
    later.daemon = True
    later.start()
    try:
        yield lambda n: progress.update(task, advance=n)
    finally:
        later.cancel()
        later.join()
        progress.stop()


def screen_width() -> int | None:
    """Return the width for text output in columns, at least 60: COLUMNS, or the width of the
    terminal. Return None if the output is not a terminal and COLUMNS is unset.
    """
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return max(shutil.get_terminal_size((80, 24)).columns, 60)
    return None
