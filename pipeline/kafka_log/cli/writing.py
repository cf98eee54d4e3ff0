"""Options and output that the commands share that write logs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_log.cli.common import COULD_NOT_RUN, GOOD, PROBLEMS, Group, progress_of
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import argument_type
from kafka_log.cli.selection import PLACES, warn_of_no_match
from kafka_log.cli.tables import add_table_arguments, show, size_of
from kafka_log.segment.paths import local_path

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

Text = Callable[["pa.Table", int | None], str]
Job = Callable[["LogDirectory", Callable[[int], None]], "pa.Table"]


def add_writing_arguments(
    command: argparse.ArgumentParser,
    selection_options: Sequence[str] = PLACES,
    help_texts: Mapping[str, str] | None = None,
    *,
    needs_out: bool = True,
    paths: bool = True,
) -> Group:
    """Add ``--out``, which is required if ``needs_out``, and the arguments of
    :func:`~kafka_log.cli.tables.add_table_arguments`, without PATH unless ``paths``. Return the
    group of ``--out``, for further options. Raise KeyError for an unknown name in
    ``selection_options``.
    """
    output = add_table_arguments(command, selection_options, help_texts, paths=paths)
    output.add_argument(
        "--out",
        required=needs_out,
        type=argument_type(local_path),
        metavar="DIR",
        help="directory for the partition directories: a new one, or the one of an interrupted run of the same command",
    )
    return output


def format_rewrite_report(table: pa.Table, width: int | None) -> str:
    """Return the report of a rewrite as text, wrapped at ``width``."""
    from kafka_log.write.rewrite.report_text import format_report

    return format_report(table, width)


def exit_code_of(table: pa.Table) -> int:
    """Return exit code 1 if a report has a row ``lost``, ``refused`` or ``diverged``, else 0."""
    from kafka_log.write.rewrite.report import PROBLEMS as KINDS

    return GOOD if KINDS.isdisjoint(table.column("what").to_pylist()) else PROBLEMS


def run_writing(
    options: argparse.Namespace,
    what: str,
    job: Job,
    text: Text | None = format_rewrite_report,
    *,
    others: Sequence[LogDirectory] = (),
    empty: str = "nothing to write: there are no segments",
) -> int:
    """Run a job with a progress bar and print its report. Return 0; 1 if it has a row ``lost``,
    ``refused`` or ``diverged``; 2 after printing an OSError about a file once the output directory
    exists. Raise other errors of the job and of :func:`~kafka_log.cli.tables.show`; Interrupted on
    Ctrl-C.

    Args:
        options: Arguments of the command.
        what: Label of the bar.
        job: Writes logs, calls its second argument with numbers of bytes done, and returns the report.
        text: Formats the report; None: print columns.
        others: Further log directories that the job reads.
        empty: Text to print for a report without rows.
    """
    code_of_report = GOOD
    names: list[str] = []

    def answer(log: LogDirectory) -> pa.Table:
        """Run the job with a progress bar and return its report; note its exit code."""
        nonlocal code_of_report
        names.extend(f"{p.topic}-{p.partition}" for p in log.all_partitions)
        total = sum(map(size_of, (log, *others)))
        with progress_of(what, total, describe_done=describe_progress) as advance:
            table = job(log, advance)
        if getattr(options, "offsets", None) or getattr(options, "time", None):
            cut_out = [n for n, what in zip(*(table.column(c).to_pylist() for c in ("records", "what")), strict=True) if what in ("kept", "rewritten")]  # fmt: skip
            if (
                table.num_rows and not any(cut_out) and exit_code_of(table) == GOOD
            ):  # without rows `show` says it
                warn_of_no_match(options)
        code_of_report = exit_code_of(table)
        return table

    def describe_progress() -> str:
        """Describe how many partitions are complete, for the message after an interruption."""
        done = sum((options.out / name).exists() for name in names)
        return f"{done} of {len(names)} partitions are complete in {options.out}; run the same command again to continue"

    try:
        code = show(options, answer, empty, text, has_bar=True)
    except OSError as error:
        if (
            error.filename is None or not options.out.is_dir()
        ):  # of the standard output, or nothing is begun
            raise
        print_message(error)
        print_message(describe_progress())
        return COULD_NOT_RUN
    return code_of_report or code
