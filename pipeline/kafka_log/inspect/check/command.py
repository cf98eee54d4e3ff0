"""``kafka-log check``: Find damage in a log directory, and say where it is and what to do next."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_log.cli.common import PROBLEMS, add_engine, progress_of
from kafka_log.cli.selection import CHOICE, warn_of_no_match
from kafka_log.cli.tables import add_table_arguments, show
from kafka_log.logs.partitions import NO_LIVE_SEGMENT, NotFoundError
from kafka_log.segment.times import TIMES

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "find damage in batches, offsets, indexes, checkpoints and names"
FILTERS = ("offsets", "time", "producer")
"""Options that choose findings by their batches."""

EXAMPLES = """\
  kafka-log check samples/kafka-4.x
  kafka-log check samples/kafka-4.x --topic codecs --deep
  kafka-log check samples/kafka-4.x --format jsonl
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, selection options, ``--format``, ``--deep`` and ``--engine`` to the parser of
    ``kafka-log check``.
    """
    helps = {
        "offsets": "only findings about offsets from A (included) to B (excluded), and findings without an offset; A: and :B are open"
        "; negative offsets count from the end of the log: -5: selects the last 5",
        "time": f"only findings about batches with timestamps from A (included) to B (excluded); each is {TIMES}",
        "producer": "only findings about batches of this producer id, -1 for batches without one; may be repeated (default: all)",
    }
    add_table_arguments(command, (*CHOICE, "include", *helps), helps)
    command.add_argument(
        "--deep",
        action="store_true",
        help="decode every record (default: only batch headers and checksums)",
    )
    add_engine(command.add_argument_group("reading"))


def run_command(options: argparse.Namespace) -> int:
    """Check the selected logs and print the findings in ``--format``, or a sentence if there are
    none. Return 1 if a finding is an error or a warning, else 0. Raise NotFoundError if a topic or
    partition does not exist, also in no checkpoint file, or all segments (metadata snapshots do not
    count) are excluded by their state, so that none is checked, and nothing else is wrong; DirectoryError if a path holds no log.
    """
    bad = judged = 0

    def count(batches: int) -> None:
        nonlocal judged
        judged += batches

    def answer(log: LogDirectory) -> pa.Table:
        nonlocal bad
        table = _with_progress(log, options, count)
        bad = sum(severity != "note" for severity in table.column("severity").to_pylist())
        skipped = any(segment.state != "snapshot" for segment in log.excluded_segments)
        has_segments = any(partition.segments for partition in log.partitions_to_check)
        if skipped and not bad and not has_segments:
            raise NotFoundError(NO_LIVE_SEGMENT)
        if not judged and not bad:
            warn_of_no_match(options, what="no batch" if table.num_rows else "nothing")
        return table

    def describe_nothing(log: LogDirectory) -> str:
        return _describe_no_findings(options, log, judged)

    code = show(options, answer, describe_nothing, _text, has_bar=True, filtered=None)
    return PROBLEMS if bad else code


def _describe_no_findings(options: argparse.Namespace, log: LogDirectory, judged: int) -> str:
    """Return the sentence for a check without findings. It is ``nothing is wrong`` if the number
    ``judged`` of checked batches is not 0. Else it says why none was checked: there is no segment,
    the filters select no batch, or the segments have no batches.
    """
    if judged:
        return "nothing is wrong"
    count = sum(len(partition.segments) for partition in log.partitions_to_check)
    if not count:
        return "there is no segment yet: nothing was checked but files beside segments"
    segments = f"{count} segment{'s' if count > 1 else ''}"
    if any(getattr(options, name) not in (None, ()) for name in FILTERS):
        return f"no batch was checked: none in {segments} is chosen"
    return f"there is no batch yet: nothing was checked but {segments} without batches, and files beside segments"


def _text(table: pa.Table, width: int | None) -> str:
    from kafka_log.inspect.check.text import format_findings

    return format_findings(table, width)


def _with_progress(
    log: LogDirectory, options: argparse.Namespace, judged: Callable[[int], None]
) -> pa.Table:
    total = sum(partition.size for partition in log.partitions_to_check)
    with progress_of("checking", total) as advance:
        return log.check(
            deep=options.deep,
            offsets=options.offsets,
            timestamps=options.time,
            producers=options.producer,
            engine=options.engine,
            advance=advance,
            on_checked=judged,
        )
