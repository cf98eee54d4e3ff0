"""``kafka-log report``: Write one self-contained HTML page about logs, to attach to an incident. It begins with a verdict: what is wrong, where, and what to do next. \
Then come findings with remedies, maps of damaged segments, transactions, consumer groups, throughput, batches and codecs, partitions, retention, leader epochs, \
versions and settings. The page has no script, loads nothing, and hides secrets.

The exit code is 1 if a finding is an error or a warning, a transaction hangs, or something could not be read. The page is written in any case.
"""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_log.cli.common import (
    COULD_NOT_RUN,
    GOOD,
    PROBLEMS,
    add_paths,
    describe_skipped_segments,
    progress_of,
    screen_width,
)
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import argument_type
from kafka_log.cli.selection import PLACES, add_selection
from kafka_log.cli.tables import size_of
from kafka_log.logs.partitions import NO_LIVE_SEGMENT, NotFoundError, describe_skipped
from kafka_log.segment.paths import local_path, make_path
from kafka_log.segment.times import milliseconds, present
from kafka_log.segment.urls import is_url

if TYPE_CHECKING:
    from kafka_log.log_directory import LogDirectory

HELP = "write one HTML page about logs, to attach to an incident"
EXAMPLES = """\
  kafka-log report samples/kafka-4.x --out report.html
  kafka-log report samples/kafka-4.x --topic 'c*' --deep --out codecs.html
  kafka-log report samples/kafka-4.x --now 2026-11-22 --out incident.html
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select partitions, ``--deep``, ``--now``, ``--out``, ``--overwrite``
    and ``--title`` to the parser of ``kafka-log report``.
    """
    add_paths(command)
    add_selection(command, *PLACES)
    reading = command.add_argument_group("reading")
    reading.add_argument(
        "--deep",
        action="store_true",
        help="decode every record (default: only batch headers and checksums)",
    )
    reading.add_argument(
        "--now",
        type=argument_type(milliseconds),
        metavar="TIME",
        help="time at which the log was in this state, such as 2026-11-22T10:15; if given, the age of an open transaction alone can"
        " make it hanging (default: the present)",
    )
    output = command.add_argument_group("output")
    output.add_argument(
        "--out",
        required=True,
        type=argument_type(local_path),
        metavar="FILE",
        help="file of the page",
    )
    output.add_argument(
        "--overwrite",
        action="store_true",
        help="replace a page that another report wrote (default: exit with 2)",
    )
    output.add_argument("--title", metavar="TEXT", help="heading of the page (default: the paths)")


def run_command(options: argparse.Namespace) -> int:
    """Write the page and print one line about it. Return 2 if ``--out`` has no directory, is no
    regular file, or exists (with ``--overwrite``: if no report wrote it); 1 for an error, a
    warning, a hanging transaction or something unread; else 0. Raise OutputError if ``--out`` lies
    in a path or a broker's log directory, OutputLockedError if another process writes it,
    NotFoundError if a topic or partition is missing or all segments are excluded, DirectoryError
    without logs or if ``--replicas`` refuses copies, OSError if writing fails.
    """
    from kafka_log.write.output_lock import locked_file
    from kafka_log.write.staged_output import refuse_inside

    refuse_inside(options.out, [make_path(path) for path in options.paths if not is_url(path)])
    if refusal := _refuse_output(options):
        print_message(refusal)
        return COULD_NOT_RUN
    with locked_file(options.out):
        return _write_page(options)


