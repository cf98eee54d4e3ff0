"""Options and messages that commands share: paths, policies, engines, progress, exit codes."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from codecgen.runtime.located_bytes import Limits
from kafka_log.cli.interruption import describe_on_interrupt
from kafka_log.cli.messages import print_message
from kafka_log.cli.selection import PLACES, add_selection
from kafka_log.inspect.statistics.hidden_records import list_before_log_start
from kafka_log.logs.discovery import survey
from kafka_log.logs.names import STATES
from kafka_log.logs.partitions import (
    Partition,
    Segment,
    SkippedPath,
    describe_skipped,
    filter_by_topics,
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
EXIT_CODES = "exit codes: 0 good, 1 problems found, 2 could not run"


class EngineError(Exception):
    """Raised if the requested engine is not installed."""


def say_left_out(segments: Sequence[Segment]) -> None:
    """Print one line to stderr about skipped segments by state; print nothing if there are none."""
    if not segments:
        return
    from rich import filesize  # takes time to load

    parts = []
    for state in STATES:
        sizes = [segment.size for segment in segments if segment.state == state]
        if sizes:
            parts.append(f"{len(sizes)} {state} ({filesize.decimal(sum(sizes))})")
    states = ",".join(state for state in STATES if any(s.state == state for s in segments))
    print_message(f"segments left out: {', '.join(parts)}; --include {states} takes them in")


def say_passed_over(found: Sequence[SkippedPath]) -> None:
    """Print one line to stderr about skipped files and directories; print nothing if there are
    none.
    """
    if found:
        print_message(describe_skipped(found))


def say_deleted(partitions: Sequence[Partition], selection: Selection) -> None:
    """Print one line to stderr about records below the log start offsets that the selection skips,
    if any.
    """
    if not selection.deleted_records and (places := list_before_log_start(partitions, selection)):
        print_message(
            f"records left out that lie before the start of their log: {places}; --deleted-records takes them in"
        )


def find_partitions(options: argparse.Namespace) -> list[Partition]:
    """Return the partitions that the options select, and print what is skipped to stderr. Raise
    NotFoundError if no partition matches; DirectoryError if a path holds no log, or two directories
    hold the same partition and the options forbid that.
    """
    there = survey(options.paths, options.include, unreadable_raises=False)
    partitions = select_partitions(
        there.partitions, options.topic, options.partition, there.excluded_segments
    )
    partitions = select_replicas(partitions, options.replicas or "error")
    left_out = [
        s for s in there.excluded_segments if options.topic is None or s.topic in options.topic
    ]
    say_left_out(left_out)
    say_passed_over(filter_by_topics(there.skipped_paths, options.topic))
    return partitions


def add_common(
    command: argparse.ArgumentParser,
    output: str,
    outputs: list[str],
    choose: Sequence[str] = PLACES,
) -> None:
    """Add the paths, the options named by ``choose``, ``--format`` and the options of
    :func:`add_reading`.
    """
    command.add_argument(
        "paths", nargs="+", metavar="PATH", help="segment, partition or log directory"
    )
    add_selection(command, *choose)
    command.add_argument("--format", choices=outputs, default=output, help="default %(default)s")
    add_reading(command)


def add_reading(command: argparse.ArgumentParser) -> None:
    """Add the options that say how batches are read: ``--policy``, ``--engine`` and limits."""
    command.add_argument(
        "--policy",
        choices=[p.value for p in Policy],
        default=Policy.KAFKA.value,
        help="strict: only what the formats allow; kafka: what Apache Kafka's reader accepts; "
        "salvage: go on after damage and say what was lost (default %(default)s)",
    )
    command.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="construct: the reference codecs; arrow: compiled kernels, which need numba, and the reference codecs for"
        " what these do not take; auto: arrow for files that are large enough. The output is the same (default %(default)s)",
    )
    command.add_argument(
        "--max-decompressed",
        type=int,
        metavar="BYTES",
        help="the most that one compressed section may hold (default: what the schema says, 256 MiB)",
    )
    command.add_argument(
        "--max-elements",
        type=int,
        default=Limits().elements,
        metavar="N",
        help="the most records of one batch (default %(default)s)",
    )


def add_salvage_policy(command: argparse.ArgumentParser, damaged: str) -> None:
    """Add the option ``--policy`` with the choices kafka and salvage.

    Args:
        command: Parser of the command.
        damaged: Log whose damage salvage skips, and what the answer lacks then.
    """
    command.add_argument(
        "--policy",
        choices=[Policy.KAFKA.value, Policy.SALVAGE.value],
        default=Policy.KAFKA.value,
        help=f"kafka: stop at damage; salvage: continue after damage in {damaged} (default %(default)s)",
    )


def add_show_secrets(command: argparse.ArgumentParser) -> None:
    """Add the option ``--show-secrets``."""
    command.add_argument(
        "--show-secrets",
        action="store_true",
        help="show passwords and other secrets in what records of Kafka's own topics say (default: hide them)",
    )


Open = Callable[[Segment], Batches]


def make_opener(options: argparse.Namespace, partitions: list[Partition], records: bool) -> Open:
    """Return the function that opens a segment, with the engine that suits the total size. Raise
    EngineError if the engine is arrow, and its dependencies are missing.
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
            f"the engine arrow needs numpy and pyarrow, and is slow without numba ({error}): "
            'pip install "kafka-codecs[fast]"'
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
    describe_done: Callable[[], str] = lambda: "nothing is printed",
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr after a second. After Ctrl-C raise Interrupted with a description of the progress.

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
        return f"{describe_done()}; segments done: {filesize.decimal(done)} of {filesize.decimal(total)}"

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
    """Yield the function that advances a bar on stderr, which appears after ``QUIET_SECONDS``."""
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
    """Return the width for text output, at least 60; None if the output is not a terminal and
    COLUMNS is unset.
    """
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return max(shutil.get_terminal_size((80, 24)).columns, 60)
    return None
