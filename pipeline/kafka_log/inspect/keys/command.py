"""``kafka-log keys``: Count keys, tombstones and the records that compaction would remove, or list all records of a key."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_log.cli.common import PROBLEMS, progress_of, warn_of_deleted_records
from kafka_log.cli.messages import print_message
from kafka_log.cli.selection import BYTES, RECORDS, selection_of, warn_of_no_match
from kafka_log.cli.tables import add_table_arguments, show, size_of
from kafka_log.read.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory

HELP = "count keys, tombstones and obsolete records; list the records of a key"
EXAMPLES = """\
  kafka-log keys samples/kafka-4.x
  kafka-log keys samples/kafka-4.x --topic compacted --key b0
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select records, and ``--format`` to the parser of ``kafka-log keys``;
    ``--key`` lists records instead of counting.
    """
    lists = {
        "key": f"list the records with this key: {BYTES}; null: for records without a key; may be repeated to select several keys"
    }
    add_table_arguments(command, [n for n in RECORDS if n != "control_records"], lists)


def run_command(options: argparse.Namespace) -> int:
    """Print the number of keys per partition, or with ``--key`` the records of these keys. Return 1
    if a log is damaged or a file or directory cannot be read (the errors are printed), else 0.
    Raise NotFoundError if a topic or partition does not exist, DirectoryError if a path holds no
    log, or with ``--key`` if two directories hold one partition without ``--replicas``.
    """
    problems: list[str] = []
    # LogDirectory applies the removed states (include) and replicas itself.
    selection = selection_of(options).but(include=(), replicas=Selection().replicas)

    def answer(log: LogDirectory) -> pa.Table:
        """Return the table to print, and note problems."""
        warn_of_deleted_records(log.all_partitions, selection)
        with progress_of("reading", size_of(log)) as advance:
            found = read_keys(log, advance)
        if selection.keys is not None:
            is_known = options.format == "text" and len(selection.keys) == 1
            return found.drop_columns("key") if is_known else found
        problems.extend(filter(None, found.column("problem").to_pylist()))
        if not problems and not sum(found.column("records").to_pylist()):
            warn_of_no_match(options)
        return _drop_redundant_columns(found) if options.format == "text" else found

    def read_keys(log: LogDirectory, advance: Callable[[int], None]) -> pa.Table:
        """Count keys; with ``--key`` list the records of the keys instead."""
        keys = selection.keys
        if keys is None:
            return log.keys(advance=advance, selection=selection)
        return log.records_of_key(
            keys, on_problem=problems.append, advance=advance, selection=selection
        )

    empty = "no partitions" if selection.keys is None else "no record has this key"
    code = show(options, answer, empty, has_bar=True, damage=problems)
    for problem in problems:
        print_message(problem)
    return PROBLEMS if problems else code


def _drop_redundant_columns(table: pa.Table) -> pa.Table:
    """Drop the column ``problem`` if it is all null, and ``directory`` if topic and partition identify every row."""
    if table.column("problem").null_count == table.num_rows:
        table = table.drop_columns("problem")
    places = set(zip(*(table.column(n).to_pylist() for n in ("topic", "partition")), strict=True))
    return table.drop_columns("directory") if len(places) == table.num_rows else table
