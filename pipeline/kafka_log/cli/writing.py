"""Commands that write logs: what they share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_log.cli.common import COULD_NOT_RUN, PROBLEMS, progress_of
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import argument
from kafka_log.cli.selection import PLACES, say_unmatched
from kafka_log.cli.tables import add_table_arguments, show, size_of
from kafka_log.segment.places import local_path

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

Text = Callable[["pa.Table", int | None], str]
Job = Callable[["LogDirectory", Callable[[int], None]], "pa.Table"]


def add_writing_arguments(
    command: argparse.ArgumentParser,
    choose: Sequence[str] = PLACES,
    but: Mapping[str, str] | None = None,
) -> None:
    """Paths, where to write, what is chosen (as of :func:`~kafka_log.cli.tables.add_table_arguments`), and the output of what is said."""
    add_table_arguments(command, choose, but)
    command.add_argument(
        "--out",
        required=True,
        type=argument(local_path),
        metavar="DIR",
        help="where the partitions' directories go: a new directory, or that of the same command before",
    )


def _said(table: pa.Table, width: int | None) -> str:
    from kafka_log.write.rewrite.report_text import format_report

    return format_report(table, width)


def run_writing(options: argparse.Namespace, what: str, job: Job, text: Text | None = _said) -> int:
    """Run a job with a bar, print what it says. ``text`` is for :func:`~kafka_log.cli.tables.show`. 1 when something is lost or
    refused."""
    bad = False
    names: list[str] = []

    def answer(log: LogDirectory) -> pa.Table:
        nonlocal bad
        names.extend(f"{p.topic}-{p.partition}" for p in log.all_partitions)
        total = size_of(log)
        with progress_of(what, total, made=whole) as advance:
            table = job(log, advance)
        if getattr(options, "offsets", None) or getattr(options, "time", None):
            cut_out = [n for n, what in zip(*(table.column(c).to_pylist() for c in ("records", "what")), strict=True) if what in ("kept", "rewritten")]  # fmt: skip
            if not any(cut_out):
                say_unmatched(options)
        bad = not {"lost", "refused"}.isdisjoint(table.column("what").to_pylist())
        return table

    def whole() -> str:
        done = sum((options.out / name).exists() for name in names)
        return f"{done} of {len(names)} partitions in {options.out} are whole, the same command goes on"

    try:
        code = show(options, answer, "no partitions", text, has_bar=True)
    except OSError as error:
        if (
            error.filename is None or not options.out.is_dir()
        ):  # of the standard output, or nothing is begun
            raise
        print_message(error)
        print_message(whole())
        return COULD_NOT_RUN
    return PROBLEMS if bad else code