def _write_page(options: argparse.Namespace) -> int:
    """Read the logs, write the page and print one line about it. The caller holds the lock of the
    file. Return and raise what :func:`run_command` does.
    """
    from kafka_log.inspect.report.contents import PASSES, gather
    from kafka_log.inspect.report.origin import Origin, format_selection
    from kafka_log.inspect.report.page import make_page
    from kafka_log.inspect.report.verdict import summarize_counts
    from kafka_log.log_directory import LogDirectory
    from kafka_log.logs.replicas import find_duplicate
    from kafka_log.write.staged_output import open_staged_file

    begun = present()

    def open_logs(replicas: str | None) -> LogDirectory:
        """Return the selected logs."""
        return LogDirectory(
            options.paths,
            topics=options.topic,
            partitions=options.partition,
            include=options.include,
            replicas=replicas,  # type: ignore[arg-type]
        )

    log = open_logs(options.replicas)
    if any(s.state != "snapshot" for s in log.excluded_segments) and not any(
        partition.segments for partition in log.all_partitions
    ):
        raise NotFoundError(NO_LIVE_SEGMENT)
    has_duplicates = find_duplicate(log.all_partitions) is not None
    newest = open_logs("newest") if has_duplicates else log
    remarks = list(_list_remarks(log))
    for line in remarks:
        print_message(line)
    with progress_of(
        "reading", size_of(log), describe_done=lambda: "no page was written"
    ) as advance:
        contents = gather(
            log,
            newest,
            deep=options.deep,
            now=options.now,
            remarks=remarks,
            advance=_divide(advance, PASSES),
        )
        page = make_page(
            contents,
            Origin(
                options.paths,
                format_selection(
                    options.topic, options.partition, options.include, options.replicas
                ),
                _format_own_options(options),
                begun,
                present(),
                options.title or ", ".join(map(str, options.paths)),
                has_duplicates,
                options.now,
            ),
        )
        if refusal := _refuse_output(options):  # another program may have written it meanwhile
            print_message(refusal)
            return COULD_NOT_RUN
        with open_staged_file(options.out) as file:
            file.write(page)
    _print_summary(summarize_counts(contents), len(page))
    return PROBLEMS if contents.has_problems else GOOD


def _divide(advance: Callable[[int], None], passes: int) -> Callable[[int], None]:
    """Return a function that calls ``advance`` with the bytes that are done, counted once although
    they are read ``passes`` times.
    """
    done = 0

    def count(n: int) -> None:
        """Add bytes that were read."""
        nonlocal done
        advance((done + n) // passes - done // passes)
        done += n

    return count


def _print_summary(counts: str, size: int) -> None:
    """Print one line, wrapped at the width of the screen: ``counts`` (the words about findings),
    and the ``size`` of the page in bytes.
    """
    from rich import filesize

    line = f"{counts}; the page has {filesize.decimal(size)}"
    print("\n".join(textwrap.wrap(line, screen_width() or len(line))))


def _refuse_output(options: argparse.Namespace) -> str | None:
    """Return why ``--out`` must not be written to, None if it may be written. It must not if its
    directory does not exist, it is no regular file or a symbolic link, or it exists and either
    ``--overwrite`` is missing or no report wrote it. Raise OSError if an existing file cannot be
    read.
    """
    from kafka_log.inspect.report.html import is_page

    out: Path = options.out
    if not out.parent.is_dir():
        return (
            f"{out}: the directory {out.parent} does not exist: create it, or choose another --out"
        )
    if not os.path.lexists(out):
        return None
    if not out.is_file() or out.is_symlink():
        return f"{out}: this is not a regular file: choose another --out"
    if not options.overwrite:
        return f"{out}: the file exists: choose another --out, or add --overwrite to replace it"
    with out.open("rb") as file:
        if is_page(file.read(2048)):
            return None
    return f"{out}: kafka-log report did not write this file: choose another --out"


def _list_remarks(log: LogDirectory) -> Iterator[str]:
    """Yield one line about segments that are not read because of their states (metadata snapshots
    do not count), and one about paths that are skipped; nothing if there are none.
    """
    segments = [segment for segment in log.excluded_segments if segment.state != "snapshot"]
    if segments:
        yield describe_skipped_segments(segments)
    if log.skipped_paths:
        yield describe_skipped(log.skipped_paths)


def _format_own_options(options: argparse.Namespace) -> list[str]:
    """Return the options of the report besides its selection, as words of a command line."""
    words = ["--deep"] if options.deep else []
    if options.now is not None:
        words += ["--now", str(options.now)]
    return [*words, "--out", os.fspath(options.out)]
